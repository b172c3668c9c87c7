//! Tests of the titles and sentences of suites: nothing is named as faster or slower that the verdicts do not show.

use ascertain_engine::experiment::Point;
use ascertain_engine::suite::SuiteMean;

use super::*;
use crate::pictures::{forests, forests_in_short};

fn exact(ratio: f64) -> Estimate {
    Estimate { low: Some(ratio), high: Some(ratio) }
}

fn ends(low: f64, high: f64) -> Option<Ends> {
    Some(Ends { low: Some(low), high: Some(high), degrees: 9.0 })
}

fn workload(name: &str, ratio: f64, decision: Decision) -> WorkloadRatio {
    WorkloadRatio {
        workload: name.into(),
        ratio: exact(ratio),
        interval: ends(ratio / 1.01, ratio * 1.01),
        values: [20; 2],
        decision: Some(decision),
        censored: 0,
    }
}

/// Returns the comparison of a runtime with `base`, with a mean within 2 %.
fn comparison(candidate: &str, ratio: f64, decision: Decision) -> SuiteComparison {
    let this_suite = ends(ratio / 1.02, ratio * 1.02);
    SuiteComparison {
        candidate: candidate.into(),
        baseline: "base".into(),
        is_paired: true,
        workloads: vec![workload("w", ratio, decision)],
        mean: Some(SuiteMean { ratio: exact(ratio), this_suite, like_these: None, decision: Some(decision) }),
        ..SuiteComparison::default()
    }
}

fn suite(comparisons: Vec<SuiteComparison>) -> Suite {
    Suite {
        experiment: "runtimes".into(),
        metric: "time".into(),
        factor: "runtime".into(),
        levels: Point::default(),
        conditions: Point::default(),
        sample: String::new(),
        comparisons,
        builds: Vec::new(),
    }
}

fn title(comparisons: Vec<SuiteComparison>) -> String {
    forests(&suite(comparisons), "x").remove(0).plot.title
}

#[test]
fn a_runtime_is_the_fastest_only_if_verdicts_and_intervals_show_it() {
    use Decision::{Faster, Slower, Undecided};
    let clear = vec![comparison("a", 1.1, Faster), comparison("b", 1.3, Faster), comparison("c", 0.9, Slower)];
    assert_eq!(title(clear), "b is the fastest: 1.30 times as fast as base");
    let near = vec![comparison("a", 1.29, Faster), comparison("b", 1.3, Faster), comparison("c", 1.28, Undecided)];
    assert_eq!(title(near), "2 of 3 runtimes are faster than base: b (1.30), a (1.29)");
    let slower = vec![comparison("a", 0.8, Slower), comparison("b", 0.9, Slower)];
    assert_eq!(title(slower), "base is the fastest; times as fast: b (0.900), a (0.800)");
    let open = vec![comparison("a", 0.8, Slower), comparison("b", 1.02, Undecided)];
    assert_eq!(title(open), "No runtime is shown to be faster than base");
    // One binary under three names.
    let same = ["b", "c"].map(|name| SuiteComparison { is_same_build: true, ..comparison(name, 1.002, Undecided) });
    assert_eq!(title(same.into()), "No runtime is shown to be faster than base; b, c are the same build as base");
}

/// A runtime that never ends has a mean with only an upper bound.
#[test]
fn a_runtime_that_was_stopped_is_never_the_fastest() {
    let mut stopped = comparison("a", 1.0, Decision::Undecided);
    let ratio = Estimate { low: None, high: Some(1.5) };
    let this_suite = Some(Ends { low: None, high: Some(1.6), degrees: 9.0 });
    stopped.mean = Some(SuiteMean { ratio, this_suite, like_these: None, decision: Some(Decision::Undecided) });
    let title = title(vec![stopped, comparison("b", 1.2, Decision::Faster)]);
    assert_eq!(title, "1 of 2 runtimes is faster than base: b (1.20)");
}

/// The interval of a workload alone does not contradict the mean. Its verdict does, and only if the mean has one.
#[test]
fn a_workload_is_against_the_trend_only_by_its_verdict() {
    use Decision::{Faster, Slower, Undecided};
    let mut mixed = comparison("a", 1.2, Faster);
    mixed.workloads =
        vec![workload("calls", 1.5, Faster), workload("sort", 0.9, Undecided), workload("sort (1)", 0.8, Slower)];
    assert_eq!(
        headline(&mixed).replace(['\u{1}', '\u{2}'], ""),
        "a is 1.20 times as fast as base; against the trend: sort (1) (0.800)"
    );
    let text = sentences_of(&mixed).join(" ");
    assert!(
        text.contains("By workload: 1 is faster (calls); 1 is slower (sort (1)); 1 is not decided (sort)."),
        "{text}"
    );
    let picture = forests(&suite(vec![mixed.clone()]), "x").remove(0);
    assert_eq!(picture.plot.series, ["workload", "workload against the trend", "geometric mean"]);
    let verdict = |name: &str| picture.table.rows.iter().find(|row| row[0] == name).unwrap()[3].clone();
    assert_eq!(["calls", "sort", "sort (1)"].map(verdict), ["faster", "not decided", "slower"]);
    if let Some(mean) = &mut mixed.mean {
        mean.decision = Some(Undecided);
    }
    assert!(disagreeing(&mixed).is_empty());
    assert_eq!(
        headline(&mixed).replace(['\u{1}', '\u{2}'], ""),
        "a is 1.20 times as fast as base, which is not decided"
    );
}

#[test]
fn a_terminal_shows_the_workloads_of_the_fastest_of_several_runtimes() {
    let several = suite(vec![comparison("a", 1.1, Decision::Faster), comparison("b", 1.3, Decision::Faster)]);
    let titles: Vec<String> = forests_in_short(&several).into_iter().map(|picture| picture.plot.title).collect();
    assert_eq!(titles, ["b is the fastest: 1.30 times as fast as base", "b is 1.30 times as fast as base"]);
}

#[test]
fn a_mean_without_an_interval_has_a_reason() {
    let mut single = comparison("a", 1.1, Decision::Undecided);
    single.is_paired = false;
    single.workloads[0].values = [20, 1];
    single.mean = single.mean.map(|mean| SuiteMean { this_suite: None, decision: None, ..mean });
    let text = sentences_of(&single).join(" ");
    assert!(text.contains("this suite with these builds: no interval, because of a single process in w;"), "{text}");
}

/// Two suites of one experiment have the same names of runtimes.
#[test]
fn suites_under_several_conditions_are_told_apart() {
    let of = |phase: &str| Suite {
        conditions: Point::default().with("phase", phase),
        ..suite(vec![comparison("a", 1.1, Decision::Faster)])
    };
    let titles = ["start", "warm"].map(|phase| forests(&of(phase), "x").remove(0).plot.title);
    assert_eq!(
        titles,
        ["a is 1.10 times as fast as base (phase=start)", "a is 1.10 times as fast as base (phase=warm)"]
    );
}
