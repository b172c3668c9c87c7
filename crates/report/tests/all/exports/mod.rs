//! Export formats. Each is compared with a file in `golden/` (`BLESS=1` rewrites these files). Other tests check
//! properties for any run.

mod any_names;
mod limits;

use std::collections::BTreeSet;
use std::time::Duration;

use ascertain_engine::claim::{Claim, Place};
use ascertain_engine::experiment::{Arm, Better, Experiment, Metric, Point};
use ascertain_engine::finding::Remark;
use ascertain_engine::function::Group;
use ascertain_engine::outcome::{ArmRemark, ClaimResult, Decision, Gate, Outcome, PointSummary, Verdict};
use ascertain_engine::plan::{Config, Plan, Table};
use ascertain_engine::run::{Clock, Observer, Recording, run_by_clock};
use ascertain_engine::unit::Unit;
use ascertain_report::exports::{FORMATS, Files, Mark, Results, annotations};
use ascertain_report::options::TableLayout;
use serde_json::Value;

use crate::common::{self, arm, at_least_8, compare_with_golden, order, outcome};

/// Returns seven values for each point. Their median is the median of the point. Seven values are enough for the
/// statistics of other tools.
fn values(outcome: &Outcome) -> Vec<Vec<f64>> {
    let of = |point: &PointSummary| {
        let factors = [0.98, 1.01, 0.99, 1.4, 1.0, 1.02, 0.985];
        point.median.map_or_else(Vec::new, |median| factors.map(|factor| median * factor).into())
    };
    outcome.points.iter().map(of).collect()
}

/// Returns the results of a run in one export format.
fn written(option: &str, outcome: &Outcome, plan: &Plan) -> String {
    let values = values(outcome);
    written_of(option, outcome, &values, plan)
}

fn written_of(option: &str, outcome: &Outcome, values: &[Vec<f64>], plan: &Plan) -> String {
    let kind = FORMATS.iter().find(|kind| kind.option == option).unwrap_or_else(|| panic!("{option}"));
    (kind.write)(&results(outcome, values, plan))
}

fn results<'a>(outcome: &'a Outcome, values: &'a [Vec<f64>], plan: &'a Plan) -> Results<'a> {
    let values = values.iter().map(Vec::as_slice).collect();
    Results { plan, outcome, values, layout: TableLayout::default(), is_final: true }
}

fn annotated(outcome: &Outcome, plan: &Plan) -> String {
    annotations(&results(outcome, &values(outcome), plan))
}

/// Creates a plan with these claims, each from a line of this file.
fn placed<'i>(ids: impl IntoIterator<Item = &'i String>, file: &str, line: usize) -> Plan {
    let place = Place { file: file.into(), line, column: 1 };
    let (one, other) = (arm("one", &Point::default()), arm("other", &Point::default()));
    let claim = |id: &String| Claim {
        id: id.clone(),
        place: Some(place.clone()),
        ..Claim::order("", &Metric::time("time", ""), &one, &other)
    };
    Plan { claims: ids.into_iter().map(claim).collect(), ..Plan::default() }
}

fn gated(gate: Option<Gate>) -> Plan {
    Plan { config: Config { gate, ..Config::default() }, ..Plan::default() }
}

fn point(experiment: &str, variant: &str, metric: &str, unit: Unit) -> PointSummary {
    PointSummary {
        experiment: experiment.into(),
        arm: Arm { variant: variant.into(), point: Point::default() },
        metric: metric.into(),
        unit,
        better: Better::Lower,
        key: String::new(),
        is_share: false,
        n: 1,
        median: Some(1.0),
        median_low: None,
        median_high: None,
        p90: None,
        p99: None,
        mean: None,
        std: None,
        min: None,
        max: None,
        censored: 0,
        limit: None,
        seen: None,
    }
}

#[test]
fn each_kind_is_as_it_was_looked_at() {
    let (check, compare, functions) = (common::check(), common::compare(), common::functions());
    let placed = placed([&"sum.kahan-avx512-8x-naive".to_string()], "claims/sum, \"all\".toml", 12);
    let gated = gated(Some(Gate::Slower));
    let none = Plan::default();
    compare_with_golden("check.junit.xml", &written("export-junit", &check, &placed));
    compare_with_golden("compare.junit.xml", &written("export-junit", &compare, &gated));
    compare_with_golden("check.github.md", &written("export-github", &check, &placed));
    compare_with_golden("check.annotations.txt", &annotated(&check, &placed));
    compare_with_golden("compare.bencher.json", &written("export-bencher", &compare, &none));
    compare_with_golden("functions.bencher.json", &written("export-bencher", &functions, &none));
    compare_with_golden("compare.go.txt", &written("export-go", &compare, &none));
    compare_with_golden("functions.google-benchmark.json", &written("export-google-benchmark", &functions, &none));
    compare_with_golden("functions.hyperfine.json", &written("export-json", &functions, &none));
    compare_with_golden("functions.hyperfine-1.json", &written("export-json-1", &functions, &none));
    compare_with_golden("compare.org", &written("export-orgmode", &compare, &none));
}

#[test]
fn options_have_a_name_and_a_line_of_help_each() {
    let options: BTreeSet<&str> = FORMATS.iter().map(|kind| kind.option).collect();
    assert_eq!(options.len(), FORMATS.len());
    assert!(FORMATS.iter().all(|kind| kind.option.starts_with("export-") && kind.about.len() > 20));
}

