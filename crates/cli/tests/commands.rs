//! Each subcommand does its job on real programs.
#![allow(missing_docs)]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use common::{ascertain, command, ran, runs};
use serde_json::Value;

#[test]
fn compare_decides_and_says_so() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["compare", "--format", "json", "-n", "long", "-n", "short", "sleep 0.03", "sleep 0.001"];
    let json = ascertain(state.path(), &arguments).json();
    assert_eq!(json["schema"], "ascertain.run/1");
    assert_eq!(json["claims"][0]["decision"], "faster");
    assert!(json["claims"][0]["ratio_low"].as_f64().unwrap() > 1.0);
    let metrics: Vec<&Value> = json["points"].as_array().unwrap().iter().map(|point| &point["metric"]).collect();
    assert_eq!(
        metrics,
        ["wall", "user", "system", "memory_peak", "exit", "wall", "user", "system", "memory_peak", "exit"]
    );
    let run = runs(state.path()).pop().unwrap();
    for file in ["run.json", "trials.jsonl", "trials.parquet"] {
        assert!(run.join(file).is_file(), "{file}");
    }
    assert_eq!(std::fs::read_dir(run).unwrap().count(), 3, "nothing half-written is left");
}

#[test]
fn compare_speaks_to_people() {
    let state = tempfile::tempdir().unwrap();
    let ran = ascertain(state.path(), &["compare", "sleep 0.03", "sleep 0.001"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("`sleep 0.001` is faster than `sleep 0.03`: "), "{}", ran.stdout);
    assert!(ran.stdout.contains("Trials") && ran.stdout.contains("Min to max"), "{}", ran.stdout);
    assert!(ran.stderr.contains("evidence: "), "{}", ran.stderr);
    let quiet = ascertain(state.path(), &["compare", "-q", "-r", "2", "true", "true"]);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
}

#[test]
fn gates_have_their_exit_codes() {
    let state = tempfile::tempdir().unwrap();
    let gate =
        |arguments: &[&str]| ascertain(state.path(), &[&["compare", "--no-evidence", "-q"], arguments].concat()).code;
    assert_eq!(gate(&["--fail-if", "slower", "sleep 0.001", "sleep 0.03"]), Some(1));
    assert_eq!(gate(&["--fail-if", "slower", "sleep 0.03", "sleep 0.001"]), Some(0));
    assert_eq!(gate(&["--fail-if", "slower", "--margin", "5%", "sleep 0.03", "sleep 0.001"]), Some(0));
    assert_eq!(gate(&["--fail-if", "slower", "--max-trials", "3", "sleep 0.001", "sleep 0.03"]), Some(3));
    assert_eq!(gate(&["-i", "-r", "3", "true", "false"]), Some(0));
}

#[test]
fn parameters_make_arms_and_the_first_is_the_reference() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["compare", "--format", "json", "-r", "3", "-L", "time", "0.01,0.001", "sleep {time}"];
    let json = ascertain(state.path(), &arguments).json();
    assert_eq!(json["claims"].as_array().unwrap().len(), 1);
    assert_eq!(json["points"][0]["at"]["time"], "0.01");
    let arguments =
        ["compare", "--format", "json", "-r", "2", "-P", "n", "1", "5", "-D", "2", "echo {n}", "printf {n}"];
    let json = ascertain(state.path(), &arguments).json();
    assert_eq!(json["claims"].as_array().unwrap().len(), 3, "the second against the first, at each of 1, 3, 5");
}

#[test]
fn parameters_stand_in_the_command_lines() {
    let state = tempfile::tempdir().unwrap();
    let ran = ascertain(state.path(), &["compare", "-r", "3", "-L", "time", "0.01,0.001", "sleep {time}"]);
    assert!(ran.stdout.contains("`sleep 0.001` is") && !ran.stdout.contains("{time}"), "{}", ran.stdout);
}

