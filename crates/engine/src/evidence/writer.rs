//! Keeps the evidence of a run while it goes on.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use ascertain_sys::clock;
use jiff::Timestamp;

use super::checksum;
use super::error::Error;
use super::folder::{LINES, PARQUET, replace};
use super::header::{Header, read_header, write_header};
use super::parquet;
use super::read_back::read_lines;
use super::reader::Lines;
use super::row_buffer::RowBuffer;
use super::trials::Trials;
use crate::experiment::{Arm, Sample, Spec};
use crate::outcome::Outcome;

/// Rows wait at most that long to be written.
const FLUSH_NS: u64 = 1_000_000_000;

/// Keeps the evidence of one run, which no other can write to meanwhile.
///
/// The thread that measures calls it: [`record`](Writer::record) only formats into memory, and
/// [`flush_if_due`](Writer::flush_if_due), between trials, writes.
pub struct Writer {
    run: PathBuf,
    header: Header,
    lines: File,
    rows: RowBuffer,
    flushed_ns: u64,
}

/// What a run that is to be continued has recorded.
#[derive(Debug)]
pub struct Recorded {
    /// What `run.json` says.
    pub header: Header,
    /// The trials in the order in which they were measured.
    pub trials: Trials,
}

impl Writer {
    /// Starts the evidence of a new run, in a folder of its own below `runs` that is named by the
    /// header's `run_id`.
    ///
    /// # Errors
    /// When the folder can't be made or written to; nothing is left there then.
    pub fn create(runs: &Path, header: Header) -> Result<Writer, Error> {
        let run = runs.join(&header.run_id);
        let folder = |reason| Error::Folder { folder: run.clone(), reason };
        fs::create_dir_all(runs).map_err(folder)?;
        fs::create_dir(&run).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Error::Exists { run: run.clone() },
            _ => folder(error),
        })?;
        let start = || {
            let lines = File::options().append(true).create_new(true).open(run.join(LINES)).map_err(folder)?;
            lock(&lines, &run)?;
            write_header(&run, &header)?;
            Ok(lines)
        };
        match start() {
            Ok(lines) => Ok(Writer::new(run, header, lines)),
            Err(error) => {
                // The folder is this run's own, made above.
                let _ = fs::remove_dir_all(&run);
                Err(error)
            }
        }
    }

    /// Takes up a run again, after its last whole trial: what a kill left of the one behind is cut off.
    ///
    /// # Errors
    /// When another process is writing to the run, its files are missing, of another version or not what
    /// Ascertain writes, or rows were lost or changed since it ended: nothing is changed then.
    pub fn resume(run: &Path) -> Result<(Writer, Recorded), Error> {
        let path = run.join(LINES);
        // Asked first, since a run that can't be read is more to the point than one that can't be written.
        Lines::open(run)?;
        let lines = File::options().append(true).open(&path).map_err(Error::write(&path))?;
        lock(&lines, run)?;
        let header = read_header(run)?;
        let (trials, whole_end, lost) = read_lines(run, &header)?;
        if let Some(lost) = lost {
            return Err(lost);
        }
        lines.set_len(whole_end).map_err(Error::write(&path))?;
        let recorded = Recorded { header: header.clone(), trials };
        Ok((Writer::new(run.to_path_buf(), header, lines), recorded))
    }

    pub(super) fn new(run: PathBuf, header: Header, lines: File) -> Writer {
        let started = header.started.parse::<Timestamp>().map_or(0, |started| started.as_nanosecond() as u64);
        let since_started_ns = clock::unix_ns().saturating_sub(started);
        let rows = RowBuffer::new(header.run_id.clone(), since_started_ns.wrapping_sub(clock::now_ns()));
        Writer { run, header, lines, rows, flushed_ns: 0 }
    }

    /// Prepares the rows of an arm, and gives the number by which [`record`](Writer::record) knows it.
    pub fn add_arm(&mut self, spec: &Spec, arm: &Arm) -> usize {
        self.rows.add_arm(spec, arm)
    }

    /// Records what one measurement of an arm saw: the trial's number and the arm's position in it, when
    /// the measurement began (as [`clock::now_ns`] has it), and the samples. No input or output.
    pub fn record(&mut self, arm: usize, trial: u64, position: u32, start_ns: u64, samples: &[Sample]) {
        self.rows.record(arm, trial, position, start_ns, samples);
    }

    /// Writes what is recorded if a second has gone by since that was last done, or much has gathered.
    /// To be called between trials only. `now_ns` is [`clock::now_ns`].
    ///
    /// # Errors
    /// When it can't be written: the disk is full.
    pub fn flush_if_due(&mut self, now_ns: u64) -> Result<(), Error> {
        if now_ns.saturating_sub(self.flushed_ns) < FLUSH_NS && !self.rows.is_half_full() {
            return Ok(());
        }
        self.flushed_ns = now_ns;
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.rows.write_to(&mut self.lines).map_err(Error::write(&self.run.join(LINES)))
    }

    /// Ends the run: writes what is left, the outcome, and the Parquet file. Gives the run's folder.
    ///
    /// # Errors
    /// When something can't be written. What was recorded before stays readable.
    pub fn finish(mut self, outcome: Outcome) -> Result<PathBuf, Error> {
        self.flush()?;
        self.lines.sync_data().map_err(Error::write(&self.run.join(LINES)))?;
        let lines = self.lines.metadata().map_err(Error::write(&self.run.join(LINES)))?;
        self.header.outcome = Some(outcome);
        self.header.lines_bytes = Some(lines.len());
        (self.header.lines_checksum, self.header.parquet_checksum) = (None, None);
        // First, since the Parquet file can be made again and the outcome can't.
        write_header(&self.run, &self.header)?;
        let path = self.run.join(PARQUET);
        replace(&path, |file| parquet::write(Lines::open(&self.run)?, file, &path))?;
        // Not while the run goes on: there it would take as long again as the rows themselves.
        let lines = self.run.join(LINES);
        self.header.lines_checksum = Some(checksum::of_file(&lines).map_err(Error::read(&lines, LINES))?);
        self.header.parquet_checksum = Some(checksum::of_file(&path).map_err(Error::read(&path, PARQUET))?);
        write_header(&self.run, &self.header)?;
        Ok(self.run)
    }
}

/// Whether a process is writing to the run. Finding that out changes nothing, and needs no more than to
/// read the file.
pub fn is_going_on(run: &Path) -> bool {
    let locked = |lines: File| matches!(lines.try_lock_shared(), Err(TryLockError::WouldBlock));
    File::open(run.join(LINES)).is_ok_and(locked)
}

fn lock(lines: &File, run: &Path) -> Result<(), Error> {
    /// Whoever asks whether the run is going on holds the lock for a moment.
    const MOMENTS: u32 = 100;
    let mut locked = lines.try_lock();
    for _ in 0..MOMENTS {
        if !matches!(locked, Err(TryLockError::WouldBlock)) {
            break;
        }
        thread::sleep(Duration::from_millis(1));
        locked = lines.try_lock();
    }
    locked.map_err(|error| match error {
        TryLockError::WouldBlock => Error::Locked { run: run.to_path_buf() },
        TryLockError::Error(reason) => Error::Write { path: run.join(LINES), reason },
    })
}
