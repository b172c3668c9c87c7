//! Tests of `ascertain permute` with files, recorded runs, and input that can't be read.

use std::fmt::Write;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use ascertain_sys::testing::wait_until;
use serde_json::Value;

use crate::common::{Ran, ascertain, command, ran, restored_lines, runs, send_signal};

/// Writes a file of whole numbers, one per line.
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
fn csm_gives_the_p_value_and_its_interval() {
    let folder = tempfile::tempdir().unwrap();
    numbers(folder.path(), "a.txt", 0..100);
    numbers(folder.path(), "b.txt", 50..130);
    let method = ["a.txt", "b.txt", "--method", "csm", "--alpha", "0.01", "--error", "1e-9"];
    let said = json(folder.path(), &method);
    assert_eq!((&said["decision"], &said["p"], &said["p_low"]), (&"different".into(), &0.0.into(), &0.0.into()));
    assert!(said["p_high"].as_f64().unwrap() < 0.01 && said["p_anytime"].is_null() && said["error"] == 1e-9);
}

#[test]
fn shifts_scales_sides_and_ratios_are_applied() {
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
    // The same columns, given as part of the sample's name: `FILE:COLUMN`.
    let beside =
        ascertain(folder, &["permute", "-q", "t.csv:wall", "t.csv:3", "--seed", "1", "--format", "json"]).json();
    assert_eq!((&beside["observed"], &beside["samples"]), (&said["observed"], &said["samples"]));
    let other = ascertain(folder, &["permute", "-q", "t.csv:user", "a.txt", "--format", "json"]).json();
    assert_eq!((&other["samples"][0]["heading"], &other["samples"][1]["heading"]), (&"user".into(), &Value::Null));
    let twice = ascertain(folder, &["permute", "t.csv:wall", "t.csv", "--column", "3"]);
    assert!(twice.code == Some(2) && twice.stderr.contains("both name a column"), "{}", twice.stderr);
    fs::rename(folder.join("a.txt"), folder.join("t.csv:wall")).unwrap();
    let whole = ascertain(folder, &["permute", "-q", "t.csv:wall", "t.csv:user", "--format", "json"]).json();
    assert_eq!(whole["samples"][0]["heading"], Value::Null, "a file of that name is meant itself");
}

#[test]
fn a_first_line_that_is_not_a_number_is_reported_as_a_heading() {
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
    let conclusion = "different,decided,betting,mean,difference,two_sided,0,1,0.05,,1,2,100,0,50,0,";
    assert!(lines.len() == 3 && lines[1..].iter().all(|line| line.starts_with(conclusion)), "{lines:?}");
    assert!(lines[1].ends_with(",a.txt,,60,29.5") && lines[2].ends_with(",-,,60,129.5"), "{lines:?}");
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

/// Command line of a command whose memory reaches 20 MB.
const LARGE: &str = "dd if=/dev/zero of=/dev/null bs=20000000 count=1";

#[test]
fn arms_of_runs_are_samples() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let compare = ["compare", "-q", "-r", "12", "true", LARGE];
    let measured = ascertain(folder, &compare);
    assert_eq!(measured.code, Some(0), "{}", measured.stderr);
    let run = runs(folder).pop().unwrap();
    let run = run.file_name().unwrap().to_str().unwrap();
    let permute = |arguments: &[&str]| ascertain(folder, &[&["permute"], arguments].concat());
    let (small, large) = (format!("{run}:true"), format!("{run}:{LARGE}"));
    let by = ["--metric", "memory_peak", "--statistic", "median", "--format", "json", "--shift", "1kB"];
    let asked = [&by[..], &[&small, &large]].concat();
    let ran = permute(&asked);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("measured in the same trials"), "{}", ran.stderr);
    let json = ran.json();
    assert_eq!((&json["decision"], &json["unit"], &json["shift"]), (&"different".into(), &"B".into(), &1e3.into()));
    assert_eq!((&json["samples"][0]["n"], &json["samples"][0]["name"]), (&12.into(), &"true".into()));
    let in_time_units = permute(&["--metric", "wall", "--format", "json", "--shift", "1ms", &small, &large]).json();
    assert_eq!((&in_time_units["unit"], &in_time_units["shift"]), (&"ns".into(), &1e6.into()));
    let which = format!("several arms match; choose one of them as RUN:ARM: `{LARGE}`, `true`");
    for (arguments, message) in [
        (vec!["--metric", "wall", run, run], &*which),
        (
            vec!["--metric", "wal", run, run],
            "its scalar metrics: `wall`, `user`, `system`, `memory_peak`, `exit`; did you mean `wall`?",
        ),
        (vec!["--metric", "wall", "nosuchrun", run], "there is no run `nosuchrun`"),
        (vec![run, run], "is a recorded run; name the metric"),
    ] {
        let refused = permute(&arguments);
        assert!(refused.code == Some(2) && refused.stderr.contains(message), "{arguments:?}: {}", refused.stderr);
    }
    let again = ascertain(folder, &compare);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    let other = format!("{}:true", runs(folder).pop().unwrap().display());
    let between = permute(&["--metric", "wall", &small, &other]);
    assert!(between.stderr.contains("differs between runs"), "{}", between.stderr);
    assert!(!between.stderr.contains("measured in the same trials") && !ran.stderr.contains("differs between runs"));
    let mistyped = format!("{run}:trie");
    let refused = permute(&["--metric", "wall", &mistyped, &large]);
    assert!(refused.stderr.contains("did you mean `true`?"), "{}", refused.stderr);
}

