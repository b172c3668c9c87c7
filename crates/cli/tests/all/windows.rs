//! Tests of `ascertain slo --for`: long measurements with percentiles by window.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::common::{Ran, ascertain, command, kill, ran, restored_lines, runs, send_signal};

/// Writes a file of times in milliseconds, one per line. Returns the times in nanoseconds.
fn times(path: &Path, count: u32) -> Vec<f64> {
    let times: Vec<f64> = (0..count).map(|index| f64::from(index * 7919 % 10_007) / 100.0).collect();
    let text: String = times.iter().map(|time| format!("{time}\n")).collect();
    fs::write(path, text).unwrap();
    times.iter().map(|time| time * 1e6).collect()
}

fn slo(state: &Path, arguments: &[&str]) -> Ran {
    ascertain(state, &[&["slo", "--color", "never"], arguments].concat())
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key}: {value}"))
}

/// The quantile of sorted values that NumPy computes by default.
fn quantile(sorted: &[f64], level: f64) -> f64 {
    let position = level * (sorted.len() - 1) as f64;
    let (rank, fraction) = (position as usize, position.fract());
    if fraction == 0.0 { sorted[rank] } else { sorted[rank] + (sorted[rank + 1] - sorted[rank]) * fraction }
}

/// The lines of a file, in which an error leaves at most the last line incomplete.
fn lines(run: &Path, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(run.join(name)).unwrap();
    text.lines().map_while(|line| serde_json::from_str(line).ok()).collect()
}

fn only_run(state: &Path) -> PathBuf {
    let mut runs = runs(state);
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}

