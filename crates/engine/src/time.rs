//! The clock that a run uses, which tests can replace.

use std::thread;
use std::time::Duration;

use ascertain_sys::clock;

/// A clock from which a run reads the time, and with which it waits.
pub trait Clock {
    /// Returns the time since an arbitrary fixed moment, in nanoseconds. It never decreases.
    fn now_ns(&self) -> u64;

    /// Waits until the clock has advanced by at least `duration`.
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
