//! A word that threads sleep on.

use std::ops::Deref;
use std::time::Duration;

use crate::atomic::AtomicU32;
use crate::explorer::step;
use crate::machine::Op;

/// As the kernel's: a system call empties the buffer, and comparing and falling asleep are one step.
#[derive(Debug, Default)]
pub struct Futex(AtomicU32);

impl Futex {
    /// A new word.
    #[track_caller]
    pub fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }

    /// Sleeps while memory has `expected`, until woken, or for `timeout`, which may pass at any moment.
    #[track_caller]
    pub fn wait(&self, expected: u32, timeout: Option<Duration>) {
        if self.step(Op::Sleep, |state, thread, word| state.sleep(thread, word, u64::from(expected))) {
            step(Op::Awake(timeout), |state, thread| state.awake(thread, timeout));
        }
    }

    /// Wakes all that sleep.
    #[track_caller]
    pub fn wake_all(&self) {
        self.step(Op::Wake, |state, thread, word| state.wake_all(thread, word));
    }
}

impl Deref for Futex {
    type Target = AtomicU32;

    fn deref(&self) -> &AtomicU32 {
        &self.0
    }
}
