//! The sequences of `sys::rseq` step by step: every order in which two threads of one CPU and a third one on another can
//! take them, with every moment at which the kernel can stop a thread. And controls, which must fail.
//!
//! A step is an instruction that touches memory. A thread that is switched away from in the middle of a sequence begins it
//! again. Stores are seen at once: the two threads share a CPU, and between CPUs it is the kernel's fence that they rely on.
#![cfg(not(any(miri, model = "loom", model = "tso")))]
#![allow(missing_docs)]

use std::collections::HashSet;
use std::hash::Hash;

/// What the machine does; the controls leave something out.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kernel {
    aborts: bool,
    fences: bool,
}

const REAL: Kernel = Kernel { aborts: true, fences: true };
const WITHOUT_ABORTS: Kernel = Kernel { aborts: false, fences: true };
const WITHOUT_FENCE: Kernel = Kernel { aborts: true, fences: false };

/// One thread's place in its work: which of its sequences, which step of that, and its registers.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Thread {
    sequence: u8,
    step: u8,
    /// What the sequence has read.
    limit: usize,
    top: usize,
    item: u8,
    /// What the thread has.
    held: u8,
}

/// The two threads of CPU 0, of which one runs, and the one of CPU 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Threads {
    here: [Thread; 2],
    running: usize,
    there: Thread,
}

impl Threads {
    fn new() -> Self {
        Self { here: [Thread::default(); 2], running: 0, there: Thread::default() }
    }

    /// The kernel lets the other thread run.
    fn switch(&mut self, kernel: Kernel) {
        if kernel.aborts {
            self.here[self.running].step = 0;
        }
        self.running = 1 - self.running;
    }

    /// The kernel interrupts CPU 0, whose thread begins its sequence again.
    fn fence(&mut self, kernel: Kernel) {
        if kernel.fences {
            self.here[self.running].step = 0;
        }
    }
}

/// A state of the machine. `step` takes one step of the thread that runs on CPU 0, or of that on CPU 1; none where that
/// thread has nothing left to do.
trait State: Copy + Eq + Hash {
    fn threads(&mut self) -> &mut Threads;
    fn here(self, kernel: Kernel) -> Option<Self>;
    fn there(self, kernel: Kernel) -> Option<Self>;
    fn is_right(&self, is_over: bool) -> bool;
}

/// Goes to every state that can be reached; how many there are, if all are right.
fn explore<S: State>(start: S, kernel: Kernel) -> Option<usize> {
    let (mut seen, mut open) = (HashSet::from([start]), vec![start]);
    while let Some(state) = open.pop() {
        let mut switched = state;
        switched.threads().switch(kernel);
        let next = [state.here(kernel), state.there(kernel)];
        let is_over = next.iter().all(Option::is_none) && switched.here(kernel).is_none();
        if !state.is_right(is_over) {
            return None;
        }
        open.extend(next.into_iter().flatten().chain([switched]).filter(|state| seen.insert(*state)));
    }
    Some(seen.len())
}

/// A stack with items 1 and 2. Each thread of CPU 0 pops and pushes; the other CPU stops it, takes all, and lets it go on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Stealing {
    threads: Threads,
    slots: [u8; 3],
    top: usize,
    floor: usize,
    ceiling: usize,
    /// How often each item is on the list that all share.
    shared: [u8; 3],
    /// A control: the sequences read the top before the limit that says whether they may.
    reads_top_first: bool,
}

const POP: u8 = 0;
const PUSH: u8 = 1;
const OVER: u8 = 2;

impl Stealing {
    fn new() -> Self {
        let (slots, threads) = ([1, 2, 0], Threads::new());
        Self { threads, slots, top: 2, floor: 0, ceiling: slots.len(), shared: [0; 3], reads_top_first: false }
    }
}

impl State for Stealing {
    fn threads(&mut self) -> &mut Threads {
        &mut self.threads
    }

    fn here(mut self, _: Kernel) -> Option<Self> {
        let mut thread = self.threads.here[self.threads.running];
        match (thread.sequence, thread.step) {
            (OVER.., _) => return None,
            (sequence, step @ (0 | 1)) => {
                if (step == 0) == self.reads_top_first {
                    thread.top = self.top;
                } else {
                    thread.limit = if sequence == POP { self.floor } else { self.ceiling };
                }
                thread.step += 1;
            }
            (POP, 2) if thread.top <= thread.limit => thread = Thread { sequence: OVER, ..Thread::default() },
            (PUSH, 2) if thread.top >= thread.limit => {
                self.shared[usize::from(thread.held)] += 1;
                thread = Thread { sequence: OVER, ..Thread::default() };
            }
            // Only controls get out of bounds.
            (POP, 2) => (thread.item, thread.step) = (*self.slots.get(thread.top.wrapping_sub(1))?, 3),
            (POP, _) => {
                self.top = self.top.wrapping_sub(1);
                thread = Thread { sequence: PUSH, held: thread.item, ..Thread::default() };
            }
            (_, 2) => {
                *self.slots.get_mut(thread.top)? = thread.held;
                thread.step = 3;
            }
            _ => {
                self.top = self.top.wrapping_add(1);
                thread = Thread { sequence: OVER, ..Thread::default() };
            }
        }
        self.threads.here[self.threads.running] = thread;
        Some(self)
    }

