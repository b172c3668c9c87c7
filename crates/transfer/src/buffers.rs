//! Where the bytes of blocks go: to memory that is used again, for the kernel to give and clear fresh pages costs as much
//! as two copies do; or to a file, while they are in the processor's cache.

use std::fs::File;
use std::io;
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
/// How many threads that serve others write to a file just now.
static WRITING: AtomicUsize = AtomicUsize::new(0);

/// Where the memory of blocks comes from, and goes back to. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

/// A range of an object that is being filled, from its beginning on, and summed meanwhile: in memory, or where it belongs
/// in a file.
#[derive(Debug)]
pub struct Filling {
    to: To,
    bytes: usize,
    filled: usize,
    crc64: Digest,
    crc32c: Option<Digest>,
}

#[derive(Debug)]
enum To {
    Memory(Lent),
    /// From this place on.
    File(Arc<Target>, u64),
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
    /// A block with room for so many bytes.
    pub fn block(&self, bytes: u64) -> Filling {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        // One that is much too large would be memory that nobody has counted.
        let fitting = kept.filter(|kept| (bytes..=bytes.saturating_add(bytes / 8)).contains(&kept.len()));
        let lent = Lent { bytes: fitting.unwrap_or_else(|| vec![0; bytes]), from: self.clone() };
        Filling::new(To::Memory(lent), bytes)
    }

