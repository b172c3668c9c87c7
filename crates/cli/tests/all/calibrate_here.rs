//! Tests that `ascertain calibrate-here` reports how noisy this machine is.

use crate::common::{Ran, ascertain, runs};

fn run(arguments: &[&str]) -> Ran {
    let state = tempfile::tempdir().unwrap();
    ascertain(state.path(), &[&["calibrate-here", "--no-evidence", "--max-time", "10min"], arguments].concat())
}

#[test]
fn the_default_command_is_true() {
    let state = tempfile::tempdir().unwrap();
    let ran = ascertain(state.path(), &["calibrate-here", "--no-evidence", "--max-time", "1ns", "--format", "json"]);
    // The time limit of 1 ns is too short to measure anything.
    assert_eq!((ran.code, &ran.json()["command"]), (Some(4), &"true".into()), "{}", ran.stderr);
}

/// The command is so slow that only few pairs fit into the simulated minute.
#[test]
fn the_numbers_agree() {
    let arguments = ["--format", "json", "--error", "0.01", "--seed", "5", "--max-trials", "5", "--", "sleep 0.2"];
    let ran = run(&arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let json = ran.json();
    assert_eq!(json["schema"], "ascertain.calibration/1");
    assert_eq!((&json["command"], &json["error"], &json["seed"]), (&"sleep 0.2".into(), &0.01.into(), &5.into()));
    assert!(["undecided", "faster", "slower"].contains(&json["decision"].as_str().unwrap()), "{json}");
    let number = |name: &str| json[name].as_f64().unwrap_or_else(|| panic!("{name}: {json}"));
    assert!(number("elapsed_s") > 0.0 && number("pairs") == 5.0, "{json}");
    assert!(0.0 < number("difference_median") && number("difference_median") <= number("difference_p95"), "{json}");
    let minute = (number("pairs") / number("elapsed_s") * 60.0).floor();
    assert_eq!((number("minute_pairs"), number("calculated_pairs")), (minute, minute.min(4000.0)));
    let seen = &json["seen_difference"];
    let is_seen = seen.as_f64().is_some_and(|seen| 0.0 < seen && seen <= number("seen_difference_limit"));
    assert!(is_seen || seen.is_null(), "{json}");
}

#[test]
fn it_speaks_to_people_and_another_command_can_be_given() {
    let ran = run(&["--max-trials", "3", "--", "sleep", "0.2"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let said = ran.stdout.replace('\n', " ");
    let words =
        ["`sleep 0.2` and itself in ", "same command typically differ by ±", "of 10 runs, error at most 0.1 %)"];
    for words in words {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(said.contains("found neither faster than the other") || said.contains("error happens by chance"), "{said}");
    assert_eq!(run(&["-q", "--max-trials", "2"]).stdout, "");
}

/// A calibration measures pairs until the time is up, even after an answer.
#[test]
fn a_calibration_uses_all_of_its_time() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["calibrate-here", "--no-evidence", "--max-time", "1s", "--format", "json", "--", "sleep 0.2"];
    let json = ascertain(state.path(), &arguments).json();
    assert!(json["elapsed_s"].as_f64() >= Some(1.0), "{json}");
}

#[test]
fn exports_and_evidence_are_those_of_a_comparison() {
    let state = tempfile::tempdir().unwrap();
    let arguments =
        ["calibrate-here", "--max-time", "10min", "--max-trials", "3", "--export-csv", "out.csv", "--", "sleep 0.2"];
    let ran = ascertain(state.path(), &arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("undecided"), "that neither is faster is what it should be: {}", ran.stderr);
    assert!(ran.stdout.starts_with("3 pairs of "), "{}", ran.stdout);
    assert!(std::fs::read_to_string(state.path().join("out.csv")).unwrap().contains("sleep 0.2"));
    assert_eq!(runs(state.path()).len(), 1);
}

#[test]
fn it_goes_on_as_what_it_was() {
    let state = tempfile::tempdir().unwrap();
    let arguments =
        ["calibrate-here", "--max-time", "10min", "--max-trials", "2", "--format", "json", "--", "sleep 0.2"];
    let begun = ascertain(state.path(), &arguments);
    let ran = ascertain(state.path(), &["continue", "--max-trials", "4", "--format", "json"]);
    assert_eq!((begun.code, ran.code), (Some(0), Some(0)), "{}{}", begun.stderr, ran.stderr);
    let [begun, ran] = [begun.json(), ran.json()];
    assert_eq!((&begun["pairs"], &ran["pairs"]), (&2.into(), &4.into()));
    // The reported time covers all four pairs, although only two of them were measured after the run was continued.
    let [before_s, in_all_s] = [&begun, &ran].map(|json| json["elapsed_s"].as_f64().unwrap());
    assert!(before_s >= 4.0 * 0.2 && in_all_s >= 8.0 * 0.2, "{before_s} {in_all_s}");
    let run = std::fs::read_to_string(runs(state.path())[0].join("run.json")).unwrap();
    let run: serde_json::Value = serde_json::from_str(&run).unwrap();
    assert_eq!(run["plan"]["use_case"], "calibrate-here");
    assert_eq!(run["outcome"]["claims"][0]["trials"], 4, "every pair is judged");
    let text = ascertain(state.path(), &["continue", "--max-trials", "5"]).stdout;
    assert!(text.starts_with("5 pairs of `sleep 0.2` and itself in "), "{text}");
    let refused = ascertain(state.path(), &["continue", "--fail-on", "refuted"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
}

#[test]
fn what_can_not_be_calibrated_by_says_so() {
    for (arguments, code, message) in [
        (&["--format", "csv"][..], 2, "--format json"),
        (&["--format", "markdown"], 2, "--format json"),
        (&["--", "no-such-program-anywhere"], 2, "no-such-program-anywhere"),
        (&["-q", "--", "false"], 5, "ended with exit code 1"),
        (&["sleep 0.2"], 2, "-- "),
    ] {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?}: {}{}", ran.stderr, ran.stdout);
        assert!(ran.stderr.contains(message), "{arguments:?} should say {message:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{arguments:?}");
    }
    let failed = run(&["--", "false"]);
    assert!(failed.stdout.starts_with("No pair of `false` and itself was measured."), "{}", failed.stdout);
}
