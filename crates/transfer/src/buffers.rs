//! Buffers and files for the bytes of parts. Buffers are reused, because the kernel needs as much time for a new page
//! of memory as for copying two pages. Bytes for a file are written while they are still in the processor's cache.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use crc_fast::Digest;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use crate::crc64::{digest, digest_of_crc32c};
use crate::error::{Error, copy, file_failure};
use crate::store::{Failure, Kind, PartBody};

/// Number of bytes that are read in one step and then hashed. A step is small enough to be still in the processor's
/// cache when it is hashed.
pub(crate) const STEP_BYTES: usize = 256 << 10;
/// Limit in bytes on the unused buffers that a [`Buffers`] pool keeps for reuse: one large part, or many small ones.
const KEPT_BYTES: usize = 64 << 20;

/// A pool of buffers for parts. Clones share the same pool.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

/// Receives the bytes of a range of an object in order, and computes their checksums. Depending on the constructor, the
/// bytes are kept in memory, written to a file at the range's offset, or dropped.
#[derive(Debug)]
pub struct RangeWriter {
    range: Range<u64>,
    sink: Sink,
    filled: usize,
    sums: Sums,
}

/// The checksums of the bytes so far: the CRC-64/NVME, and the CRC-32C if the caller needs it.
#[derive(Debug)]
struct Sums {
    crc64: Digest,
    crc32c: Option<Digest>,
}

#[derive(Debug)]
enum Sink {
    Memory(PooledBuffer),
    File(Arc<TargetFile>),
    Nowhere,
}

/// A file to which the parts of a download are written.
#[derive(Debug)]
pub(crate) struct TargetFile {
    pub file: File,
    pub path: PathBuf,
    /// The first error of a write to this file. [`TargetFile::error`] returns it.
    error: OnceLock<io::Error>,
}

/// A buffer that returns to its pool when it is dropped.
#[derive(Debug)]
struct PooledBuffer {
    bytes: Vec<u8>,
    pool: Buffers,
}

impl Buffers {
    fn lend(&self, bytes: usize) -> PooledBuffer {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        // The memory limit permits a buffer that is up to an eighth larger than its part. A kept buffer that is even
        // larger is not reused.
        let fitting = kept.filter(|kept| (bytes..=bytes.saturating_add(bytes / 8)).contains(&kept.len()));
        PooledBuffer { bytes: fitting.unwrap_or_else(|| vec![0; bytes]), pool: self.clone() }
    }

    /// Reads a range of a file into a buffer, and computes its checksum.
    pub fn read(&self, file: &File, offset: u64, bytes: u64) -> io::Result<PartBody> {
        let mut writer = RangeWriter::in_memory(self, offset..offset + bytes);
        while !writer.room(STEP_BYTES).is_empty() {
            let at = offset + writer.filled as u64;
            let room = writer.room(STEP_BYTES);
            file.read_exact_at(room, at)?;
            let read = room.len();
            writer.filled(read);
        }
        Ok(writer.finish())
    }
}

impl Sums {
    fn update(&mut self, bytes: &[u8]) {
        self.crc64.update(bytes);
        if let Some(crc32c) = &mut self.crc32c {
            crc32c.update(bytes);
        }
    }
}

impl RangeWriter {
    fn new(sink: Sink, range: Range<u64>) -> Self {
        Self { range, sink, filled: 0, sums: Sums { crc64: digest(), crc32c: None } }
    }

    /// Creates a writer that keeps the bytes in memory.
    pub(crate) fn in_memory(buffers: &Buffers, range: Range<u64>) -> Self {
        Self::new(Sink::Memory(buffers.lend(length(&range))), range)
    }

    /// Creates a writer that writes the bytes to a file.
    pub(crate) fn in_file(target: &Arc<TargetFile>, range: Range<u64>) -> Self {
        Self::new(Sink::File(Arc::clone(target)), range)
    }

    /// Creates a writer that drops the bytes, and only computes their checksum.
    pub(crate) fn nowhere(range: Range<u64>) -> Self {
        Self::new(Sink::Nowhere, range)
    }

