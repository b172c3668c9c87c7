//! Tests of `compare --tail` with programs whose printed figures have a known tail.

use serde_json::Value;

use crate::common::{ascertain, restored_lines, runs};

/// Prints 10 ms each time.
const STEADY: &str = "echo 10 ms";

/// Prints 30 ms in each twentieth call, and otherwise 9 ms. The file `calls` has the number of calls.
const RARELY_SLOW: &str = "sh -c 'n=$(cat calls 2>/dev/null || echo 0); echo $((n+1)) > calls; \
                           [ $((n % 20)) = 19 ] && echo 30 ms || echo 9 ms'";

const COMMON: &[&str] =
    &["compare", "--metric", "latency=([0-9]+) ms", "--error", "0.1", "--max-time", "10min", "-n", "A", "-n", "B"];

const ANSWER: &str = "Tail 95 %: `B` was above the threshold more often than `A` in `latency` in these trials (";

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The answer is the same in the terminal, on the page, in Markdown, from the evidence, and after a continuation.
#[test]
fn a_worse_tail_is_found_and_every_output_has_it() {
    let state = tempfile::tempdir().unwrap();
    let ran = ascertain(state.path(), &[COMMON, &["--tail", "95", STEADY, RARELY_SLOW]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let text = words(&ran.stdout);
    assert!(text.contains("`B` is faster than `A`: its `latency`"), "{text}");
    assert!(text.contains(ANSWER) && text.contains("against 0 %; threshold 10.00 ms; error at most 5 %)."), "{text}");
    let run = runs(state.path()).pop().unwrap();
    let name = run.file_name().unwrap().to_str().unwrap();
    let report = |arguments: &[&str]| ascertain(state.path(), &[&["report", name], arguments].concat()).stdout;
    let json: Value = serde_json::from_str(&report(&["--format", "json"])).unwrap();
    let claim = &json["claims"][0];
    let tail = &claim["tails"][0];
    assert_eq!((&claim["decision"], &tail["decision"]), (&"faster".into(), &"more_often".into()), "{claim}");
    assert_eq!((&tail["level"], &tail["error"], &tail["pairs_before"]), (&0.95.into(), &0.05.into(), &50.into()));
    assert!(words(&report(&["--format", "markdown"])).contains("B` was above the threshold more often than `A` in"));
    assert!(report(&["--output", "-"]).contains("above the threshold more often"));

    let trials = claim["trials"].as_u64().unwrap();
    let more = (trials + 20).to_string();
    let on = ["continue", name, "--max-trials", &more, "--format", "json"];
    let continued = ascertain(state.path(), &on).json();
    assert_eq!(continued["claims"][0]["tails"][0]["decision"], "more_often", "{continued}");
    assert_eq!(continued["claims"][0]["tails"][0]["decided"], tail["decided"], "{continued}");
}

/// The evidence of a killed run has no result. Judging its trials again must give the same tails.
#[test]
fn the_trials_alone_give_the_same_tails() {
    let state = tempfile::tempdir().unwrap();
    let of_run = [COMMON, &["--tail", "90,95", "-r", "80", "--format", "json", STEADY, RARELY_SLOW]].concat();
    let whole = ascertain(state.path(), &of_run).json();
    let run = runs(state.path()).pop().unwrap();
    restored_lines(&run);
    let path = run.join("run.json");
    let mut header: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(header["plan"]["claims"][0]["tails"], serde_json::json!([0.9, 0.95]));
    header["outcome"] = Value::Null;
    std::fs::write(&path, header.to_string()).unwrap();
    let again = ascertain(state.path(), &["report", run.to_str().unwrap(), "--format", "json"]).json();
    assert_eq!(again["claims"][0]["tails"], whole["claims"][0]["tails"]);
    assert_eq!(whole["claims"][0]["tails"][1]["pairs"], 30, "{whole}");
}

/// Without `--tail`, the answer is "faster". One line names the option.
#[test]
fn compare_hints_at_a_worse_tail_of_the_faster_command() {
    let state = tempfile::tempdir().unwrap();
    let ran = ascertain(state.path(), &[COMMON, &["-r", "200", STEADY, RARELY_SLOW]].concat());
    let hint = "The tail of `B` looks worse: it was above 10.00 ms in 5 % of the pairs, and `A` in 0 %. Test this with \
                `--tail 95`.";
    assert!(words(&ran.stdout).contains(hint), "{}", ran.stdout);
    std::fs::remove_file(state.path().join("calls")).unwrap();
    let few = ascertain(state.path(), &[COMMON, &["-r", "20", STEADY, RARELY_SLOW]].concat());
    assert!(few.stdout.contains("is faster than") && !few.stdout.contains("looks worse"), "{}", few.stdout);
}

/// A gate fails if a tail is worse, although the command is faster. A tail without an answer does not matter.
#[test]
fn a_gate_fails_if_a_tail_is_worse() {
    let state = tempfile::tempdir().unwrap();
    let gate = |arguments: &[&str]| {
        let ran = ascertain(state.path(), &[COMMON, &["--no-evidence", "--margin", "3%"], arguments].concat());
        (ran.code, ran.stdout)
    };
    let slower = ["--fail-if", "slower", STEADY, RARELY_SLOW];
    let (code, text) = gate(&[&["--tail", "95"], &slower[..]].concat());
    assert_eq!(code, Some(1), "{text}");
    let (code, text) = gate(&slower);
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = gate(&[&["--tail", "99.9", "--max-trials", "100"], &slower[..]].concat());
    assert_eq!(code, Some(0), "{text}");
    let early = "Tail 99.9 %: undecided. The level counts from pair 2,500 on, and 100 were measured.";
    assert!(words(&text).contains(early), "{text}");
}

/// A command that reaches its time limit is above each threshold.
#[test]
fn a_time_out_is_in_the_tail() {
    let state = tempfile::tempdir().unwrap();
    // A level of 50 % counts after five pairs.
    let arguments = ["compare", "--tail", "50%", "--time-limit", "200ms", "-r", "10", "--format", "json"];
    let json = ascertain(state.path(), &[&arguments[..], &["true", "sleep 600"]].concat()).json();
    let tail = &json["claims"][0]["tails"][0];
    assert_eq!((&tail["pairs"], &tail["candidate_beyond"]), (&5.into(), &5.into()), "{tail}");
    assert!(tail["threshold_high"].as_f64().unwrap() <= 2e8, "{tail}");
}
