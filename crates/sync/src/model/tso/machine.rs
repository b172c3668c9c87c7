//! Memory, threads with their store buffers, and the clock.

use std::collections::VecDeque;
use std::panic::Location;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::explorer::{Event, Over};
use super::schedule::{Schedule, Transition};

/// No store stays in a buffer for longer.
const RESIDENCE_MAX: Duration = Duration::from_secs(1);
/// An execution of more steps has no end.
const STEPS_MAX: usize = 20_000;

pub(super) type Word = usize;
pub(super) type ThreadId = usize;
pub(super) type Place = &'static Location<'static>;

/// What a thread is about to do, as far as others are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Start,
    Load(Word),
    Store(Word),
    /// Load and store in one instruction, without LOCK.
    Add(Word),
    /// With LOCK.
    Update(Word),
    Fence,
    Heavy,
    Sleep(Word),
    Wake(Word),
    /// Asleep until woken, or until the time-out, if there is one.
    Awake(Option<Duration>),
    /// Until memory changes.
    Spin,
    Clock,
    Free(Word),
    Join(ThreadId),
    Exit,
}

pub(super) struct BufferedStore {
    pub(super) word: Word,
    value: u64,
    issued: Duration,
}

pub(super) struct Thread {
    /// The oldest store first.
    pub(super) buffer: VecDeque<BufferedStore>,
    /// None while it runs.
    pub(super) next: Option<Op>,
    pub(super) asleep_on: Option<Word>,
    pub(super) is_finished: bool,
    /// Memory's changes when it last spun.
    changes_seen: usize,
}

struct Cell {
    value: u64,
    is_live: bool,
    made: Place,
}

/// One execution's state.
pub(super) struct State {
    cells: Vec<Cell>,
    pub(super) threads: Vec<Thread>,
    pub(super) now: Duration,
    changes: usize,
    pub(super) turn: Option<ThreadId>,
    pub(super) schedule: Schedule,
    pub(super) events: Vec<Event>,
    pub(super) over: Option<Over>,
    pub(super) os_threads: Vec<std::thread::JoinHandle<()>>,
}

/// One execution.
pub(super) struct Machine {
    state: Mutex<State>,
    turned: Condvar,
}

