//! Memory, threads with their store buffers, and the clock.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::Location;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::explorer::{Event, Over, pause};
use crate::schedule::{Schedule, Transition};

/// No store stays in a buffer for longer.
const RESIDENCE_MAX: Duration = Duration::from_secs(1);
/// An execution of more steps has no end.
const STEPS_MAX: usize = 20_000;

pub(crate) type Word = usize;
pub(crate) type ThreadId = usize;
pub(crate) type Place = &'static Location<'static>;
pub(crate) type Body = Box<dyn FnOnce() + Send>;

/// What a thread is about to do, as far as others are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Start,
    Load(Word),
    Store(Word),
    /// Load and store in one instruction, without LOCK.
    Add(Word),
    /// With LOCK.
    Update(Word),
    /// With LOCK: writes if memory has that value.
    Compare(Word, u64),
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

pub(crate) struct BufferedStore {
    pub(crate) word: Word,
    value: u64,
    issued: Duration,
}

pub(crate) struct Thread {
    /// The oldest store first.
    pub(crate) buffer: VecDeque<BufferedStore>,
    /// None while it runs.
    pub(crate) next: Option<Op>,
    pub(crate) asleep_on: Option<Word>,
    pub(crate) is_finished: bool,
    /// Memory's changes when it last spun.
    changes_seen: usize,
    /// All that it has seen: whatever it will do is a function of that.
    history: u64,
}

struct Cell {
    value: u64,
    is_live: bool,
    made: Place,
}

/// One execution's state.
pub(crate) struct State {
    cells: Vec<Cell>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) now: Duration,
    changes: usize,
    pub(crate) turn: Option<ThreadId>,
    pub(crate) schedule: Schedule,
    pub(crate) events: Vec<Event>,
    pub(crate) over: Option<Over>,
    /// What threads that have not started yet will do.
    pub(crate) bodies: Vec<Option<Body>>,
}

/// One execution.
pub(crate) struct Machine {
    state: Mutex<State>,
}