#[test]
fn which_claims_an_export_calls_failures() {
    let mark = |claim: ClaimResult, failing| {
        let run = outcome(Vec::new(), vec![claim]);
        results(&run, &[], &gated(failing)).mark(&run.claims[0])
    };
    let with = |verdict| common::counted(at_least_8("a", ""), verdict, 1, 2);
    assert_eq!(mark(with(Verdict::Holds), None), Mark::Passed);
    assert_eq!(mark(with(Verdict::Refuted), None), Mark::Failed);
    assert_eq!(mark(with(Verdict::Failed), None), Mark::Broken);
    for verdict in [Verdict::Undecided, Verdict::Unavailable, Verdict::Deferred] {
        assert_eq!(mark(with(verdict), None), Mark::Skipped);
    }
    let compared = |decision| common::decided(order("b", "a"), decision, 1, 2, 0);
    assert_eq!(mark(compared(Decision::Slower), None), Mark::Passed, "a comparison without a gate does not fail");
    assert_eq!(mark(compared(Decision::Slower), Some(Gate::Slower)), Mark::Failed);
    assert_eq!(mark(compared(Decision::Faster), Some(Gate::Slower)), Mark::Passed);
    assert_eq!(mark(compared(Decision::Undecided), Some(Gate::Slower)), Mark::Skipped);
}

#[test]
fn a_comparison_that_gates_nothing_is_no_warning() {
    let run = outcome(Vec::new(), vec![common::decided(order("b", "a"), Decision::Undecided, 8, 15, 0)]);
    let kind = |plan: &Plan| annotated(&run, plan).split(' ').next().unwrap().to_string();
    assert_eq!(kind(&Plan::default()), "::notice");
    assert_eq!(kind(&gated(Some(Gate::Slower))), "::warning");
}

#[test]
fn what_a_comparison_asks_is_not_said_like_an_answer() {
    let mut claim = common::decided(order("b", "a"), Decision::Slower, 1, 20, 0);
    claim.says = "b is faster than a".into();
    let text = written("export-junit", &outcome(Vec::new(), vec![claim]), &Plan::default());
    assert!(text.contains("<system-out>`b` is slower than `a`") && !text.contains("is faster"), "{text}");
}

#[test]
fn results_that_are_not_final_say_so() {
    let (check, none) = (common::check(), Plan::default());
    let values = values(&check);
    for (option, said) in [
        ("export-junit", "name=\"final\" value=\"false\""),
        ("export-github", "Not final"),
        ("export-go", ", not final\n"),
        ("export-google-benchmark", "\"final\": false"),
    ] {
        let kind = FORMATS.iter().find(|kind| kind.option == option).unwrap();
        let text = (kind.write)(&Results { is_final: false, ..results(&check, &values, &none) });
        assert!(text.contains(said), "{option}: {text}");
        assert!(!written(option, &check, &none).contains(said), "{option}");
    }
}

/// A clock whose time never changes, so that no file is due to be updated.
struct Stopped;

impl Clock for Stopped {
    fn now_ns(&self) -> u64 {
        0
    }

    fn sleep(&self, _: Duration) {}
}

/// Measures a function in three trials, with a metric by key and a remark.
fn measure_a_function(group: &str, files: &mut Files) {
    let group = Group::new(group).function("f", || 1 + 1);
    let arms = vec![arm("f", &Point::default())];
    let tables = vec![Table { experiment: group.spec().id.clone(), arms }];
    let config = Config { exact_trials: Some(3), ..Config::default() };
    let plan = Plan { claims: Vec::new(), tables, config, ..Plan::default() };
    let mut run = run_by_clock(&plan, &[&group], Recording::None, &Default::default(), files, &Stopped).unwrap();
    let point = &run.outcome.points[0];
    let PointSummary { experiment, arm, .. } = point.clone();
    let remark = Remark::Held { server: format!("held-{experiment}"), held_ns: 1e9 };
    run.outcome.by_key = vec![PointSummary { key: format!("ns-{experiment}"), ..point.clone() }];
    run.outcome.remarks = vec![ArmRemark { experiment, arm, remark }];
    files.keep(&run.plan, &run.outcome, &run.observations);
}

#[test]
fn several_runs_go_into_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> = FORMATS.iter().map(|kind| (kind, folder.path().join(kind.option))).collect();
    let wanted = paths.iter().map(|(kind, path)| (*kind, path.as_path()));
    let mut files = Files::open(wanted, TableLayout::default()).unwrap();
    assert!(files.outcome_due(u64::MAX) && !files.outcome_due(0));
    for group in ["one", "two"] {
        measure_a_function(group, &mut files);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no file appears before it is due");
    files.finish().unwrap();
    let read = |option: &str| std::fs::read_to_string(folder.path().join(option)).unwrap();
    for (option, values) in [("export-json", "measurements"), ("export-json-1", "times")] {
        let json: Value = serde_json::from_str(&read(option)).unwrap();
        let counts = (0..2).map(|result| json["results"][result][values].as_array().unwrap().len());
        assert_eq!(counts.collect::<Vec<_>>(), [3, 3]);
    }
    let go = read("export-go");
    assert!(go.contains("BenchmarkOne/f-") && go.contains("BenchmarkTwo/f-"), "{go}");
    let github = read("export-github");
    for one in ["ns-one", "ns-two", "held-one", "held-two"] {
        assert!(github.contains(one), "{one}: {github}");
    }
}
