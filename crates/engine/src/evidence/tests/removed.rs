//! Tests that the JSON lines of an ended run are removed if the Parquet file has every row, and restored when the run
//! is continued.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::super::folder::{HEADER, LINES, PARQUET, read_header, write_header};
use super::super::{Error, read_run};
use super::*;

/// Returns a run that has ended, and the contents that `trials.jsonl` had before the end of the run emptied it.
fn finished_run() -> (TempDir, PathBuf, String) {
    let runs = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(runs.path(), header(), None).unwrap();
    let arm = writer.add_arm(&spec(), 0, &arm());
    (0..3).for_each(|trial| record_trial(&mut writer, arm, trial));
    let odd = [f64::NAN, f64::INFINITY, -0.0, 1e-300];
    let samples = odd.map(|value| Sample { key: "\"é\"\n".into(), offset_ns: 3, ..sample(0, value) });
    writer.record(arm, 3, 0, clock::now_ns(), &samples);
    writer.flush().unwrap();
    let lines = fs::read_to_string(runs.path().join(RUN_ID).join(LINES)).unwrap();
    let run = writer.finish(outcome()).unwrap();
    (runs, run, lines)
}

fn lines(run: &Path) -> String {
    fs::read_to_string(run.join(LINES)).unwrap()
}

#[test]
fn the_lines_are_removed_and_restored_byte_by_byte() {
    let (_runs, run, before) = finished_run();
    assert_eq!(before.matches("} \n").count(), 4, "each trial has its mark: {before}");
    assert_eq!(lines(&run), "");
    assert_eq!(rows(&run).len(), before.lines().count());
    let (mut writer, recorded) = Writer::resume(&run, None).unwrap();
    assert_eq!((lines(&run), recorded.trials.count()), (before.clone(), 4));
    let arm = writer.add_arm(&spec(), 0, &arm());
    record_trial(&mut writer, arm, 4);
    let run = writer.finish(outcome()).unwrap();
    assert_eq!((lines(&run).len(), rows(&run).len()), (0, before.lines().count() + 4));
    restore_lines(&run);
    assert!(lines(&run).starts_with(&before));
}

/// A kill between any two steps of the run's end, or at the start of a continuation, loses no rows.
#[test]
fn a_kill_at_any_step_leaves_a_readable_run() {
    let (_runs, run, before) = finished_run();
    let whole = read_header(&run).unwrap();
    let parquet = fs::read(run.join(PARQUET)).unwrap();
    let trials = format!("{:?}", read_run(&run).unwrap().trials);
    let no_sums = Header { lines_checksum: None, parquet_checksum: None, ..whole.clone() };
    let running = Header { outcome: None, lines_bytes: None, ..no_sums.clone() };
    let mut states = vec![
        ("before the outcome", &running, before.as_str(), None),
        ("before the Parquet file", &no_sums, &before, None),
        ("before the checksums", &no_sums, &before, Some(&parquet)),
        ("before the lines are removed", &whole, &before, Some(&parquet)),
    ];
    // Two more states: after the lines were removed, and while a continuation restores them.
    states.extend(
        (0..=before.len())
            .step_by(23)
            .filter(|&length| before.is_char_boundary(length))
            .map(|length| ("while they are restored", &whole, &before[..length], Some(&parquet))),
    );
    for (state, header, lines_then, parquet_then) in states {
        let arrange = || {
            write_header(&run, header).unwrap();
            fs::write(run.join(LINES), lines_then).unwrap();
            let _ = fs::remove_file(run.join(PARQUET));
            parquet_then.into_iter().for_each(|bytes| fs::write(run.join(PARQUET), bytes).unwrap());
        };
        arrange();
        let read = read_run(&run).unwrap();
        assert!(read.lost_rows.is_none() && format!("{:?}", read.trials) == trials, "{state}, {}", lines_then.len());
        let (writer, recorded) = Writer::resume(&run, None).unwrap();
        assert_eq!(format!("{:?}", recorded.trials), trials, "{state}, {}", lines_then.len());
        assert_eq!(lines(&run), before, "{state}, {}", lines_then.len());
        let run = writer.finish(outcome()).unwrap();
        assert_eq!((lines(&run).len(), read_header(&run).unwrap()), (0, whole.clone()), "{state}");
    }
}

#[test]
fn lines_stay_if_the_parquet_file_does_not_give_them() {
    let runs = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(runs.path(), header(), None).unwrap();
    let arm = writer.add_arm(&spec(), 0, &arm());
    // The Parquet column cannot hold a number this large.
    writer.record(arm, 0, 0, clock::now_ns(), &[Sample { offset_ns: u64::MAX, ..sample(0, 1.0) }]);
    let run = writer.finish(outcome()).unwrap();
    assert_eq!(lines(&run).lines().count(), 1);
}

#[test]
fn rows_that_are_removed_while_they_are_read_are_an_error() {
    let (_runs, run, before) = finished_run();
    // More than a reader holds in memory.
    let rows = before.lines().count();
    fs::write(run.join(LINES), before.repeat(200_000 / before.len() + 1)).unwrap();
    let mut read = read_rows(&run).unwrap();
    assert!(read.by_ref().take(rows).all(|row| row.is_ok()));
    fs::write(run.join(LINES), "").unwrap();
    let error = read.find_map(Result::err).unwrap().to_string();
    assert!(error.contains("became shorter while it was read"), "{error}");
}

#[test]
fn a_file_that_somebody_deleted_is_restored() {
    let (_runs, run, before) = finished_run();
    fs::remove_file(run.join(LINES)).unwrap();
    restore_lines(&run);
    assert_eq!(lines(&run), before);
}

#[test]
fn a_run_without_any_rows_left_is_an_error_and_stays_as_it_is() {
    let (_runs, run, _) = finished_run();
    let read = || (read_run(&run).err(), Writer::resume(&run, None).err(), read_rows(&run).err());
    fs::write(run.join(PARQUET), "PAR1").unwrap();
    let damaged = read();
    assert!(matches!(damaged, (Some(Error::Parquet { .. }), Some(Error::Parquet { .. }), Some(Error::Parquet { .. }))));
    fs::remove_file(run.join(PARQUET)).unwrap();
    let missing = read();
    assert!(matches!(missing, (Some(Error::NoRows(_)), Some(Error::NoRows(_)), Some(Error::NoRows(_)))));
    assert!(lines(&run).is_empty() && run.join(HEADER).is_file());
}
