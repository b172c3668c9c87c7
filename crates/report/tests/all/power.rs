//! The output of `power` in every format.

use ascertain_engine::claim::Judging;
use ascertain_report::formats::Report;
use ascertain_report::plot::Layer;
use ascertain_report::power::{PowerAnalysis, PowerAt};
use ascertain_report::terminal::Style;

use crate::common::compare_with_golden;

fn at(true_rate: f64, chances: [f64; 3], expected_trials: f64, trials: [Option<u64>; 2]) -> PowerAt {
    let [holds, refuted, undecided] = chances;
    let [trials_80, trials_95] = trials;
    PowerAt { true_rate, holds, refuted, undecided, expected_trials, trials_80, trials_95 }
}

fn claim() -> PowerAnalysis {
    let rates = vec![
        at(0.907, [1e-9, 0.999_999, 0.0], 60.12, [Some(94), Some(160)]),
        at(0.975, [0.000_1, 0.934_2, 0.065_7], 9_012.4, [Some(14_820), None]),
        at(0.98, [0.000_8, 0.000_6, 0.998_6], 19_971.0, [None, None]),
        at(0.984, [0.953, 0.000_05, 0.046_95], 7_318.7, [Some(12_001), Some(19_900)]),
        at(0.9959, [0.999_999, 1e-7, 0.0], 801.9, [Some(1105), Some(1398)]),
    ];
    PowerAnalysis {
        judging: Judging::Rate,
        rate_claimed: 0.98,
        margin: None,
        error_holds: 0.001,
        error_refuted: 0.001,
        max_trials: 20_000,
        curve: rates.clone(),
        rates,
    }
}

fn order() -> PowerAnalysis {
    let mut analysis = PowerAnalysis {
        judging: Judging::Order,
        rate_claimed: 0.5,
        error_holds: 0.0005,
        error_refuted: 0.0005,
        max_trials: 500,
        rates: vec![
            at(0.5, [0.000_3, 0.000_3, 0.999_4], 499.8, [None, None]),
            at(0.8, [0.999_999, 1e-10, 0.0], 46.3, [Some(65), Some(91)]),
        ],
        ..claim()
    };
    analysis.curve = analysis.rates.clone();
    analysis
}

#[test]
fn power_in_every_format() {
    for width in [80, 120] {
        let style = Style { color: false, width };
        compare_with_golden(&format!("power-{width}.txt"), &claim().text(&style));
        compare_with_golden(&format!("power-order-{width}.txt"), &order().text(&style));
    }
    compare_with_golden("power.json", &order().json());
    compare_with_golden("power.csv", &claim().csv());
    compare_with_golden("power.md", &claim().markdown());
}

#[test]
fn a_margin_and_two_errors_are_said() {
    let mut analysis = claim();
    (analysis.margin, analysis.error_refuted) = (Some(0.005), 0.01);
    let said = analysis.sentences().join(" ");
    assert!(said.contains(
        "Claim: at least 98 % with a margin of 0.5 %. The chance of an error is at most 0.1 % if it is reported to hold, and 1 % if"
    ));
    assert!(said.contains("Between 97.5 % and 98.5 %, within the margin, either verdict counts as right"), "{said}");
    assert!(!said.contains("only by chance"), "{said}");
    analysis.rates.retain(|at| at.true_rate == 0.907);
    assert!(!analysis.sentences().join(" ").contains("within the margin"), "no rate is within the margin");
}

#[test]
fn how_far_a_verdict_can_be_counted_on() {
    let reach = |keep: &dyn Fn(f64) -> bool| {
        let mut analysis = claim();
        for at in analysis.curve.iter_mut().chain(&mut analysis.rates).filter(|at| !keep(at.true_rate)) {
            at.trials_95 = None;
        }
        analysis.sentences()[1].clone()
    };
    assert!(
        reach(&|_| true).ends_with("if the true rate is at most 90.7 % or at least 98.4 %."),
        "{}",
        reach(&|_| true)
    );
    assert!(reach(&|rate| rate > 0.98).ends_with("if the true rate is at least 98.4 %."));
    assert!(reach(&|rate| rate < 0.98).ends_with("if the true rate is at most 90.7 %."));
    assert!(reach(&|_| false).contains("at none of these rates"));
    let mut analysis = claim();
    for at in analysis.curve.iter_mut().chain(&mut analysis.rates) {
        at.trials_95 = Some(1);
    }
    assert!(analysis.sentences()[1].ends_with("at each of these rates."));
}

#[test]
fn the_plot_has_a_line_for_each_verdict() {
    let plot = claim().plot();
    assert_eq!(plot.series, ["holds", "refuted", "undecided"]);
    let lines: Vec<f64> = plot
        .layers
        .iter()
        .filter_map(|layer| match layer {
            Layer::Line { points, .. } => Some(points[2][1]),
            _ => None,
        })
        .collect();
    assert_eq!(lines, [0.000_8, 0.000_6, 0.998_6]);
}
