//! Writes the evidence of a run while it is measured.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use ascertain_sys::{clock, files};

use super::error::Error;
use super::folder::{Checksum, Header, LINES, PARQUET, checksum_of_file, read_header, write_header};
use super::journal::{self, JournalLane, LostTrials, TrialJournal};
use super::known::KnownRun;
use super::lines::{LineReader, RowBuffer, write_lines};
use super::moment::unix_ns;
use super::parquet;
use super::read_back::{RunEvidence, read_lines};
use super::trials::Trials;
use crate::block::Slots;
use crate::experiment::{Arm, Sample, Spec};
use crate::outcome::Outcome;

/// Trials that take at least this long, in nanoseconds, count as slow. The rows of a slow trial are written as soon as
/// the trial ends; writing takes about 1 µs. The rows of several faster trials are written together.
const SLOW_TRIAL_NS: f64 = 100_000.0;

/// Writes the evidence of one run. No other process can write to the run at the same time.
///
/// The writer belongs to the thread that measures. [`record`](Writer::record) only formats rows in memory;
/// [`end_trial`](Writer::end_trial) writes them between trials.
pub struct Writer {
    run: PathBuf,
    header: Header,
    lines: LockedFile,
    rows: RowBuffer,
    /// The lanes and their arms, as the journal describes them. The journal itself is created when the first trial
    /// begins.
    lanes: Vec<JournalLane>,
    /// Number of trials that were already recorded before this process began its first trial.
    recorded_trials: usize,
    journal: Option<TrialJournal>,
    known: Option<KnownRun>,
}

