//! The transfer of one part. It waits for memory and the rate limit, computes the checksum, and sends the request.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::BoxFuture;
use crate::buffers::{Buffers, RangeWriter, TargetFile};
use crate::error::{Error, Result};
use crate::journal::{Part, PartReceipt};
use crate::location::Location;
use crate::pool::Hedge;
use crate::rate_limit::RateLimit;
use crate::result::RequestStats;
use crate::retry::{RetryPolicy, request};
use crate::source::Source;
use crate::store::{Attempt, Kind, ObjectMeta, PartBody, Store, Upload};

/// The outcome of transferring a part: its receipt, the statistics of its request, and its bytes. The bytes are missing
/// or empty if they were not kept in memory.
pub(crate) type PartOutput = (PartReceipt, RequestStats, Option<HeldPart>);

/// Transfers the parts of one file.
pub(crate) trait PartWork: Send {
    /// Returns a future that transfers the part. `is_second` is `true` for a second request, which is sent because the
    /// first request for the part is late. The two requests must not disturb each other.
    fn start(&self, part: Part, is_second: bool) -> BoxFuture<'static, Result<PartOutput>>;

    /// Returns a function that decides whether the part may be transferred twice at the same time.
    fn hedge(&self, _part: Part) -> Box<dyn Fn() -> Hedge + Send + Sync> {
        Box::new(|| Hedge::AtEnd)
    }

    /// Receives the bytes of the transferred part, if they are kept in memory. Does nothing by default.
    fn deliver(&mut self, _part: Part, _held: Option<HeldPart>) -> Result<()> {
        Ok(())
    }

    /// Returns `true` if the remaining parts need not be transferred.
    fn is_complete(&self) -> bool {
        false
    }
}

/// Number of bytes that one permit of the memory semaphore of [`PartGate`] stands for.
const UNIT_BYTES: u64 = 1 << 10;
/// Number of bytes from which the timeout is computed if the duration of a request is unknown. The timeout is then very
/// long. This does no harm, because a request fails anyway if no bytes move for some time.
pub(crate) const LARGE_BYTES: u64 = 1 << 40;

/// The limits that the parts of all files share: memory, rate and retries.
#[derive(Clone, Debug)]
pub(crate) struct PartGate {
    memory: Arc<Semaphore>,
    units: u32,
    pub rate_limit: Arc<RateLimit>,
    /// `true` if the rate limit delays each slice of a part; `false` if it delays each part as a whole.
    pub in_slices: bool,
    pub retry: Arc<RetryPolicy>,
    pub buffers: Buffers,
}

impl PartGate {
    pub fn new(memory_bytes: u64, rate_limit: RateLimit, retry: RetryPolicy) -> Self {
        let units = memory_bytes.div_ceil(UNIT_BYTES).clamp(1, Semaphore::MAX_PERMITS.min(1 << 30) as u64) as u32;
        Self {
            memory: Arc::new(Semaphore::new(units as usize)),
            units,
            rate_limit: Arc::new(rate_limit),
            in_slices: false,
            retry: Arc::new(retry),
            buffers: Buffers::default(),
        }
    }

    /// Returns the same limits, but with separate memory of the same size.
    pub fn with_own_memory(&self) -> Self {
        Self { memory: Arc::new(Semaphore::new(self.units as usize)), ..self.clone() }
    }

    /// Waits until there is memory for a part of `bytes` bytes and the rate limit permits its start. The part has this
    /// memory until the returned permit is dropped.
    pub async fn admit(&self, bytes: u64) -> Result<OwnedSemaphorePermit> {
        let permit = self.allocate(bytes).await;
        self.pace(bytes).await;
        permit
    }

    /// Waits until the rate limit permits the start of a part of `bytes` bytes.
    async fn pace(&self, bytes: u64) {
        if !self.in_slices {
            self.rate_limit.wait(bytes).await;
        }
    }

    /// Waits until there is memory for `bytes` bytes. Dropping the returned permit frees the memory.
    pub async fn allocate(&self, bytes: u64) -> Result<OwnedSemaphorePermit> {
        let permit = Arc::clone(&self.memory).acquire_many_owned(self.units(bytes)).await;
        permit.map_err(|error| Error::Request(error.to_string()))
    }

    /// Returns whether there is memory for `bytes` bytes now.
    fn has_room(&self, bytes: u64) -> bool {
        self.memory.available_permits() >= self.units(bytes) as usize
    }