impl Machine {
    pub(super) fn new(schedule: Schedule) -> Self {
        let state = State {
            cells: Vec::new(),
            threads: Vec::new(),
            now: Duration::ZERO,
            changes: 0,
            turn: None,
            schedule,
            events: Vec::new(),
            over: None,
            os_threads: Vec::new(),
        };
        Self { state: Mutex::new(state), turned: Condvar::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `thread` do `op` once the schedule says so, after others perhaps.
    ///
    /// When the execution is over, unwinds; a destructor that is then run does what it does at once.
    pub(super) fn step<R>(
        &self,
        thread: ThreadId,
        op: Op,
        place: Place,
        effect: impl FnOnce(&mut State) -> R,
    ) -> R {
        let mut state = self.lock();
        // A thread that starts was not running: the turn is somebody else's.
        if state.over.is_none() && op != Op::Start {
            state.threads[thread].next = Some(op);
            self.pass_turn(&mut state);
        }
        while state.turn != Some(thread) && state.over.is_none() {
            state = self.turned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.over.is_some() {
            if !std::thread::panicking() {
                drop(state);
                std::panic::resume_unwind(Box::new(Unwound));
            }
            return effect(&mut state);
        }
        state.turn = None;
        state.threads[thread].next = None;
        let result = effect(&mut state);
        state.events.push(Event { thread, op, place: Some(place) });
        result
    }

    /// Runs transitions of memory until it is a thread's turn, or nobody's.
    pub(super) fn pass_turn(&self, state: &mut State) {
        while state.over.is_none() {
            if state.events.len() > STEPS_MAX {
                state.over = Some(Over::Failed("no end: does a loop wait without `spin_loop`?".into()));
                break;
            }
            match state.choose() {
                Ok(Transition::Flush(thread)) => state.flush_oldest(thread),
                Ok(Transition::Step(thread)) => {
                    state.turn = Some(thread);
                    break;
                }
                Err(over) => state.over = Some(over),
            }
        }
        self.turned.notify_all();
    }

    /// Ends the execution, unless it is over already.
    pub(super) fn end(&self, over: Over) {
        let mut state = self.lock();
        state.over.get_or_insert(over);
        self.turned.notify_all();
    }

    /// The thread has returned; the last one ends the execution.
    pub(super) fn finish(&self, thread: ThreadId) {
        let mut state = self.lock();
        state.threads[thread].is_finished = true;
        if state.over.is_none() {
            if state.threads.iter().all(|thread| thread.is_finished) {
                state.over = Some(Over::Done);
            }
            self.pass_turn(&mut state);
        }
    }
}

/// What threads unwind with when the execution is over.
pub(super) struct Unwound;

impl State {
    pub(super) fn add_cell(&mut self, value: u64, made: Place) -> Word {
        self.cells.push(Cell { value, is_live: true, made });
        self.cells.len() - 1
    }

    pub(super) fn add_thread(&mut self) -> ThreadId {
        self.threads.push(Thread {
            buffer: VecDeque::new(),
            next: Some(Op::Start),
            asleep_on: None,
            is_finished: false,
            changes_seen: 0,
        });
        self.threads.len() - 1
    }

    fn cell(&mut self, word: Word) -> &mut Cell {
        let cell = &mut self.cells[word];
        if !cell.is_live && self.over.is_none() {
            self.over = Some(Over::Failed(format!("used after it was dropped: made at {}", cell.made)));
        }
        cell
    }

    /// What `thread` sees.
    pub(super) fn load(&mut self, thread: ThreadId, word: Word) -> u64 {
        let in_memory = self.cell(word).value;
        let newest = self.threads[thread].buffer.iter().rev().find(|store| store.word == word);
        newest.map_or(in_memory, |store| store.value)
    }

    pub(super) fn store(&mut self, thread: ThreadId, word: Word, value: u64) {
        let issued = self.now;
        self.threads[thread].buffer.push_back(BufferedStore { word, value, issued });
    }

    /// Loads from memory and stores what `change` makes of it, with LOCK.
    pub(super) fn update(&mut self, thread: ThreadId, word: Word, change: impl FnOnce(u64) -> Option<u64>) -> u64 {
        self.drain(thread);
        let old = self.cell(word).value;
        if let Some(new) = change(old) {
            self.write(word, new);
        }
        old
    }

    fn write(&mut self, word: Word, value: u64) {
        let cell = self.cell(word);
        let is_change = cell.value != value;
        cell.value = value;
        self.changes += usize::from(is_change);
    }

    fn flush_oldest(&mut self, thread: ThreadId) {
        if let Some(store) = self.threads[thread].buffer.pop_front() {
            self.events.push(Event { thread, op: Op::Store(store.word), place: None });
            // A word that is gone by then: its last owner was handed it by something that empties buffers, such as an
            // `Arc`, but is no step of the model.
            if self.cells[store.word].is_live {
                self.write(store.word, store.value);
            }
        }
    }

    pub(super) fn drain(&mut self, thread: ThreadId) {
        while !self.threads[thread].buffer.is_empty() {
            self.flush_oldest(thread);
        }
    }

    pub(super) fn drain_all(&mut self) {
        (0..self.threads.len()).for_each(|thread| self.drain(thread));
    }

    /// Time passes.
    fn advance(&mut self, by: Duration) {
        self.now += by;
        for thread in 0..self.threads.len() {
            let is_old = |store: &BufferedStore| store.issued + RESIDENCE_MAX <= self.now;
            let old = self.threads[thread].buffer.iter().take_while(|store| is_old(store)).count();
            (0..old).for_each(|_| self.flush_oldest(thread));
        }
    }

    /// Puts `thread` to sleep, if memory has what it expects.
    pub(super) fn sleep(&mut self, thread: ThreadId, word: Word, expected: u64) -> bool {
        self.drain(thread);
        let falls_asleep = self.cell(word).value == expected;
        self.threads[thread].asleep_on = falls_asleep.then_some(word);
        falls_asleep
    }

    pub(super) fn wake_all(&mut self, thread: ThreadId, word: Word) {
        self.drain(thread);
        for thread in self.threads.iter_mut().filter(|thread| thread.asleep_on == Some(word)) {
            thread.asleep_on = None;
        }
    }

    /// Ends the sleep of `thread`: by time, if nobody woke it.
    pub(super) fn awake(&mut self, thread: ThreadId, timeout: Option<Duration>) {
        if self.threads[thread].asleep_on.take().is_some() {
            self.advance(timeout.unwrap_or_default());
        }
    }

    pub(super) fn spin(&mut self, thread: ThreadId) {
        self.threads[thread].changes_seen = self.changes;
    }

    pub(super) fn free(&mut self, thread: ThreadId, word: Word) {
        self.threads[thread].buffer.retain(|store| store.word != word);
        self.cell(word).is_live = false;
    }

    pub(super) fn can_step(&self, thread: &Thread) -> bool {
        match thread.next {
            None => false,
            Some(Op::Awake(timeout)) => thread.asleep_on.is_none() || timeout.is_some(),
            Some(Op::Spin) => thread.changes_seen != self.changes,
            Some(Op::Join(other)) => self.threads[other].is_finished,
            Some(_) => true,
        }
    }
}
