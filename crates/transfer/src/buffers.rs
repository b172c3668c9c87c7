//! Where the bytes of blocks go: to memory that is used again, for the kernel to give and clear fresh pages costs as much
//! as two copies do; or to a file, while they are in the processor's cache.

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
use crate::error::{Error, failure};
use crate::store::{Block, Failure, Kind};

/// What is summed at a time: it is in the processor's cache then.
pub(crate) const STEP_BYTES: usize = 256 << 10;
/// No more is kept: one block as they are near by, or many small ones. While blocks are moved, what one gives back the
/// next one takes.
const KEPT_BYTES: usize = 64 << 20;

/// Where the memory of blocks comes from, and goes back to. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

/// A range of an object that is being filled, from its beginning on, and summed meanwhile: in memory, or where it belongs
/// in a file.
#[derive(Debug)]
pub struct Filling {
    range: Range<u64>,
    to: To,
    filled: usize,
    sums: Sums,
}

/// CRC-64/NVME, and CRC-32C where somebody wants it.
#[derive(Debug)]
struct Sums {
    crc64: Digest,
    crc32c: Option<Digest>,
}

#[derive(Debug)]
enum To {
    Memory(Lent),
    /// At the place that it has in the object.
    File(Arc<Target>),
    Nowhere,
}

/// A file that blocks are written to.
#[derive(Debug)]
pub(crate) struct Target {
    pub file: File,
    pub path: PathBuf,
    /// Why it could not be written, the first time.
    refused: OnceLock<io::Error>,
}

/// A buffer, which goes back when nobody has it any more.
#[derive(Debug)]
struct Lent {
    bytes: Vec<u8>,
    from: Buffers,
}

impl Buffers {
    fn lend(&self, bytes: usize) -> Lent {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        // One that is much too large would be memory that nobody has counted.
        let fitting = kept.filter(|kept| (bytes..=bytes.saturating_add(bytes / 8)).contains(&kept.len()));
        Lent { bytes: fitting.unwrap_or_else(|| vec![0; bytes]), from: self.clone() }
    }

    /// A part of a file.
    pub fn read(&self, file: &File, offset: u64, bytes: u64) -> io::Result<Block> {
        let mut filling = Filling::in_memory(self, offset..offset + bytes);
        while !filling.room(STEP_BYTES).is_empty() {
            let at = offset + filling.filled as u64;
            let room = filling.room(STEP_BYTES);
            file.read_exact_at(room, at)?;
            let read = room.len();
            filling.filled(read);
        }
        Ok(filling.done())
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

impl Filling {
    fn new(to: To, range: Range<u64>) -> Self {
        Self { range, to, filled: 0, sums: Sums { crc64: digest(), crc32c: None } }
    }

    /// A range that is kept in memory.
    pub(crate) fn in_memory(buffers: &Buffers, range: Range<u64>) -> Self {
        Self::new(To::Memory(buffers.lend(length(&range))), range)
    }

    /// A range of a file.
    pub(crate) fn in_file(target: &Arc<Target>, range: Range<u64>) -> Self {
        Self::new(To::File(Arc::clone(target)), range)
    }

    /// A range that is summed, and kept nowhere.
    pub(crate) fn nowhere(range: Range<u64>) -> Self {
        Self::new(To::Nowhere, range)
    }

    /// Room in memory for what comes next, at most so much; empty when there is none.
    pub(crate) fn room(&mut self, most: usize) -> &mut [u8] {
        let end = length(&self.range).min(self.filled.saturating_add(most));
        match &mut self.to {
            To::Memory(lent) => &mut lent.bytes[self.filled..end],
            To::File(_) | To::Nowhere => &mut [],
        }
    }

    /// So many bytes were put there.
    pub(crate) fn filled(&mut self, bytes: usize) {
        let end = length(&self.range).min(self.filled + bytes);
        if let To::Memory(lent) = &self.to {
            self.sums.update(&lent.bytes[self.filled..end]);
        }
        self.filled = end;
    }

    /// Adds the bytes that come next. It may wait for a disk, and hand what else its thread has to do to another one: so
    /// not within a `LocalSet`.
    ///
    /// # Errors
    /// When there is no room for them; when the file that they belong in can't be written, of which the failure is to be
    /// handed on as it is.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.is_empty() {
            return Ok(());
        }
        if bytes.len() > self.left() {
            let said = format!("more came than the {} bytes that were asked for", length(&self.range));
            return Err(Failure { kind: Kind::Fatal, said });
        }
        match &mut self.to {
            To::Memory(lent) => lent.bytes[self.filled..][..bytes.len()].copy_from_slice(bytes),
            To::File(target) => target.write(bytes, self.range.start + self.filled as u64)?,
            To::Nowhere => {}
        }
        self.filled += bytes.len();
        self.sums.update(bytes);
        Ok(())
    }

