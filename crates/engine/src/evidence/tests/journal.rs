//! Tests with trials that were begun but not recorded, and with copies of runs.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::super::{Error, is_known, read_header};
use super::*;
use crate::block::Slots;

fn arms() -> [Arm; 3] {
    ["naive", "pairwise", "exact"].map(|variant| Arm { variant: variant.into(), ..arm() })
}

/// Begins a run of two lanes, the first with two arms and the second with one. Returns the indices of the arms in the
/// evidence.
fn begin(runs: &Path, known: Option<&Path>) -> (Writer, [usize; 3]) {
    let mut writer = Writer::create(runs, header(), known).unwrap();
    let [first, second, third] = arms();
    let numbers = [(0, first), (0, second), (1, third)].map(|(lane, arm)| writer.add_arm(&spec(), lane, &arm));
    (writer, numbers)
}

/// Continues a run and adds its arms.
fn resume(run: &Path, known: Option<&Path>) -> Result<(Writer, usize), Error> {
    let (mut writer, recorded) = Writer::resume(run, known)?;
    let [first, second, third] = arms();
    for (lane, arm) in [(0, first), (0, second), (1, third)] {
        writer.add_arm(&spec(), lane, &arm);
    }
    Ok((writer, recorded.trials.count()))
}

/// For the first row of each measured arm, returns the lane, the trial, the variant and whether the value was lost.
fn begun_rows(run: &Path) -> Vec<(u32, u64, String, bool)> {
    let firsts = rows(run).into_iter().filter(|row| row.metric == "time");
    firsts.map(|row| (row.lane, row.trial, row.variant.into_owned(), row.status == Status::Lost)).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn every_trial_that_was_begun_is_recorded_in_its_lane() {
    let runs = tempfile::tempdir().unwrap();
    let run = runs.path().join(RUN_ID);
    let (mut writer, [first, ..]) = begin(runs.path(), None);
    let (both, one) = (Slots::default().with(0).with(1), Slots::default().with(0));
    writer.begin_trial(0, both);
    writer.record(first, 0, 0, 1, &[sample(0, 1.0)]);
    writer.flush().unwrap();
    // None of these trials is written, because the disk is full or because a kill follows fast trials.
    writer.begin_trial(1, one);
    writer.begin_trial(0, one);
    writer.begin_trial(1, one);
    drop(writer);
    let (writer, trials) = resume(&run, None).unwrap();
    assert_eq!(trials, 4);
    let lost = |lane, trial, variant: &str| (lane, trial, variant.to_string(), true);
    // The journal does not show the arms of each trial, so a lost trial has all arms that any trial of its lane had.
    let expected = [
        (0, 0, "naive".to_string(), false),
        lost(0, 1, "naive"),
        lost(0, 1, "pairwise"),
        lost(1, 2, "exact"),
        lost(1, 3, "exact"),
    ];
    assert_eq!(begun_rows(&run), expected);
    drop(writer);
    let (mut writer, trials) = resume(&run, None).unwrap();
    assert_eq!(trials, 4, "they are lost once");
    writer.begin_trial(0, both);
    drop(writer);
    assert_eq!(resume(&run, None).unwrap().1, 5, "those of later sessions are lost as well");
}

fn copied(run: &Path, name: &str) -> PathBuf {
    let copy = run.with_file_name(name);
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(run).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
    }
    copy
}

fn folders() -> (TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (runs, known) = (folder.path().join("runs"), folder.path().join("known"));
    (folder, runs, known)
}

/// If an older copy could be continued, a user could copy a run, continue it, and return to the copy to choose among
/// trials.
#[cfg(target_os = "linux")]
#[test]
fn an_older_copy_is_not_continued() {
    let (_folder, runs, known) = folders();
    let known = Some(known.as_path());
    let (mut writer, [first, ..]) = begin(&runs, known);
    let run = runs.join(RUN_ID);
    let trial = |writer: &mut Writer, number| {
        writer.begin_trial(0, Slots::default().with(0));
        writer.record(first, number, 0, 1, &[sample(0, 1.0)]);
        writer.flush().unwrap();
    };
    trial(&mut writer, 0);
    drop(writer);
    let before_begun = copied(&run, "before-begun");
    let (mut writer, _) = resume(&run, known).unwrap();
    writer.begin_trial(0, Slots::default().with(0));
    let while_going_on = resume(&before_begun, known).err().unwrap();
    assert!(matches!(while_going_on, Error::Locked(_)), "{while_going_on}");
    drop(writer);
    let refused = |copy: &Path| matches!(resume(copy, known), Err(Error::OlderCopy(_)));
    assert!(refused(&before_begun), "it lacks a trial that was begun");
    let before_recorded = copied(&run, "before-recorded");
    let (mut writer, _) = resume(&run, known).unwrap();
    trial(&mut writer, 2);
    drop(writer);
    assert!(refused(&before_recorded) && refused(&before_begun));
    let newest = copied(&run, "newest");
    drop(resume(&newest, known).unwrap());
    assert!(resume(&before_begun, None).is_ok(), "another user's state knows nothing");
}

#[test]
fn a_run_from_elsewhere_is_not_known() {
    let (_folder, runs, known) = folders();
    let (writer, _) = begin(&runs, Some(&known));
    let run = writer.finish(outcome()).unwrap();
    let header = read_header(&run).unwrap();
    assert!(is_known(&known, &header));
    let mut changed = header.clone();
    changed.plan.tables[0].arms[0].variant = "rm -rf ~".into();
    assert!(!is_known(&known, &changed), "somebody else wrote that plan");
    for id in ["../runs", "20261121T093012Z-k3f8", ""] {
        assert!(!is_known(&known, &Header { run_id: id.into(), ..header.clone() }), "{id}");
    }
    evidence_is_private(&run);
    super::super::forget_run(&known, RUN_ID);
    assert!(!is_known(&known, &header));
    // By continuing the run, the user has accepted its plan.
    drop(Writer::resume(&run, Some(&known)).unwrap());
    assert!(is_known(&known, &header));
}

fn evidence_is_private(run: &Path) {
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(run).unwrap().permissions().mode() & 0o777, 0o700);
}
