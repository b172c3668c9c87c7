//! Tests of `ascertain compare` with real programs.

use ascertain_sys::testing::left_out;
use serde_json::Value;

use crate::common::{MANY_FAULTS, ascertain, runs};

#[test]
fn compare_decides_and_says_so() {
    let state = tempfile::tempdir().unwrap();
    let named = ["-n", "many", "-n", "few", MANY_FAULTS, "true"];
    let arguments = ["compare", "--metric", "page_faults", "--max-time", "10min", "--format", "json"];
    let json = ascertain(state.path(), &[&arguments[..], &named].concat()).json();
    assert_eq!(json["schema"], "ascertain.run/1");
    assert_eq!(json["claims"][0]["decision"], "faster");
    assert!(json["claims"][0]["ratio"].as_f64().unwrap() > 1.0);
    let run = runs(state.path()).pop().unwrap();
    for file in ["run.json", "trials.jsonl", "trials.parquet"] {
        assert!(run.join(file).is_file(), "{file}");
    }
    assert_eq!(std::fs::read_dir(run).unwrap().count(), 3, "nothing half-written is left");
}

#[test]
fn the_usual_metrics_are_five() {
    let state = tempfile::tempdir().unwrap();
    let json = ascertain(state.path(), &["compare", "-r", "2", "--format", "json", "true", "true"]).json();
    let metrics: Vec<&Value> = json["points"].as_array().unwrap().iter().map(|point| &point["metric"]).collect();
    assert_eq!(
        metrics,
        ["wall", "user", "system", "memory_peak", "exit", "wall", "user", "system", "memory_peak", "exit"]
    );
}

