//! The methods of splitting data so that threads rarely share it: by CPU, or by thread if the CPU cannot be used.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ascertain_sys::rseq::{Area, Unavailable, possible_cpus};

/// The method by which data is kept apart, so that threads on different CPUs do not slow one another down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Separates data by CPU. Restartable sequences ensure that a thread uses only the data of the CPU on which it
    /// runs.
    Restartable,
    /// Separates data by thread. Each thread uses one of several shards, so that threads rarely share atomics and
    /// locks.
    Sharded,
}

/// The methods, the best one first. The last method is always available.
pub const BEST_FIRST: [Method; 2] = [Method::Restartable, Method::Sharded];

impl Method {
    /// Checks whether this program can use the method on this machine.
    ///
    /// # Errors
    /// Returns the reason why the program cannot use the method.
    pub fn is_available(self) -> Result<(), Unavailable> {
        self.area().map(drop)
    }

    /// Returns the best method that this program can use on this machine.
    #[must_use]
    pub fn best() -> Self {
        BEST_FIRST.into_iter().find(|method| method.is_available().is_ok()).unwrap_or(Self::Sharded)
    }

    /// Calls `with_method` with each method, the best one first. Returns the first success.
    pub(super) fn first<T>(with_method: impl Fn(Self) -> Result<T, Unavailable>) -> T {
        let made = BEST_FIRST.into_iter().find_map(|method| with_method(method).ok());
        made.expect("the last method is always available")
    }

    /// Returns the [`Area`], the memory by which the kernel supports restartable sequences; `None` if this method does
    /// not use them. Fails if restartable sequences are not available.
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

/// The data of a shard, which some of the threads share. It has its own cache lines, behind a lock.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Shard<T>(Mutex<T>);

impl<T> Shard<T> {
    pub(super) fn new(data: T) -> Self {
        Self(Mutex::new(data))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        // Poisoning can be ignored: the code under the lock cannot panic, so it leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns one `T` for each CPU. Without an `area`, restartable sequences are not used, and the list is empty.
pub(super) fn of_cpus<T>(area: Option<Area>, new: impl Fn() -> T) -> Box<[T]> {
    let cpus = if area.is_some() { possible_cpus() } else { 0 };
    (0..cpus).map(|_| new()).collect()
}

/// Returns the shards, each of which serves some of the threads. With an `area`, one shard is enough, because it serves
/// only the operations that restartable sequences do not complete. Without an `area` there are no sequences, so there
/// are as many shards as threads can run at once.
pub(super) fn of_threads<T>(area: Option<Area>, new: impl Fn() -> T) -> Box<[T]> {
    let shards = if area.is_some() { 1 } else { std::thread::available_parallelism().map_or(1, usize::from) };
    (0..shards).map(|_| new()).collect()
}

/// Returns the element of `shards` that the calling thread uses. Threads get shards in turn, at their first call.
#[inline]
pub(super) fn own<T>(shards: &[T]) -> &T {
    // The number may wrap around. Then two threads have the same number, and so the same shard, which does no harm.
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = THREADS.fetch_add(1, Relaxed);
    }
    &shards[NUMBER.with(|number| *number) % shards.len()]
}
