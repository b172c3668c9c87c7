//! The simulated machine: its memory, the threads with their store buffers, and the clock.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::Location;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::explorer::{Event, Over, pause};
use crate::schedule::{Schedule, Transition};

/// Maximum time for which a store stays in a thread's buffer before it reaches memory, by the clock of the model.
const RESIDENCE_MAX: Duration = Duration::from_secs(1);
/// Maximum number of steps of an execution. An execution with more steps counts as endless.
const STEPS_MAX: usize = 20_000;

pub(crate) type Word = usize;
pub(crate) type ThreadId = usize;
pub(crate) type CallSite = &'static Location<'static>;
pub(crate) type Body = Box<dyn FnOnce() + Send>;

/// The next operation of a thread, with the data that matters to other threads. A `Word` is the index of a word in
/// memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Start,
    Load(Word),
    Store(Word),
    /// Addition to a word: a load and a store in one instruction, without LOCK.
    Add(Word),
    /// Atomic change of a word by an instruction with LOCK.
    Update(Word),
    /// Change of a word by an instruction with LOCK, made only if the word has the given value in memory.
    Compare(Word, u64),
    Fence,
    Heavy,
    Sleep(Word),
    Wake(Word),
    /// The end of a sleep: by a wake-up, or after this timeout; `None` if the sleep has no timeout.
    Awake(Option<Duration>),
    /// A wait until memory changes.
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
    /// The stores of the thread that have not reached memory, the oldest first.
    pub(crate) buffer: VecDeque<BufferedStore>,
    /// The next operation of the thread; `None` while the thread runs.
    pub(crate) next: Option<Op>,
    pub(crate) asleep_on: Option<Word>,
    pub(crate) is_finished: bool,
    /// The number of changes of memory at the time of the thread's last spin. A further spin waits for another change.
    changes_seen: usize,
    /// A hash of everything that the thread has seen, which determines what it will do.
    history: u64,
}

struct Cell {
    value: u64,
    is_live: bool,
    made: CallSite,
}

/// The state of one execution of the program: memory, threads, time, and the events so far.
pub(crate) struct State {
    cells: Vec<Cell>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) now: Duration,
    changes: usize,
    pub(crate) turn: Option<ThreadId>,
    pub(crate) schedule: Schedule,
    pub(crate) events: Vec<Event>,
    pub(crate) over: Option<Over>,
    /// The functions of the threads, by thread; `None` after the thread has started.
    pub(crate) bodies: Vec<Option<Body>>,
}

/// The modelled machine on which one execution of the program runs.
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

    /// Executes `op` on `thread` when the schedule selects that thread, perhaps after steps of other threads. `effect`
    /// changes the state as the operation does. `place` is the line of code of the operation. Unwinds if the execution
    /// is over.
    pub(crate) fn step<R>(&self, thread: ThreadId, op: Op, place: CallSite, effect: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        if std::thread::panicking() {
            return effect(&mut state); // a destructor, in an execution that has failed
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

    /// Returns the thread that has the turn; `None` when the execution is over.
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

    /// Returns the function of a thread, which the caller must run or drop.
    #[track_caller]
    pub(crate) fn start(&self, thread: ThreadId) -> Body {
        let mut state = self.lock();
        state.ran(thread, Op::Start, Location::caller());
        state.bodies[thread].take().expect("a thread starts once")
    }

    /// Ends a thread that has returned or unwound. If `over` is not `None`, the execution ends too, in the way that
    /// `over` says. The execution also ends with its last thread.
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

/// The payload of the panic by which threads unwind when the execution is over.
pub(crate) struct Unwound;

impl State {
    pub(crate) fn add_cell(&mut self, value: u64, made: CallSite) -> Word {
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

    /// Records that the thread has executed an operation, and ends its turn. The code of the thread runs on until the
    /// next operation.
    pub(crate) fn ran(&mut self, thread: ThreadId, op: Op, place: CallSite) {
        self.turn = None;
        self.threads[thread].next = None;
        self.observe(thread, 0);
        self.events.push(Event { thread, op, place: Some(place) });
    }

    /// Chooses transitions until a thread has the turn or the execution is over. A transition in which a store leaves
    /// its buffer is executed at once.
    pub(crate) fn pass_turn(&mut self) {
        while self.over.is_none() {
            if self.events.len() > STEPS_MAX {
                self.over =
                    Some(Over::Failed("the execution does not end: call `spin_loop` in loops that wait".into()));
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
            self.over =
                Some(Over::Failed(format!("a word was used after it was dropped; it was created at {}", cell.made)));
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

    /// Changes a word with LOCK: passes the value in memory to `change`, and stores the result of `change`. Stores
    /// nothing if the result is `None`. Returns the previous value.
    pub(crate) fn update(&mut self, thread: ThreadId, word: Word, change: impl FnOnce(u64) -> Option<u64>) -> u64 {
        self.drain(thread);
        let old = self.cell(word).value;
        self.observe(thread, old);
        if let Some(new) = change(old) {
            self.write(word, new);
        }
        old
    }

    /// Returns the value of a word as the thread sees it: the newest store to the word in its own buffer, or else the
    /// value in memory.
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
            // The word may have been dropped before its store leaves the buffer. A real machine rules this out: the
            // last owner gets the word through an operation that empties buffers, such as those of an `Arc`. But the
            // operations of an `Arc` are not steps of the model.
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

    /// Advances the time by `by`. Stores that have been in a buffer for too long reach memory.
    fn advance(&mut self, by: Duration) {
        self.now += by;
        for thread in 0..self.threads.len() {
            let overdue = self.overdue(&self.threads[thread], self.now).count();
            (0..overdue).for_each(|_| self.flush_oldest(thread));
        }
    }

    /// Returns the stores that must have left the thread's buffer at the time `by`, because they have been in it for
    /// too long.
    pub(crate) fn overdue<'a>(
        &self,
        thread: &'a Thread,
        by: Duration,
    ) -> impl Iterator<Item = &'a BufferedStore> + use<'a> {
        thread.buffer.iter().take_while(move |store| store.issued + RESIDENCE_MAX <= by)
    }

    /// Puts `thread` to sleep on `word`, if memory has the expected value. Returns whether the thread sleeps.
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

    /// Ends the sleep of `thread`. If no other thread has woken `thread`, the clock advances by the timeout.
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

    /// Returns the time that the model's clock shows to the thread.
    pub(crate) fn clock(&mut self, thread: ThreadId) -> Duration {
        self.observe(thread, self.now.as_nanos() as u64);
        self.now
    }

    fn observe(&mut self, thread: ThreadId, value: u64) {
        let history = &mut self.threads[thread].history;
        *history = hash_of(|hasher| (*history, value).hash(hasher));
    }

    /// Returns a hash of the state. It is equal for two states from which the same executions can follow.
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
