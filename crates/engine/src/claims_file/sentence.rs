//! The sentence of a claim that has none of its own.

use super::points::Points;
use super::question::{Question, Side};
use super::terms::{COMPARISON_RATE, Terms};
use crate::claim::{Bound, Judging, Scale};
use crate::experiment::{Better, Metric, Point, Spec};
use crate::unit::Unit;

/// Says what a claim claims at these points.
pub(super) fn says(question: &Question, terms: &Terms, points: &Points, at: &[Point], spec: &Spec) -> String {
    let (what, overridden): (String, Vec<&str>) = match question {
        Question::Versus { metric, candidate, baseline, scale, bound } => {
            let compared = comparison(*scale, *bound, &spec.metrics[*metric], *metric == 0);
            let both = candidate.levels.iter().chain(&baseline.levels);
            let what = format!("{} {}", named(candidate), compared.replace("{}", &named(baseline)));
            (what, both.map(|(factor, _)| factor.as_str()).collect())
        }
        Question::Predicate { side, predicate } => {
            let what = format!("{}: {}", named(side), predicate.spelled(&spec.metrics));
            (what, side.levels.iter().map(|(factor, _)| factor.as_str()).collect())
        }
    };
    let needs_rate = match question {
        Question::Versus { .. } => terms.rate != COMPARISON_RATE,
        Question::Predicate { .. } => true,
    };
    let how_often = match terms.judging {
        Judging::Rate if needs_rate => format!(" in at least {} % of the trials", percent(terms.rate)),
        _ => String::new(),
    };
    let factors: Vec<&str> = points.named.iter().map(String::as_str).filter(|f| !overridden.contains(f)).collect();
    format!("{what}{how_often}{}", place(&factors, at))
}

/// The levels of these factors: `elements=1024,type=f32`.
pub(super) fn levels(factors: &[String], point: &Point, separator: &str) -> String {
    let level = |factor: &String| point.get(factor).map(|level| format!("{factor}={level}"));
    factors.iter().filter_map(level).collect::<Vec<_>>().join(separator)
}

/// The variant, with the levels that it does not share.
fn named(side: &Side) -> String {
    let levels: Vec<String> = side.levels.iter().map(|(factor, level)| format!("{factor}={level}")).collect();
    match levels.is_empty() {
        true => format!("`{}`", side.variant),
        false => format!("`{}` with {}", side.variant, levels.join(", ")),
    }
}

/// The verb, with `{}` for the baseline.
fn comparison(scale: Scale, bound: Bound, metric: &Metric, is_first: bool) -> String {
    let is_speed = match metric.unit {
        Unit::Nanosecond => metric.better == Better::Lower,
        Unit::PerSecond | Unit::BytePerSecond => metric.better == Better::Higher,
        Unit::Byte | Unit::One => false,
    };
    let by_metric = if is_speed && is_first { String::new() } else { format!(" in `{}`", metric.name) };
    match scale {
        Scale::Ratio if is_speed => format!("is {bound} times as fast as {{}}{by_metric}"),
        Scale::Ratio => format!("is {bound} times as good as {{}}{by_metric}"),
        Scale::Difference => {
            let exact = |value: f64| metric.unit.exact(value);
            let by = match bound {
                Bound::AtLeast(low) => format!("at least {}", exact(low)),
                Bound::AtMost(high) => format!("at most {}", exact(high)),
                Bound::Within(low, high) => format!("{} to {}", exact(low), exact(high)),
            };
            let better = if is_speed { "faster" } else { "better" };
            format!("is {better} than {{}} by {by}{by_metric}")
        }
    }
}

/// Where: ` at type=f32, at every one of elements=1024, 4096`.
fn place(factors: &[&str], at: &[Point]) -> String {
    let mut fixed = Vec::new();
    let mut swept = Vec::new();
    for factor in factors {
        let mut levels: Vec<String> = Vec::new();
        for level in at.iter().filter_map(|point| point.get(factor)).map(ToString::to_string) {
            if !levels.contains(&level) {
                levels.push(level);
            }
        }
        let is_fixed = levels.len() == 1;
        let text = format!("{factor}={}", levels.join(", "));
        if is_fixed { fixed.push(text) } else { swept.push(format!(", at every one of {text}")) }
    }
    let fixed = if fixed.is_empty() { String::new() } else { format!(" at {}", fixed.join(", ")) };
    format!("{fixed}{}", swept.concat())
}

fn percent(rate: f64) -> String {
    let digits = format!("{:.10}", rate * 100.0);
    digits.trim_end_matches('0').trim_end_matches('.').to_string()
}
