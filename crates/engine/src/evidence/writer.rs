//! Keeps the evidence of a run while it goes on.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use ascertain_sys::{clock, files};

use super::begun::{self, Begun, BegunLane, LostTrials};
use super::error::Error;
use super::folder::{Checksum, Header, LINES, PARQUET, checksum_of_file, read_header, write_header};
use super::known::Known;
use super::lines::{Lines, RowBuffer};
use super::moment::unix_ns;
use super::parquet;
#[cfg(feature = "recorded")]
use super::read_back::{adapt, read_lines};
use super::trials::Trials;
use crate::block::Slots;
use crate::experiment::{Arm, Sample, Spec};
use crate::outcome::Outcome;

/// Trials that take longer are written at once, which takes a hundredth of that.
const SLOW_TRIAL_NS: f64 = 100_000.0;

/// Keeps the evidence of one run, which no other can write to meanwhile.
///
/// The thread that measures calls it: [`record`](Writer::record) only formats into memory, and
/// [`end_trial`](Writer::end_trial), between trials, writes.
pub struct Writer {
    run: PathBuf,
    header: Header,
    lines: LockedFile,
    rows: RowBuffer,
    /// The lanes of the arms that were added, until the first trial begins.
    lanes: Vec<BegunLane>,
    /// Trials that were recorded before this process began its first.
    recorded_trials: usize,
    begun: Option<Begun>,
    known: Option<Known>,
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
    /// header's `run_id`. Nobody but this user may look into it. `known` is the folder of what this user's state knows
    /// of runs, if it is to know of this one.
    ///
    /// # Errors
    /// When the folder can't be made or written to; nothing is left there then.
    pub fn create(runs: &Path, header: Header, known: Option<&Path>) -> Result<Writer, Error> {
        let run = runs.join(&header.run_id);
        let folder = |reason| Error::Folder { folder: run.clone(), reason };
        fs::create_dir_all(runs).map_err(folder)?;
        DirBuilder::new().mode(0o700).create(&run).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Error::Exists { run: run.clone() },
            _ => folder(error),
        })?;
        let start = || {
            let lines = File::options().append(true).create_new(true).open(run.join(LINES)).map_err(folder)?;
            let lines = LockedFile::new(lines, &run)?;
            write_header(&run, &header)?;
            Ok(lines)
        };
        match start() {
            Ok(lines) => {
                let known = known.and_then(|known| Known::create(known, &header));
                Ok(Writer::new(run, header, lines, 0, known))
            }
            Err(error) => {
                // The folder is this run's own, made above.
                let _ = fs::remove_dir_all(&run);
                Err(error)
            }
        }
    }

    /// Takes up a run again, after its last whole trial: what a kill left of the one behind is cut off. Those that had
    /// been begun by then and were not recorded are recorded as lost, so that a kill can't be used to drop the slow
    /// ones.
    ///
    /// # Errors
    /// When another process is writing to the run or to a copy, its files are missing, of another version or not what
    /// Ascertain writes, rows were lost or changed since it ended, or `known`, the folder of what this user's state
    /// knows of runs, has seen more of it: nothing that was recorded is changed then.
    #[cfg(feature = "recorded")]
    pub fn resume(run: &Path, known: Option<&Path>) -> Result<(Writer, Recorded), Error> {
        let path = run.join(LINES);
        // Read first: that a run can't be read is more to the point than that it can't be written.
        let is_there = match Lines::open(run) {
            Ok(_) => true,
            Err(Error::NoRows { .. }) if read_header(run)?.parquet_checksum.is_some() => false,
            Err(error) => return Err(error),
        };
        let mut options = File::options();
        options.append(true).create_new(!is_there);
        let lines = LockedFile::new(options.open(&path).map_err(Error::write(&path))?, run)?;
        let header = read_header(run)?;
        restore_lines(run, &header, &lines)?;
        let (mut trials, whole_end, lost_rows) = read_lines(run, &header)?;
        if let Some(lost_rows) = lost_rows {
            return Err(lost_rows);
        }
        let lost = begun::lost(run, trials.lanes());
        let begun = lost.iter().map(|lost| lost.trials).sum();
        let known = match known {
            Some(known) => Known::resume(known, run, &header, whole_end, begun)?,
            None => None,
        };
        lines.set_len(whole_end).map_err(Error::write(&path))?;
        if !lost.is_empty() {
            write_lost(run, &header, &lines, &lost, &trials)?;
            (trials, ..) = read_lines(run, &header)?;
        }
        let writer = Writer::new(run.to_path_buf(), header.clone(), lines, trials.count(), known);
        adapt(&mut trials, &header);
        Ok((writer, Recorded { header, trials }))
    }

    pub(super) fn new(
        run: PathBuf,
        header: Header,
        lines: LockedFile,
        recorded_trials: usize,
        known: Option<Known>,
    ) -> Writer {
        let rows = row_buffer(&header);
        Writer { run, header, lines, rows, lanes: Vec::new(), recorded_trials, begun: None, known }
    }

    /// Prepares the rows of an arm of a lane, and gives the number by which [`record`](Writer::record) knows it. The
    /// arms of a lane are added in the order of their slots, before any trial begins.
    pub fn add_arm(&mut self, spec: &Spec, lane: usize, arm: &Arm) -> usize {
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, BegunLane::default);
        }
        self.lanes[lane].experiment.clone_from(&spec.id);
        self.lanes[lane].arms.push(arm.clone());
        self.rows.add_arm(spec, lane, arm)
    }

    /// Notes that a trial of these arms of a lane begins: should this process be killed, that is known. No call of the
    /// kernel's, except for the first trial.
    pub fn begin_trial(&mut self, lane: usize, arms: Slots) {
        let begun = self.begun.get_or_insert_with(|| Begun::create(&self.run, self.recorded_trials, &self.lanes));
        // In this order: a trial that is known here and not in the run's folder would make that an older copy.
        begun.begin(lane, arms);
        self.known.iter().for_each(Known::begin);
    }

    /// Records what one measurement of an arm saw: the trial's number and the arm's position in it, when
    /// the measurement began (as [`clock::now_ns`] has it), and the samples. No input or output.
    pub fn record(&mut self, arm: usize, trial: u64, position: u32, start_ns: u64, samples: &[Sample]) {
        self.rows.record(arm, trial, position, start_ns, samples);
    }

    /// A trial has ended, and the lane's take so long: what is recorded is written at once where they are slow, so that
    /// a kill can't undo it, and else when much has gathered.
    ///
    /// # Errors
    /// When it can't be written: the disk is full.
    pub fn end_trial(&mut self, trial_ns: f64) -> Result<(), Error> {
        if trial_ns < SLOW_TRIAL_NS && !self.rows.is_half_full() { Ok(()) } else { self.flush() }
    }

    /// Writes what is recorded. To be called between trials only.
    ///
    /// # Errors
    /// As [`end_trial`](Writer::end_trial).
    pub fn flush(&mut self) -> Result<(), Error> {
        self.rows.write_to(&mut *self.lines).map_err(Error::write(&self.run.join(LINES)))?;
        if let Some(known) = &self.known {
            known.written(self.lines.metadata().map_err(Error::write(&self.run.join(LINES)))?.len());
        }
        Ok(())
    }

    /// Ends the run: writes what is left, the outcome, and the Parquet file where there is to be one. Gives the run's
    /// folder.
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
        let parquet_checksum = parquet::finish(&self.run)?;
        // Not while the run goes on: there it would take as long again as the rows themselves.
        let lines = self.run.join(LINES);
        self.header.lines_checksum = Some(checksum_of_file(&lines).map_err(Error::read(&lines, LINES))?);
        self.header.parquet_checksum = parquet_checksum;
        write_header(&self.run, &self.header)?;
        begun::remove(&self.run);
        self.remove_lines();
        Ok(self.run)
    }

    /// Removes the rows from `trials.jsonl` if `trials.parquet`, read back, gives every byte of them, so that
    /// [`resume`](Writer::resume) can restore them. The empty file stays: its lock tells whether the run is going on.
    fn remove_lines(&self) {
        if restored(&self.run, &self.header).is_ok_and(|lines| is_as_then(&lines, &self.header)) {
            // Lines that stay do no harm.
            let _ = self.lines.set_len(0);
        }
    }
}