    /// The same, with the CRC-32C of what comes if somebody wants it.
    pub(crate) fn with_crc32c(mut self, is_wanted: bool) -> Self {
        self.sums.crc32c = is_wanted.then(digest_of_crc32c);
        self
    }

    /// What is to be added.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// How many bytes there is still room for.
    pub(crate) fn left(&self) -> usize {
        length(&self.range) - self.filled
    }

    /// Itself, if all of it was added.
    pub(crate) fn whole(self) -> Result<Self, Failure> {
        if self.left() == 0 {
            return Ok(self);
        }
        let (bytes, from) = (length(&self.range), self.range.start);
        let said = format!("{bytes} bytes from {from} on were asked for, and {} came", self.filled);
        Err(Failure { kind: Kind::Corrupted, said })
    }

    /// The CRC-64/NVME of what was added.
    pub(crate) fn crc64(&self) -> u64 {
        self.sums.crc64.finalize()
    }

    /// The CRC-32C of what was added.
    pub(crate) fn crc32c(&self) -> Option<u32> {
        self.sums.crc32c.as_ref().map(|crc32c| crc32c.finalize() as u32)
    }

    /// What was added, of which nothing is in memory if it went to a file.
    pub(crate) fn done(self) -> Block {
        let crc64 = self.crc64();
        let bytes = match self.to {
            To::Memory(lent) => Bytes::from_owner(lent).slice(..self.filled),
            To::File(_) | To::Nowhere => Bytes::new(),
        };
        Block { crc64, bytes }
    }
}

fn length(range: &Range<u64>) -> usize {
    usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX)
}

impl Target {
    pub fn new(file: File, path: PathBuf) -> Self {
        Self { file, path, refused: OnceLock::new() }
    }

    fn write(&self, bytes: &[u8], at: u64) -> Result<(), Failure> {
        wait_for_disk(|| self.file.write_all_at(bytes, at)).map_err(|error| {
            let failure = failure("can't write", &self.path, &error);
            let _ = self.refused.set(error);
            failure
        })
    }

    /// What a failure is when it was the file's and not the store's.
    pub fn error(&self, failure: Failure) -> Error {
        match self.refused.get() {
            // The system's number says all of it, and can be had twice.
            Some(error) => {
                let source = error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
                Error::file("can't write", &self.path)(source)
            }
            None => failure.into(),
        }
    }
}

