//! Folders that are not what Ascertain writes.

use std::fs;

use ascertain::claim::{Bound, Judging};
use ascertain::plan::Config;
use ascertain::recorded::read;

use super::common::{Scripted, noisy, plan, versus};
use super::{Ran, record_one};

fn ran() -> Ran {
    let experiment = Scripted::new(&["even", "odd"], noisy);
    let claims = vec![versus("open", "even", "odd", Bound::AtLeast(1.0), Judging::Order)];
    record_one(&experiment, &plan(claims, Config { max_trials: Some(10), ..Config::default() }))
}

fn assert_error(ran: &Ran, parts: &[&str]) {
    let message = read(ran.folder()).unwrap_err().to_string();
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

#[test]
fn a_folder_without_a_run() {
    let empty = tempfile::tempdir().unwrap();
    for folder in [empty.path().to_path_buf(), empty.path().join("nowhere")] {
        let message = read(&folder).unwrap_err().to_string();
        assert!(message.contains(&format!("there is no run in {}", folder.display())), "{message}");
    }
    let ran = ran();
    fs::remove_file(ran.file("trials.jsonl")).unwrap();
    assert_eq!(read(ran.folder()).unwrap().rows, 20, "the Parquet file has them too");
    fs::remove_file(ran.file("trials.parquet")).unwrap();
    assert_error(&ran, &["has no trials.jsonl: bring it back", "the checksum of trials.parquet"]);
}

#[test]
fn a_header_that_can_not_be_read() {
    let ran = ran();
    let text = fs::read_to_string(ran.file("run.json")).unwrap();
    fs::write(ran.file("run.json"), text.replacen("ascertain.evidence/1", "ascertain.evidence/9", 1)).unwrap();
    assert_error(&ran, &["run.json", "ascertain.evidence/9", "use the version that wrote it"]);
    fs::write(ran.file("run.json"), &text[..text.len() / 2]).unwrap();
    assert_error(&ran, &["run.json:", "cut off"]);
    fs::write(ran.file("run.json"), "").unwrap();
    assert_error(&ran, &["run.json:", "cut off"]);
}

/// A plan that was tampered with is an error and not a panic.
#[test]
fn a_plan_that_does_not_fit() {
    let ran = ran();
    let text = fs::read_to_string(ran.file("run.json")).unwrap();
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        fs::write(ran.file("run.json"), text.replacen(from, to, 1)).unwrap();
    };
    changed("\"metric\": 0", "\"metric\": 1");
    assert_error(&ran, &["claim `open` speaks of a metric that `scripted` has not"]);
    changed("\"variant\": \"odd\"", "\"variant\": \"another\"");
    assert_error(&ran, &["trial 0 of `scripted` has arms that no claim or table asks for"]);
    changed("\"rate\": 0.5", "\"rate\": 2.5");
    fs::remove_file(ran.file("trials.parquet")).unwrap();
    assert!(read(ran.folder()).is_ok(), "an order is judged at one half, whatever it says");
}

#[test]
fn rows_that_can_not_be_read() {
    let ran = ran();
    let whole = read(ran.folder()).unwrap();
    let lines = ran.lines();
    let mut broken = lines.clone();
    broken[6] = broken[6].replace("\"unit\":\"ns\"", "\"unit\":\"furlong\"");
    fs::write(ran.file("trials.jsonl"), broken.concat()).unwrap();
    assert_error(&ran, &["trials.jsonl:7:", "furlong", "cut the file off before line 7"]);
    fs::write(ran.file("trials.jsonl"), broken[..6].concat()).unwrap();
    assert_eq!(read(ran.folder()).unwrap(), whole, "the Parquet file has the lines that were cut off");
    let parquet = fs::read(ran.file("trials.parquet")).unwrap();
    fs::remove_file(ran.file("trials.parquet")).unwrap();
    assert_eq!(read(ran.folder()).unwrap().rows, 4, "as the error says; its last trial is not marked as whole");
    fs::write(ran.file("trials.parquet"), parquet).unwrap();
    // Of the same length: the Parquet file was made of these lines, and is the one that is read.
    broken[6] = lines[6].replace("\"unit\":\"ns\"", "\"unit\":\"zz\"");
    fs::write(ran.file("trials.jsonl"), broken.concat()).unwrap();
    assert_eq!(read(ran.folder()).unwrap(), whole);
}

#[test]
fn a_broken_parquet_file_is_not_needed() {
    let ran = ran();
    let whole = read(ran.folder()).unwrap();
    let bytes = fs::read(ran.file("trials.parquet")).unwrap();
    for broken in [&b""[..], b"PAR1", &bytes[..bytes.len() / 2], &bytes[4..], &[b'x'; 300]] {
        fs::write(ran.file("trials.parquet"), broken).unwrap();
        assert_eq!(read(ran.folder()).unwrap(), whole);
    }
    fs::remove_file(ran.file("trials.jsonl")).unwrap();
    assert_error(&ran, &["trials.parquet is not what Ascertain writes", "there is no trials.jsonl beside it"]);
    fs::write(ran.file("trials.parquet"), bytes).unwrap();
    assert_eq!(read(ran.folder()).unwrap(), whole);
}

/// Wherever a byte of the file is wrong, it is not taken for data: another file has the rows, or it is said.
#[test]
fn a_parquet_file_with_a_wrong_byte_is_not_read() {
    let ran = ran();
    let whole = read(ran.folder()).unwrap();
    let bytes = fs::read(ran.file("trials.parquet")).unwrap();
    let break_byte = |at: usize| {
        let mut broken = bytes.clone();
        broken[at] ^= [0xff, 0x01, 0x80][at % 3];
        fs::write(ran.file("trials.parquet"), &broken).unwrap();
    };
    let places = || (0..bytes.len()).step_by(bytes.len() / 50);
    for at in places() {
        break_byte(at);
        assert_eq!(read(ran.folder()).unwrap(), whole, "byte {at}");
    }
    fs::remove_file(ran.file("trials.jsonl")).unwrap();
    for at in places() {
        break_byte(at);
        assert_error(&ran, &["trials.parquet", "its checksum is not the one in run.json", "no trials.jsonl beside it"]);
    }
}

#[test]
fn a_parquet_file_without_a_checksum_is_not_needed() {
    let ran = ran();
    let whole = read(ran.folder()).unwrap();
    ran.change_header(|header| header.parquet_checksum = None);
    assert_eq!(read(ran.folder()).unwrap().series, whole.series);
    fs::remove_file(ran.file("trials.jsonl")).unwrap();
    assert_error(&ran, &["trials.parquet", "run.json has no checksum of it"]);
}
