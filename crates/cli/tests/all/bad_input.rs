//! Tests that wrong input leads to one clear message that names the problem, the documented exit code, and no
//! half-written file.

use std::io::Write;

use crate::common::{ascertain, command, ran, runs};

/// The arguments, the expected exit code, and a part of the expected message.
const CASES: &[(&[&str], i32, &str)] = &[
    (&["compare", ""], 2, "empty"),
    (&["sleep 1", "sleep 2"], 2, "`ascertain compare` compares commands"),
    (&["compare", "true", "   "], 2, "empty"),
    (&["compare", "true", "no-such-program-anywhere"], 2, "use a shell if it is a shell builtin (--shell)"),
    (&["compare", "true", "true | false"], 2, "or use a shell (--shell)"),
    (&["compare", "true", "echo 'open"], 2, "quote"),
    (&["compare", "true", "false"], 5, "false"),
    (&["compare", "--setup", "false", "true", "true"], 5, "set-up"),
    (&["compare", "--prepare", "false", "true", "true"], 5, "prepar"),
    (&["compare", "-p", "true", "-p", "true", "true", "true", "true"], 2, "once for each"),
    (&["compare", "-P", "n", "9", "1", "echo {n}"], 2, "no values"),
    (&["compare", "-L", "x", "1,1", "echo {x}"], 2, "twice"),
    (&["compare", "-L", "x", "1,2", "-L", "x", "3,4", "echo {x}"], 2, "given twice"),
    (&["compare", "-P", "n", "1", "2", "echo {m}"], 2, "the command lines contain `{m}`"),
    (&["compare", "--fail-if", "slower", "true"], 2, "second command"),
    (&["compare", "--precision", "1%", "true"], 2, "second command"),
    (&["compare", "--margin", "1%", "true"], 2, "second command"),
    (&["compare", "--tail", "95", "true"], 2, "--tail needs two commands"),
    (&["compare", "--tail", "0.95", "true", "true"], 2, "`0.95` is not a level; give percentages from 50"),
    (&["compare", "--tail", "95,100", "true", "true"], 2, "`100` is not a level"),
    // An option without an effect is an error.
    (&["put", "/etc/passwd", "b", "--content-type", "text/plain"], 2, "--content-type is not supported by a file"),
    (&["put", "/etc/passwd", "b", "--exclude", "passwd"], 2, "/etc/passwd: patterns apply only to folders"),
    (&["get", "/etc/passwd", "b", "--include", "*.x"], 2, "patterns apply only to folders, but this is a single file"),
    (&["compare", "--min-runs", "3", "--runs", "5", "true", "true"], 2, "--runs"),
    (&["compare", "--shell", "bash -e", "true"], 2, "write '--shell=bash -e'"),
    (&["compare", "-n", "a", "-n", "b", "true"], 2, "2 names are given for 1 commands"),
    (&["compare", "--error", "0", "true", "true"], 2, "strictly between 0 and 1"),
    (&["compare", "--error", "1", "true", "true"], 2, "strictly between 0 and 1"),
    (&["compare", "--max-time", "5", "true", "true"], 2, "`5` needs a unit; write it in ns"),
    (&["compare", "--max-time", "0s", "true", "true"], 2, "not a valid duration"),
    (&["compare", "--runs", "0", "true", "true"], 2, "a whole number from 1"),
    (&["compare", "--metrics", "wall-clock,user", "true", "true"], 2, "use --metric METRIC"),
    (&["continue", "--max-trials", "0"], 2, "a whole number from 1"),
    (&["compare", "--input", "no-such-file", "cat", "true"], 2, "no-such-file"),
    (&["compare", "--export-json", "no/such/folder/x.json", "true", "true"], 2, "no/such/folder"),
    (&["slo", "--at-least", "100%", "--", "true"], 2, "strictly between 0 and 1"),
    (&["slo", "--at-least", "99%", "--within", "5", "--", "true"], 2, "write it in ns"),
    (&["slo", "--at-least", "99%", "--require", "wal <= 5 ms", "--", "true"], 2, "did you mean `wall`"),
    (&["slo", "--at-least", "99%", "--recorded", "no-such-file", "--", "cat"], 2, "no-such-file"),
    (&["slo", "--at-least", "99%"], 2, "CMD"),
    (&["power", "--at-least", "90%", "--true", "150%"], 2, "give a rate between 0 and 100 %"),
    (&["power", "--at-least", "1e-310%"], 2, "too small to be judged; use at least 1e-100"),
    (&["judge", "3/4", "--at-least", "1e-310"], 2, "too small to be judged"),
    (&["compare", "no-such\u{1b}[31m", "true"], 2, r"no-such\u{1b}[31m"),
    (&["explain", "\u{1b}[31m\u{202e}"], 2, r"\u{1b}[31m\u{202e}"),
    (&["judge", "\u{202e}\u{1b}[31m", "--at-least", "0.5"], 2, r"\u{202e}"),
    (&["slo", "--at-least", "95", "--", "true"], 2, "did you mean `95%`?"),
    (&["history", "prune", "--older-than", "30"], 2, "or in d"),
    (&["slo", "--at-least", "99%", "--within=-5ms", "--", "true"], 2, "--within"),
    (&["slo", "--at-least", "99%", "--", "curl", "{request}"], 2, "--recorded FILE"),
    (
        &["slo", "--at-least", "99%", "--recorded", "x", "--", "sh", "-c", "curl {request}"],
        2,
        "--shell -- 'curl {request}'",
    ),
    // Missing input files, and output files that can't be written, are reported before anything is measured.
    (&["run", "cache-race", "--at", "trace=no-such-file"], 2, "--at trace=no-such-file: no-such-file: No such file"),
    (&["run", "cache-race", "--at", "trace=live,/dev/null"], 2, "its first line is not `cache_ns,origin_ns`"),
    (&["run", "cache-race", "--at", "folder=/no/such"], 2, "/no/such: there is no such folder"),
    (&["run", "cache-race", "--at", "record=/no/such/file"], 2, "/no/such: there is no such folder"),
    (&["list", "--format", "csv"], 2, "--format json"),
    // An invalid address, or one that contains a secret, is an error before anything is measured.
    (&["run", "first-flight", "--at", "url=example.com"], 2, "an address that begins with http:// or https://"),
    (&["run", "first-flight", "--at", "url=http://host:x/"], 2, "a port that is not a number"),
    (&["run", "favouritism", "--at", "url=http:///a"], 2, "has no host"),
    (&["run", "first-flight", "--at", "url=$ASCERTAIN_NOT_SET"], 2, "ASCERTAIN_NOT_SET is not set"),
    (&["judge", "5/3", "--at-least", "0.5"], 2, "5"),
    (&["judge", "a/3", "--at-least", "0.5"], 2, "not a whole number"),
    (&["judge", "3", "--at-least", "0.5"], 2, "S/N"),
    (&["judge", "3/4", "--at-least", "1.5"], 2, "strictly between 0 and 1"),
    (&["judge", "3/4", "--at-least", "0.5", "--error", "1"], 2, "strictly between 0 and 1"),
    (&["run", "summ"], 2, "did you mean `sum`"),
    (&["run", "sum", "--at", "element=5"], 2, "did you mean `elements`"),
    (&["run", "sum", "--at", "elements=many"], 2, "whole numbers"),
    (&["run", "sum", "--at", "elements=1K"], 2, "1k, 1M and 1G are powers of 1,000, and 1Ki"),
    (&["run", "sum", "--trials", "0"], 2, "a whole number from 1"),
    (&["run", "sum", "--at", "type=f16"], 2, "f32, f64"),
    (
        &["run", "https-throughput", "--at", "mb=5", "--at", "rate=100"],
        2,
        "--at mb: `https-throughput` does not use this factor at the requested levels of the other factors",
    ),
    (&["run", "sum", "--variants", "kahn"], 2, "did you mean `kahan`"),
    (&["explain", "fill-rote"], 2, "did you mean `fill-rate`"),
    (&["explain", "fill-rat"], 2, "the ids with `fill-rat` are `fill-rate`, `fill-rate."),
    (&["explain", "link-thr"], 2, "the ids with `link-thr` are `link-throughput`, `link-throughput."),
    (&["explain", "sum.two"], 2, "`; use `ascertain list sum` to list all"),
    (&["explain", "zebra"], 2, "`ascertain list sum` for the claims about `sum`"),
    (&["explain", "kahan"], 2, "the ids with `kahan` are `sum.kahan-"),
    (&["slo", "--at-least", "95%", "curl", "-fsS"], 2, "tip: put `--` before the command"),
    (&["bench"], 2, "tip: `cargo bench` runs"),
    (&["compare", "true", "true", "--export-html", "x.html"], 2, "tip: `ascertain report` makes"),
    (&["check", "no-such-file.toml"], 2, "no-such-file.toml"),
    (&["permute", "no-such-file.csv", "b.csv"], 2, "`no-such-file.csv` can't be opened"),
    (&["permute", "--metric", "wall", "no-such-run", "x"], 2, "no-such-run"),
    (&["report", "no-such-run"], 2, "no-such-run"),
    (&["history", "compare", "no-such-run", "latest"], 2, "no-such-run"),
    (&["power", "--at-least", "90%", "--max-trials", "9", "--svg", "no/such/x.svg"], 2, "no/such/x.svg"),
    (&["man", "--dir", "/dev/null/x"], 2, "/dev/null/x"),
    (&["check", "--only", "zebra"], 4, "zebra"),
    (&["continue", "no-such-run"], 2, "no-such-run"),
    (&["continue"], 2, "no run"),
];

