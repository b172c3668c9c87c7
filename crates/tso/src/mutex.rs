//! A mutex of the model.

use std::ops::{Deref, DerefMut};
use std::sync::{self, LockResult, PoisonError};
use std::thread::panicking;

use std::sync::atomic::Ordering;

use crate::atomic::{AtomicBool, spin_loop};

/// A lock like that of the standard library, in one word: an instruction with LOCK acquires it, and a store releases
/// it. It is never poisoned.
#[derive(Debug, Default)]
pub struct Mutex<T> {
    is_locked: AtomicBool,
    data: sync::Mutex<T>,
}

/// A guard, which releases the lock when it is dropped.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    // The fields are dropped in this order: the data is unlocked before another thread can acquire the lock.
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
    /// This never fails; the return type is that of the standard library.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        // A destructor in a failed execution does not wait for the lock, because no thread would release it.
        while self.is_locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err()
            && !panicking()
        {
            spin_loop();
        }
        // This lock is never held across a step, so it is free.
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
