//! A limit on bandwidth, kept block by block.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// No faster than this, all moves together.
#[derive(Debug)]
pub(crate) struct Pace(Mutex<State>);

#[derive(Debug)]
struct State {
    bytes_per_s: Option<f64>,
    /// When what was let through is paid for.
    free: Option<Instant>,
}

impl Pace {
    pub fn new(bytes_per_s: Option<u64>) -> Self {
        Self(Mutex::new(State { bytes_per_s: bytes_per_s.map(|rate| rate as f64), free: None }))
    }

    /// From now on.
    pub fn set(&self, bytes_per_s: f64) {
        self.lock().bytes_per_s = Some(bytes_per_s);
    }

    /// Waits until so many bytes may be sent.
    pub async fn wait(&self, bytes: u64) {
        let turn = {
            let mut state = self.lock();
            let Some(rate) = state.bytes_per_s else { return };
            let turn = state.free.map_or_else(Instant::now, |free| free.max(Instant::now()));
            state.free = Some(turn + Duration::from_secs_f64((bytes as f64 / rate).min(1e6)));
            turn
        };
        sleep_until(turn).await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
