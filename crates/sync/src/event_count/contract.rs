//! What all event counts have in common.

use crate::primitives::Instant;

/// Bit 31 of a word says that somebody sleeps, the others count.
pub(super) const SLEEPERS: u32 = 1 << 31;

/// How often has been published, modulo 2^31.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(u32);

impl Version {
    /// Of a count, or of a word that holds one.
    #[must_use]
    pub const fn new(count: u32) -> Self {
        Self(count & !SLEEPERS)
    }

    /// Below 2^31.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// `count` publications later.
    #[must_use]
    pub const fn after(self, count: u32) -> Self {
        Self::new(self.0.wrapping_add(count))
    }

    /// `count` publications earlier.
    #[must_use]
    pub const fn before(self, count: u32) -> Self {
        Self::new(self.0.wrapping_sub(count))
    }

    /// The publications since `earlier`, modulo 2^31.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u32 {
        self.before(earlier.0).0
    }
}

/// Counts publications, so that who found nothing new can sleep until there is.
///
/// Take a [`snapshot`](EventCount::snapshot), look at the data, and if there is nothing to do
/// [`wait`](EventCount::wait) for another version than that. What was written before a publication is seen by
/// whoever has seen its version. No publication is missed, unless 2^31 of them pass between snapshot and wait.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// use ascertain_sync::event_count::{EventCount, SingleProducer};
///
/// let (data, changes) = (AtomicU32::new(0), SingleProducer::default());
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         data.store(42, Ordering::Relaxed);
///         changes.publish();
///     });
///     let mut seen = changes.snapshot();
///     while data.load(Ordering::Relaxed) != 42 {
///         seen = changes.wait(seen, None).expect("there is no deadline");
///     }
/// });
/// ```
pub trait EventCount: Default + Send + Sync + sealed::Sealed {
    /// As if `version` had been published already: for tests of what happens when the count wraps.
    fn starting_at(version: Version) -> Self;

    /// The version now. Acquires what was written before it was published.
    fn snapshot(&self) -> Version;

    /// Makes a new version, and wakes all who wait for one. Releases what was written before.
    ///
    /// Where the type is for a single producer, no two threads may publish at once: a version, and with it a
    /// wake-up, could be lost.
    #[inline]
    fn publish(&self) {
        self.publish_many(1);
    }

    /// As [`publish`](EventCount::publish) that many times, which may be none, below 2^31: versions count modulo that.
    /// It is not looked at, since this is the producer's quick path.
    fn publish_many(&self, count: u32);

    /// As [`publish_many`](EventCount::publish_many), by a single producer that knows what the version is: a load less
    /// for those that need it.
    #[inline]
    fn publish_after(&self, version: Version, count: u32) {
        let _ = version;
        self.publish_many(count);
    }

    /// The version, if it is not `seen`.
    fn try_wait(&self, seen: Version) -> Option<Version> {
        let version = self.snapshot();
        (version != seen).then_some(version)
    }

    /// Waits for another version than `seen`; none when the deadline has passed. Any number of threads may wait.
    fn wait(&self, seen: Version, deadline: Option<Instant>) -> Option<Version>;
}

pub(super) mod sealed {
    /// The protocols have been checked for the types here.
    pub trait Sealed {}
}
