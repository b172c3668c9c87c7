//! Sends the body of a request slice by slice, and detects requests that make no progress.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep_until, timeout};

use crate::contact::{AttemptClock, Contact};
use crate::rate_limit::RateLimit;

/// Size in bytes of a slice without a rate limit. A slice consists of the bytes that the HTTP library gets at once.
const SLICE_BYTES: usize = 256 << 10;

/// Records the progress of a request, and whether the request was sent completely.
pub struct Progress {
    clock: Arc<AttemptClock>,
    is_sent: AtomicBool,
    /// The time when the last slice was given to the connection.
    sent: OnceLock<std::time::Instant>,
    timeout: Duration,
    contact: Option<Arc<Contact>>,
}

impl Progress {
    /// Creates the record of a request of the attempt that has this clock.
    pub fn new(timeout: Duration, is_sent: bool, clock: Arc<AttemptClock>, contact: Option<Arc<Contact>>) -> Self {
        Self { clock, is_sent: is_sent.into(), sent: OnceLock::new(), timeout, contact }
    }

    /// Returns the time when the last slice of the body was given to the connection; `None` if there is no body, or if
    /// it is not sent completely.
    pub fn sent(&self) -> Option<std::time::Instant> {
        self.sent.get().copied()
    }

    pub fn is_sent(&self) -> bool {
        self.is_sent.load(Ordering::Relaxed)
    }

    /// Records that bytes of the request or its answer have moved now.
    pub fn touch(&self) {
        self.clock.touch();
    }

    /// Records that the server has taken or sent bytes now.
    pub fn touch_contact(&self) {
        if let Some(contact) = &self.contact {
            contact.touch();
        }
    }

    /// Waits for `work`. Gives up and returns `None` if no bytes of the request or its answer have moved for the
    /// timeout.
    pub async fn watch<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        self.touch();
        loop {
            let left = self.timeout.saturating_sub(self.clock.moved().elapsed());
            if left.is_zero() {
                return None;
            }
            if let Ok(done) = timeout(left, &mut work).await {
                return Some(done);
            }
        }
    }
}

/// The body of a request. It is sent slice by slice at the rate limit.
pub struct SlicedBody {
    rest: Bytes,
    progress: Arc<Progress>,
    rate_limit: Option<Arc<RateLimit>>,
    /// The next slice: its size in bytes, and the wait until the rate limit permits sending it.
    turn: Option<(usize, Pin<Box<Sleep>>)>,
}

impl SlicedBody {
    pub fn new(rest: Bytes, progress: Arc<Progress>, rate_limit: Option<Arc<RateLimit>>) -> Self {
        Self { rest, progress, rate_limit, turn: None }
    }
}

impl Body for SlicedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let SlicedBody { rest, progress, rate_limit, turn } = &mut *self;
        let mut slice_bytes = rest.len().min(SLICE_BYTES);
        if let Some(rate_limit) = rate_limit.as_ref().filter(|_| slice_bytes > 0) {
            progress.touch();
            let (bytes, turn) = turn.get_or_insert_with(|| {
                let bytes = rate_limit.slice_bytes(slice_bytes);
                (bytes, Box::pin(sleep_until(rate_limit.turn_at(tokio::time::Instant::now(), bytes as u64))))
            });
            slice_bytes = *bytes;
            ready!(turn.as_mut().poll(context));
            progress.touch();
        }
        let slice = rest.split_to(slice_bytes);
        progress.is_sent.store(rest.is_empty(), Ordering::Relaxed);
        if rest.is_empty() {
            progress.sent.get_or_init(std::time::Instant::now);
        }
        *turn = None;
        Poll::Ready((!slice.is_empty()).then(|| Ok(Frame::data(slice))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