/// With an error probability of 0.2, four pairs are enough on a quiet machine. If other load delays the short command
/// in some pairs, the run needs more pairs, but the answer is the same.
#[test]
fn compare_speaks_to_people() {
    let state = tempfile::tempdir().unwrap();
    let ran = ascertain(state.path(), &["compare", "--error", "0.2", "--max-time", "1h", "sleep 1", "sleep 0.001"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("`sleep 0.001` is faster than `sleep 1`: "), "{}", ran.stdout);
    assert!(ran.stdout.contains("Trials") && ran.stdout.contains("Min to max"), "{}", ran.stdout);
    assert!(ran.stderr.contains("evidence: "), "{}", ran.stderr);
    let quiet = ascertain(state.path(), &["compare", "-q", "-r", "2", "true", "true"]);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
}

#[test]
fn gates_have_their_exit_codes() {
    let state = tempfile::tempdir().unwrap();
    let common = ["compare", "--no-evidence", "-q", "--metric", "page_faults", "--max-time", "10min"];
    let gate = |arguments: &[&str]| ascertain(state.path(), &[&common, arguments].concat()).code;
    assert_eq!(gate(&["--fail-if", "slower", "true", MANY_FAULTS]), Some(1));
    assert_eq!(gate(&["--fail-if", "slower", MANY_FAULTS, "true"]), Some(0));
    assert_eq!(gate(&["--fail-if", "slower", "--margin", "5%", MANY_FAULTS, "true"]), Some(0));
    assert_eq!(gate(&["--fail-if", "slower", "--max-trials", "3", "true", MANY_FAULTS]), Some(3));
    assert_eq!(gate(&["-i", "-r", "3", "true", "false"]), Some(0));
}

/// The default margin lets a change without effect pass the gate, but `--margin 0` does not.
#[test]
fn a_gate_has_its_own_margin() {
    let state = tempfile::tempdir().unwrap();
    let common = ["compare", "--no-evidence", "--metric", "memory_peak", "--max-trials", "100", "--fail-if", "slower"];
    let gate = |arguments: &[&str]| ascertain(state.path(), &[&common, arguments, &["true", "true"]].concat());
    let passed = gate(&[]);
    assert_eq!(passed.code, Some(0), "{}", passed.stdout);
    assert!(passed.stderr.contains("differences of up to 3 % pass; use --margin 0 to allow none"), "{}", passed.stderr);
    let strict = gate(&["--margin", "0"]);
    assert_eq!(strict.code, Some(3), "{}", strict.stdout);
    assert!(!strict.stderr.contains("--margin"), "{}", strict.stderr);
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
fn levels_of_one_command_tell_its_rows_apart() {
    let state = tempfile::tempdir().unwrap();
    let scan = |commands: &[&str]| {
        let metric = ["compare", "-r", "2", "-L", "n", "3,4", "--metric", "rate=([0-9]+) MB/s"];
        let ran = ascertain(state.path(), &[&metric, commands].concat());
        ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let words = scan(&["echo {n} MB/s"]);
    assert!(words.starts_with("`echo {n} MB/s`: `n=4` has the best median `rate` of 2 levels: 4.000 MB/s."), "{words}");
    assert!(words.contains("So far `n=4` won all 2 pairs against `n=3` in `rate`: "), "{words}");
    assert!(words.contains(" n Median rate ") && !words.contains("Command"), "{words}");
    let words = scan(&["echo {n} MB/s", "echo 0{n} MB/s"]);
    assert!(words.contains("`echo 0{n} MB/s`: `n=4` has the best median `rate` of 2 levels: 4.000 MB/s."), "{words}");
    assert!(words.contains("Command n Median rate ") && words.contains("echo 04 MB/s 4 4.000 MB/s "), "{words}");
}

#[test]
fn options_of_hyperfine_work_as_its_users_expect() {
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
    let (slow, fast) = ("sleep 0.1", "sleep 0.001");
    let given = compare(&["-r", "1", slow, fast]);
    assert_eq!(first_of(&given, [slow, fast]).as_deref(), Some(slow), "{given}");
    // `--sort` sorts by the measured means. Other load on the machine may make either command the faster one.
    let exported = ["--export-json-1", "sorted.json"];
    let sorted = compare(&[&["-r", "1", "--sort", "mean-time", "-u", "second"], &exported[..], &[slow, fast]].concat());
    let means = std::fs::read_to_string(state.path().join("sorted.json")).unwrap();
    let means: Value = serde_json::from_str(&means).unwrap();
    let mean_of = |command| {
        let results = means["results"].as_array().unwrap();
        results.iter().find(|result| result["command"] == command).unwrap()["mean"].as_f64().unwrap()
    };
    let first = if mean_of(slow) < mean_of(fast) { slow } else { fast };
    assert_eq!(first_of(&sorted, [slow, fast]).as_deref(), Some(first), "{sorted}");
    assert!(sorted.contains(" s ") && !sorted.contains("ms "), "{sorted}");
    let referred = compare(&["-r", "1", "--reference", slow, "-n", "quick", fast]);
    assert_eq!(first_of(&referred, [slow, "quick"]).as_deref(), Some(slow), "{referred}");
    assert!(compare(&["-r", "1", "--show-output", "echo seen"]).contains("seen\n"));
    let json = ["--format", "json", "--max-time", "10min", "--min-runs", "40", "true"];
    let json: Value = serde_json::from_str(&compare(&json)).unwrap();
    assert!(json["points"][0]["n"].as_u64() >= Some(40), "{json}");
    for shell in [&["-S", "sh"][..], &["--shell"], &["--shell=sh"]] {
        compare(&[&["-r", "1"], shell, &["true | true"]].concat());
    }
    compare(&["-r", "1", "--shell=none", "true"]);
}

#[test]
fn a_failure_is_shown_in_the_row_of_its_command() {
    let state = tempfile::tempdir().unwrap();
    let ran = ascertain(state.path(), &["compare", "-r", "3", "false", "true"]);
    let row = |name: &str| ran.stdout.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_string();
    assert!(row("false").ends_with("failed"), "{}", ran.stdout);
    assert!(row("true").ends_with("not compared"), "{}", ran.stdout);
    let said = "Failed: command `false` ended with exit code 1;";
    assert!(ran.stdout.contains(said), "{}", ran.stdout);
    let nothing = ascertain(state.path(), &["compare", "false", "true"]);
    assert_eq!(nothing.code, Some(5));
    assert!(nothing.stdout.starts_with(said) && !nothing.stdout.contains("Careful"), "figures: {}", nothing.stdout);
}

#[test]
fn ignored_failures_are_reported() {
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
fn a_signal_that_ended_a_command_is_named() {
    let state = tempfile::tempdir().unwrap();
    let ran = ascertain(state.path(), &["compare", "-i", "-r", "2", "sh -c 'kill -9 $$'", "true"]);
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("ended with status 137, which stands for signal 9, in 2 of 2 trials"), "{}", ran.stdout);
}

/// If both commands of every pair are stopped, more pairs would not help, so the message must not suggest more.
#[test]
fn more_pairs_are_not_suggested_if_every_pair_reached_its_limit() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["compare", "-r", "20", "--time-limit", "20ms", "sleep 600", "sleep 500"];
    let ran = ascertain(state.path(), &arguments);
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!words.contains("too early"), "{}", ran.stdout);
    assert!(words.contains("both commands were stopped at their time limits"), "{}", ran.stdout);
}

#[test]
fn times_at_their_limit_are_reported() {
    let state = tempfile::tempdir().unwrap();
    let ran = ascertain(state.path(), &["compare", "-r", "6", "--time-limit", "60ms", "sleep 600", "sleep 500"]);
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("`sleep 600` was stopped at its time limit of 60 ms in 6 of 6 trials"), "{}", ran.stdout);
    assert!(words.contains("over 60 ms") && !words.contains("too few trials"), "{}", ran.stdout);
    let json = ascertain(state.path(), &["continue", "--format", "json"]).json();
    assert_eq!((&json["points"][0]["censored"], &json["points"][0]["limit"]), (&6.into(), &60e6.into()), "{json}");
    let slo = ["slo", "--at-least", "99%", "--within", "3ms", "--time-limit", "60ms", "--max-time", "10min"];
    let ran = ascertain(state.path(), &[&slo[..], &["--format", "markdown", "--", "sleep", "600"]].concat());
    assert!(
        ran.stdout.contains("Refuted: `exit == 0 and wall <= 3 ms` was true of `sleep 600` in none"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("Careful: `sleep 600` was stopped at its time limit of 60 ms in "), "{}", ran.stdout);
}

#[test]
fn plots_that_can_not_be_shown_are_reported() {
    let state = tempfile::tempdir().unwrap();
    let compare =
        |format| ascertain(state.path(), &["compare", "-r", "2", "--plot", "--format", format, "true"]).stderr;
    assert!(compare("json").contains("--plot is ignored") && !compare("table").contains("--plot"));
    assert_eq!(ascertain(state.path(), &["report"]).code, Some(0));
    let page = std::fs::read_to_string(runs(state.path()).pop().unwrap().join("report.html")).unwrap();
    assert!(page.contains("<h1>1 command measured</h1>"));
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

/// A trial in which a command was stopped before it printed its figure does not count as interrupted.
#[test]
fn a_figure_that_is_not_printed_in_time_leaves_the_verdict_on_time() {
    let state = tempfile::tempdir().unwrap();
    let limits = ["--time-limit", "100ms", "--max-time", "10min", "--format", "json"];
    let metrics = ["--metric", "wall", "--metric", "figure=f ([0-9]+)", "--better", "lower"];
    let arguments = [&["compare", "--no-evidence"], &limits[..], &metrics, &["echo f 1", "sleep 3600"]].concat();
    let claim = ascertain(state.path(), &arguments).json()["claims"][0].clone();
    assert_eq!(claim["decision"], "slower", "{claim}");
}

/// GNU grep stops at its first match if its output is `/dev/null`, so its output goes to another device by default.
#[test]
#[cfg(target_os = "linux")]
fn grep_does_its_work_unless_its_output_is_dev_null() {
    let version = std::process::Command::new("grep").arg("--version").output();
    if !version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("GNU grep")) {
        return left_out("this is not GNU grep");
    }
    let state = tempfile::tempdir().unwrap();
    std::fs::write(state.path().join("lines"), "line\n".repeat(1 << 20)).unwrap();
    let remarks = |output: &[&str]| {
        let arguments = ["compare", "--no-evidence", "--format", "json", "-r", "2"];
        let commands = ["grep -c '' lines", "wc -l lines"];
        ascertain(state.path(), &[&arguments[..], output, &commands].concat()).json()["remarks"].clone()
    };
    assert_eq!(remarks(&[]), Value::Null);
    let remarks = remarks(&["--output", "null"]);
    // If the machine is busy, there may be a remark on `wc` too.
    let of_grep = |remark: &&Value| remark["variant"] == "grep -c '' lines";
    let remark = remarks.as_array().unwrap().iter().find(of_grep).unwrap_or_else(|| panic!("{remarks}"));
    let (null, neutral) = (&remark["remark_code"]["null"], &remark["remark_code"]["neutral"]);
    assert!(null["read_bytes"].as_u64() < neutral["read_bytes"].as_u64(), "{remark}");
}

#[test]
fn a_command_that_hangs_is_an_infinite_time() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["compare", "--format", "json", "--time-limit", "100ms", "-r", "3", "sleep 0.001", "sleep 100"];
    let json = ascertain(state.path(), &arguments).json();
    assert_eq!(json["points"][5]["median"], Value::Null);
    assert_eq!(json["claims"][0]["successes"], 0);
    let slo = ["slo", "--at-least", "90%", "--within", "50ms", "--time-limit", "100ms", "--max-time", "10min"];
    assert_eq!(ascertain(state.path(), &[&slo[..], &["--", "sleep", "100"]].concat()).code, Some(1));
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
        "--export-json-1",
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

/// If both commands were stopped, nothing is known about which is faster. Each may take any time above its limit.
#[test]
fn a_stopped_command_is_only_known_to_be_above_its_limit() {
    let state = tempfile::tempdir().unwrap();
    let limited = ["compare", "--margin", "5%", "--time-limit", "20ms", "--max-trials", "40", "sleep 600", "sleep 500"];
    let ran = ascertain(state.path(), &[&limited[..], &["--format", "json"]].concat());
    assert_eq!(ran.json()["claims"][0]["decision"], "undecided", "{}", ran.stdout);
    // The candidate takes 15 ms or more, and the baseline is stopped after 40 ms. So it is never shown that the
    // candidate is eight times as fast.
    let claim = "[[claim]]\nid = \"x\"\ncandidate = \"sleep 0.015\"\nbaseline = \"sleep 600\"\nat_least = 8.0\n\
                 time_limit = \"40 ms\"\n";
    std::fs::write(state.path().join("claims.toml"), claim).unwrap();
    let ran = ascertain(state.path(), &["check", "claims.toml", "--max-time", "10min", "--max-trials", "20"]);
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("reached the time limit, so they have no outcome"), "{}", ran.stdout);
}

