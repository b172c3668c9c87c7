//! Helpers for threads and the data that they share.

use std::io;
#[cfg(any(feature = "dns", feature = "servers"))]
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// A thread that is joined when this value is dropped. The struct that contains this value needs another field whose
/// drop makes the thread end. Declare that field before this one, because fields are dropped in the order of their
/// declaration.
#[derive(Debug)]
pub(crate) struct JoinedThread(pub Option<JoinHandle<()>>);

impl JoinedThread {
    pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        Builder::new().name(name.into()).spawn(work).map(|thread| Self(Some(thread)))
    }
}

impl Drop for JoinedThread {
    fn drop(&mut self) {
        self.0.take().map(JoinHandle::join);
    }
}

/// Locks shared data, even if a thread panicked while it held the lock.
#[cfg(any(feature = "dns", feature = "servers"))]
pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
