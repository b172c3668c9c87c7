//! Tests of reading folders whose files are not valid.

use std::fs;

use ascertain_engine::claim::{Bound, Judging};
use ascertain_engine::evidence::Writer;
use ascertain_engine::plan::Config;
use ascertain_engine::recorded::{RecordedRun, State, read};
use ascertain_engine::samples::read_recorded;

use super::{Ran, record_one};
use crate::common::{Scripted, noisy, plan, versus};

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
    assert_error(&ran, &["has no rows in trials.jsonl: restore that file", "or restore its trials.parquet"]);
}

#[test]
fn a_header_that_can_not_be_read() {
    let ran = ran();
    let text = fs::read_to_string(ran.file("run.json")).unwrap();
    fs::write(ran.file("run.json"), text.replacen("ascertain.evidence/2", "ascertain.evidence/9", 1)).unwrap();
    assert_error(&ran, &["run.json", "ascertain.evidence/9", "use the version that wrote it"]);
    fs::write(ran.file("run.json"), text.replacen("\"ascertain.evidence/2\"", "99", 1)).unwrap();
    assert_error(&ran, &["run.json", "has the schema `99`", "use the version that wrote it"]);
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
    // The first occurrence is in the experiment, the second in its claim.
    let in_claim = text.find("\"asked\"").unwrap();
    let renamed = text[in_claim..].replacen("\"metric\": \"time\"", "\"metric\": \"size\"", 1);
    fs::write(ran.file("run.json"), text[..in_claim].to_string() + &renamed).unwrap();
    assert_error(&ran, &["claim `open` needs a metric that `scripted` does not have"]);
    changed("\"variant\": \"odd\"", "\"variant\": \"another\"");
    assert_error(&ran, &["trial 0 of `scripted` has arms that no claim or table needs"]);
    changed("\"rate\": 0.5", "\"rate\": 2.5");
    fs::remove_file(ran.file("trials.parquet")).unwrap();
    assert!(read(ran.folder()).is_ok(), "an order is judged at one half, whatever its rate");
}

/// Checks that all rows are read in spite of these faults of the files.
fn assert_whole(ran: &Ran, whole: &RecordedRun, faults: &[&str]) {
    let read = read(ran.folder()).unwrap();
    let is_said = read.faults.iter().zip(faults).all(|(said, fault)| said.contains(fault));
    assert!(is_said && read.faults.len() == faults.len(), "{faults:?}: {:?}", read.faults);
    assert_eq!(RecordedRun { faults: Vec::new(), ..read }, *whole);
}

/// If the JSON lines were changed after the run ended, the rows are read from the Parquet file.
#[test]
fn lines_that_differ_are_not_needed() {
    let ran = ran();
    let whole = read(ran.folder()).unwrap();
    let lines = ran.lines();
    let put = |text: String| fs::write(ran.file("trials.jsonl"), text).unwrap();
    let all = lines.concat();
    put(lines[..6].concat());
    assert_whole(&ran, &whole, &["trials.jsonl is shorter than when the run ended"]);
    for longer in
        [all.replacen("\"ns\"", "\"furlong\"", 7), format!("{all}x"), format!("{all}{{}}\n"), format!("x{all}")]
    {
        put(longer);
        assert_whole(&ran, &whole, &["trials.jsonl is longer than when the run ended"]);
    }
    put(lines[3].clone() + &all);
    assert_whole(&ran, &whole, &["is longer"]);
    for blank in ["\n", "\n\n", " \r\n"] {
        put(format!("{all}{blank}"));
        assert_whole(&ran, &whole, &[]);
    }
    put(all.replacen("\"value\":1", "\"value\":2", 1));
    assert_whole(&ran, &whole, &[]);
}

