//! The choice of the next step: a depth-first search through all orders that could make a difference.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::explorer::Over;
use crate::machine::{Op, State, ThreadId, Word};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    /// The thread executes its next operation.
    Step(ThreadId),
    /// The oldest store in the thread's buffer reaches memory.
    Flush(ThreadId),
}

/// A state that the current execution went through. `options` are the transitions to explore from this state, and
/// `taken` is the index of the one that this execution takes.
struct Branch {
    options: Vec<Transition>,
    taken: usize,
}

/// The path of transitions from the start of the program to the current state, and the visited states. Both are kept
/// for the next execution.
#[derive(Default)]
pub(crate) struct Schedule {
    path: Vec<Branch>,
    depth: usize,
    /// Transitions that need not be executed from the current state. They were explored before, and no transition since
    /// then depends on them.
    asleep: Vec<Transition>,
    last: ThreadId,
    /// For each visited state, identified by its hash: the transitions that have never been explored from it.
    visited: HashMap<u64, Vec<Transition>>,
}

impl Schedule {
    /// Returns the schedule for the next execution; `None` if all orders have been explored.
    pub(crate) fn next(mut self) -> Option<Self> {
        while let Some(mut branch) = self.path.pop() {
            branch.taken += 1;
            if branch.taken < branch.options.len() {
                self.path.push(branch);
                return Some(Self { path: self.path, visited: self.visited, ..Self::default() });
            }
        }
        None
    }
}

impl State {
    fn possible(&self) -> Vec<Transition> {
        let threads = self.threads.len();
        // The thread that ran last comes first, because switching threads takes the most time.
        let order = (0..threads).map(|nth| (self.schedule.last + nth) % threads);
        let steps = order.filter(|&thread| self.can_step(&self.threads[thread])).map(Transition::Step);
        let flushes = (0..threads).filter(|&thread| !self.threads[thread].buffer.is_empty()).map(Transition::Flush);
        steps.chain(flushes).collect()
    }

    /// Returns the next transition of this execution, or the way in which the execution ends.
    pub(crate) fn choose(&mut self) -> Result<Transition, Over> {
        let possible = self.possible();
        if possible.is_empty() {
            return Err(Over::Failed(self.deadlock()));
        }
        let hash = self.hash();
        let Schedule { path, depth, asleep, visited, .. } = &mut self.schedule;
        if *depth == path.len() {
            match visited.entry(hash) {
                Entry::Vacant(entry) => drop(entry.insert(asleep.clone())),
                Entry::Occupied(entry) if entry.get().iter().all(|option| asleep.contains(option)) => {
                    return Err(Over::Redundant);
                }
                Entry::Occupied(mut entry) => entry.get_mut().retain(|option| asleep.contains(option)),
            }
            let options: Vec<_> = possible.iter().filter(|option| !asleep.contains(option)).copied().collect();
            if options.is_empty() {
                return Err(Over::Redundant);
            }
            path.push(Branch { options, taken: 0 });
        }
        let branch = &path[*depth];
        *depth += 1;
        let chosen = branch.options[branch.taken];
        if !possible.contains(&chosen) {
            return Err(Over::Failed(
                "the program takes different steps than in the previous run; it must not depend on addresses or clocks"
                    .into(),
            ));
        }
        asleep.extend_from_slice(&branch.options[..branch.taken]);
        let mut asleep = std::mem::take(asleep);
        asleep.retain(|&other| !self.depend(other, chosen));
        self.schedule.asleep = asleep;
        if let Transition::Step(thread) = chosen {
            self.schedule.last = thread;
        }
        Ok(chosen)
    }

    fn deadlock(&self) -> String {
        let waits = self.threads.iter().enumerate().filter(|(_, thread)| !thread.is_finished);
        let what = waits.map(|(id, thread)| match thread.next {
            Some(Op::Awake(_)) => format!("thread {id} sleeps"),
            Some(Op::Spin) => format!("thread {id} spins"),
            Some(Op::Join(other)) => format!("thread {id} joins thread {other}"),
            other => format!("thread {id}: {other:?}"),
        });
        format!("all threads wait for one another: {}", what.collect::<Vec<_>>().join(", "))
    }