/// The length and the checksum of the lines that the run's Parquet file gives.
fn restored(run: &Path, header: &Header) -> Result<Checksum, Error> {
    let mut lines = Checksum::new();
    let is_there = parquet::write_lines(&run.join(PARQUET), header.parquet_checksum.as_deref(), &mut lines)?;
    if is_there { Ok(lines) } else { Err(Error::NoRows { run: run.into() }) }
}

/// Returns whether these are the lines that the run had when it ended.
fn is_as_then(lines: &Checksum, header: &Header) -> bool {
    (header.lines_bytes, header.lines_checksum.as_ref()) == (Some(lines.bytes), Some(&lines.text()))
}

/// Writes the lines of a run that has ended again, if they were removed: those of the Parquet file, byte by byte.
///
/// A kill leaves fewer bytes than there were: the rows are read from the Parquet file then, and written again here.
#[cfg(feature = "recorded")]
fn restore_lines(run: &Path, header: &Header, lines: &LockedFile) -> Result<(), Error> {
    let Some(then) = header.lines_then() else { return Ok(()) };
    let path = run.join(LINES);
    let length = lines.metadata().map_err(Error::write(&path))?.len();
    if length >= then.bytes {
        return Ok(());
    }
    match restored(run, header) {
        Ok(found) if is_as_then(&found, header) => {}
        Err(error) if length == 0 => return Err(error),
        // It is for the reader of the lines that are there to tell what is wrong with them.
        Ok(_) | Err(_) => return Ok(()),
    }
    lines.set_len(0).map_err(Error::write(&path))?;
    parquet::write_lines(&run.join(PARQUET), header.parquet_checksum.as_deref(), &lines.0)?;
    lines.sync_data().map_err(Error::write(&path))
}

