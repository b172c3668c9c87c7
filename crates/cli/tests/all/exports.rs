//! Tests of the exports for other tools, and of the manual page.

use std::path::Path;
use std::process::Stdio;

use ascertain_sys::testing::wait_until;
use serde_json::Value;

use crate::common::{MANY_FAULTS, ascertain, command, kill, ran, runs};

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn json(folder: &Path, name: &str) -> Value {
    serde_json::from_str(&read(folder, name)).unwrap()
}

const ALL: [&str; 10] =
    ["json", "csv", "markdown", "asciidoc", "orgmode", "junit", "github", "bencher", "go", "google-benchmark"];

/// Returns the arguments `--export-KIND KIND` for every kind.
fn all_exports() -> Vec<String> {
    ALL.iter().flat_map(|kind| [format!("--export-{kind}"), (*kind).to_string()]).collect()
}

#[test]
fn every_command_that_measures_writes_every_kind() {
    let cases: [&[&str]; 3] = [
        &["compare", "-r", "3", "true", "echo a b"],
        &["slo", "--at-least", "60%", "--within", "5s", "--max-trials", "3", "--fail-on", "nothing", "--", "true"],
        &["run", "fill-rate", "--trials", "3", "--no-claims", "--max-time", "10min"],
    ];
    for arguments in cases {
        let state = tempfile::tempdir().unwrap();
        let exports = all_exports();
        let (name, rest) = arguments.split_first().unwrap();
        let arguments: Vec<&str> = [*name, "-q", "--no-evidence"]
            .into_iter()
            .chain(exports.iter().map(String::as_str))
            .chain(rest.iter().copied())
            .collect();
        let ran = ascertain(state.path(), &arguments);
        assert_eq!((ran.code, ran.stderr.as_str(), ran.stdout.as_str()), (Some(0), "", ""), "{arguments:?}");
        for kind in ALL {
            assert!(!read(state.path(), kind).is_empty(), "{arguments:?}: {kind}");
        }
        assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), ALL.len(), "nothing half-written is left");
    }
}

/// Command line of a command that takes at least 100 ms, and has more page faults than `sleep`.
const MANY_FAULTS_AND_SLOW: &str = "sh -c 'env; env; env; env; sleep 0.1'";

#[test]
fn exports_hold_what_was_measured() {
    let state = tempfile::tempdir().unwrap();
    let exports = all_exports();
    let mut arguments = vec!["compare", "-q", "--no-evidence", "-r", "20", "--metric", "page_faults"];
    arguments.extend(["--fail-if", "slower", "-n", "few", "-n", "the many", "sleep 0.001", MANY_FAULTS_AND_SLOW]);
    arguments.extend(exports.iter().map(String::as_str));
    assert_eq!(ascertain(state.path(), &arguments).code, Some(1));
    let junit = read(state.path(), "junit");
    assert!(junit.contains("tests=\"1\" failures=\"1\"") && junit.contains("name=\"the many\""), "{junit}");
    assert!(
        read(state.path(), "github")
            .starts_with("## Ascertain: `the many` has more page faults than `few` by more than 3 %")
    );
    let latency = &json(state.path(), "bencher")["compare/the many"]["latency"];
    assert!(latency["value"].as_f64().unwrap() >= 100e6 && latency["lower_value"].as_f64().unwrap() >= 100e6);
    let go = read(state.path(), "go");
    let lines = go.lines().filter(|line| line.starts_with("BenchmarkCompare/the_many-"));
    assert_eq!(lines.count(), 20, "{go}");
    let google = json(state.path(), "google-benchmark");
    let benchmarks = google["benchmarks"].as_array().unwrap();
    assert_eq!(benchmarks.len(), 2 * (20 + 3));
    assert_eq!(benchmarks[0]["run_name"], "compare/few");
    assert!(benchmarks[0]["cpu_time"].as_f64().unwrap() < benchmarks[0]["real_time"].as_f64().unwrap());
}

