//! Tests of `ascertain series` on recorded runs.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::common::{Ran, ascertain, runs};

/// Measures two commands 30 times each. Returns the folder of the run.
fn measured(state: &Path) -> PathBuf {
    let ran = ascertain(state, &["compare", "true", "sleep 0.001", "-r", "30", "-q"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    runs(state).pop().unwrap()
}

fn series(state: &Path, arguments: &[&str]) -> Ran {
    ascertain(state, &[&["series", "latest"], arguments].concat())
}

/// Returns the values in the last column of a CSV table; a null is NaN.
fn values(ran: &Ran) -> Vec<f64> {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines = ran.stdout.lines().skip(1);
    lines.map(|line| line.rsplit(',').next().unwrap().parse().unwrap_or(f64::NAN)).collect()
}

#[test]
fn derived_series_come_from_the_evidence() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    measured(state);
    let walls = values(&series(state, &["\"true\".wall", "--format", "csv"]));
    assert!(walls.len() == 30 && walls.iter().all(|wall| *wall > 0.0), "{walls:?}");
    let ratios = values(&series(state, &["\"true\".wall / lag(\"true\".wall, 1)", "--format", "csv"]));
    assert!(ratios.len() == 30 && ratios[0].is_nan());
    let expected = walls.windows(2).map(|pair| pair[1] / pair[0]);
    assert!(ratios[1..].iter().zip(expected).all(|(found, expected)| *found == expected), "{ratios:?} {walls:?}");
    // Both commands are measured in the same trials, so their series have one clock.
    let slower = values(&series(state, &["\"sleep 0.001\".wall - \"true\".wall", "--format", "csv"]));
    assert_eq!(slower.len(), 30);
    let again = values(&series(state, &["every(\"true\".wall, 2) - again(\"true\".wall)", "--format", "csv"]));
    assert!(again.len() == 15 && (0..15).all(|index| again[index] == walls[2 * index] - walls[index]), "{again:?}");
}

#[test]
fn the_plan_comes_before_the_results() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    measured(state);
    let expression = "\"true\".wall / hold(quantile(.5, window(\"true\".wall, 10)))";
    let ran = series(state, &[expression]);
    let (plan, results) = ran.stdout.split_once("reading the evidence").unwrap_or_else(|| panic!("{}", ran.stderr));
    assert!(plan.starts_with("plan of true.wall / hold("), "{plan}");
    assert!(
        plan.contains("80 B  exact, by selection among 10 values") && plan.contains("\nmemory: 4,184 B, and "),
        "{plan}"
    );
    assert!(results.contains("30 results, of which 9 are null"), "{results}");
    for (expression, sentence) in [
        ("mean(window(\"true\".wall, 30))", "\n1 result, from "),
        ("lag(\"true\".wall, 1)", "\n30 results, of which 1 is null, from "),
        ("every(lag(\"true\".wall, 1), 30)", "\nThe only result is null."),
    ] {
        let ran = series(state, &[expression]);
        assert!(ran.stdout.contains(sentence), "{}", ran.stdout);
    }
    let only = series(state, &[expression, "--plan"]);
    assert!(only.code == Some(0) && ran.stdout.starts_with(&only.stdout), "{}", only.stdout);
    let json = series(state, &[expression, "--format", "json"]).json();
    assert_eq!((&json["schema"], &json["unit"]), (&"ascertain.series/1".into(), &"1".into()));
    assert_eq!((&json["count"], &json["nulls"], &json["memory"]["states_bytes"]), (&30.into(), &9.into(), &88.into()));
    assert_eq!(json["results"].as_array().map(Vec::len), Some(30));
    let markdown = series(state, &[expression, "--format", "markdown"]);
    let (table, rows) = ("\n| Index | Result |\n| ---: | ---: |\n| 0 | ", ["\n| 1 | ", "\n| 29 | "]);
    assert!(markdown.stdout.contains(table), "{}", markdown.stdout);
    assert!(rows.iter().all(|row| markdown.stdout.contains(row)), "{}", markdown.stdout);
}

#[test]
fn refused_expressions_name_the_place_and_the_way_out() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let run = measured(state);
    for (expression, message) in [
        ("every(\"true\".wall, 2) / \"true\".wall", "every(true.wall, 2) / again(true.wall)"),
        ("wall", "several arms have `wall`; choose one of `\"sleep 0.001\".wall`, `true.wall`"),
        ("\"true\".waal", "the run has no metric `waal`"),
        ("tru.wall", "`wall` was not measured for an arm `tru`; its arms are `sleep 0.001`, `true`"),
        ("\"true\".wall + \"true\".memory_peak", "has ns on the left and B on the right of `+`"),
        ("\"true\".wall / \"true\".memory_peak", "is in s/B"),
        ("mean(window(\"true\".wall, 31))", "longer than the evidence, which has 30 values"),
        ("mean(window(\"true\".wall, 0))", "a window of zero values has no aggregate"),
        ("\"true\".wall /", "column 14: the expression ends here"),
    ] {
        let ran = series(state, &[expression]);
        assert!(
            ran.code == Some(2) && ran.stderr.contains(message) && ran.stdout.is_empty(),
            "{expression}: {}",
            ran.stderr
        );
    }
    // A lock on the rows shows that a process is writing to them.
    let lines = File::open(run.join("trials.jsonl")).unwrap();
    lines.lock().unwrap();
    let ran = series(state, &["\"true\".wall"]);
    assert!(
        ran.code == Some(2) && ran.stderr.contains("is still being written; wait until the run has ended"),
        "{}",
        ran.stderr
    );
}
