//! Tests of a build without support for Parquet: it writes and reads only JSON lines. If the rows of a run are only in
//! a Parquet file, the error must say that this build cannot read the file.

use std::fs;

use ascertain_engine::claim::{Bound, Judging};
use ascertain_engine::evidence::{Writer, read_header};
use ascertain_engine::plan::Config;
use ascertain_engine::recorded::read;
use ascertain_engine::run::{Recording, Silent};

use crate::common::{Scripted, plan, run, versus};

#[test]
fn a_run_is_lines_alone() {
    let experiment = Scripted::new(&["fast", "slow"], |variant, _| Ok(if variant == "fast" { 1.0 } else { 2.0 }));
    let claim = versus("faster", "fast", "slow", Bound::AtLeast(1.5), Judging::Rate);
    let plan = plan(vec![claim], Config { max_trials: Some(10), ..Config::default() });
    let runs = tempfile::tempdir().unwrap();
    let recording = Recording::New {
        runs: runs.path().into(),
        command_line: Vec::new(),
        render: Default::default(),
        label: None,
        revision: None,
        known: None,
    };
    let done = run(&plan, &[&experiment], recording, &Default::default(), &mut Silent).unwrap();
    let folder = done.folder.unwrap();
    let parquet = folder.join("trials.parquet");
    assert!(!parquet.exists());
    assert_eq!(read_header(&folder).unwrap().parquet_checksum, None);
    let recorded = read(&folder).unwrap();
    assert_eq!((recorded.rows, recorded.faults.as_slice()), (20, &[][..]));

    // A Parquet file from another build lacks the rows that this build adds, so it is removed.
    fs::write(&parquet, "PAR1").unwrap();
    let (writer, _) = Writer::resume(&folder, None).unwrap();
    writer.finish(done.outcome).unwrap();
    assert!(!parquet.exists());

    // A build with Parquet leaves an empty file of lines.
    fs::write(folder.join("trials.jsonl"), "").unwrap();
    fs::write(&parquet, "PAR1").unwrap();
    let refused = || {
        let errors = [read(&folder).unwrap_err().to_string(), Writer::resume(&folder, None).err().unwrap().to_string()];
        for error in errors {
            assert!(error.contains("built without Parquet") && !error.contains("damaged"), "{error}");
        }
    };
    refused();
    fs::remove_file(folder.join("trials.jsonl")).unwrap();
    refused();
}
