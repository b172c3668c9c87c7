//! Two words, one producer, and no atomic addition.

use std::time::Duration;

use super::contract::{EventCount, Version, sealed};
use super::sleep::{Announcement, Sleepers, wait};
use crate::primitives::{AtomicBool, Futex, Instant, Ordering, compiler_fence, fence};

/// For a single producer, on any machine: the version in a word that only the producer writes, the sleepers' flag in
/// another.
///
/// The producer's look at the flag may come before its version is seen by others. A sleeper therefore sleeps only for
/// short times until a second has passed: by then a version from before the flag has been seen.
#[derive(Debug, Default)]
pub struct TwoWord {
    version: Futex,
    has_sleepers: AtomicBool,
}

impl sealed::Sealed for TwoWord {}

impl EventCount for TwoWord {
    fn starting_at(version: Version) -> Self {
        Self { version: Futex::new(version.get()), has_sleepers: AtomicBool::new(false) }
    }

    #[inline]
    fn snapshot(&self) -> Version {
        self.version()
    }

    #[inline]
    fn publish_many(&self, count: u32) {
        self.publish_after(Version::new(self.version.load(Ordering::Relaxed)), count);
    }

    #[inline]
    fn publish_after(&self, version: Version, count: u32) {
        // Without a new version there is nobody to wake, and the flag must stay.
        if count == 0 {
            return;
        }
        // Cleared before the version changes, never after: who announces itself then waits for the next version.
        let had_sleepers = self.has_sleepers.load(Ordering::Relaxed);
        if had_sleepers {
            self.has_sleepers.swap(false, Ordering::Relaxed);
        }
        self.version.store(version.after(count).get(), Ordering::Release);
        order_in_time();
        if had_sleepers || self.has_sleepers.load(Ordering::Relaxed) {
            wake(&self.version);
        }
    }

    fn wait(&self, seen: Version, deadline: Option<Instant>) -> Option<Version> {
        wait(self, seen, deadline)
    }
}

/// The store before comes before the load after, at most a second late. Loom and Miri, where a load may find what was
/// there long ago, get a fence.
#[inline(always)]
fn order_in_time() {
    if cfg!(any(model = "loom", miri)) {
        fence(Ordering::SeqCst);
    } else {
        compiler_fence(Ordering::SeqCst);
    }
}

#[cold]
#[inline(never)]
fn wake(version: &Futex) {
    version.wake_all();
}

impl Sleepers for TwoWord {
    const IS_PROMPT: bool = false;

    #[inline]
    fn version(&self) -> Version {
        Version::new(self.version.load(Ordering::Acquire))
    }

    /// Who takes the flag back then changes the version, on which threads sleep.
    fn announce(&self, seen: Version) -> Option<Announcement> {
        self.has_sleepers.swap(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        (self.version() == seen).then_some(Announcement(seen.get()))
    }

    fn is_announced(&self, seen: Version, _: Announcement) -> bool {
        self.has_sleepers.load(Ordering::Relaxed) && self.version() == seen
    }

    fn sleep(&self, Announcement(version): Announcement, timeout: Option<Duration>) {
        self.version.wait(version, timeout);
    }
}

#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
mod tests {
    use super::*;

    /// Else each publication would wake whoever waited once.
    #[test]
    fn who_gave_up_is_woken_once() {
        let count = TwoWord::default();
        assert_eq!(count.wait(Version::new(0), Some(Instant::now())), None);
        assert!(count.has_sleepers.load(Ordering::Relaxed));
        count.publish();
        assert!(!count.has_sleepers.load(Ordering::Relaxed));
    }
}
