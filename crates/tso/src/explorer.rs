//! Runs a program until there is no other way to run it.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, Once, PoisonError};

use generator::{Generator, Gn};

use crate::machine::{Machine, Op, Place, State, ThreadId, Unwound};
use crate::quarantine;
use crate::schedule::Schedule;

/// More executions than this are too many to wait for.
const EXECUTIONS_MAX: u64 = 2_000_000;

/// Of each thread's stack.
const STACK_WORDS: usize = 1 << 15;

/// How an execution ends.
#[derive(Clone, Debug)]
pub(crate) enum Over {
    /// All threads have returned.
    Done,
    /// What is left was seen before, in another order.
    Redundant,
    Failed(String),
}

/// What happened: a thread's step or, without a place, a store that left its buffer.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    pub(crate) thread: ThreadId,
    pub(crate) op: Op,
    pub(crate) place: Option<Place>,
}

/// How much there was to explore.
#[derive(Clone, Copy, Debug)]
pub struct Explored {
    /// Executions that ran to their end.
    pub executions: u64,
    /// Executions that were given up, since what was left of them had been seen.
    pub redundant: u64,
}

/// An execution that fails.
#[derive(Debug)]
pub struct Failure {
    /// What went wrong.
    pub what: String,
    /// What happened until then, a step a line.
    pub schedule: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.what)?;
        self.schedule.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

/// Runs `program`, and the threads that it spawns, in every way that could make a difference.
///
/// # Errors
///
/// The first execution found that fails.
///
/// # Panics
///
/// When there are too many executions: make the program smaller.
pub fn explore(program: impl Fn() + Send + Sync + 'static) -> Result<Explored, Failure> {
    // One at a time: what one has freed is released when it ends.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    keep_quiet_in_models();
    let program = Arc::new(program);
    let mut explored = Explored { executions: 0, redundant: 0 };
    let mut threads = Vec::new();
    let mut schedule = Some(Schedule::default());
    let mut failure = None;
    while let Some(path) = schedule {
        let (over, events, path) = execute(&program, path, &mut threads);
        schedule = path.next();
        match over {
            Over::Done => explored.executions += 1,
            Over::Redundant => explored.redundant += 1,
            Over::Failed(what) => {
                failure = Some(Failure { what, schedule: lines(&events) });
                break;
            }
        }
        assert!(explored.executions + explored.redundant < EXECUTIONS_MAX, "too much to explore: {explored:?}");
    }
    threads.iter_mut().for_each(|thread| resume(thread, None));
    failure.map_or(Ok(explored), Err)
}

fn execute(
    program: &Arc<impl Fn() + Send + Sync + 'static>,
    schedule: Schedule,
    threads: &mut Vec<Coroutine>,
) -> (Over, Vec<Event>, Schedule) {
    let machine = Arc::new(Machine::new(schedule));
    let program = program.clone();
    machine.lock().add_thread(Box::new(move || program()));
    machine.lock().pass_turn();
    while let Some(thread) = machine.turn() {
        resume_thread(threads, &machine, thread);
    }
    // Those that have not ended, or not even begun, unwind.
    while let Some(thread) = machine.unfinished() {
        resume_thread(threads, &machine, thread);
    }
    let mut state = machine.lock();
    quarantine::release();
    let over = state.over.clone().unwrap_or(Over::Done);
    (over, std::mem::take(&mut state.events), std::mem::take(&mut state.schedule))
}

/// A thread of the model: all run on one of the host's, one at a time, each on a stack of its own, which serves one
/// execution after the other.
type Coroutine = Generator<'static, (), ()>;

fn coroutine() -> Coroutine {
    Gn::new_opt(STACK_WORDS, || {
        while let Some((machine, thread)) = current() {
            run(&machine, thread);
            drop(machine);
            pause();
        }
    })
}

/// Lets another coroutine run.
#[allow(deprecated)] // what replaces it must be handed down to every atomic access
pub(crate) fn pause() {
    generator::yield_with(());
}

fn resume_thread(threads: &mut Vec<Coroutine>, machine: &Arc<Machine>, thread: ThreadId) {
    if threads.len() <= thread {
        threads.resize_with(thread + 1, coroutine);
    }
    resume(&mut threads[thread], Some((machine.clone(), thread)));
}

fn resume(coroutine: &mut Coroutine, current: Option<(Arc<Machine>, ThreadId)>) {
    CURRENT.set(current);
    quarantine::keep(true);
    coroutine.resume();
    quarantine::keep(false);
    CURRENT.set(None);
}

/// A thread from its start to its end.
fn run(machine: &Machine, thread: ThreadId) {
    let result = panic::catch_unwind(AssertUnwindSafe(|| {
        let body = machine.begin(thread);
        if machine.is_over() {
            return drop(body);
        }
        body();
        step(Op::Exit, |state, thread| state.drain(thread));
    }));
    let over = result.err().filter(|panic| !panic.is::<Unwound>()).map(|panic| Over::Failed(message(&*panic)));
    machine.finish(thread, over);
}

thread_local! {
    static CURRENT: RefCell<Option<(Arc<Machine>, ThreadId)>> = const { RefCell::new(None) };
}

/// The machine and the thread of the model that this thread is; none outside of a model.
pub(crate) fn current() -> Option<(Arc<Machine>, ThreadId)> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// A step of the current thread.
#[track_caller]
pub(crate) fn step<R>(op: Op, effect: impl FnOnce(&mut State, ThreadId) -> R) -> R {
    let (machine, thread) = current().expect("called outside of `ascertain_tso::explore`");
    machine.step(thread, op, std::panic::Location::caller(), |state| effect(state, thread))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".into())
}

/// A panic in a model is kept for its [`Failure`] rather than printed.
fn keep_quiet_in_models() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if current().is_none() {
                print(info);
            }
        }));
    });
}

fn lines(events: &[Event]) -> Vec<String> {
    let line = |event: &Event| match event.place {
        Some(place) => format!("thread {}: {:?} at {place}", event.thread, event.op),
        None => format!("thread {}'s {:?} reaches memory", event.thread, event.op),
    };
    events.iter().map(line).collect()
}
