//! Tests of the baselines of a bench.

use std::fs;
use std::path::{Path, PathBuf};

use ascertain::engine::evidence::{Header, read_header};
use ascertain::engine::plan::UseCase;

use crate::bench::{bench, measured};

fn runs(state: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(state.join("ascertain/runs")).unwrap();
    let mut runs: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    runs.sort();
    runs
}

#[test]
fn a_baseline_is_a_run_with_a_name_and_gives_no_verdict() {
    let state = tempfile::tempdir().unwrap();
    measured(state.path(), &["calls", "--save-baseline", "main"]);
    let folder = state.path().join("ascertain/runs/calls@main");
    assert_eq!(runs(state.path()), [folder.as_path()]);
    let Header { run_id: first, plan, .. } = read_header(&folder).unwrap();
    assert_eq!(plan.use_case, UseCase::Bench);

    let said = measured(state.path(), &["calls", "--baseline", "main"]).stdout;
    let (verdicts, beside) = said
        .split_once("Compared with the baseline `main`, which was recorded earlier and is not paired with this run:")
        .unwrap();
    assert!(verdicts.contains("`awaited`"), "{said}");
    let beside = beside.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(beside.contains("Run 1: `calls@main`") && beside.contains("Trials are paired within a run"), "{said}");
    assert!(!beside.contains("randomisation"), "{said}");
    let ran = measured(state.path(), &["calls", "--baseline", "main", "--format", "json"]);
    let [_, comparison] = &ran.json()[..] else { panic!("{}", ran.stdout) };
    assert_eq!(comparison["schema"], "ascertain.comparison/1");
    assert_eq!(comparison["points"].as_array().unwrap().len(), 2);
    // By default, a function that is measured alone has a different number of trials. The comparison does not list this
    // as a difference of the options.
    let alone = measured(state.path(), &["calls/direct", "--baseline", "main", "--format", "json"]);
    let differences = alone.json()[1]["differences"].to_string();
    assert!(!differences.contains("config."), "{differences}");

    // The run is first compared with the previous baseline, and then replaces it. The previous baseline is kept as a
    // run.
    let third = measured(state.path(), &["calls", "--baseline", "main", "--save-baseline", "main"]);
    assert!(third.stdout.contains("Run 1: `calls@main`"), "{}", third.stdout);
    assert!(third.stderr.contains("calls@main"), "{}", third.stderr);
    assert_ne!(read_header(&folder).unwrap().run_id, first);
    assert_eq!(read_header(&folder.with_file_name(&first)).unwrap().run_id, first);
    assert_eq!(runs(state.path()).len(), 5);
}

#[test]
fn a_baseline_that_is_not_there_says_how_to_keep_one() {
    let state = tempfile::tempdir().unwrap();
    let ran = bench(state.path(), &["--bench", "calls", "--baseline", "main"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("there is no baseline `main` of `calls`"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("create one with --save-baseline main") && ran.stdout.is_empty(),
        "{}{}",
        ran.stderr,
        ran.stdout
    );
}

/// Evidence that can't be written normally leads to a warning only. With `--save-baseline` it is an error, because the
/// baseline is the purpose of the run.
#[test]
fn a_baseline_that_can_not_be_kept_is_an_error() {
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join("file"), "").unwrap();
    let folder = state.path().join("file/below").display().to_string();
    let arguments = ["calls", "--evidence", &folder];
    let ran = measured(state.path(), &arguments);
    assert_eq!(ran.stderr.matches("warning: ").count(), 1, "{}", ran.stderr);
    let save = [&["--bench", "--max-trials", "3"], &arguments[..], &["--save-baseline", "main"]].concat();
    let ran = bench(state.path(), &save);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("`calls` is not saved as baseline `main`"), "{}", ran.stderr);
    assert!(ran.stdout.contains("`awaited`"), "what was measured is printed: {}", ran.stdout);
}
