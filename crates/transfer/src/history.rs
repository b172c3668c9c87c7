//! The history of a store: how long the latest commands took. A command uses it for its first forecast, until enough of
//! its own bytes are transferred.
//!
//! The history of a store and a direction is one small file in the folder of the journals. It contains no names of
//! objects and no credentials. A file that can't be read or has other content counts as an empty history.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ascertain_sys::files::{self, Draft, Lasting};
use serde::{Deserialize, Serialize};

use crate::journal::journal_path;
use crate::location::Location;
use crate::manager::Settings;
use crate::model::Forecast;
use crate::result::TransferResult;
use crate::run::Direction;

/// The extension of the file of a history.
const HISTORY: &str = ".history";
/// The version of the format. A file with another version counts as an empty history.
const VERSION: u32 = 1;
/// Maximum number of commands in a history. The oldest commands are removed.
const MAX_COMMANDS: usize = 32;
/// Largest size in bytes of a history's file. A larger file was not written by this program.
const MAX_BYTES: u64 = 64 << 10;
/// Smallest number of earlier commands on which a forecast is based.
const MIN_COMMANDS: usize = 3;
/// Smallest number of bytes of a command that is recorded. A command with fewer bytes is also recorded if it has at
/// least [`MIN_FILES`] files.
const MIN_BYTES: u64 = 1_000_000;
/// Number of files with which a command is recorded even if it has fewer than [`MIN_BYTES`] bytes.
const MIN_FILES: u64 = 100;
/// Smallest standard deviation of the logarithm of a duration.
const LEAST_SPREAD: f64 = 0.1;
/// Standard deviation that is added if no earlier command has a similar size. It is multiplied by the natural logarithm
/// of the ratio of the sizes.
const UNLIKE: f64 = 0.2;

/// The record of a successful command.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct CommandRecord {
    /// Number of transferred bytes.
    bytes: u64,
    /// Number of transferred files.
    files: u64,
    elapsed_s: f64,
    /// Maximum number of simultaneous requests.
    connections: usize,
}

/// The content of a history's file.
#[derive(Debug, Serialize, Deserialize)]
struct Contents {
    version: u32,
    /// The direction, the endpoint and the bucket.
    store: String,
    commands: Vec<CommandRecord>,
}

/// The latest commands that transferred files between this machine and a store, in one direction.
#[derive(Debug)]
pub(crate) struct History {
    path: PathBuf,
    store: String,
    connections: usize,
    commands: Vec<CommandRecord>,
}

impl History {
    /// Opens the history of a store, in the folder of the settings. Returns `None` if there is no such folder, or if
    /// the store is a folder on this machine. Also returns `None` if the settings make commands slower than usual, or if
    /// they skip files: such a command takes time for files that it does not transfer.
    pub fn open(settings: &Settings, direction: Direction, location: &Location) -> Option<Self> {
        let is_usual = settings.limit_bytes_per_s.is_none()
            && settings.gentle.is_none()
            && !(settings.verify || settings.skip_unchanged || settings.no_clobber);
        let folder = settings.journals.as_deref().filter(|_| is_usual && !settings.dry_run)?;
        if location.store.local_path(&location.name).is_some() {
            return None;
        }
        let endpoint = location.store.location().endpoint_url.unwrap_or_default();
        let bucket: Vec<&str> = location.address.splitn(4, '/').take(3).collect();
        let store = format!("{direction:?} {endpoint} {}", bucket.join("/"));
        Self::read(folder, store, settings.max_concurrency)
    }

    fn read(folder: &Path, store: String, connections: usize) -> Option<Self> {
        let path = journal_path(folder, &store, HISTORY).ok()?;
        let commands = read(&path, &store);
        Some(Self { path, store, connections, commands })
    }

    /// Records a command if it has transferred all its files. Does nothing if the command has resumed an earlier one:
    /// it then took time for files and parts that it did not transfer. Does nothing either if the command transferred
    /// too little ([`MIN_BYTES`], [`MIN_FILES`]), or if the file can't be written.
    pub fn record(&self, results: &[TransferResult], elapsed_s: f64) {
        if results.iter().any(|result| !result.is_transferred() || result.resumed_bytes > 0) {
            return;
        }
        let (bytes, files) = (results.iter().map(|result| result.bytes).sum(), results.len() as u64);
        if bytes >= MIN_BYTES || files >= MIN_FILES {
            let _ = self.add(CommandRecord { bytes, files, elapsed_s, connections: self.connections });
        }
    }

    fn add(&self, command: CommandRecord) -> Option<()> {
        // Another process may have added a command in the meantime.
        let mut commands = read(&self.path, &self.store);
        commands.push(command);
        commands.drain(..commands.len().saturating_sub(MAX_COMMANDS));
        let contents = Contents { version: VERSION, store: self.store.clone(), commands };
        let folder = files::open_folder(files::parent(&self.path)).ok()?;
        let draft = Draft::create_in(folder, self.path.file_name()?).ok()?;
        draft.file().set_permissions(Permissions::from_mode(0o600)).ok()?;
        draft.file().write_all(&serde_json::to_vec(&contents).ok()?).ok()?;
        draft.publish(Lasting::WhileRunning).ok().map(drop)
    }

