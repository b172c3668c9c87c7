//! Wraps a stream to record its reads and writes.

use std::sync::{Arc, Mutex, MutexGuard};

use ascertain_sys::clock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::io::{InspectReader, InspectWriter};

use crate::threads::lock;

/// The bytes that one read from a connection returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time at which the bytes were read, on the clock of [`now_ns`](crate::now_ns).
    pub at_ns: u64,
    /// Number of bytes, at least 1.
    pub bytes: u64,
}

/// Maximum number of reads that a [`Record`] keeps, so that a large download does not fill the memory. It suffices for
/// the first round trips of a page.
const MOST_ARRIVALS: usize = 1 << 14;

/// The reads and writes of a stream since the last [`Record::clear`].
#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub received_bytes: u64,
    /// Time of the first write; `None` if nothing was written.
    pub first_sent_ns: Option<u64>,
    /// Time of the last write; `None` if nothing was written.
    pub last_sent_ns: Option<u64>,
    /// The reads with their times; `None` if only the total number of received bytes is recorded.
    pub arrivals: Option<Vec<Arrival>>,
}

impl Traffic {
    fn add_received(&mut self, bytes: u64) {
        self.received_bytes += bytes;
        if let Some(arrivals) = self.arrivals.as_mut().filter(|arrivals| bytes > 0 && arrivals.len() < MOST_ARRIVALS) {
            arrivals.push(Arrival { at_ns: clock::now_ns(), bytes });
        }
    }

    fn add_sent(&mut self) {
        let now_ns = clock::now_ns();
        self.first_sent_ns.get_or_insert(now_ns);
        self.last_sent_ns = Some(now_ns);
    }
}

/// The recorded traffic of a stream, which the stream shares with its owner. Only one thread uses it, but the compiler
/// requires a lock.
#[derive(Clone, Debug, Default)]
pub(super) struct Record(Arc<Mutex<Traffic>>);

impl Record {
    /// Creates a record that also keeps the time and size of each read.
    pub fn with_arrivals() -> Self {
        Self(Arc::new(Mutex::new(Traffic { arrivals: Some(Vec::new()), ..Traffic::default() })))
    }

    pub fn lock(&self) -> MutexGuard<'_, Traffic> {
        lock(&self.0)
    }

    /// Discards the recorded traffic.
    pub fn clear(&self) {
        let mut traffic = self.lock();
        *traffic = Traffic { arrivals: traffic.arrivals.as_ref().map(|_| Vec::new()), ..Traffic::default() };
    }
}

/// Wraps a stream, so that each of its reads and writes is recorded in `record`.
pub(super) fn observed<T: AsyncRead + AsyncWrite + Unpin + Send>(
    stream: T,
    record: &Record,
) -> impl AsyncRead + AsyncWrite + Unpin + Send + use<T> {
    let (received, sent) = (record.clone(), record.clone());
    let reader = InspectReader::new(stream, move |bytes: &[u8]| received.lock().add_received(bytes.len() as u64));
    InspectWriter::new(reader, move |_: &[u8]| sent.lock().add_sent())
}
