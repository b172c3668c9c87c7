//! The clock of a model. It advances only when a sleep times out.

use std::ops::Add;
use std::time::Duration;

use crate::explorer::step;
use crate::machine::Op;

/// A moment in time, as in the standard library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(Duration);

impl Instant {
    /// Returns the current time.
    #[track_caller]
    #[must_use]
    pub fn now() -> Self {
        Self(step(Op::Clock, |state, thread| state.clock(thread)))
    }

    /// Returns the time since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the time from this moment until now.
    #[track_caller]
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Self::now().saturating_duration_since(*self)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0 + duration)
    }
}
