//! The ways to data of a CPU's own, and threads dealt out to shards where there are no CPUs to tell apart.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ascertain_sys::rseq::{Area, Unavailable, possible_cpus};

/// How data is kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// By CPU, with restartable sequences.
    Restartable,
    /// By thread: threads are dealt out to shards, whose atomics and locks they rarely have to share.
    Sharded,
}

/// The methods, the best first. The last is to be had everywhere.
pub const BEST_FIRST: [Method; 2] = [Method::Restartable, Method::Sharded];

impl Method {
    /// Whether this program has it here.
    ///
    /// # Errors
    /// Why it has not.
    pub fn is_available(self) -> Result<(), Unavailable> {
        self.area().map(drop)
    }

    /// The best that this program has here.
    #[must_use]
    pub fn best() -> Self {
        BEST_FIRST.into_iter().find(|method| method.is_available().is_ok()).unwrap_or(Self::Sharded)
    }

    /// What the best method here makes.
    pub(super) fn first<T>(with_method: impl Fn(Self) -> Result<T, Unavailable>) -> T {
        let made = BEST_FIRST.into_iter().find_map(|method| with_method(method).ok());
        made.expect("the last method is to be had everywhere")
    }

    /// What sequences need; none where they are not used.
    pub(super) fn area(self) -> Result<Option<Area>, Unavailable> {
        match self {
            Self::Restartable => Area::find().map(Some),
            Self::Sharded => Ok(None),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Restartable => "restartable sequences",
            Self::Sharded => "sharded atomics",
        })
    }
}

/// A shard's data, on cache lines of its own, for whoever holds its lock.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Shard<T>(Mutex<T>);

impl<T> Shard<T> {
    pub(super) fn new(data: T) -> Self {
        Self(Mutex::new(data))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        // Nothing is left half done where a holder panics: nothing in its care can.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One piece of data for each CPU where there are sequences.
pub(super) fn of_cpus<T>(area: Option<Area>, new: impl Fn() -> T) -> Box<[T]> {
    let cpus = if area.is_some() { possible_cpus() } else { 0 };
    (0..cpus).map(|_| new()).collect()
}

/// One shard for each thread that can run at once where there are no sequences; else one, for what those leave.
pub(super) fn of_threads<T>(area: Option<Area>, new: impl Fn() -> T) -> Box<[T]> {
    let shards = if area.is_some() { 1 } else { std::thread::available_parallelism().map_or(1, usize::from) };
    (0..shards).map(|_| new()).collect()
}

/// The calling thread's shard: threads take turns as they first ask.
#[inline]
pub(super) fn own<T>(shards: &[T]) -> &T {
    // May wrap: two threads with one number only share a shard sooner.
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = THREADS.fetch_add(1, Relaxed);
    }
    &shards[NUMBER.with(|number| *number) % shards.len()]
}
