//! A word on which threads of the model can sleep.

use std::ops::Deref;
use std::time::Duration;

use crate::atomic::AtomicU32;
use crate::explorer::step;
use crate::machine::Op;

/// A futex like that of the kernel: a word on which threads can sleep. Its system calls empty the thread's store
/// buffer. The comparison and the start of the sleep are one atomic step.
#[derive(Debug, Default)]
pub struct Futex(AtomicU32);

impl Futex {
    /// Creates a word with this value.
    #[track_caller]
    pub fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }

    /// Sleeps until a wake-up or a timeout, if the word in memory is `expected`; otherwise returns immediately. The
    /// timeout may occur at any moment.
    #[track_caller]
    pub fn wait(&self, expected: u32, timeout: Option<Duration>) {
        if self.step(Op::Sleep, |state, thread, word| state.sleep(thread, word, u64::from(expected))) {
            step(Op::Awake(timeout), |state, thread| state.awake(thread, timeout));
        }
    }

    /// Wakes all threads that sleep on the word.
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
