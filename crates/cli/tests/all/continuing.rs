//! Tests of `ascertain continue`, on runs that were interrupted or killed, or that ended undecided.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use ascertain_sys::testing::wait_until;
use serde_json::Value;

use crate::common::{MANY_FAULTS, ascertain, command, kill, ran, restored_lines, runs, send_signal};

/// Values of environment variables may be passwords, so by default only the names are recorded.
#[test]
fn values_of_environment_variables_are_recorded_only_on_request() {
    let state = tempfile::tempdir().unwrap();
    let compare = ["compare", "-r", "1", "--export-json", "times.json", "--env", "TOKEN='hunter2 x' B=hunter2"];
    let written = || {
        let run = &crate::common::runs(state.path())[0];
        let files = fs::read_dir(run).unwrap().map(|entry| entry.unwrap().path());
        let files = files.chain([state.path().join("times.json")]);
        files.map(|file| String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned()).collect::<String>()
    };
    let ran = ascertain(state.path(), &[&compare[..], &["sh -c 'test ${#TOKEN} = 9'", "true"]].concat());
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(written().contains("TOKEN") && !written().contains("hunter2"), "{}", written());
    let refused = ascertain(state.path(), &["continue", "--max-trials", "2"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("give it again with --env TOKEN=VALUE"), "{}", refused.stderr);
    let continued = ascertain(state.path(), &["continue", "--max-trials", "2", "--env", "B=hunter2 TOKEN='hunter2 x'"]);
    assert_eq!(continued.code, Some(0), "{}{}", continued.stdout, continued.stderr);
    assert!(!written().contains("hunter2"), "{}", written());

    let state = tempfile::tempdir().unwrap();
    let ran = ascertain(state.path(), &["compare", "-r", "1", "--env", "A=plain", "--record-env", "true", "true"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let header = fs::read_to_string(crate::common::runs(state.path())[0].join("run.json")).unwrap();
    assert!(header.contains("plain"), "{header}");
    assert_eq!(ascertain(state.path(), &["continue", "--max-trials", "2"]).code, Some(0));
}

/// After SIGTERM during a trial, the exit code is 130, the measured command has ended, and the run can be continued.
/// The measured command hangs when it is called for the third time. (SIGINT would be ignored under `nohup` and `&`.)
#[cfg(target_os = "linux")]
#[test]
fn interrupted_runs_keep_their_evidence_and_can_be_continued() {
    let state = tempfile::tempdir().unwrap();
    let hangs_once = "echo x >> calls; [ $(wc -l < calls) != 3 ] || { touch hangs; exec sleep 3600; }";
    let arguments = ["compare", "--max-time", "1h", "--shell", hangs_once, "true", "--output", "inherit"];
    let child = command(state.path(), &arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the command hangs", || state.path().join("hangs").exists());
    send_signal(&child, "-TERM");
    // Reading ends when no process has standard error open any more, so the measured command has ended too.
    let ended = ran(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    let told = ended.stderr.lines().find(|line| line.starts_with("interrupted; `ascertain continue ")).unwrap();
    let price =
        "The interrupted pair has no result and counts against both possible answers, so a few more pairs are needed";
    assert!(told.ends_with(price), "{told}");
    let run = runs(state.path()).pop().unwrap();
    assert!(run.join("trials.parquet").is_file());
    let name = run.file_name().unwrap().to_str().unwrap();
    let json = ascertain(state.path(), &["continue", name, "--max-trials", "5", "--format", "json"]).json();
    // The time of the interrupted call is unknown, except if the call had already taken longer than the others.
    let claim = &json["claims"][0];
    assert_eq!((&claim["trials"], &claim["unknown"]), (&5.into(), &1.into()), "{json}");
    let count = |field: &str| json["points"][0][field].as_u64().unwrap();
    assert_eq!(count("n") - count("censored"), 4, "{json}");
    assert_eq!(json["run_id"], *name);
}

/// A continued run keeps the gate of the original run. Runs of other programs are skipped.
#[test]
fn a_continued_run_keeps_its_gate() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["compare", "--metric", "page_faults", "--fail-if", "slower", "--max-trials", "3"];
    assert_eq!(ascertain(state.path(), &[&arguments[..], &["true", MANY_FAULTS]].concat()).code, Some(3));
    let of_this_program = runs(state.path()).pop().unwrap();
    let of_another = of_this_program.parent().unwrap().join("30001231T000000000Z-zzzz");
    std::fs::create_dir(&of_another).unwrap();
    let header = std::fs::read_to_string(of_this_program.join("run.json")).unwrap();
    let mut header: Value = serde_json::from_str(&header.replace("\"compare\"", "\"somebodys-bench\"")).unwrap();
    header["plan"]["commands"] = Value::Array(Vec::new());
    std::fs::write(of_another.join("run.json"), header.to_string()).unwrap();
    let ran = ascertain(state.path(), &["continue", "--max-trials", "10000", "--max-time", "10min"]);
    assert!(ran.stderr.contains("skipping 30001231T000000000Z-zzzz: `somebodys-bench`"), "{}", ran.stderr);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    let name = of_this_program.file_name().unwrap().to_str().unwrap();
    assert_eq!(ascertain(state.path(), &["continue", name, "--fail-on", "refuted"]).code, Some(2));
}

/// If 8 of 8 pairs are not enough, the run prints the command that measures more pairs.
#[test]
fn an_undecided_run_prints_how_to_continue() {
    let state = tempfile::tempdir().unwrap();
    let ran = ascertain(state.path(), &["compare", "--metric", "page_faults", "-r", "8", "true", MANY_FAULTS]);
    let run = runs(state.path()).pop().unwrap();
    let how = format!("`ascertain continue {} --max-trials 16`", run.file_name().unwrap().display());
    assert!(
        ran.stderr.contains(&format!("undecided; {how} continues the run without a higher chance of error")),
        "{}",
        ran.stderr
    );
    let on = ["continue", "--max-trials", "10000", "--max-time", "10min", "--format", "json"];
    let ran = ascertain(state.path(), &on);
    let claim = &ran.json()["claims"][0];
    assert_eq!(claim["decision"], "slower", "{}", ran.stderr);
    assert!(claim["trials"].as_u64() >= Some(9), "{claim}");
    assert!(!ran.stderr.contains("undecided"), "{}", ran.stderr);
}

/// The numbers that these commands print are random, so no ratio is ever known to ±0.01 %.
#[test]
fn a_comparison_is_continued_until_its_precision_is_reached() {
    let state = tempfile::tempdir().unwrap();
    let compare = ["compare", "--metric", "x=([0-9]+)", "--better", "lower", "--max-time", "10min"];
    let commands = ["shuf -n 1 -i 1000-1999", "shuf -n 1 -i 9000-9999"];
    let ran = ascertain(state.path(), &[&compare[..], &["--quick"], &commands].concat());
    assert!(!ran.stderr.contains("precision"), "{}", ran.stderr);
    let ran = ascertain(state.path(), &["continue"]);
    let already = "nothing was measured: the run already has its answers; to narrow its intervals, use --precision";
    assert!(ran.code == Some(0) && ran.stderr.contains(already), "{}", ran.stderr);
    let on = ascertain(state.path(), &["continue", "--precision", "0.01%", "--max-trials", "40", "--format", "json"]);
    assert_eq!(on.json()["claims"][0]["trials"], 40, "{}", on.stderr);
    assert!(!on.stderr.contains("nothing was measured"), "{}", on.stderr);
    let run = runs(state.path()).pop().unwrap();
    let how =
        format!("; `ascertain continue {} --max-trials 80 --precision 0.01%`", run.file_name().unwrap().display());
    let missed = on
        .stderr
        .lines()
        .find(|line| line.starts_with("--precision 0.01% was not reached: `shuf -n 1 -i 9000-9999` ±"));
    assert!(missed.is_some_and(|line| line.contains(&how)), "{}", on.stderr);
    let again = ascertain(state.path(), &["continue", "--precision", "99%", "--max-trials", "100"]);
    assert!(again.stderr.contains(already) && !again.stderr.contains("not reached"), "{}", again.stderr);

    let slo = ["slo", "--at-least", "50%", "--max-trials", "2", "--", "true"];
    assert_eq!(ascertain(state.path(), &slo).code, Some(3));
    let refused = ascertain(state.path(), &["continue", "--precision", "1%"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--precision is for runs that compare commands, but"), "{}", refused.stderr);
    let ran = ascertain(state.path(), &["continue"]);
    assert!(ran.stderr.contains("nothing was measured: the run has reached its limits"), "{}", ran.stderr);
}

/// A time limit that the user sets is kept, even if an answer takes longer. The note about the time that is needed uses
/// only the new trials, because recorded trials have no times.
#[test]
fn a_continued_run_keeps_the_time_limit_of_the_user() {
    let state = tempfile::tempdir().unwrap();
    assert_eq!(ascertain(state.path(), &["compare", "--max-trials", "1", "sleep 0.5", "sleep 0.55"]).code, Some(0));
    let go_on = ["continue", "--max-time", "12s", "--max-trials", "1000"];
    let mut child = command(state.path(), &go_on).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let said = lines.find(|line| line.starts_with("at least 14 pairs are needed, about ")).unwrap();
    send_signal(&child, "-TERM");
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // The note must say 14 s or more: an answer needs 14 trials of one second.
    assert!(said.contains(", but 12 s allow only ") && !said.contains("ms, but 12 s"), "{said}");
}

/// If the folder has a report, it is written again after the continuation.
#[test]
fn a_report_is_written_again_when_its_run_is_continued() {
    let state = tempfile::tempdir().unwrap();
    let text = "[[claim]]\nid = \"x\"\ncommand = \"true\"\npredicate = \"wall <= 1 h\"\nrate = 0.6\n";
    std::fs::write(state.path().join("claims.toml"), text).unwrap();
    assert_eq!(ascertain(state.path(), &["check", "claims.toml", "--max-trials", "2"]).code, Some(3));
    let report = runs(state.path()).pop().unwrap().join("report.html");
    let before = std::fs::read_to_string(&report).unwrap();
    assert_eq!(ascertain(state.path(), &["continue", "--max-time", "10min", "--max-trials", "100"]).code, Some(0));
    assert_ne!(std::fs::read_to_string(&report).unwrap(), before);
}

#[test]
fn a_run_is_found_in_another_folder() {
    let state = tempfile::tempdir().unwrap();
    assert_eq!(
        ascertain(state.path(), &["compare", "-r", "5", "--evidence", "ev", "true", "sleep 0.002"]).code,
        Some(0)
    );
    assert_eq!(ascertain(state.path(), &["continue"]).code, Some(2), "it is not where runs are kept");
    let on = ascertain(state.path(), &["continue", "--evidence", "ev", "--max-trials", "7", "--format", "json"]);
    assert_eq!(on.code, Some(0), "{}", on.stderr);
    assert_eq!(on.json()["points"][0]["n"], 7);
}

#[test]
fn a_run_that_lost_rows_is_not_judged_again() {
    let state = tempfile::tempdir().unwrap();
    assert_eq!(ascertain(state.path(), &["compare", "-r", "10", "true", "sleep 0.002"]).code, Some(0));
    let run = runs(state.path()).pop().unwrap();
    let rows = restored_lines(&run);
    fs::remove_file(run.join("trials.parquet")).unwrap();
    let half: String = rows.lines().take(rows.lines().count() / 2).map(|line| format!("{line}\n")).collect();
    fs::write(run.join("trials.jsonl"), half).unwrap();
    let before = fs::read(run.join("run.json")).unwrap();
    let ran = ascertain(state.path(), &["continue"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
    let named = [run.to_str().unwrap(), "trials.jsonl has", "measure again"];
    assert!(named.iter().all(|part| ran.stderr.contains(part)), "{}", ran.stderr);
    assert_eq!(fs::read(run.join("run.json")).unwrap(), before, "nothing is changed");
}

/// Command line of a command that hangs in every third call, until it is stopped. Before it hangs, it creates the file
/// `hangs`.
#[cfg(target_os = "linux")]
const HANGS: &str = "n=$(cat calls); echo $((n + 1)) > calls; [ $((n % 3)) != 2 ] || { touch hangs; exec sleep 3600; }";

/// Starts or continues a run, and sends the signal as soon as the measured command hangs. Returns `false` if the run
/// ended before that.
#[cfg(target_os = "linux")]
fn until_it_hangs(state: &std::path::Path, arguments: &[&str], signal: &str) -> bool {
    let _ = fs::remove_file(state.join("hangs"));
    let mut child = command(state, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut has_ended = false;
    wait_until("the command hangs, or the run ends", || {
        has_ended = child.try_wait().unwrap().is_some();
        has_ended || state.join("hangs").exists()
    });
    if !has_ended {
        // Wait until the call has taken longer than its limit of 100 ms.
        std::thread::sleep(std::time::Duration::from_millis(120));
        send_signal(&child, signal);
        child.wait().unwrap();
    }
    !has_ended
}

/// If a run is interrupted at every hanging call and then continued, these calls still count as slower than the limit.
/// On a busy machine, other calls may exceed the limit too, and the run ends sooner.
#[cfg(target_os = "linux")]
#[test]
fn interrupted_slow_calls_still_count() {
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join("calls"), "0\n").unwrap();
    let start = ["slo", "--at-least", "95%", "--within", "100ms", "--time-limit", "1h", "--max-time", "1h", "--shell"];
    let start = [&start[..], &["--", HANGS]].concat();
    assert!(until_it_hangs(state.path(), &start, "-TERM"));
    let go_on = ["continue", "--max-time", "1h"];
    let mut interruptions = 1;
    while until_it_hangs(state.path(), &go_on, "-TERM") {
        interruptions += 1;
    }
    let json = ascertain(state.path(), &["continue", "--format", "json"]).json();
    let claim = &json["claims"][0];
    assert_eq!((&claim["verdict"], &claim["unknown"]), (&"refuted".into(), &0.into()), "{claim}");
    let wall = &json["points"][0];
    assert_eq!(wall["censored"], interruptions, "{wall}");
    assert!(wall["max"].is_null() && wall["limit"].as_f64() >= Some(100e6), "{wall}");
}

/// If the process is killed during a call, the time of the call is unknown. The call therefore counts as evidence
/// against *holds* and also as evidence against *refuted*.
#[cfg(target_os = "linux")]
#[test]
fn killed_slow_calls_still_count() {
    let state = tempfile::tempdir().unwrap();
    fs::write(state.path().join("calls"), "0\n").unwrap();
    let start = ["slo", "--at-least", "60%", "--within", "1h", "--time-limit", "1h", "--max-time", "1h", "--shell"];
    let start = [&start[..], &["--", HANGS]].concat();
    assert!(until_it_hangs(state.path(), &start, "-KILL"));
    for _ in 0..3 {
        assert!(until_it_hangs(state.path(), &["continue", "--max-time", "1h"], "-KILL"));
    }
    let json = ascertain(state.path(), &["continue", "--max-trials", "1", "--format", "json"]).json();
    let claim = &json["claims"][0];
    assert_eq!((&claim["verdict"], &claim["unknown"]), (&"undecided".into(), &4.into()), "{claim}");
    assert!(claim["successes"].as_u64() >= Some(4), "{claim}");
    let run = runs(state.path()).pop().unwrap();
    assert!(!run.join("begun").exists(), "it has ended");
}

/// A killed run can be read, and continues after its last complete trial. Its million trials ensure that it is killed
/// before it ends.
#[cfg(target_os = "linux")]
#[test]
fn killed_runs_can_be_continued() {
    let state = tempfile::tempdir().unwrap();
    let mut endless = command(state.path(), &["compare", "-r", "1000000", "true", "true"]);
    let child = endless.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let lines = || {
        let run = runs(state.path()).pop()?;
        std::fs::read_to_string(run.join("trials.jsonl")).ok().map(|text| text.lines().count())
    };
    wait_until("one trial is recorded", || lines().unwrap_or(0) >= 10);
    kill(child);
    let before = lines().unwrap();
    let run = runs(state.path()).pop().unwrap();
    assert!(!run.join("trials.parquet").exists());
    let json = ascertain(state.path(), &["continue", "--max-time", "1s", "--format", "json"]).json();
    assert!(json["claims"][0]["trials"].as_u64().unwrap() * 10 > before as u64 - 10, "{json}");
    assert!(run.join("trials.parquet").is_file());
}

/// Two processes can't write to the same folder.
#[cfg(target_os = "linux")]
#[test]
fn two_runs_at_once_into_one_folder_are_refused() {
    let state = tempfile::tempdir().unwrap();
    let child = command(state.path(), &["compare", "-q", "-r", "1000000", "true", "true"]).spawn().unwrap();
    wait_until("a run is there", || runs(state.path()).pop().is_some_and(|run| run.join("run.json").exists()));
    let ran = ascertain(state.path(), &["continue"]);
    kill(child);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("another"), "{}", ran.stderr);
}

/// A run from another machine may contain any command lines. They are shown first, and executed only after
/// confirmation.
#[test]
fn command_lines_of_a_foreign_run_are_shown_first() {
    let (state, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let compare =
        ["compare", "--max-trials", "1", "--prepare", "touch prepared", "--shell", "sh", "touch done", "true"];
    assert_eq!(ascertain(state.path(), &compare).code, Some(0));
    let run = runs(state.path()).pop().unwrap();
    let run = run.to_str().unwrap();
    fs::remove_file(state.path().join("done")).unwrap();
    let go_on = |state: &Path, options: &[&str]| {
        ascertain(state, &[&["continue", run, "--max-trials", "2", "--format", "json"], options].concat())
    };
    let refused = go_on(other.path(), &[]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    for part in ["you did not record", "touch prepared", "touch done", "--yes"] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    assert!(!other.path().join("done").exists(), "nothing was executed");
    assert_eq!(go_on(other.path(), &["--yes"]).code, Some(0));
    assert!(other.path().join("done").exists());
    let agreed = ascertain(other.path(), &["continue", run, "--max-trials", "3"]);
    assert!(agreed.code == Some(0) && !agreed.stderr.contains("you did not record"), "{}", agreed.stderr);
}

/// A copy of the folder without the latest trials is refused. Otherwise a user could choose which trials count.
#[test]
fn an_older_copy_of_a_run_is_not_continued() {
    let state = tempfile::tempdir().unwrap();
    assert_eq!(ascertain(state.path(), &["compare", "--max-trials", "2", "true", "true"]).code, Some(0));
    let run = runs(state.path()).pop().unwrap();
    let copy = state.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(&run).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
    }
    let go_on = |run: &Path| ascertain(state.path(), &["continue", run.to_str().unwrap(), "--max-trials", "4"]);
    assert_eq!(go_on(&run).code, Some(0));
    let refused = go_on(&copy);
    assert!(refused.code == Some(2) && refused.stderr.contains("is an older copy"), "{}", refused.stderr);
    assert_eq!(go_on(&run).code, Some(0));
}
