//! `ascertain permute` on files, on runs, and on what it can't read.
#![allow(missing_docs)]

mod common;

use std::fmt::Write;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use common::{ascertain, command, ran, runs};
use serde_json::Value;

/// A file of whole numbers, one a line.
fn numbers(folder: &Path, name: &str, numbers: std::ops::Range<i32>) {
    let lines: Vec<String> = numbers.map(|number| number.to_string()).collect();
    fs::write(folder.join(name), lines.join("\n") + "\n").unwrap();
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let ran = ascertain(folder, &[&["permute", "--format", "json", "--seed", "1"], arguments].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stderr, "", "progress is for terminals");
    ran.json()
}

#[test]
fn two_files_that_differ_and_two_that_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    numbers(folder, "a.txt", 0..100);
    numbers(folder, "b.txt", 50..130);
    let said = json(folder, &["a.txt", "b.txt"]);
    assert_eq!(said["schema"], "ascertain.permute/1");
    assert_eq!((&said["decision"], &said["end"]), (&"different".into(), &"decided".into()));
    assert_eq!((&said["shuffles"], &said["exceedances"]), (&50.into(), &0.into()));
    assert_eq!((&said["observed"], &said["expected"]), (&40.0.into(), &0.0.into()));
    assert_eq!(said["samples"][1], serde_json::json!({"name": "b.txt", "heading": null, "n": 80, "value": 89.5}));
    assert!(said["p_anytime"].as_f64().unwrap() <= 0.05 && said["p"].is_null());
    let same = json(folder, &["a.txt", "a.txt", "--statistic", "p90"]);
    assert_eq!(same["decision"], "not_shown");
}

#[test]
fn csm_gives_the_p_value_and_where_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    numbers(folder.path(), "a.txt", 0..100);
    numbers(folder.path(), "b.txt", 50..130);
    let method = ["a.txt", "b.txt", "--method", "csm", "--alpha", "0.01", "--error", "1e-9"];
    let said = json(folder.path(), &method);
    assert_eq!((&said["decision"], &said["p"], &said["p_low"]), (&"different".into(), &0.0.into(), &0.0.into()));
    assert!(said["p_high"].as_f64().unwrap() < 0.01 && said["p_anytime"].is_null() && said["error"] == 1e-9);
}

#[test]
fn shifts_scales_sides_and_ratios_are_heeded() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    numbers(folder, "a.txt", 100..200);
    numbers(folder, "b.txt", 150..250);
    let decision = |arguments: &[&str]| {
        let said = json(folder, &[&["a.txt", "b.txt"], arguments].concat());
        (said["decision"].as_str().unwrap().to_string(), said["expected"].as_f64().unwrap())
    };
    assert_eq!(decision(&["--shift", "50"]), ("not_shown".into(), 50.0));
    assert_eq!(decision(&["--shift", "-50"]), ("different".into(), -50.0));
    assert_eq!(decision(&["--by", "ratio"]), ("different".into(), 1.0));
    assert_eq!(decision(&["--by", "ratio", "--scale", "1.33"]), ("not_shown".into(), 1.33));
    assert_eq!(decision(&["--alternative", "greater"]), ("different".into(), 0.0));
    assert_eq!(decision(&["--alternative", "less"]), ("not_shown".into(), 0.0));
    let three = json(folder, &["a.txt", "b.txt", "a.txt", "--statistic", "median"]);
    assert_eq!((&three["decision"], &three["observed"]), (&"different".into(), &50.0.into()));
}

#[test]
fn columns_are_named_once_or_for_each_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut text = String::from("name,wall,user\n");
    (0..60).for_each(|i| writeln!(text, "\"run, {i}\",{i},{}", i + 100).unwrap());
    fs::write(folder.join("t.csv"), text).unwrap();
    let said = ascertain(
        folder,
        &["permute", "t.csv", "t.csv", "--column", "wall", "--column", "3", "--seed", "1", "--format", "json"],
    );
    assert_eq!(said.stderr, "note: t.csv: the first line, `user`, is taken as a heading, not as a value\n");
    let said = said.json();
    assert_eq!((&said["samples"][0]["heading"], &said["samples"][1]["heading"]), (&"wall".into(), &"user".into()));
    assert_eq!((&said["observed"], &said["samples"][1]["name"]), (&100.0.into(), &"t.csv:3".into()));
    numbers(folder, "a.txt", 0..60);
    let refused = ascertain(folder, &["permute", "t.csv", "t.csv", "a.txt", "--column", "wall", "--column", "3"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("given 2 times for 3 files"), "{}", refused.stderr);
}

