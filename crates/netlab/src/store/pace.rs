//! A stream with a rate limit.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Duration of one burst of data at the rate limit: a burst has as many bytes as the limit allows in this time. It is
/// longer than the usual lateness of a timer.
const BURST: Duration = Duration::from_millis(10);

/// The rate limit of one direction of a stream. Data is transferred in bursts. A burst of `n` bytes delays the next
/// burst by the time that `n` bytes take at the rate limit.
struct Pace {
    bytes_per_s: u64,
    due: Pin<Box<Sleep>>,
    /// `true` if the stream has been idle since the previous burst. The next burst must then not make up for the idle
    /// time.
    is_idle: bool,
}

impl Pace {
    fn new(bytes_per_s: u64) -> Self {
        Self { bytes_per_s: bytes_per_s.max(1), due: Box::pin(sleep_until(Instant::now())), is_idle: true }
    }

    /// Waits until a burst may be transferred, and returns the burst's maximum size in bytes.
    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<usize> {
        ready!(self.due.as_mut().poll(context));
        Poll::Ready((self.bytes_per_s as f64 * BURST.as_secs_f64()).ceil() as usize)
    }

    fn went(&mut self, bytes: usize) {
        // If the timer was late, the burst counts as begun when it was due, but at most `BURST` ago. If there was
        // nothing to transfer before, it counts as begun now, so that the idle time does not allow a higher rate.
        let late = if std::mem::take(&mut self.is_idle) { Duration::ZERO } else { BURST };
        let start = self.due.deadline().max(Instant::now() - late);
        self.due.as_mut().reset(start + Duration::from_secs_f64(bytes as f64 / self.bytes_per_s as f64));
    }
}

pub(super) struct PacedStream<T> {
    stream: T,
    received: Option<Pace>,
    sent: Option<Pace>,
}

impl<T> PacedStream<T> {
    pub fn new(stream: T, bytes_per_s: Option<u64>) -> Self {
        let [received, sent] = [bytes_per_s; 2].map(|rate| rate.map(Pace::new));
        Self { stream, received, sent }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for PacedStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, received, .. } = &mut *self;
        let Some(pace) = received else { return Pin::new(stream).poll_read(context, buffer) };
        let most = ready!(pace.poll_bytes(context)).min(buffer.remaining());
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(most));
        let read = Pin::new(stream).poll_read(context, &mut part);
        pace.is_idle |= read.is_pending();
        ready!(read)?;
        let bytes = part.filled().len();
        buffer.advance(bytes);
        pace.went(bytes);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for PacedStream<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Self { stream, received, sent } = &mut *self;
        // An answer is not sent before the received bytes would have arrived at the rate limit.
        if let Some(received) = received {
            ready!(received.due.as_mut().poll(context));
        }
        let Some(pace) = sent else { return Pin::new(stream).poll_write(context, bytes) };
        let most = ready!(pace.poll_bytes(context)).min(bytes.len());
        let written = ready!(Pin::new(stream).poll_write(context, &bytes[..most]))?;
        pace.went(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