    /// Returns the number of permits for `bytes` bytes of memory.
    fn units(&self, bytes: u64) -> u32 {
        u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).clamp(1, self.units)
    }

    /// Adds the rate limit to the record of an attempt, if it delays each slice of a part.
    pub fn with_rate_limit(&self, attempt: Attempt) -> Attempt {
        Attempt { rate_limit: self.in_slices.then(|| Arc::clone(&self.rate_limit)), ..attempt }
    }

    /// Returns the size in bytes from which the timeout of a part is computed: its own size, `bytes`. If the rate limit
    /// delays each slice, the duration is unknown, so the result is a very large size.
    pub fn timeout_bytes(&self, bytes: u64) -> u64 {
        if self.in_slices { LARGE_BYTES } else { bytes }
    }
}

/// Sends one part, with retries.
pub(crate) async fn send(
    gate: &PartGate,
    store: &dyn Store,
    upload: &Upload,
    part: Part,
    body: PartBody,
) -> Result<PartOutput> {
    let request = request!(attempt = gate, store.put_part(upload, part.index, body.clone(), &mut attempt));
    // The request may be repeated, because a part that is sent again replaces its earlier copy.
    let (token, stats) = gate.retry.run(gate.timeout_bytes(part.bytes), Kind::Transient(None), request).await?;
    Ok((PartReceipt { token, crc64: body.crc64, crc32c: None }, stats, None))
}

/// Sends the parts of a file to a store.
pub(crate) struct Sender {
    pub source: Source,
    pub store: Arc<dyn Store>,
    pub upload: Upload,
    pub gate: PartGate,
}

impl PartWork for Sender {
    fn hedge(&self, _part: Part) -> Box<dyn Fn() -> Hedge + Send + Sync> {
        let store = Arc::clone(&self.store);
        Box::new(move || if store.has_stable_tokens() { Hedge::AtEnd } else { Hedge::Never })
    }

    fn start(&self, part: Part, _is_second: bool) -> BoxFuture<'static, Result<PartOutput>> {
        let (source, store, gate) = (self.source.clone(), Arc::clone(&self.store), self.gate.clone());
        let upload = self.upload.clone();
        Box::pin(async move {
            let _permit = gate.admit(part.bytes).await?;
            let body = source.read(part.offset, part.bytes, &gate.buffers).await?;
            send(&gate, &*store, &upload, part, body).await
        })
    }
}

/// The destination of fetched ranges.
pub(crate) enum Sink<'a> {
    File(Arc<TargetFile>),
    /// A stream that receives the parts in the order of their offsets.
    InOrder {
        out: &'a mut (dyn Write + Send),
        /// Index of the part that the stream receives next.
        next: Arc<AtomicUsize>,
        /// Parts, by index, that wait in memory because an earlier part of the stream is still missing.
        waiting: BTreeMap<usize, HeldPart>,
    },
    /// [`PartWork::deliver`] receives the bytes of each part.
    Memory,
    Nowhere,
}

/// The bytes of a part in memory. They count towards the memory limit until they are delivered to the stream.
pub(crate) struct HeldPart {
    pub body: PartBody,
    _permit: Option<OwnedSemaphorePermit>,
}

/// Fetches the parts of an object.
pub(crate) struct Fetcher<'a> {
    store: Arc<dyn Store>,
    meta: Arc<ObjectMeta>,
    sink: Sink<'a>,
    gate: PartGate,
}

impl<'a> Fetcher<'a> {
    pub fn new(from: &Location, meta: &ObjectMeta, sink: Sink<'a>, gate: PartGate) -> Self {
        Self { store: Arc::clone(&from.store), meta: Arc::new(meta.clone()), sink, gate }
    }
}