    /// Returns memory into which the caller writes at most `most` of the next bytes. It is empty if the range is
    /// complete, or if the writer does not keep bytes in memory.
    pub(crate) fn room(&mut self, most: usize) -> &mut [u8] {
        let end = length(&self.range).min(self.filled.saturating_add(most));
        match &mut self.sink {
            Sink::Memory(lent) => &mut lent.bytes[self.filled..end],
            Sink::File(_) | Sink::Nowhere => &mut [],
        }
    }

    /// Counts `bytes` bytes as received. The caller has stored them at the start of the memory that [`Self::room`]
    /// returned.
    pub(crate) fn filled(&mut self, bytes: usize) {
        let end = length(&self.range).min(self.filled + bytes);
        if let Sink::Memory(lent) = &self.sink {
            self.sums.update(&lent.bytes[self.filled..end]);
        }
        self.filled = end;
    }

    /// Adds the next bytes of the range. If they go to a file, the call may block the thread while the disk is busy. It
    /// must not be called within a `LocalSet`, because tokio may then move the thread's other tasks to another thread.
    ///
    /// # Errors
    /// Fails if `bytes` exceed the range, or if the file can't be written. A store must return this failure unchanged,
    /// because its kind determines whether the request is retried.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.is_empty() {
            return Ok(());
        }
        if bytes.len() > self.left() {
            let message = format!("received more than the requested {} bytes", length(&self.range));
            return Err(Failure::fatal(message));
        }
        match &mut self.sink {
            Sink::Memory(lent) => lent.bytes[self.filled..][..bytes.len()].copy_from_slice(bytes),
            Sink::File(target) => target.write(bytes, self.range.start + self.filled as u64)?,
            Sink::Nowhere => {}
        }
        self.filled += bytes.len();
        self.sums.update(bytes);
        Ok(())
    }

    /// Makes the writer also compute the CRC-32C if `is_wanted`.
    pub(crate) fn with_crc32c(mut self, is_wanted: bool) -> Self {
        self.sums.crc32c = is_wanted.then(digest_of_crc32c);
        self
    }

    /// Returns the range of the object that this writer receives.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Returns the number of bytes of the range that have not been added yet.
    pub(crate) fn left(&self) -> usize {
        length(&self.range) - self.filled
    }

    /// Returns this writer if it has all bytes of its range. Fails if bytes are missing.
    pub(crate) fn whole(self) -> Result<Self, Failure> {
        if self.left() == 0 {
            return Ok(self);
        }
        let (bytes, from) = (length(&self.range), self.range.start);
        let message = format!("requested {bytes} bytes at offset {from}, received {}", self.filled);
        Err(Failure::new(Kind::Corrupted, message))
    }

    /// Returns the CRC-64/NVME of the bytes so far.
    pub(crate) fn crc64(&self) -> u64 {
        self.sums.crc64.finalize()
    }

    /// Returns the CRC-32C of the bytes so far; `None` if it is not computed.
    pub(crate) fn crc32c(&self) -> Option<u32> {
        self.sums.crc32c.as_ref().map(|crc32c| crc32c.finalize() as u32)
    }

    /// Returns the bytes with their checksum. The bytes are empty if they were not kept in memory.
    pub(crate) fn finish(self) -> PartBody {
        let crc64 = self.crc64();
        let bytes = match self.sink {
            Sink::Memory(lent) => Bytes::from_owner(lent).slice(..self.filled),
            Sink::File(_) | Sink::Nowhere => Bytes::new(),
        };
        PartBody { crc64, bytes }
    }
}

/// Reads a range of a file, and returns a writer with the checksums of the bytes. Needs no more memory than
/// [`STEP_BYTES`].
pub(crate) fn read_sums(file: &File, range: Range<u64>, needs_crc32c: bool) -> io::Result<RangeWriter> {
    let mut sums = RangeWriter::nowhere(range.clone()).with_crc32c(needs_crc32c);
    let mut step = vec![0; STEP_BYTES.min(length(&range))];
    while sums.left() > 0 {
        let bytes = step.len().min(sums.left());
        file.read_exact_at(&mut step[..bytes], range.end - sums.left() as u64)?;
        sums.add(&step[..bytes]).map_err(io::Error::other)?;
    }
    Ok(sums)
}

