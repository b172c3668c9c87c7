//! Threads dealt out to shards.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ascertain_sys::rseq::{Area, possible_cpus};

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