/// One command is better in the first fifteen trials and worse in all later ones. The answer after the first trials
/// must be withdrawn.
#[test]
fn an_answer_that_later_pairs_contradict_is_withdrawn() {
    let state = tempfile::tempdir().unwrap();
    std::fs::write(state.path().join("runs"), "0\n").unwrap();
    let turns = "read n < runs; echo $((n + 1)) > runs; [ $n -lt 15 ] || { env; env; env; env; env; env; env; env; }";
    let by = ["compare", "--format", "json", "--metric", "page_faults", "-r", "36", "--shell", "env; env; env"];
    let ran = ascertain(state.path(), &[&by[..], &[turns]].concat());
    let claim = &ran.json()["claims"][0];
    assert_eq!((&claim["decision"], &claim["verdict"]), (&"undecided".into(), &"undecided".into()), "{claim}");
    assert!(claim["successes"].as_u64().is_some_and(|pairs| pairs <= 18), "{claim}");
    assert!(claim["decided"]["trials"].as_u64().is_some_and(|pairs| pairs <= 15), "{claim}");
    assert!(claim["reason"].as_str().unwrap().contains("withdrawn"), "{claim}");
}

/// The recorded plan contains the margin and the gate, so that a continuation judges in the same way.
#[test]
fn commands_are_compared_by_the_requested_metric() {
    let state = tempfile::tempdir().unwrap();
    let (few, many) = ("true", MANY_FAULTS);
    let by = ["compare", "--metric", "page_faults", "--fail-if", "slower", "--max-time", "10min"];
    let ran = ascertain(state.path(), &[&by, &[few, many][..]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let said = format!("`{many}` has more page faults than `{few}` by more than 3 %: ");
    assert!(ran.stdout.contains(&said) && ran.stdout.contains(" times as many"), "{}", ran.stdout);
    assert!(ran.stdout.contains("Median page faults") && ran.stdout.contains("Wall"), "{}", ran.stdout);
    let run = runs(state.path()).pop().unwrap();
    let name = run.file_name().unwrap().to_str().unwrap();
    let went_on = ascertain(state.path(), &["continue", name, "--max-trials", "30"]);
    assert_eq!(went_on.code, Some(1), "{}", went_on.stderr);
    assert!(went_on.stdout.contains(&said), "{}", went_on.stdout);
    ascertain(state.path(), &["report", name]);
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("has more page faults than") && page.contains(">Counter</th>"), "{page}");
    for (metric, hint) in [("memory", "did you mean `memory_peak`?"), ("exit", "there are: wall, user, ")] {
        let ran = ascertain(state.path(), &["compare", "--no-evidence", "--metric", metric, few, few]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains(hint), "{}", ran.stderr);
    }
    let alone = ascertain(state.path(), &["compare", "--no-evidence", "--metric", "user", few]);
    assert_eq!(alone.code, Some(2), "{}", alone.stderr);
}

/// Counters do not affect the verdict. If the machine lacks a counter, the output gives the reason.
#[test]
fn counters_do_not_affect_the_answer() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["compare", "--counters", "--format", "json", "-r", "40", "true", MANY_FAULTS];
    let json = ascertain(state.path(), &arguments).json();
    let claims = json["claims"].as_array().unwrap();
    assert_eq!(claims.len(), 1);
    let counters = claims[0]["counters"].as_array().unwrap();
    let metric =
        |claim: &Value| claim["asked"]["tests"][0]["versus"]["measure"]["metric"].as_str().unwrap().to_string();
    let names: Vec<String> = counters.iter().map(metric).collect();
    assert_eq!(names[..3], ["instructions", "cycles", "cache_references"]);
    assert_eq!(names[3..], ["cache_misses", "branch_misses", "page_faults", "context_switches", "cpu_migrations"]);
    for counter in counters {
        match counter["verdict"].as_str().unwrap() {
            "unavailable" => {
                assert!(counter["reason"].is_string(), "{counter}");
                assert_eq!(counter["reason_codes"][0]["code"], "unavailable");
            }
            _ => assert_eq!((&counter["trials"], &counter["error"]), (&claims[0]["trials"], &claims[0]["error"])),
        }
    }
    assert_eq!((&counters[5]["decision"], &counters[5]["successes"]), (&"slower".into(), &0.into()));
    assert!(counters[5]["ratio_high"].as_f64().unwrap() < 1.0);
    let table =
        ascertain(state.path(), &["compare", "--no-evidence", "--counters", "--mean", "-r", "3", "true"]).stdout;
    assert!(table.contains("page faults") && table.contains("Mean ± σ"), "{table}");
}