#[test]
fn a_first_line_that_is_no_number_is_said_to_be_a_heading() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    numbers(folder, "a.txt", 0..60);
    fs::write(folder.join("b.txt"), "1.O5\n1\n2\n3\n").unwrap();
    let ran = ascertain(folder, &["permute", "a.txt", "b.txt", "--format", "json"]);
    assert_eq!(ran.stderr, "note: b.txt: the first line, `1.O5`, is taken as a heading, not as a value\n");
    let samples = &ran.json()["samples"];
    assert_eq!((&samples[0]["heading"], &samples[1]["heading"]), (&Value::Null, &"1.O5".into()));
    assert_eq!(ascertain(folder, &["permute", "-q", "a.txt", "b.txt"]).stderr, "");
}

#[test]
fn standard_input_is_a_sample() {
    let folder = tempfile::tempdir().unwrap();
    numbers(folder.path(), "a.txt", 0..60);
    let mut permute = command(folder.path(), &["permute", "a.txt", "-", "--format", "csv"]);
    let mut child = permute.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines: String = (100..160).map(|number| format!("{number}\n")).collect();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let ran = ran(child.wait_with_output().unwrap());
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(
        lines.len() == 2
            && lines[1].starts_with("different,decided,betting,mean,difference,two_sided,0,1,0.05,,1,2,100,0,50,0,")
    );
    let twice = ascertain(folder.path(), &["permute", "-", "-"]);
    assert!(twice.code == Some(2) && twice.stderr.contains("only once"), "{}", twice.stderr);
}

#[test]
fn people_read_a_table_and_sentences() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    numbers(folder, "a.txt", 0..100);
    numbers(folder, "b.txt", 50..130);
    let ran = ascertain(folder, &["permute", "a.txt", "b.txt", "--seed", "1"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.starts_with("Sample  Values   Mean\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("Different: the mean of `b.txt` is 40 above that of `a.txt` (89.50 against 49.50)"));
    assert!(ran.stdout.contains("p-value: at most 0.05"), "{}", ran.stdout);
    let quiet = ascertain(folder, &["permute", "-q", "a.txt", "b.txt"]);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    let markdown = ascertain(folder, &["permute", "a.txt", "b.txt", "--format", "markdown"]);
    assert!(markdown.stdout.contains("| `b.txt` | 80 | 89.50 |"), "{}", markdown.stdout);
}

#[test]
fn gates_have_their_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    numbers(folder, "a.txt", 0..100);
    numbers(folder, "b.txt", 50..130);
    let code = |arguments: &[&str]| ascertain(folder, &[&["permute", "-q"], arguments].concat()).code;
    assert_eq!(code(&["a.txt", "b.txt", "--max-shuffles", "10"]), Some(0), "nothing is gated unless asked");
    assert_eq!(code(&["a.txt", "b.txt", "--fail-if", "different"]), Some(1));
    assert_eq!(code(&["a.txt", "a.txt", "--fail-if", "different"]), Some(0));
    assert_eq!(code(&["a.txt", "b.txt", "--fail-if", "different", "--max-shuffles", "10"]), Some(3));
}

#[test]
fn arms_of_runs_are_samples() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let measured = ascertain(folder, &["compare", "-q", "-r", "12", "sleep 0.001", "sleep 0.03"]);
    assert_eq!(measured.code, Some(0), "{}", measured.stderr);
    let run = runs(folder).pop().unwrap();
    let run = run.file_name().unwrap().to_str().unwrap();
    let permute = |arguments: &[&str]| ascertain(folder, &[&["permute"], arguments].concat());
    let (short, long) = (format!("{run}:sleep 0.001"), format!("{run}:sleep 0.03"));
    // Not the mean: one that had to wait for a CPU would be enough to hide the difference.
    let asked = ["--metric", "wall", "--statistic", "median", "--format", "json", "--shift", "1ms", &short, &long];
    let ran = permute(&asked);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("arms of one run"), "{}", ran.stderr);
    let json = ran.json();
    assert_eq!((&json["decision"], &json["unit"], &json["shift"]), (&"different".into(), &"ns".into(), &1e6.into()));
    assert_eq!((&json["samples"][0]["n"], &json["samples"][0]["name"]), (&12.into(), &"sleep 0.001".into()));
    for (arguments, message) in [
        (vec!["--metric", "wall", run, run], "which arm? name one as RUN:ARM; there is `sleep 0.001`, `sleep 0.03`"),
        (
            vec!["--metric", "wal", run, run],
            "there is `wall`, `user`, `system`, `memory_peak`, `exit`; did you mean `wall`?",
        ),
        (vec!["--metric", "wall", "nosuchrun", run], "there is no run `nosuchrun`"),
        (vec![run, run], "is a recorded run: name the metric"),
    ] {
        let refused = permute(&arguments);
        assert!(refused.code == Some(2) && refused.stderr.contains(message), "{arguments:?}: {}", refused.stderr);
    }
    let mistyped = format!("{run}:sleep 0.3");
    let refused = permute(&["--metric", "wall", &mistyped, &long]);
    assert!(refused.stderr.contains("did you mean `sleep 0.03`?"), "{}", refused.stderr);
}