    /// Returns whether exchanging the two transitions could make a difference.
    fn depend(&self, a: Transition, b: Transition) -> bool {
        use Transition::{Flush, Step};
        match (a, b) {
            (Step(x), Step(y)) | (Flush(x), Flush(y)) if x == y => true,
            (Step(x), Flush(y)) | (Flush(y), Step(x)) if x == y => self.drains_or_reads_oldest(x),
            _ => {
                let (a, b) = (self.footprint(a), self.footprint(b));
                a.disturbs(&b) || b.disturbs(&a)
            }
        }
    }

    /// Returns whether the next operation of `thread` would differ if the oldest store in the thread's own buffer
    /// reached memory first.
    fn drains_or_reads_oldest(&self, thread: ThreadId) -> bool {
        let oldest = self.threads[thread].buffer.front().map(|store| store.word);
        match self.threads[thread].next {
            Some(Op::Load(word) | Op::Add(word)) => oldest == Some(word),
            Some(Op::Start | Op::Store(_) | Op::Clock | Op::Join(_)) | None => false,
            Some(_) => true,
        }
    }

    fn footprint(&self, transition: Transition) -> Footprint {
        let thread = match transition {
            Transition::Step(thread) | Transition::Flush(thread) => &self.threads[thread],
        };
        let mut footprint = Footprint::default();
        if let Transition::Flush(_) = transition {
            footprint.writes.extend(thread.buffer.front().map(|store| store.word));
            return footprint;
        }
        let buffered = thread.buffer.iter().map(|store| store.word);
        match thread.next {
            None | Some(Op::Start | Op::Join(_)) => {}
            Some(Op::Store(_) | Op::Clock) => footprint.reads_clock = true,
            Some(op @ (Op::Load(word) | Op::Add(word))) => {
                footprint.reads = (!buffered.into_iter().any(|other| other == word)).then_some(word);
                footprint.reads_clock = op == Op::Add(word);
            }
            Some(Op::Update(word)) => {
                footprint.writes.extend(buffered);
                footprint.writes.push(word);
            }
            Some(Op::Compare(word, expected)) => {
                let is_equal = self.seen_by(thread, word) == expected;
                footprint.writes.extend(buffered);
                footprint.writes.extend(is_equal.then_some(word));
                footprint.reads = Some(word);
            }
            Some(Op::Sleep(word)) => {
                footprint.writes.extend(buffered);
                footprint.reads = Some(word);
                footprint.sleeps_on = Some(word);
            }
            Some(Op::Wake(word)) => {
                footprint.writes.extend(buffered);
                footprint.wakes = Some(word);
            }
            Some(Op::Free(word)) => footprint.writes.push(word),
            Some(Op::Fence | Op::Exit) => footprint.writes.extend(buffered),
            Some(Op::Spin) => footprint.reads_all = true,
            Some(Op::Awake(timeout)) => {
                if let (Some(_), Some(timeout)) = (thread.asleep_on, timeout) {
                    footprint.sleeps_on = thread.asleep_on;
                    footprint.reads_clock = true;
                    footprint.writes_clock = true;
                    let overdue = |thread| self.overdue(thread, self.now + timeout).map(|store| store.word);
                    footprint.writes.extend(self.threads.iter().flat_map(overdue));
                }
            }
            Some(Op::Heavy) => {
                // The barrier moves earlier stores to memory, but not later ones. So its order with each store matters.
                footprint.writes_clock = true;
                footprint.writes.extend(self.threads.iter().flat_map(|thread| &thread.buffer).map(|store| store.word));
            }
        }
        footprint
    }
}

/// The words and the clock that a transition reads or writes. Two transitions depend on each other if one writes what
/// the other uses.
#[derive(Default)]
struct Footprint {
    reads: Option<Word>,
    reads_all: bool,
    writes: Vec<Word>,
    /// The word on which the thread falls asleep, or on which it slept until its timeout.
    sleeps_on: Option<Word>,
    wakes: Option<Word>,
    reads_clock: bool,
    writes_clock: bool,
}

impl Footprint {
    fn disturbs(&self, reader: &Self) -> bool {
        let is_used = |word| reader.reads_all || reader.reads == Some(word) || reader.writes.contains(&word);
        self.writes.iter().any(|&word| is_used(word))
            || self.writes_clock && reader.reads_clock
            || self.wakes.is_some() && self.wakes == reader.sleeps_on
    }
}
