//! What a claim tests, for who wants to know before it is judged.

use ascertain_engine::claim::Judging;
use ascertain_engine::experiment::Better;
use ascertain_engine::outcome::{Asked, AskedTest, Measure};
use ascertain_engine::unit::Unit;

use crate::clause::{Clause, arm_label};
use crate::figure::exact_percent;
use crate::text::plain;

/// Each test: the sentence, and below it the metric and the arms.
pub fn lines(asked: &Asked, rate: f64) -> Vec<String> {
    let mut lines: Vec<String> = asked.tests.iter().flat_map(|test| of_test(test, asked)).collect();
    lines.push(format!("judged: {}", judged(asked, rate)));
    lines
}

fn of_test(test: &AskedTest, asked: &Asked) -> Vec<String> {
    let Clause { subject, complement } = Clause::of(&Asked { tests: vec![test.clone()], ..asked.clone() });
    let mut lines = vec![format!("test: {}", plain(&format!("{subject} is {complement}")))];
    match test {
        AskedTest::Versus { measure, candidate, baseline, .. } => lines.extend([
            metric(measure),
            format!("  candidate: {}", arm_label(&candidate.variant, &candidate.point)),
            format!("  baseline: {}", arm_label(&baseline.variant, &baseline.point)),
        ]),
        AskedTest::Predicate { arm, measure, .. } => {
            lines.extend(measure.as_ref().map(metric));
            lines.push(format!("  arm: {}", arm_label(&arm.variant, &arm.point)));
        }
    }
    lines
}

/// "  metric: throughput, in B/s, higher is better".
fn metric(measure: &Measure) -> String {
    let unit = if measure.unit == Unit::One { String::new() } else { format!(", in {}", measure.unit) };
    let better = match measure.better {
        Better::Lower => "lower",
        Better::Higher => "higher",
    };
    format!("  metric: {}{unit}; {better} is better", measure.metric)
}

fn judged(asked: &Asked, rate: f64) -> String {
    let all = if asked.tests.len() > 1 { "all of them true" } else { "true" };
    let margin = asked.margin.map_or_else(String::new, |margin| format!(", give or take {}", exact_percent(margin)));
    match asked.judging {
        Judging::Rate => format!("{all} in at least {} of the trials{margin}", exact_percent(rate)),
        Judging::Exact => format!("{all} of the one value that every trial has, checked once"),
        Judging::Order => format!("which of the two is faster more often{margin}"),
    }
}
