//! A lock.

use std::ops::{Deref, DerefMut};
use std::sync::{self, LockResult, PoisonError};
use std::thread::panicking;

use std::sync::atomic::Ordering;

use crate::atomic::{AtomicBool, spin_loop};

/// As the standard library's, of one word: an instruction with LOCK takes it, a store gives it back. Never poisoned.
#[derive(Debug, Default)]
pub struct Mutex<T> {
    is_locked: AtomicBool,
    data: sync::Mutex<T>,
}

/// Gives the lock back when it is dropped.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    // Dropped in this order: whoever takes the lock next finds the data free.
    data: sync::MutexGuard<'a, T>,
    _unlock: Unlock<'a>,
}

#[derive(Debug)]
struct Unlock<'a>(&'a AtomicBool);

impl<T> Mutex<T> {
    /// Spins until it has the lock.
    ///
    /// # Errors
    ///
    /// None: the type is the standard library's.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        // In a destructor of an execution that is lost nobody will give it back.
        while self.is_locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err()
            && !panicking()
        {
            spin_loop();
        }
        // Never held across a step, and so free.
        let data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(MutexGuard { data, _unlock: Unlock(&self.is_locked) })
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.data
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.data
    }
}

impl Drop for Unlock<'_> {
    #[track_caller]
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