#[test]
fn claims_are_annotated_at_their_place() {
    let state = tempfile::tempdir().unwrap();
    let claim = |id: &str, rest: &str| format!("[[claim]]\nid = \"{id}\"\ncommand = \"false\"\nrate = 0.6\n{rest}\n\n");
    let text = claim("works", "predicate = \"exit == 0\"") + &claim("fails", "predicate = \"exit == 1\"");
    std::fs::write(state.path().join("claims.toml"), text).unwrap();
    let arguments = [
        "check",
        "claims.toml",
        "--no-evidence",
        "--annotate",
        "github",
        "--format",
        "json",
        "--export-junit",
        "junit.xml",
    ];
    let ran = ascertain(state.path(), &arguments);
    assert_eq!((ran.code, ran.json()["claims"][0]["verdict"].as_str()), (Some(1), Some("refuted")));
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0]
            .starts_with("::error file=claims.toml,line=2,col=6,title=works%3A refuted::`works`: `false`: exit == 0"),
        "{lines:?}"
    );
    assert!(read(state.path(), "junit.xml").contains("<system-out>claims.toml:8&#10;"));
}

#[test]
fn annotations_name_files_from_the_root_of_the_repository() {
    let repository = tempfile::tempdir().unwrap();
    let folder = repository.path().join("service");
    std::fs::create_dir(&folder).unwrap();
    let claim = "[[claim]]\nid = \"fails\"\ncommand = \"false\"\npredicate = \"exit == 0\"\nrate = 0.6\n";
    std::fs::write(folder.join("claims.toml"), claim).unwrap();
    let annotated = |root: &Path| {
        let arguments = ["check", "claims.toml", "-q", "--no-evidence", "--annotate", "github"];
        ran(command(&folder, &arguments).env("GITHUB_WORKSPACE", root).output().unwrap()).stderr
    };
    let inside = annotated(repository.path());
    assert!(inside.starts_with("::error file=service/claims.toml,line=2,"), "{inside}");
    // A file outside of the repository keeps its path.
    let elsewhere = annotated(tempfile::tempdir().unwrap().path());
    assert!(elsewhere.starts_with("::error file=claims.toml,line=2,"), "{elsewhere}");
}

#[test]
fn a_job_summary_is_added_to_whatever_it_is_called() {
    let state = tempfile::tempdir().unwrap();
    std::fs::write(state.path().join("summary.md"), b"before, not in UTF-8: \xff").unwrap();
    for _ in 0..2 {
        let arguments =
            ["compare", "-q", "--no-evidence", "-r", "2", "--export-github", "./summary.md", "true", "true"];
        assert_eq!(ascertain(state.path(), &arguments).code, Some(0));
    }
    let summary = read(state.path(), "summary.md");
    assert!(summary.starts_with("before, not in UTF-8: \u{fffd}\n## Ascertain"), "{summary}");
    assert_eq!(summary.matches("## Ascertain").count(), 2, "{summary}");
    let arguments = ["compare", "-q", "--no-evidence", "-r", "2", "--export-csv", "summary.md", "true", "true"];
    assert_eq!(ascertain(state.path(), &arguments).code, Some(0));
    assert!(read(state.path(), "summary.md").starts_with("command,"), "other kinds replace what stands there");
}

#[test]
fn exports_go_to_standard_output_once() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["compare", "-q", "--no-evidence", "-r", "2", "--export-json", "-", "true", "true"];
    let json = ascertain(state.path(), &arguments).json();
    assert_eq!(json["results"].as_array().unwrap().len(), 2);
}

#[test]
fn wrong_files_are_said_before_anything_runs() {
    let state = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str); 7] = [
        (&["--export-junit", "no/such/folder/x.xml"], "no/such/folder/x.xml"),
        (&["--export-go", "."], "name a file, not a folder"),
        (&["--export-json", "same", "--export-csv", "same"], "name a file for each"),
        (&["-q", "--export-json", "-", "--export-csv", "-"], "name a file for each"),
        (&["--format", "json", "--export-json", "-"], "can't share standard output with the output of --format"),
        (&["--export-junit", "-"], "the table; add -q to print no table, or name a file"),
        (&["--annotate", "gitlab"], "github"),
    ];
    for (exports, message) in cases {
        let ran = ascertain(state.path(), &[&["compare", "touch ran"], exports].concat());
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(message), "{message}: {}", ran.stderr);
        assert!(runs(state.path()).is_empty() && !state.path().join("ran").exists());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_after_the_result_with_the_way_out() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["compare", "-r", "2", "--export-json", "/dev/full", "--export-go", "a.go", "true", "true"];
    let ran = ascertain(state.path(), &arguments);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stdout.contains("Median") && ran.stdout.contains("reference"), "{}", ran.stdout);
    let run = runs(state.path()).pop().unwrap();
    let how = format!("`ascertain continue {}` with the same exports", run.file_name().unwrap().display());
    assert!(ran.stderr.contains("can't write `/dev/full`") && ran.stderr.contains(&how), "{}", ran.stderr);
    assert!(state.path().join("a.go").exists(), "the others are written all the same");
}