    /// Predicts the duration of a command for `files` files with `bytes` bytes. Returns `None` if there are too few
    /// earlier commands with the same number of connections.
    ///
    /// The expected duration is the sum of a time for each byte and a time for each file. The interval comes from the
    /// differences between the actual and the expected durations of earlier commands.
    pub fn forecast(&self, bytes: u64, files: u64) -> Option<Forecast> {
        let alike: Vec<_> = self.commands.iter().filter(|one| one.connections == self.connections).collect();
        if alike.len() < MIN_COMMANDS {
            return None;
        }
        let (byte_s, file_s) =
            times(alike.iter().map(|one| (one.bytes as f64 / one.elapsed_s, one.files as f64 / one.elapsed_s)));
        let predicted_s = |bytes: u64, files: u64| bytes as f64 * byte_s + files as f64 * file_s;
        let errors = alike.iter().map(|one| (one.elapsed_s / predicted_s(one.bytes, one.files).max(1e-9)).ln());
        let errors: Vec<f64> = errors.collect();
        let count = errors.len() as f64;
        let mean = errors.iter().sum::<f64>() / count;
        let variance = errors.iter().map(|error| (error - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let apart = |one: u64, other: u64| (one.max(1) as f64 / other.max(1) as f64).ln().abs();
        let unlike = alike.iter().map(|one| apart(one.bytes, bytes).max(apart(one.files, files)));
        let unlike = UNLIKE * unlike.min_by(f64::total_cmp)?;
        let spread = (variance * (1.0 + 1.0 / count) + LEAST_SPREAD.powi(2) + unlike.powi(2)).sqrt();
        // Approximates the 90 % quantile of Student's t-distribution. The two estimated times reduce the degrees of
        // freedom by two.
        let free = (count - 2.0).max(1.0);
        let wider = ((1.28 + 0.9 / free + 0.9 / free.powi(2)) * spread).exp();
        let expected_s = predicted_s(bytes, files) * mean.exp();
        let forecast =
            Forecast { expected_s, low_s: expected_s / wider, high_s: expected_s * wider, earlier: errors.len() };
        Some(forecast).filter(|forecast| forecast.expected_s > 0.0 && forecast.high_s.is_finite())
    }
}

/// Returns the time for a byte and the time for a file, in seconds. Both are at least 0, and minimize the sum of the
/// squared relative errors. `rates` are the bytes and files per second of the commands.
fn times(rates: impl Iterator<Item = (f64, f64)> + Clone) -> (f64, f64) {
    let sum = |of: fn((f64, f64)) -> f64| rates.clone().map(of).sum::<f64>();
    let (bytes, files) = (sum(|(bytes, _)| bytes), sum(|(_, files)| files));
    let [squared_bytes, squared_files] = [sum(|(bytes, _)| bytes * bytes), sum(|(_, files)| files * files)];
    let both = sum(|(bytes, files)| bytes * files);
    let determinant = squared_bytes * squared_files - both * both;
    // If all commands have files of the same size, the two times can't be separated.
    if determinant > 1e-6 * squared_bytes * squared_files {
        let byte_s = (bytes * squared_files - files * both) / determinant;
        let file_s = (files * squared_bytes - bytes * both) / determinant;
        if byte_s >= 0.0 && file_s >= 0.0 {
            return (byte_s, file_s);
        }
        if byte_s < 0.0 {
            return (0.0, files / squared_files);
        }
    }
    (bytes / squared_bytes.max(f64::MIN_POSITIVE), 0.0)
}

/// Reads the commands of a history. Returns an empty list if the file is missing, or was not written for this store.
fn read(path: &Path, store: &str) -> Vec<CommandRecord> {
    let text = files::read_regular(path, MAX_BYTES).unwrap_or_default();
    let contents = serde_json::from_slice::<Contents>(&text).ok();
    let contents = contents.filter(|contents| contents.version == VERSION && contents.store == store);
    let mut commands = contents.map_or_else(Vec::new, |contents| contents.commands);
    commands.retain(|one| one.elapsed_s.is_finite() && one.elapsed_s > 0.0 && one.bytes.saturating_add(one.files) > 0);
    commands
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::result::TransferStatus;

    const STORE: &str = "Put http://h s3://b";

    fn open(folder: &Path) -> History {
        History::read(folder, STORE.into(), 64).unwrap()
    }

    fn command(bytes: u64, files: u64, elapsed_s: f64) -> CommandRecord {
        CommandRecord { bytes, files, elapsed_s, connections: 64 }
    }

    #[test]
    fn three_earlier_commands_are_enough_and_the_latest_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        for count in 0..3 {
            assert_eq!(open(folder.path()).forecast(1_000_000, 1), None, "after {count}");
            open(folder.path()).add(command(1_000_000 * (count + 1), 1, (count + 1) as f64)).unwrap();
        }
        let history = open(folder.path());
        let forecast = history.forecast(5_000_000, 1).unwrap();
        assert!((forecast.expected_s - 5.0).abs() < 0.01 && forecast.earlier == 3, "{forecast:?}");
        assert!(forecast.low_s < 4.0 && forecast.high_s > 6.0, "few commands give a wide interval: {forecast:?}");
        assert_eq!(fs::metadata(&history.path).unwrap().permissions().mode() & 0o777, 0o600);
        for _ in 0..40 {
            history.add(command(10_000_000, 1, 1.0)).unwrap();
        }
        let commands = open(folder.path()).commands;
        assert_eq!((commands.len(), commands[0].bytes), (MAX_COMMANDS, 10_000_000));
        let other = History::read(folder.path(), STORE.into(), 8).unwrap();
        assert_eq!(other.forecast(1_000_000, 1), None, "another number of connections");
    }

    #[test]
    fn files_take_time_in_addition_to_their_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let history = open(folder.path());
        for (bytes, files) in [(1_000_000_u64, 1000_u64), (500_000_000, 1), (100_000_000, 100), (4_000_000, 4000)] {
            history.add(command(bytes, files, bytes as f64 / 100e6 + files as f64 * 0.001)).unwrap();
        }
        let history = open(folder.path());
        let [small, large] = [(2_000_000, 2000), (1_000_000_000, 1)]
            .map(|(bytes, files)| history.forecast(bytes, files).unwrap().expected_s);
        assert!((small - 2.02).abs() < 0.01 && (large - 10.0).abs() < 0.01, "{small} {large}");
    }

