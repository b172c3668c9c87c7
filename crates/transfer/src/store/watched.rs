//! A connection that records when its bytes move, for the request that it carries.
//!
//! The HTTP library takes the next bytes of a body only when all earlier ones have left its buffer of several hundred
//! kilobytes. So only the connection shows the progress of a slow upload.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::body::Progress;

/// The progress of the latest request on a connection; `None` before the first request.
#[derive(Clone, Default)]
pub struct CurrentRequest(Arc<Mutex<Option<Arc<Progress>>>>);

impl CurrentRequest {
    /// Records the progress of the connection in `progress` from now on.
    pub fn set(&self, progress: &Arc<Progress>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(progress));
    }

    /// Records that bytes have moved. `is_taken` is `true` if the server has certainly taken bytes.
    fn touch(&self, is_taken: bool) {
        if let Some(progress) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            progress.touch();
            if is_taken {
                progress.touch_contact();
            }
        }
    }
}

/// A stream that records when its bytes move.
pub struct WatchedStream<T> {
    stream: T,
    request: CurrentRequest,
    /// `true` if the buffer of the operating system was full at the latest write.
    is_full: bool,
}

impl<T> WatchedStream<T> {
    pub fn new(stream: T, request: CurrentRequest) -> Self {
        Self { stream, request, is_full: false }
    }

    fn record(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Pending => self.is_full = true,
            // A full buffer accepts bytes again only after the server has taken some. An empty buffer always does.
            Poll::Ready(Ok(1..)) => self.request.touch(std::mem::take(&mut self.is_full)),
            Poll::Ready(_) => {}
        }
        written
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for WatchedStream<T> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, into))?;
        if into.filled().len() > before {
            self.request.touch(false);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for WatchedStream<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.record(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.record(written)
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
