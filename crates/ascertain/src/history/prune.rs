//! Old runs, deleted.

use std::fs::{self, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ascertain_engine::evidence;
use ascertain_report::history::prune::{PrunedRun, Pruning, SCHEMA, SparedRun};
use ascertain_sys::{clock, files};

use crate::error::Error;
use crate::runs;

/// Deletes runs below a folder that neither of the two would keep: being among the latest so many, or younger than
/// that. Whole folders, and only such as have the name that a run is given and a `run.json`; a run that is being
/// written stays. A dry run says what would be deleted, and deletes nothing.
///
/// # Errors
/// When there are no runs, or they can't be listed.
pub fn prune(below: &Path, keep: Option<u64>, older_than: Option<Duration>, dry_run: bool) -> Result<Pruning, Error> {
    let all = runs::listed(below)?;
    if !dry_run {
        remove_leftovers(below);
    }
    let mut pruning = Pruning {
        schema: SCHEMA.into(),
        folder: below.display().to_string(),
        dry_run,
        removed: Vec::new(),
        removed_bytes: 0,
        kept: 0,
        spared: Vec::new(),
    };
    for folder in chosen(&all, keep, older_than, clock::unix_ns()) {
        let (id, bytes) = (runs::name(folder), runs::size_bytes(folder));
        match remove(folder, dry_run) {
            None => {
                if !dry_run {
                    evidence::forget(&evidence::known_folder(), &id);
                }
                pruning.removed.push(PrunedRun { id, bytes });
            }
            Some(reason) => pruning.spared.push(SparedRun { id, reason }),
        }
    }
    pruning.removed_bytes = pruning.removed.iter().map(|run| run.bytes).sum();
    pruning.kept = (all.len() - pruning.removed.len()) as u64;
    Ok(pruning)
}

/// Of all runs, the oldest first, those that are to go: what neither option would keep.
fn chosen(all: &[PathBuf], keep: Option<u64>, older_than: Option<Duration>, now_ns: u64) -> Vec<&PathBuf> {
    let given: Vec<&PathBuf> =
        all.iter().filter(|folder| evidence::is_run_id(&runs::name(folder)) && !folder.is_symlink()).collect();
    let keep = keep.map_or(0, |keep| usize::try_from(keep).unwrap_or(usize::MAX));
    // Names begin with the time, to the second in all versions.
    let second = |id: &str| id.chars().take(15).collect::<String>();
    let limit = older_than.map(|age| {
        let age_ns = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
        second(&evidence::new_run_id(now_ns.saturating_sub(age_ns), 0))
    });
    let is_old = |folder: &&&PathBuf| limit.as_ref().is_none_or(|limit| second(&runs::name(folder)) < *limit);
    given.iter().take(given.len().saturating_sub(keep)).filter(is_old).copied().collect()
}

/// What a run's folder is called while it is deleted: no run is named so.
const LEFTOVER: &str = ".deleting-";

/// Deletes a run's folder, unless there is a reason against it. It is renamed first, so that a run that is half
/// deleted never looks like one.
fn remove(folder: &Path, dry_run: bool) -> Option<String> {
    // Held until the end: a run that is taken up again meanwhile finds itself locked out.
    let lines = files::open_regular(&folder.join("trials.jsonl"));
    match &lines {
        Ok(lines) => match lines.try_lock() {
            Err(TryLockError::WouldBlock) => return Some("it is being written".into()),
            Err(TryLockError::Error(error)) => return Some(format!("it can't be locked: {error}")),
            Ok(()) => {}
        },
        // Parquet has its rows, or it is damaged: nobody writes to it.
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Some(format!("whether it is being written can't be told: {error}")),
    }
    if dry_run {
        return None;
    }
    let aside = folder.with_file_name(format!("{LEFTOVER}{}", runs::name(folder)));
    if let Err(error) = fs::rename(folder, &aside) {
        return Some(format!("it can't be renamed: {error}"));
    }
    let removed = fs::remove_dir_all(&aside);
    removed.err().map(|error| format!("it is now {}, as not all of it could be deleted: {error}", aside.display()))
}

/// Deletes what an earlier deletion that was interrupted has left.
fn remove_leftovers(below: &Path) {
    for entry in fs::read_dir(below).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.strip_prefix(LEFTOVER).is_some_and(evidence::is_run_id) {
            // What can't be deleted is hidden and escape_controls, and is tried again next time.
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
        // It can't be opened, not by root either.
        std::os::unix::fs::symlink("trials.jsonl", run.join("trials.jsonl")).unwrap();
        assert!(remove(&run, false).is_some_and(|reason| reason.contains("can't be told")) && run.exists());
        fs::remove_file(run.join("trials.jsonl")).unwrap();
        assert_eq!((remove(&run, false), run.exists()), (None, false));
    }
}