/// Without the Parquet file, changed lines are not used.
#[test]
fn changed_lines_without_a_parquet_file() {
    let ran = ran();
    let whole = read(ran.folder()).unwrap();
    let lines = ran.lines();
    let put = |text: String| fs::write(ran.file("trials.jsonl"), text).unwrap();
    let all = lines.concat();
    fs::remove_file(ran.file("trials.parquet")).unwrap();
    assert_whole(&ran, &whole, &[]);
    put(format!("{all}\n"));
    assert_whole(&ran, &whole, &[]);
    put(format!("{all}x"));
    assert_whole(&ran, &whole, &["trials.jsonl is longer than when the run ended"]);
    let digit = all.replacen("\"value\":1", "\"value\":2", 1);
    assert_ne!(digit, all);
    let unit = all.replacen("\"ns\"", "\"furlong\"", 7);
    for changed in [digit.clone(), unit.clone(), lines[3].clone() + &all] {
        put(changed);
        assert_error(&ran, &["trials.jsonl", "was changed since the run ended", "restore the original file"]);
        let refused = Writer::resume(ran.folder(), None).err().unwrap().to_string();
        assert!(refused.contains("was changed since the run ended"), "{refused}");
    }
    put(lines[..7].concat());
    let cut = read(ran.folder()).unwrap();
    assert!(cut.has_lost_rows && cut.rows == 6 && cut.faults[0].contains("shorter"), "{:?}", cut.faults);
    assert_eq!((cut.outcome, cut.state), (whole.outcome.clone(), State::Finished));

    // In a run that was killed before it wrote the checksum, all valid lines are read.
    ran.change_header(|header| header.lines_checksum = None);
    put(digit);
    assert_eq!(read(ran.folder()).unwrap().rows, 20);
    put(format!("{all}x"));
    assert_eq!(read(ran.folder()).unwrap().series, whole.series);
    put(unit);
    assert_error(&ran, &["trials.jsonl:1:", "furlong"]);
    let mut broken = lines.clone();
    broken[6] = broken[6].replace("\"unit\":\"ns\"", "\"unit\":\"furlong\"");
    put(broken.concat());
    assert_error(&ran, &["trials.jsonl:7:", "furlong", "truncate the file before line 7"]);
    // The number of a trial must leave room for the next one. Tested in the first line, and in a later line whose arm
    // and metric are known.
    for (line, number) in [(0, u64::MAX), (6, 9_999_999_999_999_999_999)] {
        let mut endless = lines.clone();
        endless[line] = endless[line].replace(&format!("\"trial\":{}", line / 2), &format!("\"trial\":{number}"));
        put(endless.concat());
        assert_error(
            &ran,
            &[&format!("trials.jsonl:{}:", line + 1), &format!("the trial number {number} is too large")],
        );
    }
    // Remove the mark that the last trial is complete, which only a run with slow trials has.
    put(broken[..4].concat() + &broken[4..6].concat().replace("} \n", "}\n"));
    let cut = read(ran.folder()).unwrap();
    assert_eq!((cut.rows, cut.has_lost_rows), (4, true), "as the error says");
}

/// Reading a sample returns all rows, from either file, or an error.
#[test]
fn a_sample_is_read_as_the_report_reads() {
    let ran = ran();
    let sample = || read_recorded(ran.folder(), Some("even"), "time").map_err(|error| error.to_string());
    let whole = sample().unwrap();
    assert_eq!((whole.values.len(), whole.faults.as_slice()), (10, &[][..]));
    let lines = ran.lines();
    fs::write(ran.file("trials.jsonl"), lines.concat().replacen("\"value\":1", "\"value\":2", 4)).unwrap();
    assert_eq!(sample().unwrap(), whole);
    fs::remove_file(ran.file("trials.jsonl")).unwrap();
    assert_eq!(sample().unwrap(), whole);
    fs::write(ran.file("trials.jsonl"), lines[..6].concat()).unwrap();
    let read = sample().unwrap();
    assert!(read.values == whole.values && read.faults[0].contains("shorter"), "{:?}", read.faults);
    fs::write(ran.file("trials.parquet"), "PAR1").unwrap();
    let lost = sample().unwrap_err();
    assert!(lost.contains("rows of the run in") && lost.contains("are missing"), "{lost}");
}

#[test]
fn a_broken_parquet_file_is_not_needed() {
    let ran = ran();
    let whole = read(ran.folder()).unwrap();
    let bytes = fs::read(ran.file("trials.parquet")).unwrap();
    for broken in [&b""[..], b"PAR1", &bytes[..bytes.len() / 2], &bytes[4..], &[b'x'; 300]] {
        fs::write(ran.file("trials.parquet"), broken).unwrap();
        assert_whole(&ran, &whole, &["trials.parquet is damaged"]);
    }
    fs::remove_file(ran.file("trials.jsonl")).unwrap();
    assert_error(&ran, &["trials.parquet is not valid", "there is no trials.jsonl next to it"]);
    fs::write(ran.file("trials.parquet"), bytes).unwrap();
    assert_eq!(read(ran.folder()).unwrap(), whole);
}

/// A file with a wrong byte is not used: the rows come from another file, or reading fails.
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
        assert_whole(&ran, &whole, &["trials.parquet is damaged"]);
    }
    fs::remove_file(ran.file("trials.jsonl")).unwrap();
    for at in places() {
        break_byte(at);
        assert_error(
            &ran,
            &["trials.parquet", "its checksum differs from that in run.json", "no trials.jsonl next to it"],
        );
    }
}

#[test]
fn a_parquet_file_without_a_checksum_is_not_needed() {
    let ran = ran();
    let whole = read(ran.folder()).unwrap();
    ran.change_header(|header| header.parquet_checksum = None);
    assert_eq!(read(ran.folder()).unwrap().series, whole.series);
    fs::remove_file(ran.file("trials.jsonl")).unwrap();
    assert_error(&ran, &["trials.parquet", "run.json has no checksum of this file"]);
}
