//! The file that is moved: nobody can compress it, and nobody finds it, for it has no name.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::{env, io};

use ascertain_transfer::{Block, crc64, crc64_of_blocks};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const PIECE_BYTES: u64 = 1 << 20;

pub struct Source {
    file: File,
    pub bytes: u64,
    pub crc64: u64,
}

impl Source {
    pub fn new(bytes: u64, seed: u64) -> io::Result<Self> {
        let path = env::temp_dir().join(format!("ascertain-{:016x}", rand::random::<u64>()));
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        fs::remove_file(path)?;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut piece = vec![0; PIECE_BYTES.min(bytes) as usize];
        let mut sums = Vec::new();
        for offset in (0..bytes).step_by(PIECE_BYTES as usize) {
            let piece = &mut piece[..PIECE_BYTES.min(bytes - offset) as usize];
            random.fill(piece);
            file.write_all(piece)?;
            sums.push((piece.len() as u64, crc64(piece)));
        }
        Ok(Self { file, bytes, crc64: crc64_of_blocks(sums) })
    }

    /// Where this process finds it as long as it is there.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }

    /// A part of it, with its checksum.
    pub fn block(&self, offset: u64, bytes: u64) -> io::Result<Block> {
        let mut block = vec![0; bytes as usize];
        self.file.read_exact_at(&mut block, offset)?;
        Ok(Block { crc64: crc64(&block), bytes: block.into() })
    }
}