#[test]
fn what_hyperfines_users_look_for() {
    let state = tempfile::tempdir().unwrap();
    let compare = |arguments: &[&str]| {
        let ran = ascertain(state.path(), &[&["compare", "--no-evidence"], arguments].concat());
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
        ran.stdout
    };
    let first_of = |text: &str, names: [&str; 2]| {
        let table: Vec<&str> = text.lines().skip_while(|line| !line.starts_with('─')).collect();
        table.iter().find_map(|line| names.into_iter().find(|name| line.starts_with(name))).map(str::to_string)
    };
    let (slow, fast) = ("sleep 0.5", "sleep 0.001");
    let given = compare(&["-r", "1", slow, fast]);
    assert_eq!(first_of(&given, [slow, fast]).as_deref(), Some(slow), "{given}");
    let sorted = compare(&["-r", "1", "--sort", "mean-time", "-u", "second", slow, fast]);
    assert_eq!(first_of(&sorted, [slow, fast]).as_deref(), Some(fast), "{sorted}");
    assert!(sorted.contains(" s ") && !sorted.contains("ms "), "{sorted}");
    let referred = compare(&["-r", "1", "--reference", slow, "-n", "quick", fast]);
    assert_eq!(first_of(&referred, [slow, "quick"]).as_deref(), Some(slow), "{referred}");
    assert!(compare(&["-r", "1", "--show-output", "echo seen"]).contains("seen\n"));
    let json = ["--format", "json", "--min-runs", "40", "true", "sleep 0.02"];
    let json: Value = serde_json::from_str(&compare(&json)).unwrap();
    assert!(json["points"][0]["n"].as_u64() >= Some(40), "{json}");
    for shell in [&["-S", "sh"][..], &["--shell"], &["--shell=sh"]] {
        compare(&[&["-r", "1"], shell, &["true | true"]].concat());
    }
    compare(&["-r", "1", "--shell=none", "true"]);
}

#[test]
fn what_failed_says_so_in_its_own_row() {
    let state = tempfile::tempdir().unwrap();
    let ran = ascertain(state.path(), &["compare", "false", "true"]);
    let row = |name: &str| ran.stdout.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_string();
    assert!(row("false").ends_with("failed"), "{}", ran.stdout);
    assert!(row("true").ends_with("not compared"), "{}", ran.stdout);
    assert!(ran.stdout.contains("Failed: command `false` ended with exit code 1;"), "{}", ran.stdout);
}