#[test]
fn each_line_is_an_observation() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let mut expected = times(&state.join("times"), 30_000);
    let arguments = ["--for", "1h", "--lines", "--unit", "ms", "--within", "50ms", "--format", "json"];
    let ran = slo(state, &[&arguments[..], &["--", "cat", "times"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let windows = &ran.json()["windows"];
    let total = &windows["total"];
    assert_eq!(number(total, "observations"), 30_000.0);
    let successes = expected.iter().filter(|time| **time <= 50e6).count();
    assert_eq!(number(total, "successes"), successes as f64);
    assert_eq!(windows["ended"], serde_json::json!({ "command": "ended with exit code 0" }));
    expected.sort_by(f64::total_cmp);
    assert_eq!((number(total, "least"), number(total, "most")), (expected[0], expected[29_999]));
    for (key, level) in [("median", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
        let (found, exact) = (number(total, key), quantile(&expected, level));
        assert!((found / exact - 1.0).abs() < 3.67e-4, "{key}: {found} {exact}");
    }
    assert!(ran.stderr.contains("in 60 windows of 60 s") || ran.stderr.contains("windows of 1 min"), "{}", ran.stderr);
    assert!(ran.stderr.contains("B for buffers and states, however many observations there are"), "{}", ran.stderr);
}

/// Compares the figures of each window with a plain reference: the values that the histogram of the window has.
#[test]
fn the_histograms_have_all_observations() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let script = "for part in 1 2 3 4 5 6; do seq $part 7 2000; sleep 0.25; done";
    let arguments = ["--for", "10min", "--window", "1s", "--lines", "--unit", "us", "-q", "--shell", "--", script];
    let ran = slo(state, &arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let run = only_run(state);
    let windows = lines(&run, "windows.jsonl");
    assert!(!windows.is_empty());
    let mut all: Vec<f64> = (1..=6).flat_map(|part| (part..=2000).step_by(7)).map(|us| f64::from(us) * 1e3).collect();
    all.sort_by(f64::total_cmp);
    let mut counted = Vec::new();
    for window in &windows {
        let histogram = window["histogram"].as_array().unwrap();
        let mut values = Vec::new();
        for pair in histogram {
            values.extend(std::iter::repeat_n(pair[0].as_f64().unwrap(), pair[1].as_u64().unwrap() as usize));
        }
        assert_eq!(values.len() as f64, number(window, "observations"));
        for (key, level) in [("median", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
            if !values.is_empty() {
                let (found, exact) = (number(window, key), quantile(&values, level));
                assert!((found / exact - 1.0).abs() < 2.0 * 3.67e-4, "{key}: {found} {exact}");
            }
        }
        counted.extend(values);
    }
    counted.sort_by(f64::total_cmp);
    assert_eq!(counted.len(), all.len());
    assert!(counted.iter().zip(&all).all(|(found, exact)| (found / exact - 1.0).abs() < 3.67e-4));
}

#[test]
fn the_rows_are_every_nth_observation_and_those_around_failures() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let script = "seq 1 499; echo 9000; seq 501 1000";
    let arguments = ["--for", "10min", "--lines", "--unit", "us", "--within", "5ms", "--at-least", "90%"];
    let recorded = ["--record-every", "100", "--around", "2", "--shell", "--", script];
    let ran = slo(state, &[&arguments[..], &recorded].concat());
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let printed = ran.stdout.replace('\n', " ");
    assert!(printed.starts_with("Holds:"), "{printed}");
    assert!(printed.contains("one observation in 100 (10 in all)"), "{printed}");
    assert!(printed.contains("2 observations before and after the failure (5 in all)"), "{printed}");
    let run = only_run(state);
    let rows: Vec<(u64, f64)> = restored_lines(&run)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line.trim()).unwrap())
        .map(|row| (row["trial"].as_u64().unwrap(), row["value"].as_f64().unwrap()))
        .collect();
    let expected: Vec<(u64, f64)> = (0..10).map(|row| (row * 100, (row * 100 + 1) as f64 * 1e3)).collect();
    assert_eq!(rows, expected);
    let around = lines(&run, "around.jsonl");
    let around: Vec<u64> = around.iter().map(|row| row["trial"].as_u64().unwrap()).collect();
    assert_eq!(around, [497, 498, 499, 500, 501]);
    let series = ascertain(state, &["series", "latest", "value", "--format", "csv"]);
    assert_eq!((series.code, series.stdout.lines().count()), (Some(0), 11), "{}", series.stderr);
    assert!(series.stderr.contains("one observation in 100"), "{}", series.stderr);
}

/// A count of the recorded observations is not the count of all. The ratio of two counts does not depend on their share.
#[test]
fn counts_of_a_sample_are_refused() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let script = "seq 1 1000";
    let arguments =
        ["--for", "10min", "--lines", "--unit", "us", "--record-every", "10", "-q", "--shell", "--", script];
    let ran = slo(state, &arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for expression in ["count(value)", "sum(value)", "where(value, count(value) > 5)"] {
        let ran = ascertain(state, &["series", "latest", expression]);
        assert_eq!(ran.code, Some(2), "{expression}: {}", ran.stdout);
        let message = "recorded only one in 10 of its observations";
        assert!(ran.stderr.contains(message) && ran.stderr.contains("(slo --series, "), "{}", ran.stderr);
        let report = ascertain(state, &["report", "latest", "--format", "markdown", "--series", expression]);
        assert!(report.code == Some(2) && report.stderr.contains(message), "{}", report.stderr);
    }
    let ratio = ascertain(state, &["series", "latest", "sum(value) / count(value)", "--format", "json", "-q"]);
    let json = ratio.json();
    assert_eq!((number(&json, "recorded_every"), number(&json, "count")), (10.0, 100.0));
    // The mean of 1, 11, 21 … 991 µs.
    let last = json["results"].as_array().unwrap().last().unwrap().as_f64().unwrap();
    assert!((last / 496e3 - 1.0).abs() < 1e-9, "{last}");
    let markdown = ascertain(state, &["report", "latest", "--format", "markdown", "--series", "mean(value)"]);
    assert!(markdown.stdout.contains("The series has one observation in 10,"), "{}", markdown.stdout);
}

/// Times of a run are compared with the windows of an expression before anything is computed.
#[test]
fn windows_that_are_longer_than_the_run_are_refused() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let ran = slo(state, &["--for", "10min", "--lines", "-q", "--shell", "--", "echo 1 ms; echo 2 ms"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for (expression, message) in [
        ("mean(window(value, 1000 s))", "no window of 1000 s ends before the last observation of `value`"),
        ("mean(window(value, 1000))", "the window of 1,000 values is longer than the evidence, which has 2 values"),
    ] {
        let ran = ascertain(state, &["series", "latest", expression]);
        assert_eq!(ran.code, Some(2), "{expression}: {}", ran.stdout);
        assert!(ran.stderr.contains(message), "{expression}: {}", ran.stderr);
    }
}

/// The verdict is certain after the first lines. The share and its interval are about all of them.
#[test]
fn the_figures_of_a_verdict_name_their_observations() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let script = "yes 1 ms | head -n 4000; echo 9 ms";
    let arguments = ["--for", "10min", "--lines", "--within", "5ms", "--at-least", "90%", "--shell", "--", script];
    let ran = slo(state, &arguments);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let printed = ran.stdout.replace('\n', " ");
    assert!(
        printed.contains("in all of the first ") && printed.contains(", so at least 90 % of the time"),
        "{printed}"
    );
    assert!(printed.contains("This was true in 4000 of all 4001 trials, 99.9"), "{printed}");
    assert!(printed.contains("Its median `value` in all trials was 1.000 ms."), "{printed}");
}

#[test]
fn a_run_that_is_too_short_for_a_verdict_recommends_a_longer_one() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let arguments = ["--for", "1s", "--at-least", "99.999%", "--within", "1h", "--", "sleep 0.01"];
    let ran = slo(state, &arguments);
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    let printed = format!("{} {}", ran.stdout, ran.stderr).replace('\n', " ");
    assert!(printed.contains("`--for ") && !printed.contains("--max-time"), "{printed}");
    // A longer time is of no use if the command ends.
    let script = "echo 1 ms; echo 2 ms";
    let arguments = ["--for", "1h", "--lines", "--at-least", "99%", "--within", "5ms", "--shell", "--", script];
    let ran = slo(state, &arguments);
    let printed = format!("{} {}", ran.stdout, ran.stderr).replace('\n', " ");
    assert!(printed.contains("but the run ended before that"), "{printed}");
}

