//! Tests with runs that were killed, and with their continuation.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::super::folder::LINES;
use super::super::lines::RowBuffer;
use super::super::{Error, Trials, read_header};
use super::*;

/// Returns a run whose file of rows has these contents.
fn run_with(lines: &[u8]) -> (TempDir, PathBuf) {
    let runs = tempfile::tempdir().unwrap();
    drop(Writer::create(runs.path(), header(), None).unwrap());
    let run = runs.path().join(RUN_ID);
    fs::write(run.join(LINES), lines).unwrap();
    (runs, run)
}

/// Returns the lines of trials with two rows each. Each item of `flushes` has trials that are written together.
fn lines(flushes: &[&[u64]]) -> Vec<u8> {
    let mut rows = RowBuffer::new(RUN_ID.into(), 0);
    let arm = rows.add_arm(&spec(), 0, &arm());
    let mut text = Vec::new();
    for trials in flushes {
        for &trial in *trials {
            rows.record(arm, trial, 0, 1_000, &[sample(0, 1.0)]);
            rows.record(arm, trial, 1, 1_000, &[sample(0, 2.0)]);
        }
        rows.write_to(&mut text).unwrap();
    }
    text
}

/// Returns the number of rows in each trial.
fn sizes(trials: &Trials) -> Vec<usize> {
    let mut sizes = Vec::new();
    let observed = trials.for_each(|trial| {
        sizes.push(trial.observations.len());
        Ok::<_, Error>(())
    });
    observed.unwrap();
    sizes
}

#[test]
fn nothing_but_the_last_line_is_lost() {
    let whole = lines(&[&[0, 1, 2]]);
    let line_ends: Vec<usize> = (0..whole.len()).filter(|&at| whole[at] == b'\n').collect();
    let complete = |length: usize| line_ends.iter().filter(|&&end| end < length).count();
    let (_runs, run) = run_with(&whole);
    for length in line_ends[3]..=whole.len() {
        fs::write(run.join(LINES), &whole[..length]).unwrap();
        let rows = rows(&run);
        assert_eq!(rows.len(), complete(length), "cut at {length}");
        assert_eq!(read_header(&run).unwrap().outcome, None);
    }
}

#[test]
fn half_a_trial_is_not_continued() {
    // A flush of two trials, and a flush of two more during which the process was killed.
    let whole = lines(&[&[0, 1], &[2, 3]]);
    let line_ends: Vec<usize> = (0..whole.len()).filter(|&at| whole[at] == b'\n').map(|at| at + 1).collect();
    let (_runs, run) = run_with(&whole);
    for length in line_ends[3]..=whole.len() {
        fs::write(run.join(LINES), &whole[..length]).unwrap();
        let (writer, recorded) = Writer::resume(&run, None).unwrap();
        assert_eq!(recorded.header, header());
        let trials = sizes(&recorded.trials);
        // The mark shows that a trial is complete.
        let expected = match length {
            _ if length == whole.len() => 4,
            _ if length >= line_ends[5] => 3,
            _ => 2,
        };
        assert_eq!(trials.len(), expected, "cut at {length}");
        assert!(trials.iter().all(|&rows| rows == 2));
        assert_eq!(fs::metadata(run.join(LINES)).unwrap().len() as usize, line_ends[2 * expected - 1]);
        drop(writer);
    }
}

#[test]
fn a_killed_run_goes_on() {
    let whole = lines(&[&[0, 1]]);
    let (_runs, run) = run_with(&whole[..whole.len() - 1]);
    let (mut writer, recorded) = Writer::resume(&run, None).unwrap();
    let number = writer.add_arm(&spec(), 0, &arm());
    record_trial(&mut writer, number, 1);
    writer.flush().unwrap();
    // Rows that are appended later are not part of the recorded trials.
    assert_eq!(sizes(&recorded.trials), [2]);
    let run = writer.finish(outcome()).unwrap();
    let trials: Vec<u64> = rows(&run).iter().map(|row| row.trial).collect();
    assert_eq!(trials, [0, 0, 1, 1, 1, 1]);
    let now = rows(&run)[2].start_ns;
    assert!(now != 1_000, "the start time is by the clock of the process that continued the run");
}

#[test]
fn a_run_has_one_writer() {
    let runs = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(runs.path(), header(), None).unwrap();
    let arm = writer.add_arm(&spec(), 0, &arm());
    record_trial(&mut writer, arm, 0);
    let run = runs.path().join(RUN_ID);
    let error = Writer::resume(&run, None).err().unwrap();
    assert!(matches!(&error, Error::Locked(locked) if *locked == run), "{error}");
    assert!(matches!(Writer::create(runs.path(), header(), None), Err(Error::Exists(_))));
    writer.finish(outcome()).unwrap();
    let (writer, recorded) = Writer::resume(&run, None).unwrap();
    assert!(matches!(Writer::resume(&run, None), Err(Error::Locked(_))));
    assert_eq!(sizes(&recorded.trials), [4]);
    assert_eq!(recorded.header.outcome, Some(outcome()), "kept until there is another");
    drop(writer);
    assert!(Writer::resume(&run, None).is_ok());
}
