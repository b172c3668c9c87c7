//! The clock of a run.

use std::thread;
use std::time::Duration;

use ascertain_sys::clock;

/// A clock that a run reads, and waits by.
pub trait Clock {
    /// Returns the nanoseconds since an arbitrary moment. They never decrease.
    fn now_ns(&self) -> u64;

    /// Waits until the clock has moved by at least this duration.
    fn sleep(&self, duration: Duration);
}

/// The machine's monotonic clock, [`ascertain_sys::clock::now_ns`].
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[inline]
    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn sleep(&self, duration: Duration) {
        thread::sleep(duration);
    }
}