#[test]
fn a_command_is_measured_until_the_time_is_up() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 1024];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let fetch = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo 'GET / HTTP/1.0' >&3; echo >&3; cat <&3 >/dev/null");
    let arguments = ["--for", "2s", "--window", "500ms", "--at-least", "10%", "--within", "10s", "--series"];
    let series = ["every(wall, 2)", "--format", "json", "--shell=bash", "--", &fetch];
    let ran = slo(state, &[&arguments[..], &series].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let json = ran.json();
    let windows = &json["windows"];
    assert_eq!((windows["windows"].as_array().unwrap().len(), &windows["ended"]), (4, &"time".into()), "{windows}");
    let observations = number(&windows["total"], "observations");
    assert!(observations >= 1.0, "{windows}");
    assert_eq!(number(&json["claims"][0], "trials"), observations);
    assert_eq!(json["points"].as_array().unwrap().len(), 5);
    let results: f64 = windows["series"][0]["windows"].as_array().unwrap().iter().map(|w| number(w, "results")).sum();
    assert_eq!(results, (observations / 2.0).ceil());
    assert_eq!(ran.stderr.matches("\nwindow ").count(), 4, "{}", ran.stderr);
    // The run can be reported, listed and read, but not continued.
    let run = only_run(state);
    let report = ascertain(state, &["report", "latest"]);
    assert_eq!(report.code, Some(0), "{}", report.stderr);
    let page = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("By window") && page.contains("p99 and median by window"), "no windows on the page");
    assert!(!page.contains("evidence of this run is incomplete"), "the page says that rows are missing");
    let printed = ascertain(state, &["report", "latest", "--format", "json"]);
    assert_eq!(printed.json()["windows"], *windows);
    assert!(ascertain(state, &["history"]).stdout.contains("slo"));
    let continued = ascertain(state, &["continue", "latest"]);
    assert_eq!(continued.code, Some(2));
    assert!(continued.stderr.contains("measured for a fixed time"), "{}", continued.stderr);
    let markdown = ascertain(state, &["report", "latest", "--format", "markdown"]);
    assert!(markdown.stdout.contains("| p99.9 |"), "{}", markdown.stdout);
    let csv = ascertain(state, &["report", "latest", "--format", "csv"]);
    assert!(csv.stdout.starts_with("window,start_ns,") && csv.stdout.lines().count() == 5, "{}", csv.stdout);
}