#[test]
fn a_folder_that_vanishes_takes_no_result_along() {
    let state = tempfile::tempdir().unwrap();
    for (options, message, code) in [
        (["--no-evidence", "--export-json", "gone/a.json"], "create its folder again", 2),
        (["--evidence", "gone", "--format=table"], "could not be written", 0),
    ] {
        std::fs::create_dir(state.path().join("gone")).unwrap();
        let arguments = [&["compare", "--shell", "-r", "3"][..], &options, &["rm -rf gone", "true"]].concat();
        let ran = ascertain(state.path(), &arguments);
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        assert!(ran.stdout.contains("Median") && ran.stdout.contains("reference"), "{}", ran.stdout);
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
}

/// A limit on the file size simulates a full disk: `run.json` fits, but not all trials.
#[cfg(target_os = "linux")]
#[test]
fn a_run_whose_evidence_can_not_go_on_goes_on_without() {
    let state = tempfile::tempdir().unwrap();
    let script = r#"trap '' XFSZ; ulimit -f 200; exec "$0" compare -r 300 --max-time 10min true true"#;
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_ascertain")]);
    command.env("XDG_STATE_HOME", state.path()).env("NO_COLOR", "1").stdin(Stdio::null());
    let ran = ran(command.output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains(" 300 ") && ran.stdout.contains("`true"), "{}", ran.stdout);
    let warnings = || ran.stderr.lines().filter(|line| line.starts_with("warning: "));
    assert_eq!(warnings().count(), 1, "{}", ran.stderr);
    assert!(warnings().all(|warning| warning.contains("trials.jsonl could not be written")), "{}", ran.stderr);
    assert!(!ran.stderr.contains("evidence: "), "{}", ran.stderr);
    // A continuation counts the trials whose values were lost, because the evidence shows that they were started.
    let run = runs(state.path()).pop().unwrap();
    let went_on = ascertain(state.path(), &["continue", run.to_str().unwrap(), "--format", "json"]);
    let claim = &went_on.json()["claims"][0];
    assert_eq!(claim["trials"], 300, "{}", went_on.stderr);
    assert!(claim["unknown"].as_u64().unwrap() > 100, "{claim}");
}

/// A killed run leaves complete export files with the results so far, and no half-written file. The run has a million
/// trials, so that it is killed before it ends.
#[cfg(target_os = "linux")]
#[test]
fn killed_runs_leave_what_was_known() {
    let state = tempfile::tempdir().unwrap();
    let exports = all_exports();
    let mut arguments = vec!["compare", "--no-evidence", "-r", "1000000", "sleep 0.01", "sleep 0.01"];
    arguments.extend(exports.iter().map(String::as_str));
    let child = command(state.path(), &arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // The last file is written after all other files.
    wait_until("all files are there", || ALL.iter().all(|kind| state.path().join(kind).exists()));
    kill(child);
    assert_eq!(json(state.path(), "json")["results"].as_array().unwrap().len(), 2);
    assert!(json(state.path(), "bencher")["compare/sleep 0.01"]["latency"]["value"].as_f64().unwrap() >= 10e6);
    assert_eq!(json(state.path(), "google-benchmark")["context"]["final"], false);
    assert!(read(state.path(), "junit").ends_with("</testsuites>\n"));
    assert!(read(state.path(), "github").contains("Not final"));
    assert!(read(state.path(), "go").lines().next().unwrap().ends_with("not final"));
}

#[test]
fn a_run_that_is_there_is_exported_by_continuing_it() {
    let state = tempfile::tempdir().unwrap();
    let by = ["compare", "-q", "--metric", "page_faults", "--max-time", "10min"];
    let decided = ascertain(state.path(), &[&by[..], &[MANY_FAULTS, "true"]].concat());
    assert_eq!(decided.code, Some(0), "{}", decided.stderr);
    let ran = ascertain(state.path(), &["continue", "--export-go", "a.go", "--format", "json"]);
    let trials = ran.json()["claims"][0]["trials"].as_u64().unwrap() as usize;
    let lines = read(state.path(), "a.go").lines().filter(|line| line.starts_with("Benchmark")).count();
    assert_eq!(lines, 2 * trials);
}

#[test]
fn quiet_does_not_silence_why_something_failed() {
    let state = tempfile::tempdir().unwrap();
    for format in ["table", "csv"] {
        let ran = ascertain(state.path(), &["compare", "-q", "--no-evidence", "--format", format, "true", "false"]);
        assert_eq!(ran.code, Some(5));
        assert!(ran.stderr.contains("`false` ended with exit code 1"), "{format}: {}", ran.stderr);
    }
    let ran = ascertain(state.path(), &["compare", "-q", "--no-evidence", "false"]);
    assert!(ran.code == Some(5) && ran.stderr.contains("ended with exit code 1"), "{}", ran.stderr);
    let claim = |id| format!("[[claim]]\nid = \"{id}\"\ncandidate = \"false\"\nbaseline = \"true\"\nat_least = 2.0\n");
    std::fs::write(state.path().join("claims.toml"), claim("one") + &claim("other")).unwrap();
    let ran = ascertain(state.path(), &["check", "-q", "--no-evidence", "claims.toml"]);
    let says = |id| ran.stderr.contains(&format!("{id}: Failed: "));
    assert!(ran.code == Some(5) && says("one") && says("other"), "each by its name: {}", ran.stderr);
}

/// The test sends SIGTERM, because SIGINT is ignored under `nohup` and `&`.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_run_says_how_to_go_on() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["compare", "--shell", "--max-time", "10min", "kill -TERM $PPID; sleep 300", "true"];
    let ran = ran(command(state.path(), &arguments).output().unwrap());
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    let run = runs(state.path()).pop().unwrap();
    let how = format!("interrupted; `ascertain continue {}` continues the run", run.file_name().unwrap().display());
    assert!(ran.stderr.contains(&how), "{}", ran.stderr);
    let ran = ascertain(state.path(), &[&arguments[..], &["--export-json", "/dev/full"]].concat());
    assert_eq!(ran.code, Some(130), "an export that fails then changes nothing: {}", ran.stderr);
    assert!(ran.stderr.contains("can't write `/dev/full`"), "{}", ran.stderr);
}

#[test]
fn manual_pages_name_every_option_and_code() {
    let state = tempfile::tempdir().unwrap();
    let main = ascertain(state.path(), &["man"]).stdout;
    for part in
        [".TH ASCERTAIN 1 \"\" \"ascertain ", ".SH \"EXIT STATUS\"", "130", "XDG_STATE_HOME", "ascertain\\-compare(1)"]
    {
        assert!(main.contains(part), "{part}: {main}");
    }
    assert_eq!(ascertain(state.path(), &["man", "--dir", "."]).code, Some(0));
    assert_eq!(read(state.path(), "ascertain.1"), main);
    let compare = read(state.path(), "ascertain-compare.1");
    for kind in ALL {
        assert!(compare.contains(&format!("\\-\\-export\\-{}", kind.replace('-', "\\-"))), "{kind}: {compare}");
    }
    let judge = read(state.path(), "ascertain-judge.1");
    assert!(
        judge.contains("EXIT STATUS") && judge.contains(".SH EXAMPLES\n.nf\n  ascertain judge 3972/4000"),
        "{judge}"
    );
    let wrong = ascertain(state.path(), &["man", "--dir", "ascertain.1/folder"]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("ascertain.1/folder"), "{}", wrong.stderr);
}