    /// A part of a file.
    pub fn read(&self, file: &File, offset: u64, bytes: u64) -> io::Result<Block> {
        let mut filling = self.block(bytes);
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

impl Filling {
    fn new(to: To, bytes: usize) -> Self {
        Self { to, bytes, filled: 0, crc64: digest(), crc32c: None }
    }

    /// One that is kept nowhere.
    pub(crate) fn nowhere(bytes: u64) -> Self {
        Self::new(To::Nowhere, usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Room in memory for what comes next, at most so much; empty when there is none.
    pub(crate) fn room(&mut self, most: usize) -> &mut [u8] {
        let end = self.bytes.min(self.filled.saturating_add(most));
        match &mut self.to {
            To::Memory(lent) => &mut lent.bytes[self.filled..end],
            To::File(..) | To::Nowhere => &mut [],
        }
    }

    /// So many bytes were put there.
    pub(crate) fn filled(&mut self, bytes: usize) {
        let end = self.bytes.min(self.filled + bytes);
        if let To::Memory(lent) = &self.to {
            self.crc64.update(&lent.bytes[self.filled..end]);
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
        if self.bytes - self.filled < bytes.len() {
            let said = format!("more came than the {} bytes that were asked for", self.bytes);
            return Err(Failure { kind: Kind::Corrupted, said });
        }
        match &mut self.to {
            To::Memory(lent) => lent.bytes[self.filled..][..bytes.len()].copy_from_slice(bytes),
            To::File(target, from) => target.write(bytes, *from + self.filled as u64)?,
            To::Nowhere => {}
        }
        self.filled += bytes.len();
        self.crc64.update(bytes);
        if let Some(crc32c) = &mut self.crc32c {
            crc32c.update(bytes);
        }
        Ok(())
    }

    /// The same, with the CRC-32C of what comes if somebody wants it.
    pub(crate) fn with_crc32c(self, is_wanted: bool) -> Self {
        Self { crc32c: is_wanted.then(digest_of_crc32c), ..self }
    }

    /// How many bytes there is room for.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.bytes as u64
    }

    /// How many bytes were added.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.filled as u64
    }

    /// The CRC-64/NVME of what was added.
    #[must_use]
    pub fn crc64(&self) -> u64 {
        self.crc64.finalize()
    }

    /// The CRC-32C of what was added.
    pub(crate) fn crc32c(&self) -> Option<u32> {
        self.crc32c.as_ref().map(|crc32c| crc32c.finalize() as u32)
    }

    /// What was added, of which nothing is in memory if it went to a file.
    pub(crate) fn done(self) -> Block {
        let crc64 = self.crc64();
        let bytes = match self.to {
            To::Memory(lent) => Bytes::from_owner(lent).slice(..self.filled),
            To::File(..) | To::Nowhere => Bytes::new(),
        };
        Block { crc64, bytes }
    }
}

impl Target {
    pub fn new(file: File, path: PathBuf) -> Self {
        Self { file, path, refused: OnceLock::new() }
    }

    /// A block of so many bytes, from a place of the file on.
    pub fn block(self: &Arc<Self>, from: u64, bytes: u64) -> Filling {
        Filling::new(To::File(Arc::clone(self), from), usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    fn write(&self, bytes: &[u8], at: u64) -> Result<(), Failure> {
        let write = || self.file.write_all_at(bytes, at);
        // Mostly this is a copy, which is sooner done than handed to another thread. But a disk may make wait, and one
        // thread of a runtime must be left that does not.
        let here = Handle::try_current().ok().filter(|here| here.runtime_flavor() == RuntimeFlavor::MultiThread);
        let others = here.map_or(usize::MAX, |here| here.metrics().num_workers() - 1);
        let one_more = |writing: usize| (writing < others).then_some(writing + 1);
        let written = if WRITING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok() {
            let written = write();
            WRITING.fetch_sub(1, Ordering::Relaxed);
            written
        } else {
            block_in_place(write)
        };
        written.map_err(|error| {
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

    use super::*;
    use crate::crc64::{crc32c, crc64};

    #[test]
    fn a_block_has_what_came_and_nothing_of_the_one_before() {
        let buffers = Buffers::default();
        for (bytes, fill) in [(10, b'a'), (8, b'b'), (1_000_000, b'c'), (999_999, b'd'), (0, b'e')] {
            let mut filling = buffers.block(bytes);
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
        let mut one = buffers.block(1000);
        one.add(&[7; 1000]).unwrap();
        let one = one.done();
        let (address, other) = (one.bytes.as_ptr(), one.clone());
        drop(one);
        assert!(kept().is_empty(), "somebody has it still");
        drop(other);
        assert_eq!(kept(), [1000]);
        let mut again = buffers.block(900);
        assert_eq!((again.room(900).as_ptr(), kept()), (address, vec![]));
        drop(again);
        drop(buffers.block(880));
        assert_eq!(kept(), [880], "the other was too large");
        let many: Vec<_> = (0..80).map(|_| buffers.block(1 << 20)).collect();
        drop(many);
        assert_eq!(kept().len(), KEPT_BYTES >> 20);
        drop(buffers.block(40 << 20));
        assert_eq!(kept().last(), Some(&(40 << 20)), "what is of another size made room");
        assert_eq!(kept().iter().sum::<usize>(), KEPT_BYTES);
    }

    #[test]
    fn what_goes_to_a_file_is_summed_and_written_in_its_place() {
        let target = Arc::new(Target::new(tempfile::tempfile().unwrap(), "a".into()));
        let mut ends = target.block(3, 4).with_crc32c(true);
        for part in ["de", "fg"] {
            ends.add(part.as_bytes()).unwrap();
        }
        assert!(ends.add(b"h").is_err(), "there is no room");
        target.block(0, 3).add(b"abc").unwrap();
        assert_eq!((ends.bytes(), ends.crc64(), ends.crc32c()), (4, crc64(b"defg"), Some(crc32c(b"defg"))));
        assert!(ends.done().bytes.is_empty());
        let mut written = [0; 8];
        assert_eq!(target.file.read_at(&mut written, 0).unwrap(), 7);
        assert_eq!(&written[..7], b"abcdefg");
    }

    #[test]
    fn a_file_that_can_t_be_written_is_told_apart_from_a_store() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let target = Arc::new(Target::new(File::open(file.path()).unwrap(), file.path().into()));
        let store = || Failure { kind: Kind::Fatal, said: "the store".into() };
        assert!(matches!(target.error(store()), Error::Store(_)));
        let refused = target.block(0, 1).add(b"a").unwrap_err();
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
