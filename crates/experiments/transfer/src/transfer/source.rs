//! The file that is uploaded: a temporary file of random bytes. The file has no name, so that it disappears even if
//! this process is killed.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::{env, io};

use ascertain_transfer::{PartBody, crc64, crc64_of_blocks};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const STEP_BYTES: u64 = 1 << 20;

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
        let mut step = vec![0; STEP_BYTES.min(bytes) as usize];
        let mut sums = Vec::new();
        for offset in (0..bytes).step_by(STEP_BYTES as usize) {
            let step = &mut step[..STEP_BYTES.min(bytes - offset) as usize];
            random.fill(step);
            file.write_all(step)?;
            sums.push((step.len() as u64, crc64(step)));
        }
        Ok(Self { file, bytes, crc64: crc64_of_blocks(sums) })
    }

    /// Returns a path that opens the file, although the file has no name.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }

    /// Reads a block of the file, and computes its checksum.
    pub fn block(&self, offset: u64, bytes: u64) -> io::Result<PartBody> {
        let mut block = vec![0; bytes as usize];
        self.file.read_exact_at(&mut block, offset)?;
        Ok(PartBody { crc64: crc64(&block), bytes: block.into() })
    }
}