impl Writer {
    /// Starts the evidence of a new run, in a new folder below `runs` with the header's `run_id` as its name. Only this
    /// user can read the folder. `known` is the folder that lists this user's runs; `None` if the run is not to be
    /// listed.
    ///
    /// # Errors
    /// If the folder cannot be created or written to. No files are left behind in this case.
    pub fn create(runs: &Path, header: Header, known: Option<&Path>) -> Result<Writer, Error> {
        let run = runs.join(&header.run_id);
        let folder = |reason| Error::Folder { folder: run.clone(), reason };
        fs::create_dir_all(runs).map_err(folder)?;
        DirBuilder::new().mode(0o700).create(&run).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Error::Exists(run.clone()),
            _ => folder(error),
        })?;
        let start = || {
            let lines = File::options().append(true).create_new(true).open(run.join(LINES)).map_err(folder)?;
            let lines = lock_lines(lines, &run)?;
            write_header(&run, &header)?;
            Ok(lines)
        };
        match start() {
            Ok(lines) => {
                let known = known.and_then(|known| KnownRun::create(known, &header));
                Ok(Writer::new(run, header, lines, 0, known))
            }
            Err(error) => {
                // The folder belongs to this run, which created it above.
                let _ = fs::remove_dir_all(&run);
                Err(error)
            }
        }
    }

    /// Continues a run after its last complete trial. An incomplete trial at the end of the file, which a kill may
    /// leave, is cut off. Trials that were started but not recorded are recorded as lost, so that a kill cannot hide
    /// slow trials.
    ///
    /// # Errors
    /// - Another process is writing to the run or to a copy of it.
    /// - The run's files are missing, not valid, or from another version, or rows were lost or changed after the run
    ///   ended.
    /// - The folder `known`, which lists this user's runs, notes more trials than this folder has. This folder is then
    ///   an older copy of the run.
    ///
    /// No recorded data is changed in these cases.
    #[cfg(feature = "recorded")]
    pub fn resume(run: &Path, known: Option<&Path>) -> Result<(Writer, RunEvidence), Error> {
        let path = run.join(LINES);
        // Reading comes first: if a file can be neither read nor written, the reading error is more useful.
        let is_there = match LineReader::open(run) {
            Ok(_) => true,
            Err(Error::NoRows(_)) if read_header(run)?.parquet_checksum.is_some() => false,
            Err(error) => return Err(error),
        };
        let mut options = File::options();
        options.append(true).create_new(!is_there);
        let lines = lock_lines(options.open(&path).map_err(Error::write(&path))?, run)?;
        let header = read_header(run)?;
        restore_lines(run, &header, &lines.0)?;
        let (mut trials, whole_end, lost_rows) = read_lines(run, &header)?;
        if let Some(lost_rows) = lost_rows {
            return Err(lost_rows);
        }
        let lost = journal::lost_trials(run, trials.lanes());
        let begun = lost.iter().map(|lost| lost.trials).sum();
        let known = match known {
            Some(known) => KnownRun::resume(known, run, &header, whole_end, begun)?,
            None => None,
        };
        lines.0.set_len(whole_end).map_err(Error::write(&path))?;
        if !lost.is_empty() {
            write_lost(run, &header, &lines.0, &lost, &trials)?;
            (trials, ..) = read_lines(run, &header)?;
        }
        let writer = Writer::new(run.to_path_buf(), header.clone(), lines, trials.count(), known);
        Ok((writer, RunEvidence { header, trials, faults: Vec::new(), lost_rows: None }))
    }

    pub(super) fn new(
        run: PathBuf,
        header: Header,
        lines: LockedFile,
        recorded_trials: usize,
        known: Option<KnownRun>,
    ) -> Writer {
        let rows = row_buffer(&header);
        Writer { run, header, lines, rows, lanes: Vec::new(), recorded_trials, journal: None, known }
    }

    /// Adds an arm to a lane (group of arms that are measured together). Returns the index that identifies the arm in
    /// [`record`](Writer::record). Add the arms of a lane in the order of their slots, before any trial begins.
    pub fn add_arm(&mut self, spec: &Spec, lane: usize, arm: &Arm) -> usize {
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, JournalLane::default);
        }
        self.lanes[lane].experiment.clone_from(&spec.id);
        self.lanes[lane].arms.push(arm.clone());
        self.rows.add_arm(spec, lane, arm)
    }

    /// Notes in the journal that a trial of the lane begins, with these arms. The note survives a kill of this process.
    /// Only the first trial needs system calls for this.
    pub fn begin_trial(&mut self, lane: usize, arms: Slots) {
        let create = || TrialJournal::create(&self.run, self.recorded_trials, &self.lanes);
        // The journal comes first. If the process were killed between the two notes and only `known` had the trial, the
        // run's folder would look like an older copy.
        self.journal.get_or_insert_with(create).begin(lane, arms);
        self.known.iter().for_each(KnownRun::begin_trial);
    }

    /// Records one measurement of an arm in the trial with the index `trial`. `position` is the arm's position in the
    /// trial's random order. `start_ns` is the start of the measurement, read from [`clock::now_ns`]. Performs no I/O.
    pub fn record(&mut self, arm: usize, trial: u64, position: u32, start_ns: u64, samples: &[Sample]) {
        self.rows.record(arm, trial, position, start_ns, samples);
    }

    /// Sets the machine that measured the following values. Needed only for values that another machine measured.
    #[cfg(feature = "recorded")]
    pub fn set_worker(&mut self, name: &str) {
        self.rows.set_worker(name);
    }

    /// Returns the folder of the run.
    #[cfg(feature = "commands")]
    pub(crate) fn folder(&self) -> &Path {
        &self.run
    }

    /// Creates a further file in the folder of the run, for rows of an arm. The rows have the columns of `trials.jsonl`.
    ///
    /// # Errors
    /// If the file cannot be created.
    #[cfg(feature = "commands")]
    pub(crate) fn rows_file(&self, name: &str, spec: &Spec, arm: &Arm) -> Result<RowsFile, Error> {
        let path = self.run.join(name);
        let file = File::options().append(true).create_new(true).open(&path).map_err(Error::write(&path))?;
        let mut rows = row_buffer(&self.header);
        rows.add_arm(spec, 0, arm);
        Ok(RowsFile { path, file, rows })
    }

    /// Ends a trial. `trial_ns` is the usual duration of the lane's trials, in nanoseconds. Slow trials are written at
    /// once, so that a kill cannot lose them. The rows of fast trials stay in the buffer until it is half full, or
    /// until [`flush`](Writer::flush) is called.
    ///
    /// # Errors
    /// If the rows cannot be written, for example because the disk is full.
    pub fn end_trial(&mut self, trial_ns: f64) -> Result<(), Error> {
        if trial_ns < SLOW_TRIAL_NS && !self.rows.is_half_full() { Ok(()) } else { self.flush() }
    }

    /// Writes all recorded rows. Call it only between trials.
    ///
    /// # Errors
    /// As for [`end_trial`](Writer::end_trial).
    pub fn flush(&mut self) -> Result<(), Error> {
        self.rows.write_to(&mut self.lines.0).map_err(Error::write(&self.run.join(LINES)))?;
        if let Some(known) = &self.known {
            known.set_written(self.lines_bytes()?);
        }
        Ok(())
    }

    fn lines_bytes(&self) -> Result<u64, Error> {
        Ok(self.lines.0.metadata().map_err(Error::write(&self.run.join(LINES)))?.len())
    }

    /// Ends the run: writes the remaining rows, the outcome, and, with the feature `parquet`, the Parquet file. Returns
    /// the run's folder.
    ///
    /// # Errors
    /// If a file cannot be written. All rows that were written before the error stay readable.
    pub fn finish(mut self, outcome: Outcome) -> Result<PathBuf, Error> {
        self.flush()?;
        let lines = self.run.join(LINES);
        self.lines.0.sync_data().map_err(Error::write(&lines))?;
        self.header.outcome = Some(outcome);
        self.header.lines_bytes = Some(self.lines_bytes()?);
        (self.header.lines_checksum, self.header.parquet_checksum) = (None, None);
        // The outcome is written first. If writing the Parquet file then fails, the run still has its outcome and all
        // lines.
        write_header(&self.run, &self.header)?;
        let parquet_checksum = parquet::finish(&self.run)?;
        // The checksum is not computed during the run, because that would take as long as writing the rows.
        self.header.lines_checksum = Some(checksum_of_file(&lines).map_err(Error::read(&lines, LINES))?);
        self.header.parquet_checksum = parquet_checksum;
        write_header(&self.run, &self.header)?;
        journal::remove(&self.run);
        self.remove_lines();
        Ok(self.run)
    }

    /// Empties `trials.jsonl` if [`resume`](Writer::resume) can restore its lines. To make sure, this function reads
    /// `trials.parquet` back and checks that it gives exactly the same lines. The empty file stays, because its lock
    /// shows whether the run is in progress.
    fn remove_lines(&self) {
        if restored(&self.run, &self.header).is_ok_and(|lines| is_as_then(&lines, &self.header)) {
            // If the lines cannot be removed, they do no harm.
            let _ = self.lines.0.set_len(0);
        }
    }
}

