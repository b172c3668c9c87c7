//! Tests of the states of recorded runs.

use std::fs;

use ascertain_engine::claim::{Bound, Judging};
use ascertain_engine::evidence::Writer;
use ascertain_engine::finding::Remark;
use ascertain_engine::outcome::Verdict;
use ascertain_engine::plan::Config;
use ascertain_engine::recorded::{RecordedRun, State};

use super::{Ran, record_one};
use crate::common::{Scripted, noisy, plan, versus};

fn ran() -> Ran {
    let experiment = Scripted::new(&["even", "odd"], noisy);
    let claims = vec![versus("open", "even", "odd", Bound::AtLeast(1.0), Judging::Order)];
    record_one(&experiment, &plan(claims, Config { max_trials: Some(10), ..Config::default() }))
}

/// Adds a trial of two rows, as continuing the run would.
fn go_on(ran: &Ran) {
    let lines = ran.lines();
    let last = lines[lines.len() - 2..].concat().replace("\"trial\":9,", "\"trial\":10,");
    fs::write(ran.file("trials.jsonl"), lines.concat() + &last).unwrap();
}

fn trials(run: &RecordedRun) -> u64 {
    run.outcome.claims[0].trials
}

#[test]
fn a_run_may_be_interrupted() {
    let ran = ran();
    assert_eq!(ran.read().state, State::Finished);
    ran.change_header(|header| header.outcome.as_mut().unwrap().interrupted = true);
    assert_eq!(ran.read().state, State::Interrupted);
}

/// A remark that only another version knows does not prevent reading the rest.
#[test]
fn a_remark_may_be_unknown() {
    let ran = ran();
    let mut header: serde_json::Value = serde_json::from_slice(&fs::read(ran.file("run.json")).unwrap()).unwrap();
    let remark =
        |remark| serde_json::json!({ "experiment": "scripted", "variant": "even", "at": {}, "remark": remark });
    let known = serde_json::json!({ "code": "no_address", "servers": ["ns1"] });
    let unknown = serde_json::json!({ "code": "of_another_version", "figure": 1 });
    header["outcome"]["remarks"] = [remark(unknown), remark(known)].into();
    fs::write(ran.file("run.json"), header.to_string()).unwrap();
    let remarks = ran.read().outcome.remarks;
    assert_eq!(
        remarks.iter().map(|one| &one.remark).collect::<Vec<_>>(),
        [&Remark::NoAddress { servers: vec!["ns1".into()] }]
    );
}

#[test]
fn a_run_that_is_going_on_is_read_as_far_as_it_is() {
    let ran = ran();
    let (writer, _recorded) = Writer::resume(ran.folder(), None).unwrap();
    let read = ran.read();
    assert_eq!((read.state, trials(&read)), (State::Running, 10));
    go_on(&ran);
    let read = ran.read();
    assert_eq!((read.state, trials(&read), read.rows), (State::Running, 11, 22));
    assert_eq!(read.outcome.claims[0].verdict, Verdict::Undecided);
    drop(writer);
    assert_ne!(ran.read().state, State::Running);
}

#[test]
fn a_run_may_be_killed_while_it_is_continued() {
    let ran = ran();
    go_on(&ran);
    let read = ran.read();
    assert_eq!((read.state, trials(&read), read.rows), (State::Killed, 11, 22));
    assert_eq!(read.header.outcome.unwrap().claims[0].trials, 10);
    assert_eq!(read.paths[0].trials.len(), 11);
}

/// If something other than a continuation appended bytes to the lines, the run still counts as finished.
#[test]
fn a_run_that_ended_is_never_called_killed() {
    let ran = ran();
    let lines = ran.lines();
    let all = lines.concat();
    for text in
        [format!("{all}\n"), format!("{all}x"), format!("x{all}"), lines[3].clone() + &all, all.clone() + "{}\n"]
    {
        fs::write(ran.file("trials.jsonl"), text).unwrap();
        assert_eq!(ran.read().state, State::Finished);
    }
    for text in [format!("{all}\n"), format!("{all}x\n")] {
        fs::write(ran.file("trials.jsonl"), text).unwrap();
        drop(Writer::resume(ran.folder(), None).unwrap());
        assert_eq!(fs::read_to_string(ran.file("trials.jsonl")).unwrap(), all, "bytes that are not a row are cut off");
    }
}

/// A run with missing rows is not continued, because the missing trials could change its verdicts.
#[test]
fn a_run_that_lost_lines_is_not_continued() {
    let ran = ran();
    let (lines, header) = (ran.lines(), fs::read(ran.file("run.json")).unwrap());
    // Remove the mark that the fifth trial is complete, which only a run with slow trials has.
    let kept = lines[..8].concat() + &lines[8..10].concat().replace("} \n", "}\n");
    fs::write(ran.file("trials.jsonl"), &kept).unwrap();
    fs::rename(ran.file("trials.parquet"), ran.file("away")).unwrap();
    let message = Writer::resume(ran.folder(), None).err().unwrap().to_string();
    let counts = [lines[..8].concat().len(), lines.concat().len()].map(|bytes| bytes.to_string());
    for part in [&*ran.folder().to_string_lossy(), "trials.jsonl", &counts[0], &counts[1], "measure again"] {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
    assert_eq!(fs::read_to_string(ran.file("trials.jsonl")).unwrap(), kept, "nothing is changed");
    assert_eq!(fs::read(ran.file("run.json")).unwrap(), header);
    fs::rename(ran.file("away"), ran.file("trials.parquet")).unwrap();
    assert!(Writer::resume(ran.folder(), None).is_ok());
    assert_eq!(ran.lines(), lines, "the Parquet file has them too");
}

/// Reading changes nothing, and holds a lock only briefly.
#[test]
fn reading_disturbs_nobody() {
    let ran = ran();
    let files = || {
        let entries = fs::read_dir(ran.folder()).unwrap().map(|entry| entry.unwrap());
        let mut files: Vec<_> =
            entries.map(|file| (file.file_name(), file.metadata().unwrap().modified().unwrap())).collect();
        files.sort();
        files
    };
    let before = files();
    let mut permissions = fs::metadata(ran.folder()).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(ran.folder(), permissions.clone()).unwrap();
    let read = ran.read();
    #[expect(clippy::permissions_set_readonly_false, reason = "the test's own folder, to be removed")]
    permissions.set_readonly(false);
    fs::set_permissions(ran.folder(), permissions).unwrap();
    assert_eq!((read.state, files()), (State::Finished, before));
    std::thread::scope(|scope| {
        scope.spawn(|| (0..50).for_each(|_| _ = ran.read()));
        for _ in 0..50 {
            Writer::resume(ran.folder(), None).unwrap();
        }
    });
}
