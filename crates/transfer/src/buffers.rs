//! Memory of blocks, used again: for the kernel to give and clear fresh pages costs as much as two copies do.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use crc_fast::Digest;

use crate::crc64::digest;
use crate::store::Block;

/// What is summed at a time: it is in the processor's cache then.
pub(crate) const STEP_BYTES: usize = 256 << 10;
/// No more is kept: one block as they are near by, or many small ones. While blocks are moved, what one gives back the
/// next one takes.
const KEPT_BYTES: usize = 64 << 20;

/// Where the memory of blocks comes from, and goes back to. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

/// A block that is being filled, from its beginning on, and summed meanwhile.
#[derive(Debug)]
pub(crate) struct Filling {
    lent: Lent,
    bytes: usize,
    filled: usize,
    sum: Digest,
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
        Filling { lent, bytes, filled: 0, sum: digest() }
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
    /// Room for what comes next, at most so much; empty when there is none.
    pub fn room(&mut self, most: usize) -> &mut [u8] {
        let end = self.bytes.min(self.filled.saturating_add(most));
        &mut self.lent.bytes[self.filled..end]
    }

    /// So many bytes were put there.
    pub fn filled(&mut self, bytes: usize) {
        let end = self.bytes.min(self.filled + bytes);
        self.sum.update(&self.lent.bytes[self.filled..end]);
        self.filled = end;
    }

    /// Adds bytes; whether there was room for them.
    pub fn add(&mut self, bytes: &[u8]) -> bool {
        let room = self.room(bytes.len());
        if room.len() < bytes.len() {
            return false;
        }
        room.copy_from_slice(bytes);
        self.filled(bytes.len());
        true
    }

    /// What it was filled with.
    pub fn done(self) -> Block {
        Block { crc64: self.sum.finalize(), bytes: Bytes::from_owner(self.lent).slice(..self.filled) }
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
    use crate::crc64;

    #[test]
    fn a_block_has_what_came_and_nothing_of_the_one_before() {
        let buffers = Buffers::default();
        for (bytes, fill) in [(10, b'a'), (8, b'b'), (1_000_000, b'c'), (999_999, b'd'), (0, b'e')] {
            let mut filling = buffers.block(bytes);
            let part = vec![fill; usize::try_from(bytes).unwrap() / 2];
            assert!(filling.add(&part) && filling.add(&part));
            assert!(!filling.add(&[0; 2]), "there is no room");
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
        assert!(one.add(&[7; 1000]));
        let one = one.done();
        let (address, other) = (one.bytes.as_ptr(), one.clone());
        drop(one);
        assert!(kept().is_empty(), "somebody has it still");
        drop(other);
        assert_eq!(kept(), [1000]);
        let again = buffers.block(900);
        assert_eq!((again.lent.bytes.as_ptr(), kept()), (address, vec![]));
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