#[test]
fn each_gets_one_clear_message_and_its_exit_code() {
    for (arguments, code, message) in CASES {
        let state = tempfile::tempdir().unwrap();
        let ran = ascertain(state.path(), arguments);
        let said = format!("{}{}", ran.stderr, ran.stdout);
        assert_eq!(ran.code, Some(*code), "{arguments:?}: {said}");
        assert!(said.contains(message), "{arguments:?} should say {message:?}: {said}");
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
        assert!(!said.contains(['\u{1b}', '\u{202e}']), "{arguments:?} steers the terminal: {said:?}");
        assert!(said.matches("(os error").count() <= 1, "{arguments:?} says it twice: {said}");
        if *code == 2 {
            assert!(runs(state.path()).is_empty(), "{arguments:?} left evidence of a run that never was");
            assert!(!said.contains("evidence: "), "{arguments:?} names evidence of a run that never was: {said}");
        }
    }
}

#[test]
fn an_unknown_level_of_the_cpu_is_an_error() {
    let state = tempfile::tempdir().unwrap();
    let ran = ran(command(state.path(), &["list"]).env("ASCERTAIN_CPU", "avx1024").output().unwrap());
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("ASCERTAIN_CPU is `avx1024`, but "), "{}", ran.stderr);
}

#[test]
fn a_claims_file_says_where_and_what_is_near() {
    let cases = [
        ("experiment = \"summ\"", "did you mean `sum`"),
        ("experiment = \"sum\"\npredicat = \"error <= 1\"", "did you mean `predicate`"),
        ("experiment = \"sum\"\npredicate = \"tim <= 1 ms\"\nrate = 0.5", "did you mean `time`"),
        ("experiment = \"sum\"\npredicate = \"time <= 1 MB\"\nrate = 0.5", "write it in ns"),
        ("experiment = \"sum\"\npredicate = \"time <= 1 ms\"\nrate = 1.0", "rate"),
        ("experiment = \"sum\"\npredicate = \"time <= 1 ms\"\nrate = \"often\"", "rate"),
        (
            "experiment = \"sum\"\nat = { elements = \"some\" }\npredicate = \"time <= 1 ms\"\nrate = 0.5",
            "whole number",
        ),
        (
            "experiment = \"sum\"\nat = { element = 5 }\npredicate = \"time <= 1 ms\"\nrate = 0.5",
            "did you mean `elements`",
        ),
        ("experiment = \"sum\"\ncandidate = \"kahn\"\nbaseline = \"naive\"\nat_least = 2", "did you mean `kahan`"),
        ("experiment = \"sum\"\ncandidate = \"kahan\"\nbaseline = \"naive\"", "at_least"),
        ("experiment = ", "claims.toml:3"),
    ];
    for (body, message) in cases {
        let state = tempfile::tempdir().unwrap();
        let path = state.path().join("claims.toml");
        write!(std::fs::File::create(&path).unwrap(), "[[claim]]\nid = \"x\"\n{body}\n").unwrap();
        let ran = ascertain(state.path(), &["check", "claims.toml"]);
        assert_eq!(ran.code, Some(2), "{body}: {}", ran.stderr);
        assert!(ran.stderr.contains(message), "{body:?} should say {message:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("claims.toml:"), "{body:?} should say where: {}", ran.stderr);
        assert!(runs(state.path()).is_empty());
    }
}

#[test]
fn a_claims_file_does_not_steer_the_terminal() {
    let state = tempfile::tempdir().unwrap();
    let claim = "[[claim]]\nid = \"x\"\ncommand = \"\\u001b[31mnope\"\npredicate = \"exit == 0\"\nrate = 0.5\n";
    std::fs::write(state.path().join("claims.toml"), claim).unwrap();
    // A folder in `PATH` that this user can't search would lead to a different error.
    let ran = ran(command(state.path(), &["check", "claims.toml"]).env("PATH", "/usr/bin:/bin").output().unwrap());
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr.contains(r"`\u{1b}[31mnope` was not found") && !ran.stderr.contains('\u{1b}'),
        "{:?}",
        ran.stderr
    );
}

