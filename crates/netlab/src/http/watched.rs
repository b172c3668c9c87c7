//! A stream whose reads and writes are seen.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use ascertain_sys::clock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that arrived, at a moment of [`now_ns`](crate::now_ns).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When they were read.
    pub at_ns: u64,
    /// Their number.
    pub bytes: u64,
}

/// The most arrivals that are kept: more than the first flights of any page have.
const MOST_ARRIVALS: usize = 1 << 14;

/// What was seen since it was last forgotten. One thread does all of it; atomics and the lock are for the compiler's
/// sake.
#[derive(Debug, Default)]
pub(super) struct Seen {
    received_bytes: AtomicU64,
    /// When something was first written; 0 if nothing was.
    first_sent_ns: AtomicU64,
    /// When something was last written; 0 if nothing was.
    last_sent_ns: AtomicU64,
    keeps_arrivals: bool,
    arrivals: Mutex<Vec<Arrival>>,
}

impl Seen {
    /// One that keeps when how much arrived.
    pub fn with_arrivals() -> Self {
        Self { keeps_arrivals: true, ..Self::default() }
    }

    pub fn forget(&self) {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).clear();
        for seen in [&self.received_bytes, &self.first_sent_ns, &self.last_sent_ns] {
            seen.store(0, Ordering::Relaxed);
        }
    }

    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    pub fn first_sent_ns(&self) -> Option<u64> {
        Some(self.first_sent_ns.load(Ordering::Relaxed)).filter(|ns| *ns > 0)
    }

    pub fn last_sent_ns(&self) -> Option<u64> {
        Some(self.last_sent_ns.load(Ordering::Relaxed)).filter(|ns| *ns > 0)
    }

    pub fn arrivals(&self) -> Vec<Arrival> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn read(&self, bytes: u64) {
        self.received_bytes.fetch_add(bytes, Ordering::Relaxed);
        if bytes > 0 && self.keeps_arrivals {
            let mut arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
            if arrivals.len() < MOST_ARRIVALS {
                arrivals.push(Arrival { at_ns: clock::now_ns(), bytes });
            }
        }
    }

    fn write(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(written, Poll::Ready(Ok(1..))) {
            let now_ns = clock::now_ns();
            let _ = self.first_sent_ns.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed);
            self.last_sent_ns.store(now_ns, Ordering::Relaxed);
        }
        written
    }
}

pub(super) struct Watched<T> {
    stream: T,
    seen: Arc<Seen>,
}

impl<T> Watched<T> {
    pub fn new(stream: T, seen: Arc<Seen>) -> Self {
        Self { stream, seen }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.seen.read((buffer.filled().len() - before) as u64);
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.seen.write(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.seen.write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