/// Writes a finished run in a new folder below `runs`, with rows from an iterator. Its file of rows is
/// `trials.parquet`; the JSON lines are never written, so the run cannot be continued. Use it for simulated runs: it is
/// much faster than a [`Writer`], and a run of 10^8 rows takes about a gigabyte. Returns the folder of the run.
///
/// # Errors
/// If the folder exists already, or a file cannot be written.
#[cfg(feature = "parquet")]
pub fn write_simulated(
    runs: &Path,
    header: Header,
    outcome: Outcome,
    rows: impl Iterator<Item = super::row::Row<'static>>,
) -> Result<PathBuf, Error> {
    let mut writer = Writer::create(runs, header, None)?;
    writer.header.parquet_checksum = parquet::write_rows(&writer.run, rows)?;
    // Any size but 0 means that there were lines, which were removed.
    writer.header.lines_bytes = Some(1);
    writer.header.outcome = Some(outcome);
    write_header(&writer.run, &writer.header)?;
    Ok(writer.run)
}

/// Writes the rows of the run's Parquet file to `sink` as JSON lines.
fn write_restored(run: &Path, header: &Header, sink: impl Write) -> Result<(), Error> {
    let reader = parquet::open(&run.join(PARQUET), header.parquet_checksum.as_deref())?;
    let mut reader = reader.ok_or_else(|| Error::NoRows(run.into()))?;
    write_lines(&mut *reader, &run.join(LINES), sink)
}

/// Returns the length and the checksum of the lines that [`write_restored`] writes.
fn restored(run: &Path, header: &Header) -> Result<Checksum, Error> {
    let mut lines = Checksum::new();
    write_restored(run, header, &mut lines)?;
    Ok(lines)
}

/// Returns whether the lines have the length and the checksum that `run.json` recorded when the run ended.
fn is_as_then(lines: &Checksum, header: &Header) -> bool {
    (header.lines_bytes, header.lines_checksum.as_ref()) == (Some(lines.bytes), Some(&lines.text()))
}

