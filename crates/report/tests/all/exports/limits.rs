//! Limits of export formats: names that become equal, infinite times, and too many results.

use super::*;

/// Creates a run of one command with these times.
fn timed(name: &str, wall_ns: Vec<f64>) -> (Outcome, Vec<Vec<f64>>) {
    let point = point("compare", name, "wall", Unit::Nanosecond);
    (outcome(vec![point], Vec::new()), vec![wall_ns])
}

#[test]
fn a_time_without_end_is_no_number() {
    let (mut run, values) = timed("hangs", vec![5.0, f64::INFINITY, 7.0]);
    (run.points[0].n, run.points[0].censored) = (3, 1);
    let none = Plan::default();
    let json: Value = serde_json::from_str(&written_of("export-google-benchmark", &run, &values, &none)).unwrap();
    let second = json["benchmarks"][1].as_object().unwrap();
    assert_eq!(second["error_occurred"], true);
    assert!(!second.contains_key("real_time") && !second.contains_key("cpu_time"), "{second:?}");
    assert_eq!(json["benchmarks"][0]["error_occurred"], Value::Null);
    assert_eq!(json["benchmarks"][3]["aggregate_name"], "median", "the mean is unknown");
    let go = written_of("export-go", &run, &values, &none);
    let of_arm: Vec<&str> = go.lines().filter(|line| line.contains("BenchmarkCompare/hangs-2")).collect();
    let [said, "BenchmarkCompare/hangs-2 1 5 ns/op", "BenchmarkCompare/hangs-2 1 7 ns/op"] = of_arm[..] else {
        panic!("{go}");
    };
    assert!(said.starts_with("# ") && said.contains("1 of 3 trials reached their time limit"), "{go}");
}

#[test]
fn of_many_trials_some_are_written() {
    let (run, values) = timed("many", (0..2500).map(|trial| 1.0 + f64::from(trial)).collect());
    let text = written_of("export-go", &run, &values, &Plan::default());
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("Benchmark")).collect();
    assert_eq!(lines.len(), 1000);
    assert_eq!((lines[0], lines[999]), ("BenchmarkCompare/many-2 1 1 ns/op", "BenchmarkCompare/many-2 1 2498 ns/op"));
}

#[test]
fn zeros_are_in_seconds_for_benchstat() {
    let (run, values) = timed("quick", vec![0.0, 5e6]);
    let text = written_of("export-go", &run, &values, &Plan::default());
    assert!(text.contains("Unit sec/op better=lower\n"));
    assert!(text.contains("-2 1 0 sec/op\n") && text.contains("-2 1 0.005 sec/op\n"), "{text}");
}

#[test]
fn a_metric_has_one_unit_in_a_file() {
    let points = ["a", "b"].map(|name| point("compare", name, "wall", Unit::Nanosecond));
    let run = outcome(points.into(), Vec::new());
    let text = written_of("export-go", &run, &[vec![0.0, 5e6], vec![7e6, 8e6]], &Plan::default());
    assert!(text.contains("Compare/b-2 1 0.007 sec/op\n") && !text.contains("ns/op"), "{text}");
}

#[test]
fn names_that_become_alike_are_told_apart() {
    let points = ["a b", "a_b", "a\tb"].map(|name| point("compare", name, "wall", Unit::Nanosecond));
    let run = outcome(points.into(), Vec::new());
    let text = written("export-go", &run, &Plan::default());
    let names: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("Benchmark")?.split(' ').next()).collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), [r"Compare/a\tb-2", "Compare/a_b#01-2", "Compare/a_b-2"]);
}

#[test]
fn bencher_has_every_arm_and_metric_under_a_name_of_its_own() {
    let arms = [("a", "b/c"), ("a/b", "c"), ("a", "b/c (n=1)"), ("a", &"long".repeat(300)), ("a", &"long".repeat(301))];
    let metrics = [
        ("wall", Unit::Nanosecond),
        ("latency", Unit::Nanosecond),
        ("other-latency", Unit::Nanosecond),
        ("throughput", Unit::BytePerSecond),
        ("bandwidth", Unit::BytePerSecond),
        ("memory_peak", Unit::Byte),
        ("Memory peak", Unit::Byte),
    ];
    let mut points: Vec<PointSummary> = Vec::new();
    for (experiment, variant) in arms {
        points.extend(metrics.map(|(metric, unit)| point(experiment, variant, metric, unit)));
    }
    points.extend(metrics.map(|(metric, unit)| PointSummary {
        arm: Arm { variant: "b/c".into(), point: Point::default().with("n", 1) },
        ..point("a", "b/c", metric, unit)
    }));
    let text = written("export-bencher", &outcome(points, Vec::new()), &Plan::default());
    let json: Value = serde_json::from_str(&text).unwrap();
    let benchmarks = json.as_object().unwrap();
    assert_eq!(benchmarks.len(), arms.len() + 1, "{:?}", benchmarks.keys());
    for (name, measures) in benchmarks {
        assert!(name.chars().count() <= 1024);
        assert_eq!(measures.as_object().unwrap().len(), metrics.len(), "{measures}");
    }
    assert!(benchmarks["a/b/c"]["other-latency#01"].is_object() && benchmarks["a/b/c"]["bandwidth#01"].is_object());
}

#[test]
fn github_gets_no_more_than_it_takes() {
    let refuted = |index: usize| {
        let mut claim = at_least_8(&format!("claim-{index}"), &"It is fast. ".repeat(200));
        claim.verdict = Verdict::Refuted;
        (claim.trials, claim.successes) = (9, 1);
        claim
    };
    let run = outcome(Vec::new(), (0..500).map(refuted).collect());
    let summary = written("export-github", &run, &Plan::default());
    assert!(summary.len() < 300_000, "{}", summary.len());
    assert!(summary.contains("- … and 450 more\n") && summary.contains("more lines, which are over GitHub's limit"));
    let lines = annotated(&run, &Plan::default());
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 10);
    assert_eq!(lines[9], "::error title=Ascertain::… and 491 more; see the output");
    let is_told_apart = |(index, line): (usize, &&str)| line.contains(&format!("::`claim-{index}`: It is fast."));
    assert!(lines[..9].iter().enumerate().all(is_told_apart), "{lines:?}");
    assert!(summary.contains("- `claim-7`: It is fast.") && lines[7].contains("… Refuted: "), "{}", lines[7]);
    let mut long = refuted(0);
    (long.verdict, long.reasons) = (Verdict::Failed, vec![common::reason(&"é".repeat(5000))]);
    let line = annotated(&outcome(Vec::new(), vec![long]), &Plan::default());
    assert!(line.chars().count() < 1200 && line.ends_with("é…\n"));
}
