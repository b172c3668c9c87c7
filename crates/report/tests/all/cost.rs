//! The output of `cost` in every format.

use ascertain_engine::outcome::Verdict;
use ascertain_report::cost::{
    ClaimOnCost, CostComparison, CostDecision, CostFinding, CostMean, CostReport, Interval, Load, Offer, Recorded,
    RecordedFigures, WorkloadCost,
};
use ascertain_report::formats::Report;
use ascertain_report::terminal::Style;

use crate::common::compare_with_golden;

fn interval(value: f64, low: f64, high: f64) -> Interval {
    Interval { value, low: Some(low), high: Some(high) }
}

fn offer(name: &str, price_per_hour: f64, cores: Option<u64>) -> Offer {
    Offer {
        name: name.into(),
        machine_type: name.into(),
        kind: String::new(),
        region: "us-east-1".into(),
        price_per_hour,
        cpus: 64,
        cores,
        machines: 3,
        fewest_machines: 2,
        date: "2022-05-24".into(),
        source: "the price page".into(),
        line: 2,
    }
}

fn workload(name: &str, speed: Interval, load: Load, break_even: f64) -> WorkloadCost {
    let is_full = load == Load::Full;
    WorkloadCost {
        workload: name.into(),
        unit_of_work: "GB".into(),
        threads: if is_full { 64 } else { 1 },
        reference_threads: if is_full { 64 } else { 1 },
        load,
        is_in_mean: is_full,
        speed,
        degrees: speed.low.map(|_| 3.7),
        cost: is_full.then_some(12.5 * break_even / speed.value),
        reference_cost: is_full.then_some(12.5),
        cost_ratio: is_full.then(|| speed.under(break_even)),
        chance_cheaper: speed.low.filter(|_| is_full).map(|_| 0.87),
        machines: [3, 3],
    }
}

fn suite(speed: Interval, break_even: f64) -> CostMean {
    CostMean {
        workloads: 3,
        load: Load::Full,
        speed,
        speed_other_machines: Some(interval(speed.value, 1.28, 1.36)),
        cost_ratio: speed.under(break_even),
        degrees: Some(2.4),
        chance_cheaper: Some(0.9912),
        chance_next_cheaper: Some(0.884),
    }
}

fn report() -> CostReport {
    let break_even = 2.32 / 2.176;
    let all = interval(1.32, 1.14, 1.53);
    let names = || vec!["c6g.16xlarge".to_string(), "c7g.16xlarge".to_string()];
    CostReport {
        units: 1e6,
        currency: "USD".into(),
        offers: vec![offer("c6g.16xlarge", 2.176, Some(64)), offer("c7g.16xlarge", 2.32, None)],
        comparisons: vec![CostComparison {
            offer: "c7g.16xlarge".into(),
            reference: "c6g.16xlarge".into(),
            break_even,
            decision: CostDecision::Cheaper,
            suite: Some(suite(all, break_even)),
            workloads: vec![
                workload("memory read", interval(1.66, 1.6, 1.72), Load::Full, break_even),
                workload("a `name` | with\u{1b}[31m marks", interval(1.0204, 0.99, 1.05), Load::Full, break_even),
                workload("sorting", interval(1.36, 1.3, 1.43), Load::Full, break_even),
                workload("one thread", Interval { value: 1.41, low: None, high: None }, Load::Part, break_even),
            ],
            reversing: vec!["a `name` | with\u{1b}[31m marks".into()],
        }],
        claims: vec![
            ClaimOnCost {
                id: "general".into(),
                says: "c7g is 25 % faster in general".into(),
                source: "the announcement".into(),
                source_value: "25 %".into(),
                restated: "The mean is at least 1.25.".into(),
                verdict: Verdict::Undecided,
                reason: "the interval for workloads like these contains the bound".into(),
                at_least: 1.25,
                workloads: 3,
                mean: Some(all),
                contrary: vec![("sorting".into(), 1.2)],
            },
            ClaimOnCost {
                id: "worth".into(),
                says: "c7g is worth its price".into(),
                source: "the announcement".into(),
                source_value: String::new(),
                restated: String::new(),
                verdict: Verdict::Holds,
                reason: String::new(),
                at_least: break_even,
                workloads: 3,
                mean: Some(all),
                contrary: vec![("hashing".into(), 1.0204)],
            },
        ],
        findings: vec![
            CostFinding::TheseMachinesOnly { machine_types: names(), is_partial: false },
            CostFinding::TheseMachinesOnly { machine_types: names(), is_partial: true },
            CostFinding::UnlikeBuilds { differences: vec!["compiler of `python3`: GCC 12 and Clang 14".into()] },
            CostFinding::RecordedByOthers { machine_types: names(), source: "a page, CC BY-SA 4.0".into() },
            CostFinding::Cores {
                whole: vec!["c6g.16xlarge".into()],
                parts: Vec::new(),
                unknown: vec!["c7g.16xlarge".into()],
            },
            CostFinding::PartLoad { workloads: 1, is_left_out: true },
            CostFinding::PartLoad { workloads: 2, is_left_out: false },
            CostFinding::NoFullLoad { is_required: true, is_known_for_one: false },
            CostFinding::NoFullLoad { is_required: false, is_known_for_one: false },
            CostFinding::NoFullLoad { is_required: false, is_known_for_one: true },
            CostFinding::OneThreadAssumed { busy_cpus: Some(7.8) },
            CostFinding::OneThreadAssumed { busy_cpus: None },
            CostFinding::RunsAsMachines,
            CostFinding::LookAlike { machine_types: ["a".into(), "b".into()] },
            CostFinding::Unmatched { machine_type: "a".into(), workloads: vec!["gzip".into()] },
            CostFinding::Copies { figures: 251 },
            CostFinding::OldPrice {
                place: "prices.csv:2".into(),
                machine_type: "a".into(),
                date: "2022-05-24".into(),
                days: 1651,
            },
            CostFinding::UndatedPrice { place: "prices.csv:3".into(), machine_type: "b".into() },
            CostFinding::FuturePrice {
                place: "prices.csv:4".into(),
                machine_type: "b".into(),
                date: "2030-01-01".into(),
            },
            CostFinding::FewWorkloads { workloads: 2 },
        ],
    }
}

