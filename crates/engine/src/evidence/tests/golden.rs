//! The files' exact bytes, with a fixed machine and clock. Where they change on purpose, run the tests
//! with `BLESS=1`, and think of the schema's version.

use std::path::Path;
use std::{env, fs};

use super::super::folder::HEADER;
use super::super::header::{read_header, write_header};
use super::super::row_buffer::RowBuffer;
use super::*;

fn assert_golden(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/evidence").join(name);
    if env::var_os("BLESS").is_some() {
        fs::write(&path, actual).unwrap();
    }
    assert_eq!(actual, fs::read_to_string(&path).unwrap(), "{}", path.display());
}

#[test]
fn run_json() {
    let run = tempfile::tempdir().unwrap();
    let header = Header { outcome: Some(outcome()), ..header() };
    write_header(run.path(), &header).unwrap();
    assert_golden("run.json", &fs::read_to_string(run.path().join(HEADER)).unwrap());
    assert_eq!(read_header(run.path()).unwrap(), header);
}

#[test]
fn trials_jsonl() {
    let mut rows = RowBuffer::new(RUN_ID.into(), 500);
    let arm = rows.add_arm(&spec(), 0, &arm());
    let limit = Sample { status: Status::Censored, ..sample(0, f64::INFINITY) };
    let of_a_server = Sample { key: "server \"b\"\n".into(), offset_ns: 250, ..sample(1, 1.5e9) };
    rows.record(arm, 0, 0, 1_000, &[sample(0, 51_234.625), of_a_server]);
    rows.record(arm, 1, 0, 2_000, &[limit]);
    let mut text = Vec::new();
    rows.write_to(&mut text).unwrap();
    assert_golden("trials.jsonl", &String::from_utf8(text).unwrap());
}
