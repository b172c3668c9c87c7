//! The latest contact of a command with a server: the time when bytes of any request last moved.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::time::{Duration, Instant};

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