#[test]
fn cost_in_every_format() {
    for width in [80, 120] {
        let text = report().text(&Style { color: false, width });
        compare_with_golden(&format!("cost-{width}.txt"), &text);
        assert!(!text.contains('\u{1b}'), "names are escaped");
    }
    compare_with_golden("cost.json", &report().json());
    compare_with_golden("cost.csv", &report().csv());
    compare_with_golden("cost.md", &report().markdown());
}

#[test]
fn recorded_figures_in_every_format() {
    let run = Recorded {
        machine_type: "c7g.16xlarge".into(),
        run_id: "20261130T080000000Z-abcd".into(),
        workloads: 33,
        figures: 45,
        machines: 8,
        fewest_machines: 1,
    };
    let recorded = RecordedFigures { folder: "/home/me/runs".into(), copies: 10, runs: vec![run] };
    compare_with_golden("figures-80.txt", &recorded.text(&Style { color: false, width: 80 }));
    compare_with_golden("figures.json", &recorded.json());
    compare_with_golden("figures.csv", &recorded.csv());
    compare_with_golden("figures.md", &recorded.markdown());
}

/// Returns the answer for a ratio of prices and a speed with its interval.
fn answer(break_even: f64, speed: Interval, decision: CostDecision, reversing: &[&str]) -> String {
    let mut report = report();
    let comparison = &mut report.comparisons[0];
    (comparison.break_even, comparison.decision) = (break_even, decision);
    comparison.suite = Some(CostMean { speed_other_machines: None, ..suite(speed, break_even) });
    comparison.reversing = reversing.iter().map(ToString::to_string).collect();
    report.answers().remove(0)
}

#[test]
fn each_answer_has_its_sentence() {
    let faster = interval(1.32, 1.14, 1.53);
    let slower = interval(0.8, 0.75, 0.85);
    for (text, expected) in [
        (
            answer(1.1, faster, CostDecision::Cheaper, &["sorting"]),
            "`c7g.16xlarge` is worth its price, 10 % above that of `c6g.16xlarge`: a unit of work costs 17 % less (28 to \
             3.5 % less for workloads like these). But 1 of 3 workloads costs more: `sorting` (1.360 times as fast).",
        ),
        (
            answer(0.7, faster, CostDecision::Cheaper, &[]),
            "`c7g.16xlarge` is cheaper at its price, 30 % below that of `c6g.16xlarge`: a unit of work costs 47 % less (54 \
             to 39 % less for workloads like these).",
        ),
        (
            answer(1.1, slower, CostDecision::Dearer, &["sorting", "memory read"]),
            "`c7g.16xlarge` is not worth its price, 10 % above that of `c6g.16xlarge`: a unit of work costs 38 % more (29 \
             to 47 % more for workloads like these). But 2 of 3 workloads cost less: `sorting` (1.360 times as fast) and \
             `memory read` (1.660).",
        ),
        (
            answer(0.9, slower, CostDecision::Dearer, &[]),
            "`c7g.16xlarge` is dearer in spite of its price, 10 % below that of `c6g.16xlarge`: a unit of work costs 12 % \
             more (5.9 to 20 % more for workloads like these).",
        ),
        (
            answer(1.0, interval(1.01, 0.95, 1.07), CostDecision::Undecided, &[]),
            "It is undecided whether `c7g.16xlarge` is worth its price, equal to that of `c6g.16xlarge`: a unit of work \
             costs 1.0 % less (6.5 % less to 5.3 % more for workloads like these).",
        ),
    ] {
        assert_eq!(text, expected);
    }
}

/// An answer that treats workloads as a sample never claims to be exact.
#[test]
fn no_answer_claims_to_be_exact() {
    let text = report().text(&Style { color: false, width: 200 });
    let lines: Vec<&str> = text.lines().filter(|line| line.to_lowercase().contains("exact")).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains("Not exact: ")), "{lines:?}");
}
