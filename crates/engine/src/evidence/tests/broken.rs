//! Tests with folders that cannot be written, and with files that are not valid.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use tempfile::TempDir;

use super::super::folder::{HEADER, LINES};
use super::super::lines::{LineReader, RowBuffer};
use super::super::writer::LockedFile;
use super::super::{Error, Trials, read_header};
use super::*;

fn finished_run() -> (TempDir, PathBuf) {
    let runs = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(runs.path(), header(), None).unwrap();
    let arm = writer.add_arm(&spec(), 0, &arm());
    record_trial(&mut writer, arm, 0);
    let run = writer.finish(outcome()).unwrap();
    restore_lines(&run);
    (runs, run)
}

#[test]
fn a_folder_that_cannot_be_made() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Writer::create(&file.join("runs"), header(), None).err().unwrap();
    let message = error.to_string();
    assert!(matches!(error, Error::Folder { .. }), "{message}");
    for part in ["file/runs", "choose another folder", "keep no evidence"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_start_that_fails_leaves_nothing() {
    // The folder's path has the maximum length, so that no file in it can have a path.
    const PATH_MAX: usize = 4_095;
    let temporary = tempfile::tempdir().unwrap();
    let mut runs = temporary.path().to_path_buf();
    let left = |runs: &Path| PATH_MAX - runs.as_os_str().len() - "/".len() - RUN_ID.len();
    while left(&runs) > 200 {
        runs.push("x".repeat(100));
    }
    runs.push("x".repeat(left(&runs) - "/".len()));
    let error = Writer::create(&runs, header(), None).err().unwrap();
    assert!(matches!(error, Error::Folder { .. }), "{error}");
    assert_eq!(fs::read_dir(runs).unwrap().count(), 0);
}

/// A simulated disk with room for `room` more bytes.
struct Disk {
    room: usize,
    text: Vec<u8>,
}

impl io::Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.room);
        if taken == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room -= taken;
        self.text.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_loses_nothing_once_there_is_room() {
    let texts = [300, usize::MAX].map(|room| {
        let mut rows = RowBuffer::new(RUN_ID.into(), 0);
        let arm = rows.add_arm(&spec(), 0, &arm());
        let mut disk = Disk { room, text: Vec::new() };
        rows.record(arm, 0, 0, 0, &[sample(0, 1.0), sample(1, 2.0)]);
        let first = rows.write_to(&mut disk);
        assert_eq!(first.is_err(), room == 300);
        assert_eq!(first.err().map(|error| error.kind()), (room == 300).then_some(io::ErrorKind::StorageFull));
        disk.room = usize::MAX;
        rows.write_to(&mut disk).unwrap();
        rows.record(arm, 1, 0, 0, &[sample(0, 3.0)]);
        rows.write_to(&mut disk).unwrap();
        String::from_utf8(disk.text).unwrap()
    });
    assert_eq!(texts[0], texts[1]);
    assert_eq!(texts[0].lines().count(), 3);
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_told_between_trials() {
    let runs = tempfile::tempdir().unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut writer = Writer::new(runs.path().join(RUN_ID), header(), LockedFile(full), 0, None);
    let arm = writer.add_arm(&spec(), 0, &arm());
    record_trial(&mut writer, arm, 0);
    let message = writer.flush().unwrap_err().to_string();
    for part in [LINES, "No space left", "stays readable", "choose another folder", "keep no evidence"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn another_version_is_named() {
    let (_runs, run) = finished_run();
    let text = fs::read_to_string(run.join(HEADER)).unwrap();
    // The rest of a file with another schema is not read.
    for other in [text.replace(SCHEMA, "ascertain.evidence/9"), "{\"schema\": \"ascertain.evidence/9\"}".into()] {
        fs::write(run.join(HEADER), other).unwrap();
        let error = read_header(&run).unwrap_err();
        assert!(matches!(&error, Error::OtherVersion { found, .. } if found == "ascertain.evidence/9"), "{error}");
        assert!(error.to_string().contains(SCHEMA), "{error}");
        assert!(Writer::resume(&run, None).is_err());
    }
}

#[test]
fn a_header_that_is_cut_off_is_told_where() {
    let (_runs, run) = finished_run();
    let text = fs::read(run.join(HEADER)).unwrap();
    for length in 0..text.len() - 1 {
        fs::write(run.join(HEADER), &text[..length]).unwrap();
        let error = read_header(&run).unwrap_err();
        let lines = text[..length].iter().filter(|&&byte| byte == b'\n').count() as u64;
        assert!(matches!(&error, Error::Malformed { line, .. } if (lines..=lines + 1).contains(line)), "{error}");
        let message = error.to_string();
        let half_a_number = text[..length].ends_with(b".") && message.contains("invalid number");
        assert!(message.contains("run.json:") && (message.contains("cut off") || half_a_number), "{message}");
    }
}

#[test]
fn what_is_not_json_or_has_a_wrong_type_is_told_where() {
    let (_runs, run) = finished_run();
    let text = fs::read_to_string(run.join(HEADER)).unwrap();
    let wrong = [
        ("hello".to_string(), "run.json:1:1: expected value"),
        ("{}".to_string(), "run.json:1:2: missing field `schema`"),
        (text.replace("\"seed\": 7", "\"seed\": \"seven\""), "invalid type: string \"seven\", expected u64"),
    ];
    for (text, message) in wrong {
        fs::write(run.join(HEADER), text).unwrap();
        let error = read_header(&run).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn a_wrong_row_is_told_where() {
    let (_runs, run) = finished_run();
    let text = fs::read_to_string(run.join(LINES)).unwrap();
    let wrong = [
        (text.replacen("\"sum\"", "sum", 2), 1),
        (text.replacen('}', "", 10), 1),
        (format!("{text}{{}}\n"), 5),
        (format!("{text}{}", text.replace("\"unit\":\"ns\"", "\"unit\":\"furlong\"")), 5),
        (format!("{text}{}", text.replace("\"sum\"", "\"s\\um\"")), 5),
    ];
    for (text, line) in wrong {
        fs::write(run.join(LINES), &text).unwrap();
        let mut rows = read_rows(&run).unwrap();
        let before = rows.by_ref().take_while(Result::is_ok).count();
        assert_eq!(before as u64, line - 1, "{text}");
        assert!(rows.next().is_none(), "an error is the end");
        let error = read_rows(&run).unwrap().find_map(Result::err).unwrap();
        assert!(error.to_string().contains(&format!("trials.jsonl:{line}:")), "{error}");
    }
    fs::write(run.join(LINES), format!("{text}{}", text.replace("{\\\"elements", "[{\\\"elements"))).unwrap();
    let error = Trials::read(&mut LineReader::open(&run).unwrap()).unwrap_err().to_string();
    assert!(error.contains("trials.jsonl:5:1: the column `point` is not a JSON object"), "{error}");
}

#[test]
fn blank_lines_say_nothing() {
    let (_runs, run) = finished_run();
    let before = rows(&run);
    let text = fs::read_to_string(run.join(LINES)).unwrap();
    fs::write(run.join(LINES), format!("\n{text} \r\n\n")).unwrap();
    assert_eq!(rows(&run), before);
    fs::write(run.join(LINES), format!("\n{text}{{}}\n")).unwrap();
    let error = read_rows(&run).unwrap().find_map(Result::err).unwrap();
    assert!(error.to_string().contains("trials.jsonl:6:"), "they are counted: {error}");
}

#[test]
fn a_folder_without_a_run_is_told() {
    let empty = tempfile::tempdir().unwrap();
    for folder in [empty.path().to_path_buf(), empty.path().join("nowhere")] {
        let errors = [
            read_header(&folder).unwrap_err(),
            read_rows(&folder).err().unwrap(),
            Writer::resume(&folder, None).err().unwrap(),
        ];
        for error in errors {
            let message = error.to_string();
            assert!(message.contains(&format!("there is no run in {}", folder.display())), "{message}");
        }
        assert!(!folder.join(LINES).exists());
    }
}
