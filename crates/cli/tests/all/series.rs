//! Tests of `ascertain series` on recorded runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use crate::common::{Ran, ascertain, command, kill, runs};

/// Measures two commands 30 times each. Returns the folder of the run.
fn measured(state: &Path) -> PathBuf {
    let ran = ascertain(state, &["compare", "true", "sleep 0.001", "-r", "30", "-q"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    runs(state).pop().unwrap()
}

/// Writes a number with a comma before each group of three digits.
fn grouped(number: u64) -> String {
    if number < 1000 { number.to_string() } else { format!("{},{:03}", grouped(number / 1000), number % 1000) }
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
    let (plan, results) = ran.stdout.split_once("\n\n").unwrap_or_else(|| panic!("{}", ran.stderr));
    assert!(plan.starts_with("plan of true.wall / hold("), "{plan}");
    assert!(plan.contains("80 B  exact, by selection among 10 values") && plan.contains("  #1 / hold(#2)  "), "{plan}");
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
    measured(state);
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
}

/// Two claims share the baseline `naive`. The first is refuted after a few trials, so `kahan` is not measured in the
/// trials that follow for the second.
const SHARED: &str = r#"
[[claim]]
id = "decided"
experiment = "sum"
at = { elements = 1024 }
candidate = "kahan"
baseline = "naive"
at_least = 1000

[[claim]]
id = "open"
experiment = "sum"
at = { elements = 1024 }
candidate = "neumaier"
baseline = "naive"
difference = true
within = ["-1 h", "1 h"]
rate = 0.99
"#;

#[test]
fn a_lane_with_gaps_is_refused_unless_the_expression_accepts_them() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    fs::write(state.join("shared.toml"), SHARED).unwrap();
    let ran = ascertain(state, &["check", "shared.toml", "--max-trials", "60", "-q"]);
    assert_eq!(ran.code, Some(1), "one claim is refuted: {} {}", ran.stdout, ran.stderr);
    let all = values(&series(state, &["naive.time", "--format", "csv"])).len();
    assert_eq!(all, 60);
    let ran = series(state, &["naive.time / kahan.time"]);
    let gaps = "column 14: lane 0 of `sum` has gaps: `";
    assert!(ran.code == Some(2) && ran.stdout.is_empty() && ran.stderr.contains(gaps), "{}", ran.stderr);
    let way_out = "write `with_gaps(kahan.time)` to treat these values as nulls";
    assert!(ran.stderr.contains(way_out), "{}", ran.stderr);
    let missing: usize = ran.stderr.split("no value in ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let first = ran.stderr.split("first in trial ").nth(1).unwrap().split([' ', ';']).next().unwrap();
    let ratios = values(&series(state, &["naive.time / with_gaps(kahan.time)", "--format", "csv"]));
    assert_eq!(ratios.iter().filter(|ratio| ratio.is_nan()).count(), missing);
    assert_eq!(ratios.iter().position(|ratio| ratio.is_nan()).unwrap() + 1, first.parse::<usize>().unwrap());
    let counted = values(&series(state, &["count(with_gaps(kahan.time))", "--format", "csv"]));
    assert_eq!(counted.last(), Some(&((60 - missing) as f64)), "aggregates leave the gaps out");
}

#[test]
fn a_run_is_refused_while_it_is_written_and_an_incomplete_trial_is_left_out() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let mut measuring = command(state, &["compare", "true", "sleep 0.001", "-r", "1000000", "-q"]);
    let child = measuring.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let lines = loop {
        let lines = runs(state).pop().map(|run| run.join("trials.jsonl"));
        match lines.filter(|lines| fs::read_to_string(lines).is_ok_and(|text| text.lines().count() > 100)) {
            Some(lines) => break lines,
            None => sleep(Duration::from_millis(10)),
        }
    };
    let ran = series(state, &["\"true\".wall"]);
    let message = "is still being written; wait until the run has ended";
    assert!(ran.code == Some(2) && ran.stdout.is_empty() && ran.stderr.contains(message), "{}", ran.stderr);
    kill(child);
    let ran = series(state, &["\"true\".wall", "--format", "csv"]);
    assert!(!ran.stderr.contains("left out"), "{}", ran.stderr);
    let whole = values(&ran);
    // The last row of the last trial is missing, as if the run had been killed while it wrote the trial.
    let text = fs::read_to_string(&lines).unwrap();
    let kept: Vec<&str> = text.lines().collect();
    fs::write(&lines, kept[..kept.len() - 1].join("\n") + "\n").unwrap();
    let ran = series(state, &["\"true\".wall", "--format", "csv"]);
    let note = format!("note: the run was cut off in trial {} of `compare` (lane 0): the ", whole.len() - 1);
    assert!(
        ran.stderr.contains(&note) && ran.stderr.contains("rows of this incomplete trial are left out"),
        "{}",
        ran.stderr
    );
    assert_eq!(values(&ran), whole[..whole.len() - 1]);
    let counted = values(&series(state, &["count(\"sleep 0.001\".wall)", "--format", "csv"]));
    assert_eq!(counted.last(), Some(&((whole.len() - 1) as f64)));
}

#[test]
fn a_plan_above_the_limit_is_refused_with_its_size() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    measured(state);
    let large = "every(\"true\".wall, 2) / buffer(\"true\".wall, 1000000000000)";
    let ran = series(state, &[large]);
    let message = "needs 8,000,000,0";
    assert!(ran.code == Some(2) && ran.stdout.is_empty() && ran.stderr.contains(message), "{}", ran.stderr);
    let plan = series(state, &[large, "--plan"]);
    assert!(plan.code == Some(0) && plan.stdout.contains("8,000,000,000,000 B"), "{}", plan.stdout);
    let small = "lag(\"true\".wall, 29)";
    let memory = &series(state, &[small, "--format", "json"]).json()["memory"];
    let of = |part: &str| memory[part].as_u64().unwrap();
    let needed = of("total_bytes");
    assert_eq!(needed, of("states_bytes") + of("in_flight_bytes") + of("steps_bytes") + of("reading_bytes"));
    // The plan ends with the same total, and with its parts.
    let [total, states, in_flight, steps, reading] =
        ["total_bytes", "states_bytes", "in_flight_bytes", "steps_bytes", "reading_bytes"]
            .map(|part| grouped(of(part)));
    let line = format!(
        "\nmemory: {total} B = {states} B buffers and states + {in_flight} B in flight + {steps} B list of steps + \
         {reading} B reading\n"
    );
    for arguments in [&[small][..], &[small, "--plan"], &[small, "--format", "markdown"]] {
        let ran = series(state, arguments);
        assert!(ran.stdout.contains(&line) && ran.stdout.matches("memory:").count() == 1, "{}", ran.stdout);
    }
    assert_eq!(series(state, &[small, "--memory", &format!("{needed}B")]).code, Some(0));
    let ran = series(state, &[small, "--memory", &format!("{}B", needed - 1)]);
    let message = format!("needs {total} B of memory, and may use {} B; use smaller windows", grouped(needed - 1));
    assert!(ran.code == Some(2) && ran.stderr.contains(&message), "{}", ran.stderr);
    let ran = series(state, &[small, "--memory", "100"]);
    let message = "`100` has no unit; write a unit, such as 100MB or 100kB";
    assert!(ran.code == Some(2) && ran.stderr.contains(message), "{}", ran.stderr);
    assert_eq!(series(state, &[small, "--memory", "1000000"]).code, Some(0));
}

