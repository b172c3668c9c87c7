//! A limit on bandwidth, kept block by block, or slice by slice where blocks are large.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// What is sent at once is paid for in that time.
const SLICE_S: f64 = 0.02;

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
        sleep_until(self.turn(bytes)).await;
    }

    /// When the next so many bytes may be sent, which are then counted as sent.
    pub fn turn(&self, bytes: u64) -> Instant {
        let mut state = self.lock();
        let turn = state.free.map_or_else(Instant::now, |free| free.max(Instant::now()));
        if let Some(rate) = state.bytes_per_s {
            state.free = Some(turn + Duration::from_secs_f64((bytes as f64 / rate).min(1e6)));
        }
        turn
    }

    /// What may be sent at once, of so many, so that it is soon paid for.
    pub fn slice_bytes(&self, most: usize) -> usize {
        self.lock().bytes_per_s.map_or(most, |rate| ((rate * SLICE_S) as usize).clamp(1, most))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