/// Starts a run that prints a line every ten milliseconds, and waits until two windows have ended.
fn going_on(state: &Path) -> (std::process::Child, PathBuf) {
    let script = "while true; do echo 3; sleep 0.01; done";
    let arguments =
        ["slo", "--for", "1h", "--window", "2s", "--lines", "--unit", "ms", "--at-least", "50%", "--within"];
    let mut command = command(state, &[&arguments[..], &["5ms", "--shell", "--", script]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let has_two_windows = |run: &PathBuf| {
        let text = fs::read_to_string(run.join("windows.jsonl")).unwrap_or_default();
        text.lines().count() >= 2
    };
    let mut run = None;
    while run.is_none() {
        thread::sleep(Duration::from_millis(20));
        run = runs(state).pop().filter(has_two_windows);
    }
    (child, run.unwrap())
}

#[test]
fn a_killed_run_is_readable() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let (child, run) = going_on(state);
    kill(child);
    // A kill can cut off the last line.
    let mut text = fs::read_to_string(run.join("windows.jsonl")).unwrap();
    let whole = lines(&run, "windows.jsonl").len();
    text.push_str("{\"window\":99,");
    fs::write(run.join("windows.jsonl"), text).unwrap();
    let report = ascertain(state, &["report", "latest", "--format", "json"]);
    assert_eq!(report.code, Some(0), "{}", report.stderr);
    let json = report.json();
    let windows = &json["windows"];
    assert_eq!(windows["windows"].as_array().unwrap().len(), whole);
    assert_eq!(windows["ended"], "open");
    assert_eq!(number(&json["claims"][0], "trials"), number(&windows["total"], "observations"));
    assert!((number(&windows["total"], "median") / 3e6 - 1.0).abs() < 3.67e-4);
    assert_eq!(ascertain(state, &["series", "latest", "value", "--plan"]).code, Some(0));
    assert_eq!(ascertain(state, &["report", "latest"]).code, Some(0));
}

#[test]
fn an_interrupted_run_ends_with_the_results_so_far() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let (child, _) = going_on(state);
    send_signal(&child, "-TERM");
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    assert!(ran.stdout.contains("The run was interrupted after"), "{}", ran.stdout);
    assert!(ran.stdout.contains("p99.9"), "{}", ran.stdout);
    let json = ascertain(state, &["report", "latest", "--format", "json"]).json();
    assert_eq!((&json["interrupted"], &json["windows"]["ended"]), (&true.into(), &"interrupted".into()));
}

