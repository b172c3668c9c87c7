//! A limit on the bandwidth. It delays each part as a whole or, if parts are too large for this, each slice of them.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Longest time in seconds that a slice takes at the limited rate. A slice consists of the bytes that are sent at once.
const SLICE_S: f64 = 0.02;
/// Minimum size of a slice in bytes, about one network packet. A slice is smaller only if sending a packet at the
/// limited rate takes longer than [`SLICE_S`].
const PACKET_BYTES: f64 = 1400.0;

/// The limit on the common rate of all transfers.
#[derive(Debug)]
pub(crate) struct RateLimit {
    state: Mutex<State>,
    slice_s: f64,
}

#[derive(Debug)]
struct State {
    bytes_per_s: Option<f64>,
    sent_bytes: f64,
    /// The earliest time at which more bytes may be sent.
    free: Option<Instant>,
}

impl RateLimit {
    /// Creates a limit of `bytes_per_s`; `None` means no limit. `slice_s` is the longest duration in seconds of a slice
    /// at this rate.
    pub fn new(bytes_per_s: Option<f64>, slice_s: Option<f64>) -> Self {
        let state = Mutex::new(State { bytes_per_s, sent_bytes: 0.0, free: None });
        Self { state, slice_s: slice_s.unwrap_or(SLICE_S).min(SLICE_S) }
    }

    /// Returns the number of bytes that the limit has permitted so far.
    pub fn sent_bytes(&self) -> f64 {
        self.lock().sent_bytes
    }

    /// Changes the limit to `bytes_per_s`.
    pub fn set(&self, bytes_per_s: f64) {
        self.lock().bytes_per_s = Some(bytes_per_s);
    }

    /// Waits until the limit permits sending `bytes` bytes.
    pub async fn wait(&self, bytes: u64) {
        sleep_until(self.turn_at(Instant::now(), bytes)).await;
    }

    /// Returns the earliest time, from `now` on, at which the limit permits sending `bytes` bytes. Counts these bytes
    /// as sent.
    pub fn turn_at(&self, now: Instant, bytes: u64) -> Instant {
        let mut state = self.lock();
        state.sent_bytes += bytes as f64;
        // A sender that is late by at most one slice may catch up. So timers that are late by a millisecond do not
        // reduce the rate.
        let turn = state.free.map_or(now, |free| free.max(now - Duration::from_secs_f64(self.slice_s)));
        if let Some(rate) = state.bytes_per_s {
            state.free = Some(turn + Duration::from_secs_f64((bytes as f64 / rate).min(1e6)));
        }
        turn
    }

    /// Returns the size of the next slice in bytes, at most `most`.
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

    /// Senders that are slightly late for each slice still reach the rate. Only a delay of more than one slice reduces
    /// it.
    #[test]
    fn a_late_turn_is_made_up_for() {
        let (pace, began) = (RateLimit::new(Some(1_000.0), None), Instant::now());
        let at = |ms| began + Duration::from_millis(ms);
        assert_eq!(pace.turn_at(began, 1), began);
        assert_eq!(pace.turn_at(at(5), 1), at(1));
        assert_eq!(pace.turn_at(at(5), 10), at(2));
        assert_eq!(pace.turn_at(at(5), 1), at(12));
        assert_eq!(pace.turn_at(at(100), 1), at(80));
    }
}
