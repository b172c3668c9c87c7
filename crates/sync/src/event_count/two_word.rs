//! An event count with two words, for one producer, without an atomic addition.

use std::time::Duration;

use super::contract::{EventCount, Version, sealed};
use super::sleep::{Announcement, Sleepers, wait};
use crate::primitives::{AtomicBool, Futex, Instant, Ordering, fence, keep_order};

/// An event count for a single producer, on any machine. The version is in a word that only the producer writes, and
/// the sleepers' flag is in another word.
///
/// The producer may read the flag before other threads see its new version. Then the producer overlooks a sleeper that
/// has not seen this version. So the sleeper first sleeps only for short times, and checks the version after each of
/// them. A second after the sleeper has set the flag, it sees every version that was published before.
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
        // Without a new version no thread must be woken, and the flag must stay.
        if count == 0 {
            return;
        }
        // The flag is cleared before the version changes. A sleeper that announces itself after the change waits for
        // the next version, so its flag must stay.
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

/// Prevents the compiler from reordering the store before the call and the load after it. Other threads may still see
/// the store late, by at most a second. Under loom and Miri, where a load may return a value from long ago, this is a
/// fence.
#[inline(always)]
fn order_in_time() {
    if cfg!(any(model = "loom", miri)) {
        fence(Ordering::SeqCst);
    } else {
        keep_order();
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

    /// Sets the flag. Threads sleep on the version, and a producer that clears the flag changes the version after that.
    /// So a thread whose flag was cleared does not fall asleep, because the version has changed too.
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

    /// After a thread has given up waiting, only the next publication makes a system call to wake it. Later
    /// publications find the flag cleared.
    #[test]
    fn who_gave_up_is_woken_once() {
        let count = TwoWord::default();
        assert_eq!(count.wait(Version::new(0), Some(Instant::now())), None);
        assert!(count.has_sleepers.load(Ordering::Relaxed));
        count.publish();
        assert!(!count.has_sleepers.load(Ordering::Relaxed));
    }
}