#[test]
fn infinite_bounds_and_nulls_differ_in_json() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    let slow = ["compare", "true", "sleep 1", "-r", "4", "-q", "--time-limit", "50ms", "-i"];
    let ran = ascertain(state, &slow);
    assert!(runs(state).len() == 1, "{} {}", ran.stdout, ran.stderr);
    let json = series(state, &["lag(\"sleep 1\".wall, 1)", "--format", "json"]).json();
    let results = json["results"].as_array().unwrap();
    assert!(results[0].is_null() && json["nulls"] == 1, "{json}");
    assert!(results[1][0].as_f64().unwrap() >= 5e7 && results[1][1].is_null(), "{json}");
    assert_eq!((&json["has_ranges"], &json["infinite"]), (&true.into(), &(results.len() - 1).into()));
    // A range takes 16 bytes, of which t/2 wait.
    let refused = series(state, &["every(\"sleep 1\".wall, 2) / \"sleep 1\".wall"]);
    assert!(refused.stderr.contains("t/2 values would wait: 8.000 GB after 10^9"), "{}", refused.stderr);
    let json = series(state, &["1 s / (\"true\".wall - \"true\".wall)", "--format", "json"]).json();
    assert_eq!((&json["infinite"], &json["nulls"]), (&json["count"], &0.into()), "{json}");
    assert!(json["results"][0].is_null(), "{json}");
}

