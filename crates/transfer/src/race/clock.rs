use std::time::{Duration, Instant};

/// Where a race has its time from.
pub trait Clock {
    /// Since a moment that is always the same.
    fn now(&self) -> Duration;

    /// Is ready when so much time has gone by.
    fn sleep(&self, time: Duration) -> impl Future<Output = ()>;
}

/// The system's clock, and tokio's timers: a race by it is awaited within a tokio runtime that has time.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock(Instant);

impl Default for TokioClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}