#[test]
fn bad_lines_are_named_or_counted() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let script = "echo 1 ms; echo 2 ms; echo oops; echo 3 ms";
    let ran = slo(state, &["--for", "1min", "--lines", "--shell", "--", script]);
    assert_eq!(ran.code, Some(5));
    assert!(ran.stderr.contains("line 3 of the command is `oops`: it does not begin with a number"), "{}", ran.stderr);
    assert!(ran.stderr.contains("(--unit, --count-bad-lines)"), "{}", ran.stderr);
    // The observations before the line are printed and recorded.
    assert!(ran.stdout.contains("p99.9") && ran.stdout.contains("An error ended the run"), "{}", ran.stdout);
    let json = ascertain(state, &["report", "latest", "--format", "json"]).json();
    assert_eq!(number(&json["windows"]["total"], "observations"), 2.0);
    // Without an observation, there is no result.
    let ran = slo(state, &["--for", "1min", "--lines", "--shell", "--", "echo oops; echo 1 ms"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    let arguments = ["--for", "1min", "--lines", "--count-bad-lines", "--format", "json", "--shell", "--", script];
    let total = &slo(state, &arguments).json()["windows"]["total"];
    assert_eq!([4.0, 3.0, 1.0], ["observations", "successes", "without_value"].map(|key| number(total, key)));
    // The trials in the table include the bad line.
    let markdown = ascertain(state, &["report", "latest", "--format", "markdown"]).stdout;
    assert!(markdown.contains("echo 3 ms` | 4 |"), "{markdown}");
}

/// It is unknown how long the command would have taken whose execution a signal ended.
#[test]
fn the_maximum_of_an_interrupted_run_is_not_called_exact() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let script = "if test -e second; then touch third; exec sleep 1000; fi; if test -e first; then touch second; fi; \
                  touch first";
    let mut command = command(state, &["slo", "--for", "1h", "--window", "30min", "--shell", "--", script]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !state.join("third").exists() {
        thread::sleep(Duration::from_millis(20));
    }
    send_signal(&child, "-TERM");
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    let printed = ran.stdout.replace('\n', " ");
    assert!(printed.contains("The end of the run cut off the last observation"), "{printed}");
    assert!(!printed.contains("the maximum is exact"), "{printed}");
    let json = ascertain(state, &["report", "latest", "--format", "json"]).json();
    assert_eq!(json["windows"]["is_last_cut_off"], true);
    assert_eq!(number(&json["windows"]["total"], "observations"), 3.0);
    let markdown = ascertain(state, &["report", "latest", "--format", "markdown"]).stdout;
    assert!(markdown.contains("| 3 |"), "{markdown}");
}

/// The distance between recorded rows doubles within a window, so the last window that has ended does not show it.
#[test]
fn a_run_that_is_killed_in_its_first_window_has_a_series_at_equal_distances() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let script = "seq 0 199999; exec sleep 1000";
    let arguments = ["slo", "--for", "1h", "--window", "30min", "--lines", "--unit", "ms", "--shell", "--", script];
    let mut command = command(state, &arguments);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let has_all_rows = |run: &PathBuf| {
        let text = fs::read(run.join("trials.jsonl")).unwrap_or_default();
        String::from_utf8_lossy(&text[text.len().saturating_sub(1000)..]).contains("\"trial\":199996,")
    };
    while runs(state).pop().filter(has_all_rows).is_none() {
        thread::sleep(Duration::from_millis(20));
    }
    kill(child);
    let series = ascertain(state, &["series", "latest", "value", "--format", "csv"]);
    assert_eq!(series.code, Some(0), "{}", series.stderr);
    assert!(series.stderr.contains("one observation in 4"), "{}", series.stderr);
    assert_eq!(series.stdout.lines().count(), 50_001);
    let last = series.stdout.lines().last().unwrap();
    assert!(last.contains("199996000000"), "{last}");
}

#[test]
fn a_generator_that_fails_makes_the_run_fail() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let arguments = ["--for", "1h", "--lines", "--at-least", "50%", "--within", "5ms", "--shell", "--"];
    let ran = slo(state, &[&arguments[..], &["yes 1 ms | head -n 1000; exit 3"]].concat());
    assert_eq!(ran.code, Some(5), "{}{}", ran.stdout, ran.stderr);
    let printed = ran.stdout.replace('\n', " ");
    assert!(printed.contains("Holds:") && printed.contains("The command ended with exit code 3 after"), "{printed}");
    let json = ascertain(state, &["report", "latest", "--format", "json"]).json();
    assert_eq!(json["left_out"][0]["absence"], "failed");
    assert_eq!(number(&json["windows"]["total"], "observations"), 1000.0);
    // A command that ends early, but as it should, gives a verdict on the observations so far.
    let ran = slo(state, &[&arguments[..], &["yes 1 ms | head -n 1000"]].concat());
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
}