#[test]
fn a_folder_that_can_not_be_written_to_is_a_warning_before_anything_runs() {
    let state = tempfile::tempdir().unwrap();
    std::fs::write(state.path().join("file"), "").unwrap();
    for folder in ["file/below", "/proc/below"] {
        let ran = ascertain(state.path(), &["compare", "-r", "5", "--evidence", folder, "true", "true"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.starts_with("warning: ") && ran.stderr.contains(folder), "{}", ran.stderr);
        assert!(
            ran.stderr.contains(" (--evidence DIR, --no-evidence). The run continues")
                && !ran.stderr.contains("evidence: "),
            "{}",
            ran.stderr
        );
        assert!(ran.stdout.contains(" 5 ") && ran.stdout.contains("reference"), "{}", ran.stdout);
    }
}

/// For a file that is not meant as a claims file, only one error is reported, although every line is wrong.
#[test]
fn a_file_that_is_not_toml_is_one_error() {
    let state = tempfile::tempdir().unwrap();
    std::fs::write(state.path().join("README.md"), "# Title\n\nSome words.\nMore words.\n- a list\n").unwrap();
    let ran = ascertain(state.path(), &["check", "README.md"]);
    assert_eq!((ran.code, ran.stderr.lines().count()), (Some(2), 1), "{}", ran.stderr);
    assert!(
        ran.stderr.starts_with("error: README.md:3:6: a claims file must be TOML, but this file is not: "),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_run_of_another_version_or_cut_off_is_not_continued() {
    let state = tempfile::tempdir().unwrap();
    let ran = ascertain(state.path(), &["compare", "--max-trials", "3", "true", "true"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let run = runs(state.path()).pop().unwrap();
    let path = run.join("run.json");
    let whole = std::fs::read_to_string(&path).unwrap();
    let name = run.file_name().unwrap().to_str().unwrap();
    for (text, message) in [
        (whole.replace("ascertain.evidence/2", "ascertain.evidence/9"), "ascertain.evidence/9"),
        (whole[..whole.len() / 2].to_string(), "run.json"),
        (String::new(), "run.json"),
    ] {
        std::fs::write(&path, text).unwrap();
        let ran = ascertain(state.path(), &["continue", name]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(message), "{message}: {}", ran.stderr);
    }
}
