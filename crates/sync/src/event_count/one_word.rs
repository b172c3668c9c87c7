//! One word, one producer, and no LOCK.

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
/// On a CPU without interrupts for a second (isolated, tickless), use [`MultiProducer`](super::MultiProducer).
///
/// Elsewhere than on x86-64 the addition is atomic.
#[derive(Debug, Default)]
pub struct OneWord {
    word: Futex,
}

impl sealed::Sealed for OneWord {}

impl EventCount for OneWord {
    fn starting_at(version: Version) -> Self {
        Self { word: Futex::new(version.get()) }
    }

    #[inline]
    fn snapshot(&self) -> Version {
        self.version()
    }

    #[inline]
    fn publish_many(&self, count: u32) {
        let had_sleepers = match count {
            1 => unlocked::add_one(&self.word),
            _ => unlocked::add(&self.word, count),
        };
        if had_sleepers {
            wake(&self.word);
        }
    }

    fn wait(&self, seen: Version, deadline: Option<Instant>) -> Option<Version> {
        wait(self, seen, deadline)
    }
}

impl Sleepers for OneWord {
    const IS_PROMPT: bool = false;

    #[inline]
    fn version(&self) -> Version {
        Version::new(self.word.load(Ordering::Acquire))
    }

    fn announce(&self, seen: Version) -> bool {
        announce(&self.word, seen)
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
pub(super) fn wake(word: &Futex) {
    word.fetch_and(!SLEEPERS, Ordering::Relaxed);
    word.wake_all();
}

/// Sets the flag. False if the version is not `seen` any more.
pub(super) fn announce(word: &Futex, seen: Version) -> bool {
    let announced = seen.get() | SLEEPERS;
    match word.compare_exchange(seen.get(), announced, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => true,
        Err(other) => other == announced,
    }
}