/// The command has failed, and a process that it started keeps its output open.
#[test]
fn a_failure_is_noticed_while_another_process_keeps_the_output_open() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let arguments = ["--for", "1h", "--lines", "--at-least", "50%", "--within", "20ms", "--shell", "--"];
    let ran = slo(state, &[&arguments[..], &["sleep 1000 & yes 1 ms | head -n 30; exit 3"]].concat());
    assert_eq!(ran.code, Some(5), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.replace('\n', " ").contains("The command ended with exit code 3 after"), "{}", ran.stdout);
    // The other process prints until the time is up, so that only the end of the run shows the failure.
    let script = "while true; do echo 1 ms; done & exit 3";
    let ran = slo(state, &["--for", "1s", "--lines", "--shell", "--", script]);
    assert_eq!(ran.code, Some(5), "{}{}", ran.stdout, ran.stderr);
    // A command that has succeeded may leave the work to other processes.
    let ran = slo(state, &["--for", "1s", "--lines", "--shell", "--", "{ echo 1 ms; exec sleep 1000; } &"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
}

/// The time in which a command is ended is not part of the measured time.
#[test]
fn a_command_that_closes_its_output_and_goes_on_is_a_failure() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let arguments = ["--for", "1h", "--lines", "--format", "json", "--shell", "--"];
    let ran = slo(state, &[&arguments[..], &["echo 1 ms; exec >&-; trap '' TERM; sleep 1000; sleep 1000"]].concat());
    assert_eq!(ran.code, Some(5), "{}{}", ran.stdout, ran.stderr);
    let json = ran.json();
    assert_eq!(json["windows"]["ended"]["command"], "closed its output and had to be ended");
    let reason = json["left_out"][0]["reason"].to_string();
    assert!(reason.contains("closed its output and had to be ended"), "{reason}");
}

#[test]
fn a_full_buffer_ends_only_its_series() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let series = ["--series", "every(value, 2) / buffer(value, 10)", "--series", "ewma(value, .01)"];
    let arguments = [&["--for", "1h", "--lines"], &series[..], &["--shell", "--", "yes 1 ms | head -n 3000"]].concat();
    let ran = slo(state, &arguments);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let printed = ran.stdout.replace('\n', " ");
    assert!(printed.contains("3,000 observations") && printed.contains("an error ended this series"), "{printed}");
    let markdown = ascertain(state, &["report", "latest", "--format", "markdown"]).stdout;
    assert!(markdown.contains("`ewma(value, .01)`: results by window"), "{markdown}");
    assert!(markdown.contains("| 1 | 3000 | 1.000 ms | 1.000 ms | 1.000 ms |"), "{markdown}");
}

#[test]
fn unknown_outcomes_are_named_and_recorded() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let arguments = ["--for", "1s", "--within", "1h", "--time-limit", "20ms", "--around", "1", "--", "sleep 1000"];
    let ran = slo(state, &arguments);
    let printed = ran.stdout.replace('\n', " ");
    assert!(printed.contains("is unknown for") && printed.contains("Unknown"), "{printed}");
    assert!(!printed.contains("no observation failed") && printed.contains("unknown outcome"), "{printed}");
    assert!(!lines(&only_run(state), "around.jsonl").is_empty());
}

#[test]
fn the_last_line_of_a_generator_that_failed_is_left_out() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let observed = |script: &str| {
        let arguments = ["--for", "1min", "--lines", "--format", "json", "--shell", "--", script];
        let json = slo(state, &arguments).json();
        let windows = &json["windows"];
        let how = windows["ended"]["command"].as_str().unwrap().to_string();
        (number(&windows["total"], "observations"), how, windows["is_last_line_left_out"].as_bool().unwrap_or(false))
    };
    assert_eq!(observed("printf '1 ms\\n12'; kill -9 $$"), (1.0, "was ended by signal 9".into(), true));
    assert_eq!(observed("printf '1 ms\\n12 ms'"), (2.0, "ended with exit code 0".into(), false));
}