#[test]
fn mistakes_name_the_file_and_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    numbers(folder, "a.txt", 0..10);
    for (name, text, message) in [
        ("empty", "", "empty contains no numbers"),
        ("word", "1\nfast\n", "word:2:1: `fast` is not a number; remove or correct the line"),
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
        (
            ["a.txt", "a.txt", "--by", "ratio"],
            "value 1 of `a.txt` is 0 (after the shift of the null hypothesis, if any), and a ratio needs positive",
        ),
        (["a.txt", "a.txt", "--scale", "-1"], "is invalid; use a finite scale above 0"),
        (["a.txt", "a.txt", "--shift", "5ms"], "--shift: `5ms` is not in a suitable unit"),
        (
            ["a.txt", "a.txt", "--max-values", "1"],
            "or, for up to 17 bytes of memory per number, raise the limit (--max-",
        ),
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

/// If the JSON lines have lost rows, the rows are read from the Parquet file. Without this file, the run is refused as
/// a sample.
#[test]
fn a_run_that_lost_rows_is_refused_as_a_sample() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert_eq!(ascertain(folder, &["compare", "-q", "-r", "20", "true", "sleep 0.002"]).code, Some(0));
    let run = runs(folder).pop().unwrap();
    let permute = || {
        let [first, second] = ["true", "sleep 0.002"].map(|arm| format!("latest:{arm}"));
        let arguments = ["permute", "--metric", "wall", "--seed", "1", "--format", "csv", "--max-shuffles", "9"];
        ascertain(folder, &[&arguments[..], &[&first, &second]].concat())
    };
    let figures =
        |ran: &Ran| -> Vec<String> { ran.stdout.lines().map(|line| line.rsplit(',').take(4).collect()).collect() };
    let whole = figures(&permute());
    assert_eq!(whole.len(), 3);
    let lines = restored_lines(&run);
    let cut: String = lines.split_inclusive('\n').take(50).collect();
    fs::write(run.join("trials.jsonl"), &cut).unwrap();
    let ran = permute();
    assert_eq!(figures(&ran), whole);
    assert!(ran.stderr.contains("trials.jsonl is shorter than when the run ended"), "{}", ran.stderr);
    let trend = |code| {
        let arguments = ["history", "trend", "compare", "--ratio", "sleep 0.002/true", "--format", "json"];
        let ran = ascertain(folder, &arguments);
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        ran
    };
    let whole = trend(0).json();
    assert_eq!(whole["lines"][0]["runs"][0]["estimate"]["n"], 20, "{whole}");
    assert!(whole["notes"][0].as_str().unwrap().contains("trials.jsonl is shorter"), "{whole}");
    fs::remove_file(run.join("trials.parquet")).unwrap();
    let ran = permute();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("rows of the run in") && ran.stderr.contains("are missing"), "{}", ran.stderr);
    let refused = trend(2).stderr;
    assert!(refused.contains("Left out: ") && refused.contains("rows are missing"), "{refused}");
    fs::write(run.join("trials.jsonl"), lines.replacen("\"value\":", "\"value\":1", 1)).unwrap();
    let changed = permute();
    assert!(changed.stderr.contains("was changed since the run ended"), "{}", changed.stderr);
}

#[test]
fn names_are_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("a\nb"), "\"x\ny\"\n1\n2\n").unwrap();
    let ran = ascertain(folder, &["permute", "a\nb", "a\nb", "--format", "csv"]);
    let said = "note: a\\nb: the first line, `x\\ny`, is taken as a heading, not as a value\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), &*said.repeat(2)));
    for arguments in
        [["a\nb", "a\nb", "--column", "z"], ["a\nb", "a\nb", "--by", "ratio"], ["c\nd", "a\nb", "--by", "ratio"]]
    {
        fs::write(folder.join("a\nb"), "\"x\ny\"\n0\n2\n").unwrap();
        let ran = ascertain(folder, &[&["permute", "-q"][..], &arguments].concat());
        assert_eq!((ran.code, ran.stderr.lines().count()), (Some(2), 1), "{}", ran.stderr);
    }
}

/// If there is not enough memory, the command reports an error instead of being killed.
#[cfg(target_os = "linux")]
#[test]
fn more_than_memory_holds_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("a"), "1\n".repeat(1 << 21)).unwrap();
    let binary = command(folder, &[]).get_program().to_os_string();
    let limited = |kilobytes: u64, files: &[&str]| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &format!("ulimit -v {kilobytes}; exec \"$0\" permute \"$@\"")]).arg(&binary).args(files);
        ran(shell.current_dir(folder).output().unwrap())
    };
    // The memory that the program itself needs depends on the build, so try limits from too small to large enough.
    let refused = (48..400).step_by(8).map(|megabytes| limited(megabytes << 10, &["a", "a", "--max-shuffles", "1"]));
    let mut refused = refused.skip_while(|ran| !ran.stderr.contains("there is no memory for"));
    let first = refused.next().unwrap();
    assert_eq!((first.code, first.stdout.as_str()), (Some(2), ""), "{}", first.stderr);
}

/// After Ctrl-C, the test prints its result so far, and the exit code is 130.
#[test]
fn an_interrupted_test_prints_its_result_so_far() {
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
    // The command catches SIGTERM (bit 14 of SigCgt) as soon as it has begun to reshuffle. (SIGINT may be ignored,
    // because a shell ignores it for background jobs.)
    let catches = |status: String| {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:").map(str::trim).map(str::to_string));
        mask.and_then(|mask| u64::from_str_radix(&mask, 16).ok()).is_some_and(|mask| mask & 1 << 14 != 0)
    };
    wait_until("SIGTERM is caught", || {
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        fs::read_to_string(&caught).is_ok_and(catches)
    });
    send_signal(&child, "-TERM");
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    let json = ran.json();
    assert_eq!((&json["decision"], &json["end"]), (&"undecided".into(), &"interrupted".into()));
}
