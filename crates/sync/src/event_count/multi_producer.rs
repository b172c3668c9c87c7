//! One word, and any number of producers.

use std::time::Duration;

use super::contract::{EventCount, SLEEPERS, Version, sealed};
use super::one_word::{announce, wake};
use super::sleep::{Sleepers, wait};
use crate::primitives::{Futex, Instant, Ordering};

/// For any number of producers: version and sleepers' flag in one word, which is only changed atomically.
#[derive(Debug, Default)]
pub struct MultiProducer {
    word: Futex,
}

impl sealed::Sealed for MultiProducer {}

impl EventCount for MultiProducer {
    fn starting_at(version: Version) -> Self {
        Self { word: Futex::new(version.get()) }
    }

    #[inline]
    fn snapshot(&self) -> Version {
        self.version()
    }

    #[inline]
    fn publish_many(&self, count: u32) {
        if self.word.fetch_add(count, Ordering::Release) & SLEEPERS != 0 {
            wake(&self.word);
        }
    }

    fn wait(&self, seen: Version, deadline: Option<Instant>) -> Option<Version> {
        wait(self, seen, deadline)
    }
}

impl Sleepers for MultiProducer {
    const IS_PROMPT: bool = true;

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