fn length(range: &Range<u64>) -> usize {
    usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX)
}

impl TargetFile {
    pub fn new(file: File, path: PathBuf) -> Self {
        Self { file, path, error: OnceLock::new() }
    }

    /// Writes bytes at the offset `at`.
    pub fn write(&self, bytes: &[u8], at: u64) -> Result<(), Failure> {
        wait_for_disk(|| self.file.write_all_at(bytes, at)).map_err(|error| {
            let failure = file_failure("can't write", &self.path, &error);
            let _ = self.error.set(error);
            failure
        })
    }

    /// Converts a failure to an error. If an earlier write to this file failed, returns the error of that write, which
    /// was the cause.
    pub fn error(&self, failure: Failure) -> Error {
        match self.error.get() {
            Some(error) => Error::file("can't write", &self.path)(copy(error)),
            None => failure.into(),
        }
    }
}

/// Runs `work`, which may wait for a disk. Usually runs it directly on this thread: most writes only copy memory, which
/// is faster than handing them over to another thread. If all other threads may be waiting for a disk, this thread
/// first gives its tasks to another thread.
fn wait_for_disk<T>(work: impl FnOnce() -> T) -> T {
    /// Number of the runtime's threads that run such work directly. Each of them may be waiting for a disk.
    static WAITING: AtomicUsize = AtomicUsize::new(0);
    let here = Handle::try_current().ok().filter(|here| here.runtime_flavor() == RuntimeFlavor::MultiThread);
    let others = here.map_or(usize::MAX, |here| here.metrics().num_workers() - 1);
    let one_more = |waiting: usize| (waiting < others).then_some(waiting + 1);
    if WAITING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_err() {
        return block_in_place(work);
    }
    let done = work();
    WAITING.fetch_sub(1, Ordering::Relaxed);
    done
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        let mut kept = self.pool.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(std::mem::take(&mut self.bytes));
        // The oldest buffers are removed first, because the next part probably has the size of the latest one.
        while kept.iter().map(Vec::len).sum::<usize>() > KEPT_BYTES {
            kept.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::Duration;

    use super::*;
    use crate::crc64::{crc32c, crc64};

    #[test]
    fn a_reused_buffer_contains_only_the_new_bytes() {
        let buffers = Buffers::default();
        for (bytes, fill) in [(10, b'a'), (8, b'b'), (1_000_000, b'c'), (999_999, b'd'), (0, b'e')] {
            let mut writer = RangeWriter::in_memory(&buffers, 0..bytes);
            let part = vec![fill; usize::try_from(bytes).unwrap() / 2];
            writer.add(&part).unwrap();
            writer.add(&part).unwrap();
            assert!(writer.add(&[0; 2]).is_err(), "there is no room");
            let block = writer.finish();
            assert_eq!(block.bytes, [&part[..], &part].concat());
            assert_eq!(block.crc64, crc64(&block.bytes));
        }
    }

    #[test]
    fn memory_of_the_right_size_is_reused_and_the_amount_kept_is_limited() {
        let buffers = Buffers::default();
        let kept = || buffers.0.lock().unwrap().iter().map(Vec::len).collect::<Vec<_>>();
        let mut one = RangeWriter::in_memory(&buffers, 0..1000);
        one.add(&[7; 1000]).unwrap();
        let one = one.finish();
        let (address, other) = (one.bytes.as_ptr(), one.clone());
        drop(one);
        assert!(kept().is_empty(), "the buffer is still in use");
        drop(other);
        assert_eq!(kept(), [1000]);
        let mut again = RangeWriter::in_memory(&buffers, 0..900);
        assert_eq!((again.room(900).as_ptr(), kept()), (address, vec![]));
        drop(again);
        drop(RangeWriter::in_memory(&buffers, 0..880));
        assert_eq!(kept(), [880], "the other was too large");
        let many: Vec<_> = (0..80).map(|_| RangeWriter::in_memory(&buffers, 0..1 << 20)).collect();
        drop(many);
        assert_eq!(kept().len(), KEPT_BYTES >> 20);
        drop(RangeWriter::in_memory(&buffers, 0..40 << 20));
        assert_eq!(kept().last(), Some(&(40 << 20)), "buffers of another size were dropped");
        assert_eq!(kept().iter().sum::<usize>(), KEPT_BYTES);
    }

    #[test]
    fn bytes_for_a_file_are_checksummed_and_written_at_their_offset() {
        let target = Arc::new(TargetFile::new(tempfile::tempfile().unwrap(), "a".into()));
        let mut ends = RangeWriter::in_file(&target, 3..7).with_crc32c(true);
        for part in ["de", "fg"] {
            assert!(ends.left() > 0);
            ends.add(part.as_bytes()).unwrap();
        }
        assert!(ends.add(b"h").is_err(), "there is no room");
        RangeWriter::in_file(&target, 0..3).add(b"abc").unwrap();
        assert_eq!((ends.left(), ends.crc64(), ends.crc32c()), (0, crc64(b"defg"), Some(crc32c(b"defg"))));
        assert!(ends.finish().bytes.is_empty());
        let mut written = [0; 8];
        assert_eq!(target.file.read_at(&mut written, 0).unwrap(), 7);
        assert_eq!(&written[..7], b"abcdefg");
    }

    #[test]
    fn a_range_with_missing_bytes_is_not_complete() {
        let mut ends = RangeWriter::nowhere(3..7);
        ends.add(b"def").unwrap();
        let failure = ends.whole().unwrap_err();
        assert_eq!((failure.kind, &*failure.message), (Kind::Corrupted, "requested 4 bytes at offset 3, received 3"));
    }

    #[test]
    fn a_slow_disk_does_not_block_other_tasks() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let (ends, waits) = std::sync::mpsc::channel::<()>();
        let waits = Arc::new(Mutex::new(waits));
        let writes: Vec<_> = (0..4)
            .map(|_| {
                let waits = Arc::clone(&waits);
                runtime.spawn(async move { wait_for_disk(|| waits.lock().unwrap().recv().is_err()) })
            })
            .collect();
        let (other, comes) = std::sync::mpsc::channel();
        // Even if all other threads wait for a disk, one thread stays free.
        for _ in 0..20 {
            let other = other.clone();
            runtime.spawn(async move { other.send(()).unwrap() });
            comes.recv_timeout(Duration::from_secs(60)).expect("a thread is free for another task");
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(ends);
        runtime.block_on(async {
            for write in writes {
                write.await.unwrap();
            }
        });
    }

    #[test]
    fn a_write_error_of_a_file_is_not_an_error_of_the_store() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let target = Arc::new(TargetFile::new(File::open(file.path()).unwrap(), file.path().into()));
        let store = || Failure::fatal("the store");
        assert!(matches!(target.error(store()), Error::Store(_)));
        let refused = RangeWriter::in_file(&target, 0..1).add(b"a").unwrap_err();
        let error = target.error(refused);
        assert!(matches!(&error, Error::File { source, .. } if source.raw_os_error().is_some()), "{error}");
    }

    #[test]
    fn a_file_is_read_in_steps() {
        let mut file = tempfile::tempfile().unwrap();
        let content: Vec<u8> = (0..700_000_u32).map(|number| (number % 251) as u8).collect();
        file.write_all(&content).unwrap();
        let block = Buffers::default().read(&file, 7, 600_000).unwrap();
        assert_eq!(block.bytes, content[7..600_007]);
        assert_eq!(block.crc64, crc64(&block.bytes));
        let beyond = Buffers::default().read(&file, 600_000, 100_001).unwrap_err();
        assert_eq!(beyond.kind(), io::ErrorKind::UnexpectedEof);
    }
}
