//! Loom's, and a futex built of its mutex and condition variable.

#![allow(unused_imports)] // one list for all protocols: what one of them stops using stays

use std::ops::Deref;
use std::time::Duration;

pub(crate) use loom::cell::UnsafeCell;
pub(crate) use loom::hint::spin_loop;
use loom::sync::Condvar;
pub(crate) use loom::sync::Mutex;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use loom::thread;
pub(crate) use std::sync::atomic::compiler_fence;
pub(crate) use std::time::Instant;

/// As the kernel's: comparing and falling asleep are one step to those who wake.
#[derive(Debug)]
pub(crate) struct Futex {
    word: AtomicU32,
    queue: Mutex<()>,
    woken: Condvar,
}

impl Futex {
    pub(crate) fn new(value: u32) -> Self {
        Self { word: AtomicU32::new(value), queue: Mutex::new(()), woken: Condvar::new() }
    }

    /// A time-out never ends here: who relies on one is found to sleep for ever.
    pub(crate) fn wait(&self, expected: u32, _timeout: Option<Duration>) {
        let queue = self.queue.lock().unwrap();
        if self.word.load(Ordering::Relaxed) == expected {
            drop(self.woken.wait(queue).unwrap());
        }
    }

    pub(crate) fn wake_all(&self) {
        let _queue = self.queue.lock().unwrap();
        self.woken.notify_all();
    }
}

impl Default for Futex {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Deref for Futex {
    type Target = AtomicU32;

    fn deref(&self) -> &AtomicU32 {
        &self.word
    }
}