/// Restores `trials.jsonl` of a run that has ended, if its lines were removed. The lines are written from the rows of
/// the Parquet file, and equal the removed lines byte for byte.
///
/// If the process is killed while it restores the lines, `trials.jsonl` is too short. The rows are then read from the
/// Parquet file, and the next attempt restores the lines again.
#[cfg(feature = "recorded")]
fn restore_lines(run: &Path, header: &Header, lines: &File) -> Result<(), Error> {
    let Some(then) = header.final_lines() else { return Ok(()) };
    let path = run.join(LINES);
    let length = lines.metadata().map_err(Error::write(&path))?.len();
    if length >= then.bytes {
        return Ok(());
    }
    match restored(run, header) {
        Ok(found) if is_as_then(&found, header) => {}
        Err(error) if length == 0 => return Err(error),
        // The Parquet file does not contain exactly the lines that the run ended with, so the existing lines stay as
        // they are. The caller reads these next, and reports the error.
        Ok(_) | Err(_) => return Ok(()),
    }
    lines.set_len(0).map_err(Error::write(&path))?;
    write_restored(run, header, lines)?;
    lines.sync_data().map_err(Error::write(&path))
}

/// Appends the trials `lost` to the file `lines`. These trials were started but not recorded, so all their values are
/// marked as lost.
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

/// A further file with rows of one arm, in the folder of a run.
#[cfg(feature = "commands")]
pub(crate) struct RowsFile {
    path: PathBuf,
    file: File,
    rows: RowBuffer,
}

#[cfg(feature = "commands")]
impl RowsFile {
    /// Records one observation. Writes the rows if the buffer is half full.
    ///
    /// # Errors
    /// If the rows cannot be written, for example because the disk is full.
    pub fn record(&mut self, trial: u64, start_ns: u64, samples: &[Sample]) -> Result<(), Error> {
        self.rows.record(0, trial, 0, start_ns, samples);
        if self.rows.is_half_full() { self.flush() } else { Ok(()) }
    }

    /// Writes all recorded rows.
    ///
    /// # Errors
    /// As for [`record`](Self::record).
    pub fn flush(&mut self) -> Result<(), Error> {
        self.rows.write_to(&mut self.file).map_err(Error::write(&self.path))
    }
}

/// Returns whether a process is writing to the run at present. Changes nothing, and only needs permission to read
/// `trials.jsonl`.
pub fn is_going_on(run: &Path) -> bool {
    let Ok(lines) = files::open_regular(&run.join(LINES)) else { return false };
    match lines.try_lock_shared() {
        Ok(()) => {
            // Unlocked before the file is closed; the comment on `LockedFile` has the reason.
            let _ = lines.unlock();
            false
        }
        Err(error) => matches!(error, TryLockError::WouldBlock),
    }
}

/// Locks `trials.jsonl`, the file with the rows of this run.
fn lock_lines(lines: File, run: &Path) -> Result<LockedFile, Error> {
    LockedFile::lock(lines, &run.join(LINES), run, || is_going_on(run))
}

/// A file that is locked against other processes.
///
/// Dropping the value releases the lock. Closing the file might not release it. If another thread is just starting a
/// process, that process has a copy of the descriptor, and keeps the lock until it executes its program.
pub(super) struct LockedFile(pub(super) File);

impl LockedFile {
    /// Locks a file of the run. If another process holds the lock, waits a short time for it. `is_written` returns
    /// `true` if that process writes to the run, and `false` if it only checks whether the run is in progress.
    pub fn lock(file: File, path: &Path, run: &Path, is_written: impl Fn() -> bool) -> Result<LockedFile, Error> {
        /// Maximum time to wait for another writer's lock, in milliseconds. A killed writer holds its lock until the
        /// kernel has closed its files.
        const MOST_WAITS: u32 = 100;
        /// Maximum time, in milliseconds, to wait for processes that hold the lock only to check whether the run is in
        /// progress.
        const MOST_CHECKS: u32 = 10_000;
        let (mut waits, mut checks) = (0, 0);
        while waits < MOST_WAITS && checks < MOST_CHECKS {
            match file.try_lock() {
                Ok(()) => return Ok(LockedFile(file)),
                Err(TryLockError::Error(reason)) => return Err(Error::Write { path: path.into(), reason }),
                Err(TryLockError::WouldBlock) if is_written() => waits += 1,
                Err(TryLockError::WouldBlock) => checks += 1,
            }
            thread::sleep(Duration::from_millis(1));
        }
        Err(Error::Locked(run.into()))
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}
