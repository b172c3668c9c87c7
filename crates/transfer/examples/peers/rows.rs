//! The rows of the table: which files are transferred, in which direction, and where.

use std::error::Error;
use std::f64::consts::TAU;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Put,
    Get,
}

impl Direction {
    pub fn verb(self) -> &'static str {
        if self == Direction::Put { "put" } else { "get" }
    }
}

/// The files of a row.
#[derive(Debug)]
pub struct Files {
    /// Name in the table.
    title: &'static str,
    /// Name in `--rows`.
    name: &'static str,
    pub count: u64,
    /// Size of each file in bytes; the median if the sizes differ.
    pub bytes: u64,
    /// Standard deviation of the logarithm of the sizes, which have a lognormal distribution; 0 if all sizes are equal.
    spread: f64,
    /// Count and size that `--tiny` uses instead. Large files still have several parts.
    tiny: (u64, u64),
}

/// The place to which a row transfers its files, and the path to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The folder for temporary files, over loopback.
    Loopback,
    /// As [`Loopback`](Self::Loopback), but the downloaded files go onto a disk with ext4.
    Ext4,
    /// The folder for temporary files, over a proxy that limits the bandwidth of each connection.
    Capped,
}

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    pub way: Direction,
    pub files: &'static Files,
    pub place: Place,
}

const fn files(
    (title, name): (&'static str, &'static str),
    count: u64,
    bytes: u64,
    spread: f64,
    tiny: (u64, u64),
) -> Files {
    Files { title, name, count, bytes, spread, tiny }
}

static GIGABYTE: Files = files(("1 GB", "1GB"), 1, 1_000_000_000, 0.0, (1, 20_000_000));
static MEGABYTES_64: Files = files(("64 MB", "64MB"), 1, 64_000_000, 0.0, (1, 12_000_000));
static MEGABYTES: Files = files(("200 × 1 MB", "200x1MB"), 200, 1_000_000, 0.0, (5, 1_000_000));
static KILOBYTES_64: Files = files(("200 × 64 kB", "200x64kB"), 200, 64_000, 0.0, (10, 64_000));
static KILOBYTES_4: Files = files(("5,000 × 4 kB", "5000x4kB"), 5_000, 4_000, 0.0, (40, 4_000));
static MIXED: Files = files(("10,000 mixed", "mixed"), 10_000, 100_000, 1.0, (40, 100_000));
pub static MEGABYTES_60: Files = files(("60 MB", "60MB"), 1, 60_000_000, 0.0, (1, 6_000_000));

const fn row(way: Direction, files: &'static Files, place: Place) -> Row {
    Row { way, files, place }
}

pub static ROWS: [Row; 15] = [
    row(Direction::Put, &GIGABYTE, Place::Loopback),
    row(Direction::Get, &GIGABYTE, Place::Loopback),
    row(Direction::Put, &MEGABYTES_64, Place::Loopback),
    row(Direction::Get, &MEGABYTES_64, Place::Loopback),
    row(Direction::Put, &MEGABYTES, Place::Loopback),
    row(Direction::Get, &MEGABYTES, Place::Loopback),
    row(Direction::Put, &KILOBYTES_64, Place::Loopback),
    row(Direction::Get, &KILOBYTES_64, Place::Loopback),
    row(Direction::Put, &KILOBYTES_4, Place::Loopback),
    row(Direction::Get, &KILOBYTES_4, Place::Loopback),
    row(Direction::Get, &KILOBYTES_4, Place::Ext4),
    row(Direction::Put, &MIXED, Place::Loopback),
    row(Direction::Get, &MIXED, Place::Loopback),
    row(Direction::Put, &MEGABYTES_60, Place::Capped),
    row(Direction::Get, &MEGABYTES_60, Place::Capped),
];

impl Row {
    /// Returns the name of the row in `--rows`.
    pub fn name(&self) -> String {
        let place = match self.place {
            Place::Loopback => "",
            Place::Ext4 => "-ext4",
            Place::Capped => "-capped",
        };
        format!("{}-{}{place}", self.way.verb(), self.files.name)
    }

    /// Returns the name of the row in the table. `disk` describes the disk of [`Place::Ext4`].
    pub fn title(&self, disk: &str) -> String {
        let place = match self.place {
            Place::Loopback => String::new(),
            Place::Ext4 => format!(" onto {disk}"),
            Place::Capped => ", 3 MB/s per connection".into(),
        };
        format!("{} {}{place}", self.way.verb(), self.files.title)
    }
}

impl Files {
    pub fn is_single(&self) -> bool {
        self.count == 1
    }

    /// Creates the files in `folder`. Returns the path of each file below `folder`, and its size.
    pub fn create(&self, folder: &Path, is_tiny: bool) -> Result<Vec<(String, u64)>, Box<dyn Error>> {
        /// Number of files in each subfolder of `folder`. There are subfolders only if the files differ in size.
        const IN_A_FOLDER: u64 = 100;
        let (count, bytes) = if is_tiny { self.tiny } else { (self.count, self.bytes) };
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut block = vec![0; 1_000_000];
        random.fill_bytes(&mut block);
        let (mut created, mut blocks) = (Vec::new(), 0u64);
        for number in 0..count {
            let name = match self.spread > 0.0 {
                true => format!("{:03}/{number:05}", number / IN_A_FOLDER),
                false => format!("{number:05}"),
            };
            let bytes = (bytes as f64 * (self.spread * normal(&mut random)).exp()) as u64;
            let path = folder.join(&name);
            fs::create_dir_all(path.parent().ok_or("a file has no folder")?)?;
            let mut file = BufWriter::new(File::create(&path)?);
            let mut left = bytes as usize;
            while left > 0 {
                // A different number in each block makes all parts of all files different.
                block[..8].copy_from_slice(&blocks.to_le_bytes());
                blocks += 1;
                let step = left.min(block.len());
                file.write_all(&block[..step])?;
                left -= step;
            }
            file.flush()?;
            created.push((name, bytes));
        }
        Ok(created)
    }
}

/// Draws a number from the standard normal distribution (Box and Muller 1958).
fn normal(random: &mut Xoshiro256PlusPlus) -> f64 {
    let [a, b]: [f64; 2] = [random.random(), random.random()];
    (-2.0 * (1.0 - a).ln()).sqrt() * (TAU * b).cos()
}
