//! Deletes old runs.

use std::fs::{self, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ascertain_engine::evidence;
use ascertain_report::history::prune::{PrunedRun, Pruning, SparedRun};
use ascertain_sys::{clock, files};

use crate::error::Error;
use crate::runs;

/// Deletes the runs in the folder `below`, except those that are protected. `keep` is the number of latest runs that
/// are protected. `older_than` is the age up to which all runs are protected. A run that is being written, a folder
/// that was renamed, and a folder without a `run.json` are never deleted. With `dry_run`, deletes nothing, and returns
/// the runs that would be deleted.
///
/// # Errors
/// If there are no runs, or the folder can't be read.
pub fn prune(below: &Path, keep: Option<u64>, older_than: Option<Duration>, dry_run: bool) -> Result<Pruning, Error> {
    let all = runs::listed(below)?;
    if !dry_run {
        remove_leftovers(below);
    }
    let (mut removed, mut spared) = (Vec::new(), Vec::new());
    for folder in chosen(&all, keep, older_than, clock::unix_ns()) {
        let (id, bytes) = (runs::name(folder), runs::size_bytes(folder));
        match remove(folder, dry_run) {
            None => {
                if !dry_run {
                    evidence::forget_run(&evidence::known_folder(), &id);
                }
                removed.push(PrunedRun { id, bytes });
            }
            Some(reason) => spared.push(SparedRun { id, reason }),
        }
    }
    let removed_bytes = removed.iter().map(|run| run.bytes).sum();
    let (folder, kept) = (below.display().to_string(), (all.len() - removed.len()) as u64);
    Ok(Pruning { folder, dry_run, removed, removed_bytes, kept, spared })
}

/// Returns the runs that neither `keep` nor `older_than` protects. `all` must be sorted from the oldest run.
fn chosen(all: &[PathBuf], keep: Option<u64>, older_than: Option<Duration>, now_ns: u64) -> Vec<&PathBuf> {
    let given: Vec<&PathBuf> =
        all.iter().filter(|folder| evidence::is_run_id(&runs::name(folder)) && !folder.is_symlink()).collect();
    let keep = keep.map_or(0, |keep| usize::try_from(keep).unwrap_or(usize::MAX));
    // A run's name begins with the time. All versions of Ascertain write it at least to the second.
    let second = |id: &str| id.chars().take(15).collect::<String>();
    let limit = older_than.map(|age| {
        let age_ns = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
        second(&evidence::new_run_id(now_ns.saturating_sub(age_ns), 0))
    });
    let is_old = |folder: &&&PathBuf| limit.as_ref().is_none_or(|limit| second(&runs::name(folder)) < *limit);
    given.iter().take(given.len().saturating_sub(keep)).filter(is_old).copied().collect()
}

/// Prefix of the name of a run's folder while the folder is being deleted. No run has a name with this prefix.
const LEFTOVER: &str = ".deleting-";

/// Deletes a run's folder, or returns the reason why it can't be deleted. Renames the folder first, so that a partly
/// deleted folder is never mistaken for a run. With `dry_run`, only checks whether it could be deleted.
fn remove(folder: &Path, dry_run: bool) -> Option<String> {
    // Keep the lock until the folder is deleted, so that no other process continues the run in the meantime.
    let lines = files::open_regular(&folder.join("trials.jsonl"));
    match &lines {
        Ok(lines) => match lines.try_lock() {
            Err(TryLockError::WouldBlock) => return Some("it is being written".into()),
            Err(TryLockError::Error(error)) => return Some(format!("its folder can't be locked: {error}")),
            Ok(()) => {}
        },
        // If this file is missing, no process writes to the run. Either the run has ended and its rows are in Parquet,
        // or the run is damaged.
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Some(format!("can't open its rows to check whether the run is in use: {error}")),
    }
    if dry_run {
        return None;
    }
    let aside = folder.with_file_name(format!("{LEFTOVER}{}", runs::name(folder)));
    if let Err(error) = fs::rename(folder, &aside) {
        return Some(format!("its folder can't be renamed: {error}"));
    }
    let removed = fs::remove_dir_all(&aside);
    removed.err().map(|error| format!("its folder was deleted in part; the rest is in {}: {error}", aside.display()))
}

/// Deletes folders that an interrupted deletion left behind.
fn remove_leftovers(below: &Path) {
    for entry in fs::read_dir(below).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.strip_prefix(LEFTOVER).is_some_and(evidence::is_run_id) {
            // On failure, the folder stays hidden, and the next call tries again.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pruning_removes_the_oldest_runs() {
        let ids = ["baseline", "20261101T000000000Z-aaaa", "20261110T000000000Z-bbbb", "20261120T000000000Z-cccc"];
        let all: Vec<PathBuf> = ids.iter().map(PathBuf::from).collect();
        let now_ns = 1_795_253_412_000_000_000; // 2026-11-21T09:30:12Z
        let day = Duration::from_secs(86_400);
        let chosen = |keep, days: Option<u32>| -> Vec<String> {
            chosen(&all, keep, days.map(|days| day * days), now_ns).into_iter().map(|run| runs::name(run)).collect()
        };
        assert_eq!(chosen(Some(1), None), ids[1..3]);
        assert_eq!(chosen(Some(0), None), ids[1..]);
        assert_eq!(chosen(Some(9), None), ids[..0]);
        assert_eq!(chosen(None, Some(5)), ids[1..3]);
        assert_eq!(chosen(None, Some(15)), ids[1..2]);
        assert_eq!(chosen(Some(2), Some(5)), ids[1..2], "both must let it go");
        assert_eq!(chosen(None, Some(1_000_000)), ids[..0]);
    }

    #[test]
    fn what_may_be_written_to_stays() {
        let runs = tempfile::tempdir().unwrap();
        let run = runs.path().join("20261101T000000000Z-aaaa");
        fs::create_dir(&run).unwrap();
        // A link to itself: not even root can open it.
        std::os::unix::fs::symlink("trials.jsonl", run.join("trials.jsonl")).unwrap();
        assert!(remove(&run, false).is_some_and(|reason| reason.contains("can't open its rows")) && run.exists());
        fs::remove_file(run.join("trials.jsonl")).unwrap();
        assert_eq!((remove(&run, false), run.exists()), (None, false));
    }
}
