//! Where runs are kept, and what they and their files are called.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::error::Error;

pub(super) const HEADER: &str = "run.json";
pub(super) const LINES: &str = "trials.jsonl";
pub(super) const PARQUET: &str = "trials.parquet";

/// Where runs are kept unless another folder is asked for: `$XDG_STATE_HOME/ascertain/runs`, else
/// `~/.local/state/ascertain/runs`.
pub fn runs_folder() -> PathBuf {
    runs_folder_of(env::var_os("XDG_STATE_HOME"), env::home_dir())
}

fn runs_folder_of(state: Option<OsString>, home: Option<PathBuf>) -> PathBuf {
    // The XDG specification has relative paths ignored.
    let state = state.map(PathBuf::from).filter(|state| state.is_absolute());
    let state = state.unwrap_or_else(|| home.unwrap_or_default().join(".local/state"));
    state.join("ascertain/runs")
}

/// How long a run's `trials.jsonl` is: `None` where it is not there.
pub(super) fn lines_bytes(run: &Path) -> Option<u64> {
    fs::metadata(run.join(LINES)).map(|file| file.len()).ok()
}

/// Names a run by the millisecond in which it starts and four letters or digits drawn from `random`, so
/// that names sort by time.
///
/// ```
/// let id = ascertain_engine::evidence::new_run_id(1_795_253_412_000_000_000, 0);
/// assert_eq!(id, "20261121T093012000Z-0000");
/// ```
pub fn new_run_id(unix_ns: u64, random: u64) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut id = timestamp(unix_ns).strftime("%Y%m%dT%H%M%S%3fZ-").to_string();
    id.extend((0..4).map(|place| char::from(DIGITS[(random / 36_u64.pow(place) % 36) as usize])));
    id
}

/// A time as RFC 3339 has it, in UTC, to the millisecond.
///
/// ```
/// let started = ascertain_engine::evidence::rfc3339(1_795_253_412_000_000_000);
/// assert_eq!(started, "2026-11-21T09:30:12.000Z");
/// ```
pub fn rfc3339(unix_ns: u64) -> String {
    format!("{:.3}", timestamp(unix_ns))
}

fn timestamp(unix_ns: u64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(unix_ns)).expect("2^64 ns end in the year 2554")
}

/// Makes a file appear whole or not at all: filled beside its place, brought to disk, then renamed.
pub(super) fn replace(path: &Path, fill: impl FnOnce(&File) -> Result<(), Error>) -> Result<(), Error> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".tmp");
    let beside = PathBuf::from(beside);
    let write = || {
        let file = File::create(&beside).map_err(Error::write(path))?;
        fill(&file)?;
        file.sync_all().map_err(Error::write(path))?;
        fs::rename(&beside, path).map_err(Error::write(path))
    };
    let written = write();
    if written.is_err() {
        // The reason why it could not be written matters, not why it can't be removed.
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_kept_in_the_state_folder() {
        let folder = |state: Option<&str>, home: &str| runs_folder_of(state.map(OsString::from), Some(home.into()));
        assert_eq!(folder(Some("/state"), "/home/u"), Path::new("/state/ascertain/runs"));
        for ignored in [None, Some(""), Some("relative")] {
            assert_eq!(folder(ignored, "/home/u"), Path::new("/home/u/.local/state/ascertain/runs"));
        }
    }

    #[test]
    fn run_ids_sort_by_time() {
        let second = 1_000_000_000;
        let (first, next) = (new_run_id(second * 1_795_253_412, u64::MAX), new_run_id(second * 1_795_253_413, 0));
        assert!(first < next && first.len() == next.len(), "{first} {next}");
        assert_ne!(new_run_id(second, 1), new_run_id(second, 2));
    }
}