    fn there(mut self, kernel: Kernel) -> Option<Self> {
        let mut thread = self.threads.there;
        thread.step += 1;
        match thread.step - 1 {
            0 => self.floor = self.slots.len(),
            1 => self.ceiling = 0,
            2 => self.threads.fence(kernel),
            3 if self.top == 0 => thread.step = 5,
            3 => thread.item = *self.slots.get(self.top - 1)?,
            4 => {
                self.top = self.top.wrapping_sub(1);
                self.shared[usize::from(thread.item)] += 1;
                thread = Thread { step: 3, ..Thread::default() };
            }
            5 => self.floor = 0,
            6 => self.ceiling = self.slots.len(),
            _ => return None,
        }
        self.threads.there = thread;
        Some(self)
    }

    /// Each item is in one place once, when all is over.
    fn is_right(&self, is_over: bool) -> bool {
        let Some(stack) = self.slots.get(..self.top) else { return false };
        let count = |item: u8| {
            stack.iter().filter(|other| **other == item).count() + usize::from(self.shared[usize::from(item)])
        };
        !is_over || [1, 2].into_iter().all(|item| count(item) == 1)
    }
}

#[test]
fn no_item_is_lost_or_doubled_whoever_is_stopped_where() {
    let start = Stealing::new();
    let states = explore(start, REAL).expect("each item is there once");
    assert!(states > 300, "{states}");
    assert_eq!(explore(start, WITHOUT_ABORTS), None);
    assert_eq!(explore(start, WITHOUT_FENCE), None);
    assert_eq!(explore(Stealing { reads_top_first: true, ..start }, REAL), None);
}

/// Words with an owner. Each thread of CPU 0 acquires them and stores once; the other CPU revokes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Revoking {
    threads: Threads,
    generation: u8,
    /// The thread of CPU 0 that acquired last.
    latest: Option<usize>,
    /// The one that had when the revocation began.
    revoked: Option<usize>,
    is_wrong: bool,
}

const ACQUIRE: u8 = 0;

impl State for Revoking {
    fn threads(&mut self) -> &mut Threads {
        &mut self.threads
    }

    fn here(mut self, _: Kernel) -> Option<Self> {
        let running = self.threads.running;
        let mut thread = self.threads.here[running];
        match (thread.sequence, thread.step) {
            (OVER.., _) => return None,
            (ACQUIRE, 0) => (thread.item, thread.step) = (self.generation + 1, 1),
            (ACQUIRE, _) => {
                self.generation = thread.item;
                self.latest = Some(running);
                thread = Thread { sequence: 1, held: thread.item, ..Thread::default() };
            }
            (_, 0) if self.generation != thread.held => thread = Thread { sequence: OVER, ..Thread::default() },
            (_, 0) => thread.step = 1,
            _ => {
                // The commit: of the latest acquirer, who is not one whose revocation is over.
                let is_revoked = self.revoked == Some(running) && self.threads.there.step == 2;
                self.is_wrong |= self.latest != Some(running) || is_revoked;
                thread = Thread { sequence: OVER, ..Thread::default() };
            }
        }
        self.threads.here[running] = thread;
        Some(self)
    }

    fn there(mut self, kernel: Kernel) -> Option<Self> {
        match self.threads.there.step {
            0 => {
                self.generation += 1;
                self.revoked = self.latest;
            }
            1 => self.threads.fence(kernel),
            _ => return None,
        }
        self.threads.there.step += 1;
        Some(self)
    }

    fn is_right(&self, _: bool) -> bool {
        !self.is_wrong
    }
}

#[test]
fn nothing_is_stored_by_who_lost_the_lock() {
    let start = Revoking { threads: Threads::new(), generation: 0, latest: None, revoked: None, is_wrong: false };
    let states = explore(start, REAL).expect("only the latest acquirer stores, and not after its revocation");
    assert!(states > 100, "{states}");
    assert_eq!(explore(start, WITHOUT_ABORTS), None);
    assert_eq!(explore(start, WITHOUT_FENCE), None);
}