#[test]
fn claims_judge_expressions_with_one_value_for_several_trials() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    fs::write(
        state.join("derived.toml"),
        r#"
            [[claim]]
            id = "steady"
            command = "true"
            predicate = "max(window(wall, 5)) / 1 s <= 3600"
            rate = 0.5

            [[claim]]
            id = "faster"
            candidate = "true"
            baseline = "sleep 0.01"
            metric = "mean(window(wall, 2))"
            at_least = 1
        "#,
    )
    .unwrap();
    let ran = ascertain(state, &["check", "derived.toml", "--format", "json", "-q", "--max-trials", "200"]);
    let json = ran.json();
    let claims = json["claims"].as_array().unwrap();
    let values: Vec<u64> = claims.iter().map(|claim| claim["trials"].as_u64().unwrap()).collect();
    assert!(claims.iter().all(|claim| claim["verdict"] == "holds"), "{json:#}");
    assert_eq!(claims[0]["says"], "`true`: max(window(wall, 5)) / 1 s <= 3600 in at least 50 % of the values");
    let run = runs(state).pop().unwrap();
    let measured = |variant: &str| {
        let rows = ascertain_engine::evidence::read_rows(&run).unwrap().map(Result::unwrap);
        rows.filter(|row| row.metric == "wall" && row.variant == variant && row.experiment == "steady").count() as u64
    };
    assert_eq!(measured("true"), 5 * values[0], "each value has five trials of its own");
    // The report judges the recorded trials again.
    let again = ascertain(state, &["report", "--format", "json"]).json();
    assert_eq!(again["claims"], json["claims"]);
    let page = ascertain(state, &["report", "--output", "-"]);
    assert!(page.code == Some(0) && page.stdout.contains("mean(window(wall, 2))"), "{}", page.stderr);
}

#[test]
fn reports_show_derived_series() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path();
    measured(state);
    let expression = "mean(window(\"true\".wall, 3))";
    let report = |rest: &[&str]| ascertain(state, &[&["report", "--series", expression], rest].concat());
    let page = report(&["--output", "-"]);
    let section = page.stdout.split_once("id=\"series\"").unwrap_or_else(|| panic!("{}", page.stderr)).1;
    assert!(section.contains("mean(window(true.wall, 3))") && section.contains("10 results, from "), "{section}");
    assert!(report(&["--plots"]).stdout.contains("series-1 "));
    let svg = report(&["--svg", "series-1"]).stdout;
    assert!(svg.starts_with("<svg") || svg.starts_with("<?xml"), "{svg}");
    for (format, marks) in [("markdown", ["### Series `mean(", "```\nplan of"]), ("table", ["Series ", "plan of"])] {
        let text = report(&["--format", format]).stdout;
        let results = ascertain(state, &["report", "--format", format]).stdout;
        assert!(text.starts_with(results.trim_end()) && marks.iter().all(|mark| text.contains(mark)), "{text}");
    }
    for (rest, message) in [
        (&["--format", "json"][..], "--series is for the page, and for the formats table and markdown"),
        (&["--series", "lag(wall"], "column 9"),
    ] {
        let ran = report(rest);
        assert!(ran.code == Some(2) && ran.stderr.contains(message), "{}", ran.stderr);
    }
}
