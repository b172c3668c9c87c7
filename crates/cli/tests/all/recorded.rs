//! Tests that runs recorded by an earlier release can still be read.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{ascertain, restored_lines};

const FILES: [&str; 3] = ["run.json", "trials.jsonl", "trials.parquet"];

const CLAIMS: &str = r#"
[[claim]]
id = "score"
candidate = "echo score=8"
baseline = "echo score=4"
metrics = { score = { pattern = "score=([0-9]+)", better = "higher" } }
at_least = 2.0

[[claim]]
id = "exits"
command = "echo score=8"
predicate = "exit == 0 and wall <= 1 min"
rate = 0.6
"#;

const CHECK: [&str; 2] = ["check", "claims.toml"];
const COMPARE: [&str; 7] =
    ["compare", "--metric", "score=score=([0-9]+)", "--better", "higher", "echo score=4", "echo score=8"];

/// Records the runs in `tests/recorded` again, if `BLESS=1` is set.
fn record(folder: &Path, command: &[&str]) {
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join("claims.toml"), CLAIMS).unwrap();
    let options = ["--error", "0.1", "--seed", "1", "-q"];
    // Without this name, the runs would contain the path of the program on this machine.
    let mut program = crate::common::command(state.path(), &[command, &options].concat());
    assert!(program.arg0("ascertain").status().unwrap().success());
    let run = crate::common::runs(state.path()).remove(0);
    restored_lines(&run);
    fs::create_dir_all(folder).unwrap();
    FILES.iter().for_each(|file| _ = fs::copy(run.join(file), folder.join(file)).unwrap());
}

/// Returns, for each claim, the results that do not depend on the machine.
fn claims(results: &Value) -> Vec<Value> {
    let claim = |claim: &Value| json!([claim["verdict"], claim["decision"], claim["trials"], claim["ratio"]]);
    results["claims"].as_array().unwrap().iter().map(claim).collect()
}

/// The runs in `tests/recorded` have the format of release 0.1.0, and must never change after that release. Every later
/// version must read, report and continue them with these results.
#[test]
fn runs_of_release_0_1_0_are_read_reported_and_continued() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let expected: [(&str, &[&str], &[Value]); 2] = [
        ("check", &CHECK, &[json!(["holds", null, 7, 2.0]), json!(["holds", null, 10, null])]),
        ("compare", &COMPARE, &[json!(["holds", "faster", 7, 2.0])]),
    ];
    for (name, command, expected) in expected {
        if std::env::var_os("BLESS").is_some() {
            record(&recorded.join(name), command);
        }
        // The rows may be in either of the two files, or in both.
        for files in [&FILES[..], &FILES[..2], &[FILES[0], FILES[2]]] {
            let state = tempfile::tempdir().unwrap();
            files
                .iter()
                .for_each(|file| _ = fs::copy(recorded.join(name).join(file), state.path().join(file)).unwrap());
            let run: PathBuf = state.path().into();
            let run = run.to_str().unwrap();
            let results = ascertain(state.path(), &["report", run, "--format", "json"]).json();
            assert_eq!(claims(&results), expected, "{name} {files:?}");
            let medians = results["points"].as_array().unwrap().iter().filter(|point| point["metric"] == "score");
            assert_eq!(medians.map(|point| &point["median"]).collect::<Vec<_>>(), [4.0, 8.0], "{name} {files:?}");
            let page = ascertain(state.path(), &["report", run, "-o", "-"]);
            assert!(page.code == Some(0) && page.stdout.contains("score=8"), "{}", page.stderr);
            let on = ascertain(state.path(), &["continue", run, "--yes", "--max-time", "1ns", "--format", "json"]);
            assert_eq!(claims(&on.json()), expected, "{name} {files:?} {}", on.stderr);
        }
    }
}