/// If no process migrates to another CPU, or migrations can't be counted, there is no ratio and no plot of ratios.
#[test]
fn zeros_are_a_tie_that_can_be_reported() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["compare", "--metric", "cpu_migrations", "-r", "20", "true", "true"];
    let ran = ascertain(state.path(), &arguments);
    assert!(matches!(ran.code, Some(0 | 4)), "{}", ran.stderr);
    let run = runs(state.path()).pop().unwrap();
    assert_eq!(ascertain(state.path(), &["report", run.to_str().unwrap()]).code, Some(0));
}

/// Of two printed figures, the first is compared, with its unit. The table shows both.
#[test]
fn printed_figures_are_compared() {
    let state = tempfile::tempdir().unwrap();
    let metrics = ["--metric", "throughput=([0-9.]+) MB/s", "--metric", "p99=json:.stats.p99", "--better", "higher"];
    let print = |throughput: &str| format!("printf 'read: {throughput} MB/s\\n{{\"stats\": {{\"p99\": 7}}}}\\n'");
    let (slow, fast) = (print("10"), print("12.5"));
    let exported = ["--export-json", "two.json"];
    let named = ["-n", "slow", "-n", "fast", &slow, &fast];
    let ran = ascertain(state.path(), &[&["compare", "--max-time", "10min"], &metrics[..], &exported, &named].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = "`fast` is faster than `slow`: its `throughput` was 25.00 % higher";
    assert!(words.starts_with(sentence), "{words}");
    assert!(words.contains(" Command Median throughput p99 Wall"), "{words}");
    assert!(words.contains("fast 12.50 MB/s 7 "), "{words}");
    let exported: Value = serde_json::from_slice(&std::fs::read(state.path().join("two.json")).unwrap()).unwrap();
    let measured = &exported["results"][1]["measurements"][0]["throughput"];
    assert_eq!(*measured, serde_json::json!({"value": 12.5e6, "unit": "byte/second"}));

    let json = ascertain(state.path(), &["report", "--format", "json"]).json();
    let points = json["points"].as_array().unwrap();
    let point = points.iter().rfind(|point| point["metric"] == "throughput").unwrap();
    let seen = ["unit", "better", "median"].map(|key| point[key].clone());
    assert_eq!(seen, ["B/s".into(), "higher".into(), Value::from(12.5e6)]);
    let measure = &json["claims"][0]["asked"]["tests"][0]["versus"]["measure"];
    assert_eq!(*measure, serde_json::json!({"metric": "throughput", "unit": "B/s", "better": "higher"}));
    assert_eq!(json["claims"][0]["says"], "fast has more throughput than slow");
    let page = std::fs::read_to_string(state.path().join("report.html"));
    let written = ascertain(state.path(), &["report", "-o", "report.html"]);
    let page = page.or_else(|_| std::fs::read_to_string(state.path().join("report.html"))).unwrap();
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    assert!(page.contains("12.50 MB/s"), "the page has the figure with its unit");
    assert!(page.contains("<code>throughput</code> was 25"), "the page has the answer with the name of the figure");
    assert!(ascertain(state.path(), &["report", "--plots"]).stdout.contains("compare-throughput-medians"));
}

#[test]
fn a_run_with_a_printed_metric_is_continued() {
    let state = tempfile::tempdir().unwrap();
    let metric = ["--metric", "json:.[0].items", "--unit", "k/s", "--max-trials", "3"];
    let begun = ascertain(
        state.path(),
        &[&["compare"], &metric[..], &["echo '[{\"items\":1}]'", "echo '[{\"items\":2}]'"]].concat(),
    );
    assert_eq!(begun.code, Some(0), "{}", begun.stderr);
    let json = ascertain(state.path(), &["continue", "--max-trials", "40", "--format", "json"]).json();
    assert_eq!((&json["claims"][0]["decision"], &json["claims"][0]["ratio"]), (&"faster".into(), &2.0.into()));
    let median = |arm: usize| {
        let points = json["points"].as_array().unwrap();
        let of_arm: Vec<&Value> = points.iter().filter(|point| point["metric"] == "items").collect();
        (of_arm[arm]["median"].as_f64(), of_arm[arm]["unit"].clone())
    };
    assert_eq!([median(0), median(1)], [(Some(1000.0), "1/s".into()), (Some(2000.0), "1/s".into())]);
}

#[test]
fn equal_figures_are_reported_as_ties() {
    let state = tempfile::tempdir().unwrap();
    let metric = ["compare", "-r", "20", "--metric", "rate=([0-9]+) MB/s"];
    let ran = ascertain(state.path(), &[&metric[..], &["echo 5 MB/s", "echo 05 MB/s"]].concat());
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence =
        "No difference found between `echo 05 MB/s` and `echo 5 MB/s` in `rate`: 20 pairs, and each was a tie.";
    assert!(words.contains(sentence) && words.contains(" all ties ") && !words.contains("below 0 %"), "{words}");
    assert_eq!(ascertain(state.path(), &["report", "-o", "page.html"]).code, Some(0));
    let page = std::fs::read_to_string(state.path().join("page.html")).unwrap();
    assert!(page.contains("<title>Undecided whether echo 05 MB/s or echo 5 MB/s is faster in rate"), "{page:.2000}");
}

#[test]
fn a_gate_fails_for_a_lower_throughput() {
    let state = tempfile::tempdir().unwrap();
    let code = |figures: [&str; 2]| {
        let lines = figures.map(|figure| format!("echo {figure} MB/s"));
        let metric = ["--metric", "throughput=([0-9.]+) MB/s", "--max-time", "10min"];
        let common = ["compare", "--no-evidence", "--fail-if", "slower"];
        ascertain(state.path(), &[&common[..], &metric, &[&*lines[0], &*lines[1]]].concat()).code
    };
    assert_eq!([code(["12", "10"]), code(["10", "12"])], [Some(1), Some(0)]);
}

/// A missing figure is an error even with `--ignore-failure`.
#[test]
fn a_trial_without_its_figure_has_failed() {
    let state = tempfile::tempdir().unwrap();
    let compare = |arguments: &[&str]| {
        let common = ["compare", "--no-evidence", "-r", "2", "--metric", "rate=([0-9.]+) MB/s"];
        let ran = ascertain(state.path(), &[&common, arguments].concat());
        (ran.code, ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ") + &ran.stderr)
    };
    let (code, said) = compare(&["echo 5 MB/s", "printf 'one\\ntwo'"]);
    assert_eq!(code, Some(5), "{said}");
    let expected =
        "printed no `rate`: `([0-9.]+) MB/s` matches no line of its output; the output ends with `one / two`";
    assert!(said.contains(expected), "{said}");
    let (code, said) = compare(&["-i", "echo 5 MB/s", "false"]);
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("command `false` ended with exit code 1 and printed no `rate`"), "{said}");
    assert_eq!(compare(&["-i", "-S", "echo 5 MB/s", "echo 5 MB/s; exit 1"]).0, Some(0));
    // The command prints more output than Ascertain keeps, with the figure at the beginning.
    let (code, said) = compare(&["-S", "echo 5 MB/s; head -c 2000000 /dev/zero | tr '\\0' '\\n'", "echo 5 MB/s"]);
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("matches no line of the last MiB of its output, which is all that is kept"), "{said}");
}

