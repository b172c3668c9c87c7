//! A limit on bandwidth, kept block by block, or slice by slice where blocks are large.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// What is sent at once is paid for in that time.
const SLICE_S: f64 = 0.02;

/// What is sent at once is no less than a packet, unless that takes longer still.
const PACKET_BYTES: f64 = 1400.0;

/// No faster than this, all moves together.
#[derive(Debug)]
pub(crate) struct Pace {
    state: Mutex<State>,
    slice_s: f64,
}

#[derive(Debug)]
struct State {
    bytes_per_s: Option<f64>,
    sent_bytes: f64,
    /// When what was let through is paid for.
    free: Option<Instant>,
}

impl Pace {
    /// At this rate, in slices that take no longer than this, or than is usual.
    pub fn new(bytes_per_s: Option<f64>, slice_s: Option<f64>) -> Self {
        let state = Mutex::new(State { bytes_per_s, sent_bytes: 0.0, free: None });
        Self { state, slice_s: slice_s.unwrap_or(SLICE_S).min(SLICE_S) }
    }

    /// How much was let through so far.
    pub fn sent_bytes(&self) -> f64 {
        self.lock().sent_bytes
    }

    /// From now on.
    pub fn set(&self, bytes_per_s: f64) {
        self.lock().bytes_per_s = Some(bytes_per_s);
    }

    /// Waits until so many bytes may be sent.
    pub async fn wait(&self, bytes: u64) {
        sleep_until(self.turn_at(Instant::now(), bytes)).await;
    }

    /// When the next so many bytes may be sent, which are then counted as sent.
    pub fn turn_at(&self, now: Instant, bytes: u64) -> Instant {
        let mut state = self.lock();
        state.sent_bytes += bytes as f64;
        // A timer that is late by a millisecond each time costs none of the rate.
        let turn = state.free.map_or(now, |free| free.max(now - Duration::from_secs_f64(self.slice_s)));
        if let Some(rate) = state.bytes_per_s {
            state.free = Some(turn + Duration::from_secs_f64((bytes as f64 / rate).min(1e6)));
        }
        turn
    }

    /// What may be sent at once, of so many, so that it is soon paid for.
    pub fn slice_bytes(&self, most: usize) -> usize {
        let slice_bytes = |rate: f64| (rate * self.slice_s).max(PACKET_BYTES.min(rate * SLICE_S));
        self.lock().bytes_per_s.map_or(most, |rate| (slice_bytes(rate) as usize).clamp(1, most))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who comes a little late for each of many slices would otherwise never reach the rate; what is later than a slice
    /// is lost.
    #[test]
    fn a_late_turn_is_made_up_for() {
        let (pace, began) = (Pace::new(Some(1_000.0), None), Instant::now());
        let at = |ms| began + Duration::from_millis(ms);
        assert_eq!(pace.turn_at(began, 1), began);
        assert_eq!(pace.turn_at(at(5), 1), at(1));
        assert_eq!(pace.turn_at(at(5), 10), at(2));
        assert_eq!(pace.turn_at(at(5), 1), at(12));
        assert_eq!(pace.turn_at(at(100), 1), at(80));
    }
}
