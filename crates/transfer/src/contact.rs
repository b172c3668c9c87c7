//! The times that decide about retries: the latest contact with a server, and the progress of each attempt.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::time::{Duration, Instant, timeout};

/// The time of the latest event of some kind. Several threads may record events at the same time.
#[derive(Debug)]
struct Latest {
    began: Instant,
    /// Time of the latest event, in milliseconds after `began`; 0 if there was none.
    ms: AtomicU64,
}

impl Latest {
    fn new() -> Self {
        Self { began: Instant::now(), ms: AtomicU64::new(0) }
    }

    fn touch(&self) {
        let ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.ms.store(ms.max(1), Ordering::Relaxed);
    }

    /// Returns the time of the latest event; the start of the record if there was none.
    fn get(&self) -> Instant {
        self.began + Duration::from_millis(self.ms.load(Ordering::Relaxed))
    }
}

/// Records the latest contact with a server. All requests of a command share it.
#[derive(Debug)]
pub(crate) struct Contact {
    latest: Latest,
    host: Mutex<Option<String>>,
}

impl Contact {
    pub fn new() -> Self {
        Self { latest: Latest::new(), host: Mutex::default() }
    }

    /// Records that bytes have moved now, or that a request has succeeded.
    pub fn touch(&self) {
        self.latest.touch();
    }

    /// Returns the time of the latest contact; the start of the command if there was none.
    pub fn latest(&self) -> Instant {
        self.latest.get()
    }

    /// Returns whether there was any contact.
    pub fn was_made(&self) -> bool {
        self.latest.ms.load(Ordering::Relaxed) > 0
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

/// The start and the progress of an attempt to send a request. The time limit of the attempt does not include the wait
/// for a connection, because this wait depends on other requests.
#[derive(Debug)]
pub(crate) struct AttemptClock {
    /// The start of the attempt; `None` while the attempt waits for a connection, and after its end.
    start: Mutex<Option<Instant>>,
    /// The time when bytes of the attempt last moved.
    moved: Latest,
}

impl Default for AttemptClock {
    fn default() -> Self {
        Self { start: Mutex::new(Some(Instant::now())), moved: Latest::new() }
    }
}

impl AttemptClock {
    /// Starts the attempt now.
    pub fn start(&self) {
        *self.start.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Records that the attempt has ended, or waits for a connection.
    pub fn stop(&self) {
        *self.start.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn start_time(&self) -> Option<Instant> {
        *self.start.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time since the start of the attempt; zero if the attempt has ended or waits for a connection.
    pub fn elapsed(&self) -> Duration {
        self.start_time().map_or(Duration::ZERO, |start| start.elapsed())
    }

    /// Records that bytes of the attempt have moved now.
    pub fn touch(&self) {
        self.moved.touch();
    }

    /// Returns the time when bytes of the attempt last moved.
    pub fn moved(&self) -> Instant {
        self.moved.get()
    }

    /// Returns the time of the latest progress: when bytes of the attempt last moved, or when it started. Returns the
    /// current time if the attempt has ended or waits for a connection.
    pub fn progress(&self) -> Instant {
        self.start_time().map_or_else(Instant::now, |start| start.max(self.moved()))
    }

    /// Runs the attempt `work`. Returns `None` if the attempt makes no progress for `limit`, not counting the wait for
    /// a connection.
    pub async fn limit<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        loop {
            let left = limit.saturating_sub(self.progress().elapsed());
            if left.is_zero() {
                return None;
            }
            if let Ok(done) = timeout(left, &mut work).await {
                return Some(done);
            }
        }
    }
}