#[test]
fn a_printed_metric_needs_a_direction_and_the_output() {
    let state = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str]| {
        let ran = ascertain(state.path(), &[&["compare", "--no-evidence"], arguments, &["echo 1", "echo 2"]].concat());
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.stdout);
        ran.stderr
    };
    let said = refused(&["--metric", "score=(.)"]);
    assert!(
        said.contains("it is unknown whether higher or lower `score` is better; add --better higher or --better lower"),
        "{said}"
    );
    let said = refused(&["--metric", "([0-9.]+) MB/s"]);
    assert!(said.contains("`([0-9.]+) MB/s` is not a printed metric; write NAME=REGEX"), "{said}");
    let said = refused(&["--metric", "score=([0-9.+) s"]);
    assert!(said.contains("`([0-9.+) s` is not a regular expression: "), "{said}");
    let said = refused(&["--metric", "json:stats.p99"]);
    assert!(said.contains("`stats.p99` is not a path into JSON; write .key"), "{said}");
    let said = refused(&["--metric", "score=(.) s", "--output", "pipe"]);
    assert!(said.contains("`score` is read from the output of the commands"), "{said}");
    assert!(refused(&["--unit", "ms"]).contains("--unit needs a metric that the commands print"));
    assert!(
        refused(&["--metric", "a=(.) s", "--metric", "user"]).contains("--metric user: commands are compared by a")
    );
    let said =
        refused(&["--metric", "a=(.) s", "--metric", "b=(.) s", "--metric", "c=(.) s", "--unit", "s", "--unit", "s"]);
    assert!(said.contains("--unit is given 2 times for 3 printed metrics"), "{said}");
    // A single command may print a figure of unknown direction, because nothing is compared.
    let alone = |metric: &str| {
        ascertain(state.path(), &["compare", "--no-evidence", "-r", "2", "--metric", metric, "echo 5 ms"])
    };
    for (metric, figure) in [("n=([0-9]) ms", "5.000 ms"), ("n=([0-9])", " 5 ")] {
        let ran = alone(metric);
        assert!(ran.stdout.contains(figure), "{metric}: {}{}", ran.stdout, ran.stderr);
    }
}