impl PartWork for Fetcher<'_> {
    /// A part that a stream needs next may be requested again at any time if the memory is full of later parts.
    fn hedge(&self, part: Part) -> Box<dyn Fn() -> Hedge + Send + Sync> {
        let Sink::InOrder { next, .. } = &self.sink else { return Box::new(|| Hedge::AtEnd) };
        let (next, gate) = (Arc::clone(next), self.gate.clone());
        let is_blocking = move || next.load(Ordering::Relaxed) == part.index && !gate.has_room(part.bytes);
        Box::new(move || if is_blocking() { Hedge::Now } else { Hedge::AtEnd })
    }

    fn start(&self, part: Part, is_second: bool) -> BoxFuture<'static, Result<PartOutput>> {
        let (store, meta, gate) = (Arc::clone(&self.store), Arc::clone(&self.meta), self.gate.clone());
        // Only the first request writes to the file while its bytes arrive. The bytes of a second request are written
        // after the first request was dropped. So the file never mixes the bytes of both.
        let is_held = is_second || matches!(self.sink, Sink::InOrder { .. } | Sink::Memory);
        let target = if let Sink::File(target) = &self.sink { Some(Arc::clone(target)) } else { None };
        let next = if let Sink::InOrder { next, .. } = &self.sink { Some(Arc::clone(next)) } else { None };
        Box::pin(async move {
            // All memory may be full of parts that wait for this one. So its second request does not wait for memory.
            let is_blocking = is_second && next.is_some_and(|next| next.load(Ordering::Relaxed) == part.index);
            let permit = if is_blocking { None } else { Some(gate.allocate(part.bytes).await?) };
            gate.pace(part.bytes).await;
            let range = part.offset..part.offset + part.bytes;
            let request = |attempt| async {
                let mut attempt = gate.with_rate_limit(attempt);
                let into = match &target {
                    _ if is_held => RangeWriter::in_memory(&gate.buffers, range.clone()),
                    Some(target) => RangeWriter::in_file(target, range.clone()),
                    None => RangeWriter::nowhere(range.clone()),
                };
                let into = into.with_crc32c(meta.crc32c.is_some());
                let fetched = store.get_range(&meta, into, &mut attempt).await;
                // A truncated answer counts as a failure.
                (fetched.and_then(RangeWriter::whole), attempt)
            };
            let fetched = gate.retry.run(part.bytes, Kind::Transient(None), request).await;
            let (fetched, stats) = fetched.map_err(|failure| match &target {
                Some(target) => target.error(failure),
                None => failure.into(),
            })?;
            let (crc32c, body) = (fetched.crc32c(), fetched.finish());
            let receipt = PartReceipt { token: String::new(), crc64: body.crc64, crc32c };
            Ok((receipt, stats, Some(HeldPart { body, _permit: permit })))
        })
    }

    fn deliver(&mut self, part: Part, held: Option<HeldPart>) -> Result<()> {
        let (out, next, waiting) = match &mut self.sink {
            Sink::InOrder { out, next, waiting } => (out, next, waiting),
            Sink::File(target) => {
                let bytes = held.as_ref().map_or(&[][..], |held| &held.body.bytes);
                return target.write(bytes, part.offset).map_err(|failure| target.error(failure));
            }
            Sink::Memory | Sink::Nowhere => return Ok(()),
        };
        waiting.extend(held.map(|held| (part.index, held)));
        let cant_write = Error::file("can't write", Path::new("the output"));
        let mut write = || {
            while let Some(held) = waiting.remove(&next.load(Ordering::Relaxed)) {
                out.write_all(&held.body.bytes)?;
                next.fetch_add(1, Ordering::Relaxed);
            }
            if waiting.is_empty() { out.flush() } else { Ok(()) }
        };
        write().map_err(cant_write)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::manager::{Settings, TransferManager};
    use crate::store::Local;

    /// The first request may still write to the file while the second one gets its bytes.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_second_request_writes_to_the_file_only_when_the_first_one_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), b"0123456789").unwrap();
        let store = Arc::new(Local::new(folder.path()));
        let from = Location { store, name: "a".into(), address: "file:///a".into() };
        let meta = from.store.head("a", &mut Attempt::default()).await.unwrap().unwrap();
        let path = folder.path().join("b");
        let target = Arc::new(TargetFile::new(fs::File::create_new(&path).unwrap(), path.clone()));
        let manager = TransferManager::new(Settings::default(), Default::default(), Box::new(()));
        let mut fetcher = Fetcher::new(&from, &meta, Sink::File(target), manager.gate.clone());
        let part = Part { index: 1, offset: 2, bytes: 3 };
        let (_, _, held) = fetcher.start(part, true).await.unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        fetcher.deliver(part, held).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"\0\x00234");
        let part = Part { index: 2, offset: 5, bytes: 5 };
        let (_, _, held) = fetcher.start(part, false).await.unwrap();
        fetcher.deliver(part, held).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"\0\x0023456789");
    }
}