impl Machine {
    pub(crate) fn new(schedule: Schedule) -> Self {
        let state = State {
            cells: Vec::new(),
            threads: Vec::new(),
            now: Duration::ZERO,
            changes: 0,
            turn: None,
            schedule,
            events: Vec::new(),
            over: None,
            bodies: Vec::new(),
        };
        Self { state: Mutex::new(state) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `thread` do `op` once the schedule says so, after others perhaps. Unwinds when the execution is over.
    pub(crate) fn step<R>(&self, thread: ThreadId, op: Op, place: Place, effect: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        if std::thread::panicking() {
            return effect(&mut state); // a destructor, in an execution that is lost
        }
        if state.over.is_none() {
            state.threads[thread].next = Some(op);
            state.pass_turn();
        }
        if state.over.is_none() && state.turn != Some(thread) {
            drop(state);
            pause();
            state = self.lock();
        }
        if state.over.is_some() {
            drop(state);
            std::panic::resume_unwind(Box::new(Unwound));
        }
        let result = effect(&mut state);
        state.ran(thread, op, place);
        result
    }

    /// Whose turn it is; none when the execution is over.
    pub(crate) fn turn(&self) -> Option<ThreadId> {
        let state = self.lock();
        if state.over.is_some() { None } else { state.turn }
    }

    pub(crate) fn unfinished(&self) -> Option<ThreadId> {
        self.lock().threads.iter().position(|thread| !thread.is_finished)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.lock().over.is_some()
    }

    /// What the thread will do, as its turn has come, or to be dropped.
    #[track_caller]
    pub(crate) fn begin(&self, thread: ThreadId) -> Body {
        let mut state = self.lock();
        state.ran(thread, Op::Start, Location::caller());
        state.bodies[thread].take().expect("a thread starts once")
    }

    /// The thread has returned, or unwound; the last one ends the execution, if it was not over before.
    pub(crate) fn finish(&self, thread: ThreadId, over: Option<Over>) {
        let mut state = self.lock();
        state.threads[thread].is_finished = true;
        let is_last = state.threads.iter().all(|thread| thread.is_finished);
        if let Some(over) = over.or(is_last.then_some(Over::Done)) {
            state.over.get_or_insert(over);
        }
        state.pass_turn();
    }
}

/// What threads unwind with when the execution is over.
pub(crate) struct Unwound;

impl State {
    pub(crate) fn add_cell(&mut self, value: u64, made: Place) -> Word {
        self.cells.push(Cell { value, is_live: true, made });
        self.cells.len() - 1
    }

    pub(crate) fn add_thread(&mut self, body: Body) -> ThreadId {
        self.bodies.push(Some(body));
        self.threads.push(Thread {
            buffer: VecDeque::new(),
            next: Some(Op::Start),
            asleep_on: None,
            is_finished: false,
            changes_seen: 0,
            history: 0,
        });
        self.threads.len() - 1
    }

    /// The thread has its turn no more, and goes on until its next step.
    pub(crate) fn ran(&mut self, thread: ThreadId, op: Op, place: Place) {
        self.turn = None;
        self.threads[thread].next = None;
        self.observe(thread, 0);
        self.events.push(Event { thread, op, place: Some(place) });
    }

    /// Runs transitions of memory until it is a thread's turn, or the execution is over.
    pub(crate) fn pass_turn(&mut self) {
        while self.over.is_none() {
            if self.events.len() > STEPS_MAX {
                self.over = Some(Over::Failed("no end: does a loop wait without `spin_loop`?".into()));
                return;
            }
            match self.choose() {
                Ok(Transition::Flush(thread)) => self.flush_oldest(thread),
                Ok(Transition::Step(thread)) => {
                    self.turn = Some(thread);
                    return;
                }
                Err(over) => self.over = Some(over),
            }
        }
    }

    fn cell(&mut self, word: Word) -> &mut Cell {
        let cell = &mut self.cells[word];
        if !cell.is_live && self.over.is_none() {
            self.over = Some(Over::Failed(format!("used after it was dropped: made at {}", cell.made)));
        }
        cell
    }

    pub(crate) fn load(&mut self, thread: ThreadId, word: Word) -> u64 {
        self.cell(word);
        let value = self.seen_by(&self.threads[thread], word);
        self.observe(thread, value);
        value
    }

    pub(crate) fn store(&mut self, thread: ThreadId, word: Word, value: u64) {
        let issued = self.now;
        self.threads[thread].buffer.push_back(BufferedStore { word, value, issued });
    }

    /// Loads from memory and stores what `change` makes of it, with LOCK.
    pub(crate) fn update(&mut self, thread: ThreadId, word: Word, change: impl FnOnce(u64) -> Option<u64>) -> u64 {
        self.drain(thread);
        let old = self.cell(word).value;
        self.observe(thread, old);
        if let Some(new) = change(old) {
            self.write(word, new);
        }
        old
    }

    /// The newest store of its buffer to that place, or what is in memory.
    pub(crate) fn seen_by(&self, thread: &Thread, word: Word) -> u64 {
        let newest = thread.buffer.iter().rev().find(|store| store.word == word);
        newest.map_or(self.cells[word].value, |store| store.value)
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

    pub(crate) fn drain(&mut self, thread: ThreadId) {
        while !self.threads[thread].buffer.is_empty() {
            self.flush_oldest(thread);
        }
    }

    pub(crate) fn drain_all(&mut self) {
        (0..self.threads.len()).for_each(|thread| self.drain(thread));
    }

    /// Time passes.
    fn advance(&mut self, by: Duration) {
        self.now += by;
        for thread in 0..self.threads.len() {
            let overdue = self.overdue(&self.threads[thread], self.now).count();
            (0..overdue).for_each(|_| self.flush_oldest(thread));
        }
    }

    /// The stores that have left the thread's buffer by then.
    pub(crate) fn overdue<'a>(
        &self,
        thread: &'a Thread,
        by: Duration,
    ) -> impl Iterator<Item = &'a BufferedStore> + use<'a> {
        thread.buffer.iter().take_while(move |store| store.issued + RESIDENCE_MAX <= by)
    }

    /// Puts `thread` to sleep, if memory has what it expects.
    pub(crate) fn sleep(&mut self, thread: ThreadId, word: Word, expected: u64) -> bool {
        self.drain(thread);
        let falls_asleep = self.cell(word).value == expected;
        self.observe(thread, u64::from(falls_asleep));
        self.threads[thread].asleep_on = falls_asleep.then_some(word);
        falls_asleep
    }

    pub(crate) fn wake_all(&mut self, thread: ThreadId, word: Word) {
        self.drain(thread);
        for thread in self.threads.iter_mut().filter(|thread| thread.asleep_on == Some(word)) {
            thread.asleep_on = None;
        }
    }

    /// Ends the sleep of `thread`: by time, if nobody woke it.
    pub(crate) fn awake(&mut self, thread: ThreadId, timeout: Option<Duration>) {
        if self.threads[thread].asleep_on.take().is_some() {
            self.advance(timeout.unwrap_or_default());
        }
    }

    pub(crate) fn spin(&mut self, thread: ThreadId) {
        self.threads[thread].changes_seen = self.changes;
    }

    pub(crate) fn free(&mut self, thread: ThreadId, word: Word) {
        self.threads[thread].buffer.retain(|store| store.word != word);
        self.cell(word).is_live = false;
    }

    /// The time, as the thread sees it.
    pub(crate) fn clock(&mut self, thread: ThreadId) -> Duration {
        self.observe(thread, self.now.as_nanos() as u64);
        self.now
    }

    fn observe(&mut self, thread: ThreadId, value: u64) {
        let history = &mut self.threads[thread].history;
        *history = hash_of(|hasher| (*history, value).hash(hasher));
    }

    /// Equal for two states after which the same can happen.
    pub(crate) fn hash(&self) -> u64 {
        hash_of(|hasher| {
            self.now.hash(hasher);
            self.cells.iter().for_each(|cell| (cell.value, cell.is_live).hash(hasher));
            for thread in &self.threads {
                let can_spin = thread.changes_seen != self.changes;
                (thread.history, thread.asleep_on, thread.is_finished, can_spin).hash(hasher);
                thread.buffer.iter().for_each(|store| (store.word, store.value, store.issued).hash(hasher));
            }
        })
    }

    pub(crate) fn can_step(&self, thread: &Thread) -> bool {
        match thread.next {
            None => false,
            Some(Op::Awake(timeout)) => thread.asleep_on.is_none() || timeout.is_some(),
            Some(Op::Spin) => thread.changes_seen != self.changes,
            Some(Op::Join(other)) => self.threads[other].is_finished,
            Some(_) => true,
        }
    }
}

fn hash_of(write: impl FnOnce(&mut DefaultHasher)) -> u64 {
    let mut hasher = DefaultHasher::new();
    write(&mut hasher);
    hasher.finish()
}