#[test]
fn mistakes_name_the_file_and_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    numbers(folder, "a.txt", 0..10);
    for (name, text, message) in [
        ("empty", "", "empty has no numbers in it"),
        ("word", "1\nfast\n", "word:2:1: `fast` is not a number; leave the line out"),
        ("nan", "1\nNaN\n", "nan:2:1: `NaN` is not a finite number"),
        ("ragged", "1,2\n3\n", "ragged has 2 columns"),
        ("one", "1\n", "`one` has 1 value: a sample needs two or more"),
    ] {
        fs::write(folder.join(name), text).unwrap();
        let ran = ascertain(folder, &["permute", "a.txt", name]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{name}");
        assert!(ran.stderr.contains(message), "{name}: {}", ran.stderr);
    }
    for (arguments, message) in [
        (["a.txt", "missing", "--alpha", "0.05"], "`missing` can't be opened: No such file"),
        (["a.txt", ".", "--alpha", "0.05"], ". could not be read: Is a directory"),
        (["a.txt", "a.txt", "--statistic", "p101"], "there is no statistic `p101`"),
        (["a.txt", "a.txt", "--by", "ratio"], "value 1 of `a.txt` is 0, and a ratio needs positive values"),
        (["a.txt", "a.txt", "--scale", "-1"], "can't be undone: the scale is above 0"),
        (["a.txt", "a.txt", "--shift", "5ms"], "--shift: `5ms` is not in a unit that fits here"),
        (["a.txt", "a.txt", "--column", "wall"], "a.txt has no column `wall`"),
        (["a.txt", "a.txt", "--alpha", "1"], "not strictly between 0 and 1"),
        (["a.txt", "a.txt", "--max-shuffles", "0"], "--max-shuffles"),
    ] {
        let ran = ascertain(folder, &[&["permute"][..], &arguments].concat());
        assert_eq!(ran.code, Some(2), "{arguments:?}");
        assert!(ran.stderr.contains(message), "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(ascertain(folder, &["permute", "a.txt"]).code, Some(2), "one sample is no comparison");
}

/// Ctrl-C ends it in order: what was reached is printed, and the exit code says so.
#[test]
fn an_interrupted_test_says_what_was_reached() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    numbers(folder, "a.txt", 0..2000);
    numbers(folder, "b.txt", 5000..7000);
    let endless =
        ["permute", "a.txt", "b.txt", "--method", "csm", "--alpha", "1e-12", "--format", "json", "--max-shuffles"];
    let arguments = [&endless[..], &["1000000000000"]].concat();
    let mut child = command(folder, &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id().to_string();
    let caught = Path::new("/proc").join(&pid).join("status");
    // It catches SIGTERM, bit 14 of SigCgt, from when it begins to reshuffle. (SIGINT may be ignored: a shell starts
    // jobs in its background so.)
    let catches = |status: String| {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:").map(str::trim).map(str::to_string));
        mask.and_then(|mask| u64::from_str_radix(&mask, 16).ok()).is_some_and(|mask| mask & 1 << 14 != 0)
    };
    while !fs::read_to_string(&caught).is_ok_and(catches) {
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    let json = ran.json();
    assert_eq!((&json["decision"], &json["end"]), (&"undecided".into(), &"interrupted".into()));
}
