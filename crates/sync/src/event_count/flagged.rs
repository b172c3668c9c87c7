//! Version and sleepers' flag in one word.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use super::contract::{EventCount, SLEEPERS, Version, sealed};
use super::sleep::{Sleepers, wait};
use super::unlocked;
use crate::primitives::{Futex, Instant, Ordering};

/// For a single producer: version and sleepers' flag in one word, to which the producer adds in one instruction
/// without LOCK.
///
/// The addition may overwrite a flag that is set at the same time. A sleeper therefore sleeps only for short times
/// until a second has passed: by then the processor was interrupted, and no store from before the flag is on its way.
/// On a CPU without interrupts for a second (isolated, tickless), use [`MultiProducer`].
///
/// Elsewhere than on x86-64 the addition is atomic.
pub type OneWord = Flagged<Unlocked>;

/// For any number of producers: version and sleepers' flag in one word, which is only changed atomically.
pub type MultiProducer = Flagged<Locked>;

/// Version and sleepers' flag in one word: [`OneWord`] or [`MultiProducer`].
pub struct Flagged<A> {
    word: Futex,
    addition: PhantomData<A>,
}

/// How a producer adds to the word.
pub(crate) trait Addition: Send + Sync + 'static {
    /// Whether it sees every flag that was set before.
    const IS_PROMPT: bool;

    /// Whether the word had the flag before.
    fn add(word: &Futex, count: u32) -> bool;
}

/// In one instruction, by the only one who adds.
#[derive(Debug)]
pub struct Unlocked;

/// Atomically.
#[derive(Debug)]
pub struct Locked;

impl Addition for Unlocked {
    const IS_PROMPT: bool = false;

    #[inline(always)]
    fn add(word: &Futex, count: u32) -> bool {
        match count {
            1 => unlocked::add_one(word),
            _ => unlocked::add(word, count),
        }
    }
}

impl Addition for Locked {
    const IS_PROMPT: bool = true;

    #[inline(always)]
    fn add(word: &Futex, count: u32) -> bool {
        word.fetch_add(count, Ordering::Release) & SLEEPERS != 0
    }
}

impl<A> Default for Flagged<A> {
    fn default() -> Self {
        Self { word: Futex::default(), addition: PhantomData }
    }
}

impl<A> fmt::Debug for Flagged<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Flagged").field(&self.word).finish()
    }
}

impl<A> sealed::Sealed for Flagged<A> {}

impl<A: Addition> EventCount for Flagged<A> {
    fn starting_at(version: Version) -> Self {
        Self { word: Futex::new(version.get()), addition: PhantomData }
    }

    #[inline]
    fn snapshot(&self) -> Version {
        self.version()
    }

    #[inline]
    fn publish_many(&self, count: u32) {
        if A::add(&self.word, count) {
            wake(&self.word);
        }
    }

    fn wait(&self, seen: Version, deadline: Option<Instant>) -> Option<Version> {
        wait(self, seen, deadline)
    }
}

impl<A: Addition> Sleepers for Flagged<A> {
    const IS_PROMPT: bool = A::IS_PROMPT;

    #[inline]
    fn version(&self) -> Version {
        Version::new(self.word.load(Ordering::Acquire))
    }

    /// Sets the flag.
    fn announce(&self, seen: Version) -> bool {
        let announced = seen.get() | SLEEPERS;
        match self.word.compare_exchange(seen.get(), announced, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => true,
            Err(other) => other == announced,
        }
    }

    fn is_announced(&self, seen: Version) -> bool {
        self.word.load(Ordering::Relaxed) == seen.get() | SLEEPERS
    }

    fn sleep(&self, seen: Version, timeout: Option<Duration>) {
        self.word.wait(seen.get() | SLEEPERS, timeout);
    }
}

/// Wakes all, after the flag is cleared: who announces itself from now on is seen by the next publication.
#[cold]
#[inline(never)]
fn wake(word: &Futex) {
    word.fetch_and(!SLEEPERS, Ordering::Relaxed);
    word.wake_all();
}
