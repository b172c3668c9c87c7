//! The interface of all event counts.

use crate::primitives::Instant;

/// Bit 31 of a word of an event count, which indicates that a thread sleeps. The other bits count publications.
pub(super) const SLEEPERS: u32 = 1 << 31;

/// The number of publications, modulo 2^31.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(u32);

impl Version {
    /// Creates a version from a count, or from a word that contains one.
    #[must_use]
    pub const fn new(count: u32) -> Self {
        Self(count & !SLEEPERS)
    }

    /// Returns the number of publications, which is below 2^31.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns the version after `count` more publications.
    #[must_use]
    pub const fn after(self, count: u32) -> Self {
        Self::new(self.0.wrapping_add(count))
    }

    /// Returns the version before the last `count` publications.
    #[must_use]
    pub const fn before(self, count: u32) -> Self {
        Self::new(self.0.wrapping_sub(count))
    }

    /// Returns the number of publications since `earlier`, modulo 2^31.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u32 {
        self.before(earlier.0).0
    }
}

/// A count of publications. A thread that finds nothing new can sleep until the next publication.
///
/// Take a [`snapshot`](EventCount::snapshot) and check the data. If there is nothing to do, [`wait`](EventCount::wait)
/// for a version other than the snapshot. A thread that has seen a version sees everything that was written before that
/// version was published. No publication is missed, unless 2^31 of them happen between the snapshot and the wait.
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
    /// Creates an event count as if `version` had been published already. This is for tests in which the count wraps
    /// around.
    fn starting_at(version: Version) -> Self;

    /// Returns the current version. Everything that was written before its publication is visible afterwards.
    fn snapshot(&self) -> Version;

    /// Creates a new version, and wakes all threads that wait for one. A thread that sees the version also sees
    /// everything that was written before.
    ///
    /// If the type is for a single producer, two threads must not publish at the same time, because a version, and so a
    /// wake-up, could be lost.
    #[inline]
    fn publish(&self) {
        self.publish_many(1);
    }

    /// Publishes `count` times, as [`publish`](EventCount::publish) does. `count` may be zero and must be below 2^31,
    /// because versions count modulo 2^31. The limit is not checked, because this is the producer's fast path.
    fn publish_many(&self, count: u32);

    /// Publishes `count` times, as [`publish_many`](EventCount::publish_many) does. The caller is the single producer
    /// and passes the current `version`. This saves a load for types that need the version.
    #[inline]
    fn publish_after(&self, version: Version, count: u32) {
        let _ = version;
        self.publish_many(count);
    }

    /// Returns the current version; `None` if the current version is `seen`.
    fn try_wait(&self, seen: Version) -> Option<Version> {
        let version = self.snapshot();
        (version != seen).then_some(version)
    }

    /// Waits for a version other than `seen`. Returns `None` when the deadline has passed. Any number of threads may
    /// wait.
    fn wait(&self, seen: Version, deadline: Option<Instant>) -> Option<Version>;
}

pub(super) mod sealed {
    /// Restricts the trait to the types of this crate, for which the protocols have been checked.
    pub trait Sealed {}
}