/// Records the trials that a run had begun and not recorded: that they were begun is all that is known of them.
fn write_lost(
    run: &Path,
    header: &Header,
    mut lines: &File,
    lost: &[LostTrials],
    recorded: &Trials,
) -> Result<(), Error> {
    let mut rows = row_buffer(header);
    let mut next: HashMap<&str, u64> = HashMap::new();
    for LostTrials { lane, experiment, trials, arms } in lost {
        let Some(spec) = header.experiments.iter().find(|spec| spec.id == *experiment) else { continue };
        let samples: Vec<Sample> = (0..spec.metrics.len()).map(Sample::lost).collect();
        let arms: Vec<usize> = arms.iter().map(|arm| rows.add_arm(spec, *lane, arm)).collect();
        let next = next.entry(experiment).or_insert_with(|| recorded.next_number(experiment));
        for _ in 0..*trials {
            for (position, &arm) in arms.iter().enumerate() {
                rows.record(arm, *next, position as u32, clock::now_ns(), &samples);
            }
            *next += 1;
            rows.write_to(&mut lines).map_err(Error::write(&run.join(LINES)))?;
        }
    }
    lines.sync_data().map_err(Error::write(&run.join(LINES)))
}

fn row_buffer(header: &Header) -> RowBuffer {
    let started = unix_ns(&header.started).unwrap_or(0);
    let since_started_ns = clock::unix_ns().saturating_sub(started);
    RowBuffer::new(header.run_id.clone(), since_started_ns.wrapping_sub(clock::now_ns()))
}

/// Whether a process is writing to the run. Finding that out changes nothing, and needs no more than to
/// read the file.
pub fn is_going_on(run: &Path) -> bool {
    let Ok(lines) = files::open_regular(&run.join(LINES)) else { return false };
    match lines.try_lock_shared() {
        Ok(()) => {
            // Unlocked before the file is closed; `LockedFile` explains why.
            let _ = lines.unlock();
            false
        }
        Err(error) => matches!(error, TryLockError::WouldBlock),
    }
}

/// The file of a run's rows, locked against other processes.
///
/// Dropping the value releases the lock. Closing the file would not be enough: a process that another thread starts at
/// that moment has a copy of the descriptor, with the lock, until the process runs its program.
pub(super) struct LockedFile(pub(super) File);

impl LockedFile {
    /// Locks the file of this run.
    fn new(lines: File, run: &Path) -> Result<LockedFile, Error> {
        /// Milliseconds to wait for the lock of another writer: a killed writer holds its lock until the kernel has
        /// closed its files.
        const MOST_WAITS: u32 = 100;
        /// The same, while processes that only check whether the run is going on hold the lock.
        const MOST_CHECKS: u32 = 10_000;
        let (mut waits, mut checks) = (0, 0);
        loop {
            match lines.try_lock() {
                Ok(()) => return Ok(LockedFile(lines)),
                Err(TryLockError::Error(reason)) => return Err(Error::Write { path: run.join(LINES), reason }),
                Err(TryLockError::WouldBlock) if is_going_on(run) => {
                    waits += 1;
                    if waits == MOST_WAITS {
                        return Err(Error::Locked { run: run.into() });
                    }
                }
                // Another process checks whether the run is going on, and holds the lock only for that.
                Err(TryLockError::WouldBlock) => {
                    checks += 1;
                    if checks == MOST_CHECKS {
                        return Err(Error::Locked { run: run.into() });
                    }
                }
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for LockedFile {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}
