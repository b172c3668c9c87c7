//! One word that nobody sleeps on.

use super::Backoff;
use super::contract::{EventCount, Version, sealed};
use crate::primitives::{AtomicU32, Instant, Ordering};

/// For a single producer, without wake-ups: publishing is a plain store, and who waits looks again and again, after
/// pauses that grow with the time waited already ([`Backoff`]).
#[derive(Debug, Default)]
pub struct Polled {
    version: AtomicU32,
}

impl sealed::Sealed for Polled {}

impl EventCount for Polled {
    fn starting_at(version: Version) -> Self {
        Self { version: AtomicU32::new(version.get()) }
    }

    #[inline]
    fn snapshot(&self) -> Version {
        Version::new(self.version.load(Ordering::Acquire))
    }

    #[inline]
    fn publish_many(&self, count: u32) {
        self.publish_after(Version::new(self.version.load(Ordering::Relaxed)), count);
    }

    #[inline]
    fn publish_after(&self, version: Version, count: u32) {
        self.version.store(version.after(count).get(), Ordering::Release);
    }

    fn wait(&self, seen: Version, deadline: Option<Instant>) -> Option<Version> {
        let mut backoff = Backoff::new(deadline);
        loop {
            let changed = self.try_wait(seen);
            if changed.is_some() || !backoff.pause() {
                return changed;
            }
        }
    }
}