#[test]
fn failures_that_were_ignored_are_said() {
    let state = tempfile::tempdir().unwrap();
    let careful = "`sh -c 'exit 2; : x'` ended with exit code 2 in 6 of 6 trials";
    let ran = ascertain(state.path(), &["compare", "-i", "-r", "6", "sh -c 'exit 2; : x'", "true"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Careful:") && words.contains(careful), "{}", ran.stdout);
    let json = ascertain(state.path(), &["continue", "--format", "json"]).json();
    let said = |threat: &Value| threat.as_str().is_some_and(|threat| threat.starts_with(careful));
    assert!(json["threats"].as_array().unwrap().iter().any(said), "{json}");
    let fine = ascertain(state.path(), &["compare", "-i", "-r", "6", "true", "sleep 0.001"]);
    assert!(!fine.stdout.contains("ended with"), "{}", fine.stdout);
}

#[test]
fn a_run_that_lost_rows_is_not_decided_anew() {
    let state = tempfile::tempdir().unwrap();
    assert_eq!(ascertain(state.path(), &["compare", "-r", "10", "true", "sleep 0.002"]).code, Some(0));
    let run = runs(state.path()).pop().unwrap();
    let rows = fs::read_to_string(run.join("trials.jsonl")).unwrap();
    let half: String = rows.lines().take(rows.lines().count() / 2).map(|line| format!("{line}\n")).collect();
    fs::write(run.join("trials.jsonl"), half).unwrap();
    let before = fs::read(run.join("run.json")).unwrap();
    let ran = ascertain(state.path(), &["continue"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
    let named = [run.to_str().unwrap(), "trials.jsonl has", "run it anew"];
    assert!(named.iter().all(|part| ran.stderr.contains(part)), "{}", ran.stderr);
    assert_eq!(fs::read(run.join("run.json")).unwrap(), before, "nothing is changed");
}

#[test]
fn preparation_and_hooks_run_around() {
    let state = tempfile::tempdir().unwrap();
    let arguments = [
        "compare",
        "--no-evidence",
        "-q",
        "-w",
        "1",
        "-r",
        "2",
        "--shell",
        "-s",
        "echo s >> log",
        "-p",
        "echo p >> log",
        "-c",
        "echo c >> log",
        "echo x >> log",
    ];
    assert_eq!(ascertain(state.path(), &arguments).code, Some(0));
    let log = std::fs::read_to_string(state.path().join("log")).unwrap().replace('\n', "");
    assert_eq!(log, "spxpxpxc");
}

#[test]
fn output_that_fills_a_pipe_and_input_from_a_file() {
    let state = tempfile::tempdir().unwrap();
    std::fs::write(state.path().join("in"), vec![b'x'; 1 << 20]).unwrap();
    let arguments = ["compare", "--no-evidence", "-q", "-r", "2", "--input", "in", "--output"];
    for output in ["pipe", "null", "out"] {
        let ran = ascertain(state.path(), &[&arguments[..], &[output, "cat"]].concat());
        assert_eq!(ran.code, Some(0), "{output}: {}", ran.stderr);
    }
    assert_eq!(std::fs::metadata(state.path().join("out")).unwrap().len(), 1 << 20);
}

#[test]
fn a_command_that_hangs_is_an_infinite_time() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["compare", "--format", "json", "--time-limit", "100ms", "-r", "3", "sleep 0.001", "sleep 100"];
    let json = ascertain(state.path(), &arguments).json();
    assert_eq!(json["points"][5]["median"], Value::Null);
    assert_eq!(json["claims"][0]["successes"], 0);
    let arguments = ["slo", "--at-least", "90%", "--within", "50ms", "--time-limit", "100ms", "--", "sleep", "100"];
    assert_eq!(ascertain(state.path(), &arguments).code, Some(1));
}

#[test]
fn slo_holds_is_refuted_or_undecided() {
    let state = tempfile::tempdir().unwrap();
    let slo = |arguments: &[&str]| ascertain(state.path(), &[&["slo", "--no-evidence"], arguments].concat());
    let holds = slo(&["--at-least", "80%", "--within", "5s", "--", "true"]);
    assert_eq!(holds.code, Some(0), "{}", holds.stderr);
    assert!(holds.stdout.starts_with("Holds"), "{}", holds.stdout);
    assert_eq!(slo(&["--at-least", "80%", "--", "false"]).code, Some(1));
    assert_eq!(slo(&["--at-least", "80%", "--require", "exit == 1", "--", "false"]).code, Some(0));
    assert_eq!(slo(&["--at-least", "99.99%", "--max-trials", "10", "--", "true"]).code, Some(3));
    assert_eq!(slo(&["--at-least", "80%", "--require", "memory_peak <= 1 B", "--", "true"]).code, Some(1));
}

#[test]
fn recorded_requests_are_taken_in_whole_sets() {
    let state = tempfile::tempdir().unwrap();
    std::fs::write(state.path().join("requests"), "a b\n\nc\n'd'\n").unwrap();
    let arguments = [
        "slo",
        "--at-least",
        "60%",
        "--shell",
        "--recorded",
        "requests",
        "--format",
        "json",
        "--",
        "echo {request} >> log",
    ];
    let json = ascertain(state.path(), &arguments).json();
    let trials = json["claims"][0]["trials"].as_u64().unwrap();
    assert_eq!((trials % 3, json["claims"][0]["verdict"].as_str()), (0, Some("holds")));
    let log = std::fs::read_to_string(state.path().join("log")).unwrap();
    let count = |line: &str| log.lines().filter(|logged| *logged == line).count() as u64;
    assert_eq!((count("a b"), count("c"), count("'d'")), (trials / 3, trials / 3, trials / 3));
}

#[test]
fn check_judges_a_file_and_gates() {
    let state = tempfile::tempdir().unwrap();
    std::fs::write(
        state.path().join("claims.toml"),
        "[[claim]]\nid = \"works\"\ncommand = \"true\"\npredicate = \"exit == 0 and wall <= 5 s\"\nrate = 0.6\n\
         [[claim]]\nid = \"faster\"\ncandidate = \"sleep 0.001\"\nbaseline = \"sleep 0.03\"\nat_least = 2.0\n",
    )
    .unwrap();
    let ran = ascertain(state.path(), &["check", "claims.toml", "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let json = ran.json();
    assert_eq!(
        (json["claims"][0]["verdict"].as_str(), json["claims"][1]["verdict"].as_str()),
        (Some("holds"), Some("holds"))
    );
    assert!(runs(state.path()).pop().unwrap().join("report.html").is_file());
    let text = "[[claim]]\nid = \"x\"\ncommand = \"false\"\npredicate = \"wall <= 5 s\"\nrate = 0.6\n";
    std::fs::write(state.path().join("claims.toml"), text).unwrap();
    assert_eq!(ascertain(state.path(), &["check", "claims.toml"]).code, Some(1));
    assert_eq!(ascertain(state.path(), &["check", "claims.toml", "--fail-on", "nothing"]).code, Some(0));
}

#[test]
fn run_prints_tables_and_judges_the_shipped_claims() {
    let state = tempfile::tempdir().unwrap();
    let mut arguments =
        vec!["run", "fill-rate", "--trials", "20", "--at", "bins=10,100", "--at", "capacity=50", "--max-time", "20s"];
    arguments.extend(["--export-github", "summary.md"]);
    let ran = ascertain(state.path(), &arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("thrown") && ran.stdout.contains("fill_rate"), "{}", ran.stdout);
    assert!(ran.stdout.contains("holds") && ran.stdout.contains("fill-rate.almost-98"), "{}", ran.stdout);
    let summary = std::fs::read_to_string(state.path().join("summary.md")).unwrap();
    let report = ascertain(state.path(), &["report", "--output", "-"]).stdout;
    for (text, row) in [(&ran.stdout, "thrown "), (&summary, "| `thrown` |"), (&report, "<tr><th><code>thrown</code>")]
    {
        let rows = text.lines().filter(|line| line.starts_with(row)).count();
        assert_eq!(rows, 2, "the table has only what was asked for: {text}");
    }
}

#[test]
fn list_and_explain_say_what_there_is() {
    let state = tempfile::tempdir().unwrap();
    let list = ascertain(state.path(), &["list"]);
    assert!(list.stdout.contains("kahan-avx512") && list.stdout.contains("fill-rate"), "{}", list.stdout);
    let json = ascertain(state.path(), &["list", "--format", "json"]).json();
    assert_eq!(json["experiments"][0]["id"], "sum");
    let explain = ascertain(state.path(), &["explain", "sum"]);
    assert!(explain.stdout.contains("**Question.**") && explain.stdout.contains("sum.kahan-avx512-8x-naive"));
    assert!(list.stdout.contains("their type; each is summed into f64 [f32, f64]\n"), "{}", list.stdout);
    assert!(list.stdout.contains("how many numbers [whole numbers from 1 to 4294967296]\n"), "{}", list.stdout);
    assert!(!list.stdout.contains(" 1 shipped claims"), "{}", list.stdout);
    let claim = ascertain(state.path(), &["explain", "sum.kahan-avx512-8x-naive"]);
    assert!(claim.stdout.contains("source: Zach Bjornson, Fast, accurate summation"), "{}", claim.stdout);
    let test = "test: `kahan-avx512 (accumulators=4)` is at least 8 times as fast as `naive (accumulators=1)`\n  \
                metric: time, in ns; lower is better\n  \
                candidate: kahan-avx512 (accumulators=4 elements=187500 type=f32)\n  \
                baseline: naive (accumulators=1 elements=187500 type=f32)\n\
                judged: true in at least 50 % of the trials\n";
    assert!(claim.stdout.ends_with(test), "{}", claim.stdout);
    let claim = ascertain(state.path(), &["explain", "cbrt.tab1-error"]);
    assert!(claim.stdout.contains("test: `error_percent >= "), "{}", claim.stdout);
}

#[test]
fn only_the_variants_that_are_asked_for_are_measured() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["run", "sum", "cbrt", "--variants", "naive,pairwise", "--trials", "2"];
    let levels = ["--at", "elements=10", "--at", "elements=20", "--format", "json"];
    let ran = ascertain(state.path(), &[&arguments[..], &levels].concat());
    let json = ran.json();
    let measured = |point: &Value| (point["variant"] == "naive" || point["variant"] == "pairwise") && point["n"] != 0;
    let points = json["points"].as_array().unwrap();
    assert!(points.iter().all(measured), "{json}");
    let elements: BTreeSet<u64> = points.iter().filter_map(|point| point["at"]["elements"].as_u64()).collect();
    assert!(elements.contains(&10) && elements.contains(&20), "--at of one factor is taken together: {elements:?}");
    assert!(!json["claims"].as_array().unwrap().is_empty(), "those on these variants are judged");
    assert!(ran.stderr.contains("claims not judged: they need variants that --variants leaves out"), "{}", ran.stderr);
    assert!(ran.stderr.contains("`cbrt` is not measured: it has no variant `naive`, `pairwise`"), "{}", ran.stderr);
}

#[test]
fn judge_says_what_the_source_says() {
    let state = tempfile::tempdir().unwrap();
    let arguments =
        ["judge", "3972/4000", "--at-least", "0.98", "--error", "0.001", "--method", "csm", "--format", "json"];
    let ran = ascertain(state.path(), &arguments);
    let json = ran.json();
    assert_eq!((ran.code, json["verdict"].as_str()), (Some(0), Some("holds")));
    assert_eq!(json["log_level"].as_f64(), Some(-17.238559826956475));
    assert!((json["credible_low"].as_f64().unwrap() - 0.98752632).abs() < 1e-8);
    assert!((json["credible_high"].as_f64().unwrap() - 0.99637692).abs() < 1e-8);
    assert_eq!(ascertain(state.path(), &["judge", "1/40", "--at-least", "0.9"]).code, Some(1));
    assert_eq!(ascertain(state.path(), &["judge", "9/10", "--at-least", "0.9"]).code, Some(3));
    assert_eq!(ascertain(state.path(), &["judge", "0/0", "--at-least", "0.9"]).code, Some(3));
}

#[test]
fn completions_name_the_subcommands() {
    let state = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let ran = ascertain(state.path(), &["completions", shell]);
        assert!(ran.code == Some(0) && ran.stdout.contains("compare"), "{shell}");
    }
}

#[test]
fn exports_are_hyperfines() {
    let state = tempfile::tempdir().unwrap();
    let arguments = [
        "compare",
        "--no-evidence",
        "-q",
        "-r",
        "3",
        "--export-json",
        "a.json",
        "--export-csv",
        "a.csv",
        "--export-markdown",
        "a.md",
        "true",
        "sleep 0.001",
    ];
    assert_eq!(ascertain(state.path(), &arguments).code, Some(0));
    let read = |name: &str| std::fs::read_to_string(state.path().join(name)).unwrap();
    let json: Value = serde_json::from_str(&read("a.json")).unwrap();
    assert_eq!(json["results"][1]["command"], "sleep 0.001");
    assert_eq!(json["results"][0]["times"].as_array().unwrap().len(), 3);
    assert!(read("a.csv").starts_with("command,mean,stddev,median,user,system,min,max"));
    assert!(read("a.md").contains("| `sleep 0.001` |"));
}

/// SIGTERM (SIGINT is ignored below `nohup` and `&`) while a command is measured: exit code 130, the command is gone, the evidence can be continued.
#[cfg(target_os = "linux")]
#[test]
fn interrupted_runs_keep_their_evidence_and_go_on() {
    let state = tempfile::tempdir().unwrap();
    let arguments =
        ["compare", "--max-time", "10min", "--shell", "echo began >&2; sleep 0.2", "sleep 0.2", "--output", "inherit"];
    let mut child = command(state.path(), &arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // The third time that the first command begins, at least two trials are behind us.
    for _ in 0..3 {
        assert_eq!(lines.next().unwrap().unwrap(), "began");
    }
    let killed = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    let run = runs(state.path()).pop().unwrap();
    assert!(run.join("trials.parquet").is_file());
    let name = run.file_name().unwrap().to_str().unwrap();
    let output = command(state.path(), &["continue", name, "--max-time", "1s", "--format", "json"]).output().unwrap();
    let json = ran(output).json();
    assert!(json["claims"][0]["trials"].as_u64().unwrap() >= 3, "{json}");
    assert_eq!(json["run_id"], *name);
}

/// The gate of the run that is continued is a gate again, and runs of other programs are passed over.
#[test]
fn what_is_continued_fails_as_it_would_have() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["compare", "--fail-if", "slower", "--max-trials", "3", "sleep 0.001", "sleep 0.03"];
    assert_eq!(ascertain(state.path(), &arguments).code, Some(3));
    let of_this_program = runs(state.path()).pop().unwrap();
    let of_another = of_this_program.parent().unwrap().join("30001231T000000000Z-zzzz");
    std::fs::create_dir(&of_another).unwrap();
    let header = std::fs::read_to_string(of_this_program.join("run.json")).unwrap();
    let mut header: Value = serde_json::from_str(&header.replace("\"compare\"", "\"somebodys-bench\"")).unwrap();
    header["plan"]["commands"] = Value::Array(Vec::new());
    std::fs::write(of_another.join("run.json"), header.to_string()).unwrap();
    let ran = ascertain(state.path(), &["continue", "--max-trials", "100"]);
    assert!(ran.stderr.contains("passing over 30001231T000000000Z-zzzz: `somebodys-bench`"), "{}", ran.stderr);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    let name = of_this_program.file_name().unwrap().to_str().unwrap();
    assert_eq!(ascertain(state.path(), &["continue", name, "--fail-on", "refuted"]).code, Some(2));
}

/// At 15 of 15 one more trial would do, and the run says how to have it.
#[test]
fn what_is_undecided_says_how_to_go_on() {
    let state = tempfile::tempdir().unwrap();
    let ran = ascertain(state.path(), &["compare", "-r", "15", "sleep 0.001", "sleep 0.06"]);
    let how = format!("`ascertain continue {} --max-trials 30`", runs(state.path()).pop().unwrap().display());
    assert!(ran.stderr.contains(&format!("undecided: {how} goes on with it")), "{}", ran.stderr);
    let ran = ascertain(state.path(), &["continue", "--max-trials", "30", "--format", "json"]);
    let claim = &ran.json()["claims"][0];
    assert_eq!(claim["decision"], "slower", "{}", ran.stderr);
    assert!((16..=30).contains(&claim["trials"].as_u64().unwrap()), "{claim}");
    assert!(!ran.stderr.contains("undecided"), "{}", ran.stderr);
}

/// A report that stands in the folder is of the run as it was.
#[test]
fn a_report_is_made_anew_when_its_run_goes_on() {
    let state = tempfile::tempdir().unwrap();
    let text = "[[claim]]\nid = \"x\"\ncommand = \"true\"\npredicate = \"wall <= 5 s\"\nrate = 0.6\n";
    std::fs::write(state.path().join("claims.toml"), text).unwrap();
    assert_eq!(ascertain(state.path(), &["check", "claims.toml", "--max-trials", "2"]).code, Some(3));
    let report = runs(state.path()).pop().unwrap().join("report.html");
    let before = std::fs::read_to_string(&report).unwrap();
    assert_eq!(ascertain(state.path(), &["continue", "--max-trials", "100"]).code, Some(0));
    assert_ne!(std::fs::read_to_string(&report).unwrap(), before);
}

/// A run that is killed outright is readable, and goes on from its last whole trial.
#[cfg(target_os = "linux")]
#[test]
fn killed_runs_go_on() {
    let state = tempfile::tempdir().unwrap();
    let mut child = command(state.path(), &["compare", "--max-time", "10min", "sleep 0.01", "sleep 0.011"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = || {
        let run = runs(state.path()).pop()?;
        std::fs::read_to_string(run.join("trials.jsonl")).ok().map(|text| text.lines().count())
    };
    while lines().unwrap_or(0) < 10 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = lines().unwrap();
    let run = runs(state.path()).pop().unwrap();
    assert!(!run.join("trials.parquet").exists());
    let json = ascertain(state.path(), &["continue", "--max-time", "1s", "--format", "json"]).json();
    assert!(json["claims"][0]["trials"].as_u64().unwrap() * 10 > before as u64 - 10, "{json}");
    assert!(run.join("trials.parquet").is_file());
}

/// The same folder can't have two writers.
#[cfg(target_os = "linux")]
#[test]
fn two_runs_at_once_into_one_folder_are_refused() {
    let state = tempfile::tempdir().unwrap();
    let mut child =
        command(state.path(), &["compare", "-q", "--max-time", "10min", "sleep 0.01", "sleep 0.01"]).spawn().unwrap();
    while runs(state.path()).pop().is_none_or(|run| !run.join("run.json").exists()) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let ran = ascertain(state.path(), &["continue"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("another"), "{}", ran.stderr);
}