/// Does what may wait for a disk. Mostly it is a copy, which is sooner done than handed to another thread; but one thread
/// of a runtime is left that doesn't wait.
fn wait_for_disk<T>(work: impl FnOnce() -> T) -> T {
    /// How many threads that have others to serve wait just now.
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

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut kept = self.from.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(std::mem::take(&mut self.bytes));
        // The next block is of the size of the latest.
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
    fn a_block_has_what_came_and_nothing_of_the_one_before() {
        let buffers = Buffers::default();
        for (bytes, fill) in [(10, b'a'), (8, b'b'), (1_000_000, b'c'), (999_999, b'd'), (0, b'e')] {
            let mut filling = Filling::in_memory(&buffers, 0..bytes);
            let part = vec![fill; usize::try_from(bytes).unwrap() / 2];
            filling.add(&part).unwrap();
            filling.add(&part).unwrap();
            assert!(filling.add(&[0; 2]).is_err(), "there is no room");
            let block = filling.done();
            assert_eq!(block.bytes, [&part[..], &part].concat());
            assert_eq!(block.crc64, crc64(&block.bytes));
        }
    }

    #[test]
    fn memory_is_used_again_while_it_fits_and_no_more_is_kept_than_that() {
        let buffers = Buffers::default();
        let kept = || buffers.0.lock().unwrap().iter().map(Vec::len).collect::<Vec<_>>();
        let mut one = Filling::in_memory(&buffers, 0..1000);
        one.add(&[7; 1000]).unwrap();
        let one = one.done();
        let (address, other) = (one.bytes.as_ptr(), one.clone());
        drop(one);
        assert!(kept().is_empty(), "somebody has it still");
        drop(other);
        assert_eq!(kept(), [1000]);
        let mut again = Filling::in_memory(&buffers, 0..900);
        assert_eq!((again.room(900).as_ptr(), kept()), (address, vec![]));
        drop(again);
        drop(Filling::in_memory(&buffers, 0..880));
        assert_eq!(kept(), [880], "the other was too large");
        let many: Vec<_> = (0..80).map(|_| Filling::in_memory(&buffers, 0..1 << 20)).collect();
        drop(many);
        assert_eq!(kept().len(), KEPT_BYTES >> 20);
        drop(Filling::in_memory(&buffers, 0..40 << 20));
        assert_eq!(kept().last(), Some(&(40 << 20)), "what is of another size made room");
        assert_eq!(kept().iter().sum::<usize>(), KEPT_BYTES);
    }

    #[test]
    fn what_goes_to_a_file_is_summed_and_written_in_its_place() {
        let target = Arc::new(Target::new(tempfile::tempfile().unwrap(), "a".into()));
        let mut ends = Filling::in_file(&target, 3..7).with_crc32c(true);
        for part in ["de", "fg"] {
            assert!(ends.left() > 0);
            ends.add(part.as_bytes()).unwrap();
        }
        assert!(ends.add(b"h").is_err(), "there is no room");
        Filling::in_file(&target, 0..3).add(b"abc").unwrap();
        assert_eq!((ends.left(), ends.crc64(), ends.crc32c()), (0, crc64(b"defg"), Some(crc32c(b"defg"))));
        assert!(ends.done().bytes.is_empty());
        let mut written = [0; 8];
        assert_eq!(target.file.read_at(&mut written, 0).unwrap(), 7);
        assert_eq!(&written[..7], b"abcdefg");
    }

    #[test]
    fn what_is_not_all_there_is_not_whole() {
        let mut ends = Filling::nowhere(3..7);
        ends.add(b"def").unwrap();
        let failure = ends.whole().unwrap_err();
        assert_eq!((failure.kind, &*failure.said), (Kind::Corrupted, "4 bytes from 3 on were asked for, and 3 came"));
    }

    #[test]
    fn a_disk_that_makes_wait_leaves_a_thread_for_others() {
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
        // Also after all of them wait.
        for _ in 0..20 {
            let other = other.clone();
            runtime.spawn(async move { other.send(()).unwrap() });
            comes.recv_timeout(Duration::from_secs(60)).expect("somebody has time for another task");
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
    fn a_file_that_can_t_be_written_is_told_apart_from_a_store() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let target = Arc::new(Target::new(File::open(file.path()).unwrap(), file.path().into()));
        let store = || Failure { kind: Kind::Fatal, said: "the store".into() };
        assert!(matches!(target.error(store()), Error::Store(_)));
        let refused = Filling::in_file(&target, 0..1).add(b"a").unwrap_err();
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