#[test]
fn a_long_line_counts_as_one_bad_line() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let script = "echo 1 ms; head -c 600000 /dev/zero | tr '\\0' x; echo; echo 2 ms; head -c 300000 /dev/zero";
    let arguments = ["--for", "1min", "--lines", "--count-bad-lines", "--format", "json", "--shell", "--", script];
    let total = &slo(state, &arguments).json()["windows"]["total"];
    assert_eq!([4.0, 2.0, 2.0], ["observations", "successes", "without_value"].map(|key| number(total, key)));
}

#[test]
fn a_hook_that_fails_is_the_end_of_the_run() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let ran = slo(state, &["--for", "1min", "--prepare", "mkdir made", "--format", "json", "--", "true"]);
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    let ended = ran.json()["windows"]["ended"]["error"].as_str().unwrap_or_default().to_string();
    assert!(ended.contains("mkdir made"), "{ended}");
}

#[test]
fn figures_with_time_outs_are_ranges() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let arguments = ["--for", "1s", "--window", "500ms", "--time-limit", "20ms", "--series", "ewma(wall, .5)"];
    let ran = slo(state, &[&arguments[..], &["--format", "json", "--", "sleep 1000"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let windows = &ran.json()["windows"];
    assert_eq!(windows["total"]["ranges"]["p99"], serde_json::json!({ "low": 2e7, "high": null }));
    assert_eq!(windows["total"]["median"], Value::Null);
    let results = &windows["series"][0]["windows"][0];
    assert_eq!((number(results, "mean"), &results["most"]), (2e7, &Value::Null));
    assert_eq!(results["unbounded"], results["results"]);
    let report = ascertain(state, &["report", "latest", "--format", "markdown"]).stdout;
    assert!(report.contains("> 20 ms") && report.contains("have an infinite bound"), "{report}");
    let csv = ascertain(state, &["report", "latest", "--format", "csv"]).stdout;
    assert!(
        csv.lines().next().unwrap().ends_with(
            "p99_low,p99_high,p999_low,p999_high,most_low,most_high,series_1,series_1_unit,series_1_results,\
             series_1_nulls,series_1_unbounded,series_1_least,series_1_mean,series_1_most"
        ),
        "{csv}"
    );
    assert!(csv.lines().nth(1).unwrap().contains("\"ewma(wall, .5)\",ns,"), "{csv}");
}

/// Nothing is known of a figure that a stopped command did not print, so it moves no quantile in one direction only.
#[test]
fn a_printed_figure_of_a_stopped_command_is_unknown() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let script = "if mkdir made 2>/dev/null; then echo 'x=100 MB/s'; else rmdir made; exec sleep 1000; fi";
    let arguments =
        ["--for", "3s", "--time-limit", "500ms", "--metric", "x=([0-9.]+) MB/s", "--require", "x >= 1 MB/s"];
    let series = ["--series", "min(window(x, 2))", "--series", "x", "--format", "json", "--shell", "--", script];
    let json = slo(state, &[&arguments[..], &series].concat()).json();
    let windows = &json["windows"];
    let ranges = &windows["total"]["ranges"];
    assert_eq!((number(&ranges["least"], "low"), &ranges["most"]["high"]), (0.0, &Value::Null));
    for series in windows["series"].as_array().unwrap() {
        for least in series["windows"].as_array().unwrap().iter().filter_map(|window| window["least"].as_f64()) {
            assert!(least >= 0.0, "{series}");
        }
    }
}

#[test]
fn impossible_runs_are_refused_with_a_way_out() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let cases: &[(&[&str], &str)] = &[
        (&["--for", "0s", "--", "true"], "--for"),
        (&["--for", "10s", "--window", "11s", "--", "true"], "a window of 11 s is longer than the run"),
        (&["--for", "10s", "--window", "10ms", "--", "true"], "is too short: the end of a window takes a few millisec"),
        (&["--for", "10h", "--window", "1s", "--", "true"], "the run would have 36,000 windows"),
        (
            &["--for", "10s", "--memory", "1MB", "--", "true"],
            "and the limit is 1,000,000 B; its fixed tables and buffers",
        ),
        (&["--for", "10s", "--memory", "100", "--", "true"], "`100` has no unit; write a unit, such as 100MB or 100kB"),
        (&["--for", "10s", "--series", "wall +", "--", "true"], "series `wall +`"),
        (&["--for", "10s", "--series", "every(wall, 2) / wall", "--", "true"], "series `every(wall, 2) / wall`"),
        (&["--for", "10s", "--series", "every(wall, 2) / again(wall)", "--", "true"], "does not keep them"),
        (&["--for", "10s", "--around", "20000", "--", "true"], "at most 10,000"),
        (&["--for", "10s", "--lines", "--", "true"], "ended with exit code 0 without printing an observation"),
        (&["--for", "10s", "--lines", "--", "sh -c 'exit 3'"], "ended with exit code 3 without printing"),
        (&["--for", "1s", "--lines", "--", "sleep 100"], "ran for 1 s without printing"),
        (&["--for", "10s", "--lines", "--", "head -c 300000 /dev/zero"], "is longer than 262144 bytes"),
        (&["--for", "10s", "--lines", "--unit", "parsec", "--", "true"], "--unit parsec is not a unit"),
        (&["--for", "10s", "--lines", "--at-least", "90%", "--", "true"], "a share of successes needs a condition"),
        (&["--for", "10s", "--lines", "--require", "wall <= 1 ms", "--", "true"], "unknown metric `wall`"),
        (&["--for", "10s", "--lines", "--", "no-such-program"], "`no-such-program` was not found"),
        (&["--for", "1s", "--export-json", "x", "--", "true"], "--export-json needs every observation"),
        (&["--for", "1s", "--setup", "false", "--", "true"], "set-up `false` ended with exit code 1"),
        (&["--", "true"], "--at-least"),
        (&["--window", "1s", "--at-least", "90%", "--", "true"], "--for"),
    ];
    for (arguments, message) in cases {
        let ran = slo(state, arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(message), "{arguments:?}: {}", ran.stderr);
        // A long measurement refuses `again`, so no message suggests it.
        let has_again = arguments.iter().any(|argument| argument.contains("again("));
        assert!(has_again || !ran.stderr.contains("again("), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_run() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    times(&state.join("times"), 50_000);
    let limited = "ulimit -f 200; exec \"$0\" slo --for 1min --lines --unit ms --format json -- cat times";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", limited, env!("CARGO_BIN_EXE_ascertain")]).env("XDG_STATE_HOME", state).current_dir(state);
    let ran = ran(shell.output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("The run continues without evidence"), "{}", ran.stderr);
    let windows = &ran.json()["windows"];
    assert_eq!(number(&windows["total"], "observations"), 50_000.0);
    // A part was recorded, and the report tells when the recording ended.
    let recorded = &windows["recorded"];
    assert!(number(recorded, "every") >= 1.0 && recorded["ended_ns"].is_u64(), "{recorded}");
}

/// Ten times as many observations must not need more memory. The limit allows for the memory of the allocator and of
/// the Parquet writer, whose rows become ten times as sparse.
#[test]
fn the_memory_does_not_grow_with_the_observations() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let peak_bytes = |lines: &str| {
        let script = format!("yes 12.5 | head -n {lines}");
        let arguments = ["slo", "--for", "1h", "--lines", "--unit", "ms", "--within", "20ms", "--at-least", "99%"];
        let arguments = [&arguments[..], &["--no-evidence", "-q", "--shell", "--", &script]].concat();
        let mut command = ascertain_sys::process::Command::new(env!("CARGO_BIN_EXE_ascertain"), &arguments);
        command.env.push(("XDG_STATE_HOME".into(), state.into()));
        let usage = ascertain_sys::process::Prepared::new(&command).unwrap().run(None).unwrap();
        assert_eq!(usage.exit, ascertain_sys::process::Exit::Code(0));
        usage.memory_peak_bytes
    };
    let [few, many] = ["100000", "3000000"].map(peak_bytes);
    assert!(many < few + 2_000_000, "{few} B for few, {many} B for many");
}