/// The table has a column for each parameter, and the best level is printed above it. The terminal and the SVG both
/// show the plot.
#[test]
fn a_scan_names_the_best_level_and_plots_the_metric() {
    let state = tempfile::tempdir().unwrap();
    let scan = ["-P", "n", "0", "1", "-D", "0.5", "-L", "mode", "a,b", "--metric", "rate=([0-9.]+) MB/s"];
    let common = ["compare", "-r", "20", "--plot"];
    let ran = ascertain(state.path(), &[&common[..], &scan, &["echo {mode}1{n} MB/s"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let best = " n=1.0` has the best median `rate` of 6 combinations: 11.00 MB/s";
    assert!(words.starts_with("`echo {mode}1{n} MB/s`: `mode=") && words.contains(best), "{words}");
    assert!(words.contains("`mode=a n=0.5` is faster than `mode=a n=0.0`: its `rate` was 5.000 % higher"), "{words}");
    assert!(words.contains("and 1 other. The intervals of the first two overlap"), "{words}");
    assert!(words.contains("mode n Median rate"), "{words}");
    assert!(words.contains(" b 0.5 10.50 MB/s "), "{words}");
    assert!(words.contains("Rate by n, with 95 % bands") && words.contains("mode=a"), "{words}");
    assert!(!words.contains("NaN") && words.contains("equal"), "{words}");

    assert!(ascertain(state.path(), &["report", "--plots"]).stdout.contains("compare-rate-n-sweep"));
    let svg = ascertain(state.path(), &["report", "--svg", "compare-rate-n-sweep"]).stdout;
    let has_band = svg.contains("Rate by n, with 95 % bands") && svg.contains("<path class=\"band\"");
    assert!(svg.contains("<svg") && has_band, "{svg}");
    let markdown = ascertain(state.path(), &["continue", "--format", "markdown"]).stdout;
    assert!(markdown.starts_with("`echo {mode}1{n} MB/s`: `mode=") && markdown.contains(best), "{markdown}");
    assert!(markdown.contains("\n| mode | n | Median rate | "), "{markdown}");
    let written = ascertain(state.path(), &["report", "-o", "page.html"]);
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    let page = std::fs::read_to_string(state.path().join("page.html")).unwrap();
    assert!(page.contains("has the best median <code>rate</code> of 6 combinations"), "the page has the summary too");
    assert!(page.contains("than echo a10.0 MB/s in rate"), "the title names the reference and the metric");
    assert!(page.contains("the reference <code>mode=a n=0.0</code> has "), "the lead names the levels");
    let first = page.find("Rate by n").unwrap();
    assert!(page.find("Wall time by n").is_none_or(|other| first < other), "what is compared comes first");
}