    #[test]
    fn the_spread_of_earlier_commands_widens_the_interval() {
        let folder = tempfile::tempdir().unwrap();
        let history = open(folder.path());
        let width = |spread: f64| {
            let commands = (0..12).map(|index| command(10_000_000, 1, if index % 2 == 0 { 1.0 } else { spread }));
            let history = History { commands: commands.collect(), ..open(folder.path()) };
            let forecast = history.forecast(10_000_000, 1).unwrap();
            assert!(forecast.low_s < forecast.expected_s && forecast.expected_s < forecast.high_s);
            forecast.high_s / forecast.low_s
        };
        assert!(width(1.0) < 1.4 && width(3.0) > 3.0, "{} {}", width(1.0), width(3.0));
        let steady = History { commands: vec![command(10_000_000, 1, 1.0); 12], ..history };
        let unlike = steady.forecast(1_000_000_000, 1).unwrap();
        assert!(unlike.high_s / unlike.low_s > 5.0, "a hundred times as large: {unlike:?}");
    }

    #[test]
    fn content_that_is_not_a_history_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let history = open(folder.path());
        for _ in 0..3 {
            history.add(command(1_000_000, 1, 1.0)).unwrap();
        }
        let good = fs::read_to_string(&history.path).unwrap();
        assert!(open(folder.path()).forecast(1_000_000, 1).is_some());
        let bad = [
            String::new(),
            "{".into(),
            good.replace("\"version\":1", "\"version\":2"),
            good.replace("s3://b", "s3://c"),
            good.replace("\"elapsed_s\":1.0", "\"elapsed_s\":0.0"),
            good.replace("\"bytes\":1000000", "\"bytes\":-1"),
            good[..good.len() / 2].into(),
            format!("{good}{}", " ".repeat(MAX_BYTES as usize)),
        ];
        for text in bad {
            fs::write(&history.path, &text).unwrap();
            assert_eq!(open(folder.path()).forecast(1_000_000, 1), None, "{text}");
        }
        history.add(command(1_000_000, 1, 1.0)).unwrap();
        assert_eq!(open(folder.path()).commands.len(), 1, "the file is written anew");
        fs::write(&history.path, good.replace("\"bytes\":1000000", &format!("\"bytes\":{}", u64::MAX))).unwrap();
        assert_eq!(open(folder.path()).commands.len(), 3, "the sum of bytes and files does not overflow");
    }

    #[test]
    fn a_command_that_is_small_or_incomplete_is_not_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let history = open(folder.path());
        let result = |bytes| TransferResult { bytes, status: TransferStatus::Transferred, ..TransferResult::default() };
        let failed = TransferStatus::Failed(crate::Error::Stopped);
        let with_status = |status| TransferResult { status, ..result(MIN_BYTES) };
        history.record(&[result(MIN_BYTES - 1)], 1.0);
        for status in [failed, TransferStatus::Unchanged, TransferStatus::Exists, TransferStatus::Planned] {
            history.record(&[result(MIN_BYTES), with_status(status)], 1.0);
        }
        let resumed = TransferResult { resumed_bytes: 1, ..result(MIN_BYTES) };
        history.record(&[result(MIN_BYTES), resumed], 1.0);
        assert_eq!(open(folder.path()).commands, []);
        history.record(&[result(MIN_BYTES), result(0)], 1.0);
        assert_eq!(open(folder.path()).commands, [command(MIN_BYTES, 2, 1.0)]);
    }
}
