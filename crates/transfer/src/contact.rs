//! The times that decide about retries: the latest contact with a server, and the start of each attempt.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::time::{Duration, Instant, timeout};

/// Records the latest contact with a server. All requests of a command share it.
#[derive(Debug)]
pub(crate) struct Contact {
    began: Instant,
    /// Time of the latest contact, in milliseconds after `began`.
    latest_ms: AtomicU64,
    host: Mutex<Option<String>>,
}

impl Contact {
    pub fn new() -> Self {
        Self { began: Instant::now(), latest_ms: AtomicU64::new(0), host: Mutex::default() }
    }

    /// Records that bytes have moved now, or that a request has succeeded.
    pub fn touch(&self) {
        let latest_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.latest_ms.store(latest_ms, Ordering::Relaxed);
    }

    /// Returns the time of the latest contact; the start of the command if there was none.
    pub fn latest(&self) -> Instant {
        self.began + Duration::from_millis(self.latest_ms.load(Ordering::Relaxed))
    }

    /// Returns the server that the latest request was sent to; `None` if no request went to a server.
    pub fn host(&self) -> Option<String> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records that a request is sent to the server `host`.
    pub fn set_host(&self, host: impl ToString) {
        *self.host.lock().unwrap_or_else(PoisonError::into_inner) = Some(host.to_string());
    }
}

/// The start of an attempt to send a request. It is `None` while the attempt waits for a connection. The time limit of
/// the attempt does not include this wait, because the wait depends on other requests.
#[derive(Debug)]
pub(crate) struct AttemptClock(Mutex<Option<Instant>>);

impl AttemptClock {
    pub fn new() -> Self {
        Self(Mutex::new(Some(Instant::now())))
    }

    /// Starts the attempt now.
    pub fn start(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Records that the attempt has ended, or waits for a connection.
    pub fn stop(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the start of the attempt; `None` if the attempt has ended or waits for a connection.
    pub fn start_time(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time since the start of the attempt; zero if the attempt has ended or waits for a connection.
    pub fn elapsed(&self) -> Duration {
        self.start_time().map_or(Duration::ZERO, |start| start.elapsed())
    }

    /// Runs the attempt `work`. Returns `None` if the attempt takes longer than `limit`, not counting the wait for a
    /// connection.
    pub async fn limit<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        loop {
            let left = limit.saturating_sub(self.elapsed());
            if left.is_zero() {
                return None;
            }
            if let Ok(done) = timeout(left, &mut work).await {
                return Some(done);
            }
        }
    }
}
