//! Runs a program in every order of its steps that could make a difference.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, Once, PoisonError};

use generator::{Generator, Gn};

use crate::machine::{CallSite, Machine, Op, State, ThreadId, Unwound};
use crate::quarantine;
use crate::schedule::Schedule;

/// Maximum number of executions of one exploration. More executions would take too long.
const EXECUTIONS_MAX: u64 = 2_000_000;

/// Size of the stack of each thread, in words.
const STACK_WORDS: usize = 1 << 15;

/// The way in which an execution of the program ends.
#[derive(Clone, Debug)]
pub(crate) enum Over {
    /// All threads have returned.
    Done,
    /// The rest of this execution was explored before, in an execution with another order of steps.
    Redundant,
    Failed(String),
}

/// An event of an execution: a step of `thread`, or a store that leaves its buffer. `place` is the line of code of the
/// step; `None` for a store that leaves the buffer.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    pub(crate) thread: ThreadId,
    pub(crate) op: Op,
    pub(crate) place: Option<CallSite>,
}

/// The numbers of executions that an exploration without a failure has run.
#[derive(Clone, Copy, Debug)]
pub struct Exploration {
    /// The number of executions that ran to their end.
    pub executions: u64,
    /// The number of executions that were aborted, because the rest had been explored before.
    pub redundant: u64,
}

/// The description of an execution that fails.
#[derive(Debug)]
pub struct Failure {
    /// The cause of the failure.
    pub what: String,
    /// The events that led to the failure, as text, one event per element.
    pub schedule: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.what)?;
        self.schedule.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

/// Runs `program`, and the threads that it spawns, in every order that could make a difference.
///
/// # Errors
///
/// The first failing execution that is found.
///
/// # Panics
///
/// If there are too many executions: make the program smaller.
pub fn explore(program: impl Fn() + Send + Sync + 'static) -> Result<Exploration, Failure> {
    // Only one exploration runs at a time, because its end releases the memory that was freed in it.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    keep_quiet_in_models();
    let program = Arc::new(program);
    let mut explored = Exploration { executions: 0, redundant: 0 };
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
        assert!(
            explored.executions + explored.redundant < EXECUTIONS_MAX,
            "too many executions, make the program smaller: {explored:?}"
        );
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
    // Threads that have not ended, or not even started, unwind.
    while let Some(thread) = machine.unfinished() {
        resume_thread(threads, &machine, thread);
    }
    let mut state = machine.lock();
    quarantine::release();
    let over = state.over.clone().unwrap_or(Over::Done);
    (over, std::mem::take(&mut state.events), std::mem::take(&mut state.schedule))
}

/// The code of a thread of the model, which can be paused. All threads of the model run on one thread of the host, one
/// at a time. Each has its own stack, which later executions reuse.
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

/// Stops the current coroutine, so that another one can run.
#[allow(deprecated)] // the function that replaces it needs an argument that every atomic access would have to pass on
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

/// Runs a thread of the model from its start to its end.
fn run(machine: &Machine, thread: ThreadId) {
    let result = panic::catch_unwind(AssertUnwindSafe(|| {
        let body = machine.start(thread);
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

/// Returns the machine and the thread of the model that is running now; `None` outside of a model.
pub(crate) fn current() -> Option<(Arc<Machine>, ThreadId)> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// Executes a step of the current thread: the operation `op`. The closure `effect` changes the state of the machine as
/// the operation does.
#[track_caller]
pub(crate) fn step<R>(op: Op, effect: impl FnOnce(&mut State, ThreadId) -> R) -> R {
    let (machine, thread) = current().expect("types of `ascertain_tso` must be used in `explore`");
    machine.step(thread, op, std::panic::Location::caller(), |state| effect(state, thread))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".into())
}

/// Suppresses the output of panics in a model. Their messages are stored in the [`Failure`] instead.
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
