//! What a claim asks, in the words that its sentences are made of.

use ascertain_engine::claim::{Bound, Effect, Judging};
use ascertain_engine::experiment::{Arm, Better, Level, Point};
use ascertain_engine::outcome::{ClaimResult, ClaimSpec, Condition, Decided, Measure, TestSpec};
use ascertain_engine::predicate::Relation;
use ascertain_engine::unit::Unit;

use crate::amount::{self, Amount};
use crate::figure::{Figure, exact_percent};
use crate::text::{escape_controls, quoted};

/// Subject and complement, so that "`kahan` was at least 8 times as fast as `naive`" and "… is …" can be
/// made of it.
pub(crate) struct Clause {
    pub subject: String,
    pub complement: String,
}

impl Clause {
    pub fn of(asked: &ClaimSpec) -> Clause {
        match asked.tests.as_slice() {
            [] => Clause { subject: "the condition".into(), complement: "true".into() },
            [TestSpec::Versus { measure, candidate, baseline, scale, bound }] => {
                let (candidate, baseline) = arm_names(candidate, baseline);
                let baseline = quoted(&baseline);
                Clause { subject: quoted(&candidate), complement: compared(measure, *scale, *bound, &baseline) }
            }
            [TestSpec::Predicate { arm, predicate, .. }] => {
                Clause { subject: quoted(predicate), complement: format!("true of {}", quoted(&arm.variant)) }
            }
            tests => Clause { subject: format!("each of its {} conditions", tests.len()), complement: "true".into() },
        }
    }
}

/// "at least 8 times as fast as `naive`", "faster than `naive` by at least 5 ms".
fn compared(measure: &Measure, scale: Effect, bound: Bound, baseline: &str) -> String {
    let as_good = |times: &str| format!("{times}as {} as {baseline}{}", adjective(measure).0, in_metric(measure));
    let number = |times: f64| Unit::One.exact(times);
    let times = |times: f64| if times == 1.0 { String::new() } else { format!("{} times ", number(times)) };
    let by = |amount: String| format!("{} than {baseline} by {amount}{}", adjective(measure).1, in_metric(measure));
    let exact = |amount: f64| measure.unit.exact(amount);
    match (scale, bound) {
        (Effect::Ratio, Bound::AtLeast(low)) => as_good(&format!("at least {}", times(low))),
        (Effect::Ratio, Bound::AtMost(high)) => as_good(&format!("at most {}", times(high))),
        (Effect::Ratio, Bound::Within(low, high)) => {
            as_good(&format!("from {} to {} times ", number(low), number(high)))
        }
        (Effect::Difference, Bound::AtLeast(low)) => by(format!("at least {}", exact(low))),
        (Effect::Difference, Bound::AtMost(high)) => by(format!("at most {}", exact(high))),
        (Effect::Difference, Bound::Within(low, high)) => by(format!("{} to {}", exact(low), exact(high))),
    }
}

/// Stands where an interval would.
pub(crate) const NOT_ALIKE: &str = "trials not alike";

/// What a claim asks for, in the unit of the figure that it is judged by: "at least 8x", "16 to 36x", "at most 5 ms",
/// "time <= 5 ms, 99 %", "size 660 B to 1.1 kB". Empty where it asks for an order, or several things.
pub(crate) fn claimed(claim: &ClaimResult) -> String {
    let is_rate = claim.asked.judging == Judging::Rate && claim.rate_claimed != 0.5;
    let often = if is_rate { format!(", {}", exact_percent(claim.rate_claimed)) } else { String::new() };
    match claim.asked.tests.as_slice() {
        _ if claim.asked.judging == Judging::Order => String::new(),
        [TestSpec::Versus { measure, scale, bound, .. }] => {
            let exact = |value: f64| match scale {
                Effect::Ratio => format!("{}x", Unit::One.exact(value)),
                Effect::Difference => measure.unit.exact(value),
            };
            let asked = match *bound {
                Bound::AtLeast(low) => format!("at least {}", exact(low)),
                Bound::AtMost(high) => format!("at most {}", exact(high)),
                Bound::Within(low, high) if *scale == Effect::Ratio => {
                    format!("{} to {}", Unit::One.exact(low), exact(high))
                }
                Bound::Within(low, high) => format!("{} to {}", exact(low), exact(high)),
            };
            asked + &often
        }
        [TestSpec::Predicate { predicate, conditions, .. }] => {
            between(conditions).unwrap_or_else(|| predicate.clone()) + &often
        }
        _ => String::new(),
    }
}

/// "25 to 50 ms" for `time >= 25 ms and time <= 50 ms`; none of what is less plain.
pub(crate) fn between(conditions: &[Condition]) -> Option<String> {
    let [low, high] = conditions else { return None };
    let relations = (low.relation, high.relation);
    if low.measure != high.measure || relations != (Relation::AtLeast, Relation::AtMost) {
        return None;
    }
    let Measure { metric, unit, .. } = &low.measure;
    let [(least, of_least), (_, of_most)] = [low.bound, high.bound].map(|bound| unit.exact_apart(bound));
    // A unit that both have is said once.
    let least = if of_least == of_most { least } else { unit.exact(low.bound) };
    // The metric that everybody thinks of need not be said.
    let lead = if matches!(metric.as_str(), "time" | "wall") { String::new() } else { format!("{metric} ") };
    Some(format!("{lead}{least} to {}", unit.exact(high.bound)))
}

/// Of a comparison that asks for an order: what it is by, the command, and the reference.
pub(crate) fn ordered(claim: &ClaimResult) -> Option<(&Measure, &Arm, &Arm)> {
    match claim.asked.tests.as_slice() {
        [TestSpec::Versus { measure, candidate, baseline, .. }] if claim.asked.judging == Judging::Order => {
            Some((measure, candidate, baseline))
        }
        _ => None,
    }
}

/// What being better is called: "as fast as", "faster than".
pub(crate) fn adjective(measure: &Measure) -> (&'static str, &'static str) {
    match (measure.unit, measure.better) {
        (Unit::Nanosecond, Better::Lower) => ("fast", "faster"),
        (Unit::BytePerSecond | Unit::PerSecond, Better::Higher) => ("fast", "faster"),
        (Unit::Byte, Better::Lower) => ("small", "smaller"),
        _ => ("good", "better"),
    }
}

/// What not being better is called: "slower than".
pub(crate) fn worse(measure: &Measure) -> &'static str {
    match adjective(measure).1 {
        "faster" => "slower",
        "smaller" => "larger",
        _ => "worse",
    }
}

/// "`user`", or "time" for the metric that everybody thinks of.
pub(crate) fn named(measure: &Measure) -> String {
    match measure.metric.as_str() {
        "wall" | "time" => "time".into(),
        metric => quoted(metric),
    }
}

/// " in `user`", unless the metric is the one that everybody thinks of.
pub(crate) fn in_metric(measure: &Measure) -> String {
    let name = named(measure);
    if name == "time" { String::new() } else { format!(" in {name}") }
}

/// The two arms' names with the factors in which they differ, and with those that stand in a command line.
pub(crate) fn arm_names(one: &Arm, other: &Arm) -> (String, String) {
    let name = |arm: &Arm, against: &Arm| {
        let differs = |factor: &String, level: &Level| against.point.get(factor) != Some(level) || arm.shows(factor);
        Arm { variant: arm.variant.clone(), point: arm.point.only(differs) }.to_string()
    };
    (name(one, other), name(other, one))
}

/// The same of a comparison, which may be one of several at as many inputs: what neither command line shows of where
/// both are stands with the candidate, as in its row of the table. Levels of one command are told apart by these alone:
/// "size=4096".
pub(crate) fn compared_names(candidate: &Arm, reference: &Arm) -> (String, String) {
    if candidate.variant == reference.variant && candidate.point != reference.point {
        return (candidate.point.to_string(), reference.point.to_string());
    }
    let point = candidate.point.only(|factor, level| {
        let is_said = reference.shows(factor) && reference.point.get(factor) == Some(level);
        candidate.shows(factor) || !is_said
    });
    (Arm { variant: candidate.variant.clone(), point }.to_string(), arm_names(candidate, reference).1)
}

/// An arm with all of its factors, harmless.
pub(crate) fn arm_label(variant: &str, point: &Point) -> String {
    escape_controls(&Arm { variant: variant.to_string(), point: point.clone() }.to_string())
}

/// The figure of a claim with how to read it: a ratio, a difference, or a metric's quantile.
pub(crate) struct ClaimFigure {
    /// For sentences: "at the median 6.1 times as fast (5.9 to 6.3)".
    pub clause: String,
    /// For tables, the number and its range alone: "6.1x as fast" and "5.9 to 6.3", "43.10 ms" and "42.00 to 45.20".
    pub figure: Figure,
}

impl ClaimFigure {
    /// `None` where nothing was measured, or where several conditions leave no one figure.
    pub fn of(claim: &ClaimResult) -> Option<ClaimFigure> {
        let [test] = claim.asked.tests.as_slice() else { return None };
        // Where times were cut off, a ratio may have a bound and no value.
        if claim.ratio.is_none() && !matches!(test, TestSpec::Versus { scale: Effect::Ratio, .. }) {
            return None;
        }
        let is_exact = claim.asked.judging == Judging::Exact;
        let lead = if is_exact { "" } else { "at the median " };
        let of_unit = |measure: &Measure| {
            let figure = Figure::of_unit(measure.unit, claim.ratio, claim.ratio_low, claim.ratio_high);
            let figure = Figure::said(figure.value, range(claim, false, figure.range));
            let range = if is_exact { String::new() } else { figure.range_in_words() };
            Figure::said(figure.value, range)
        };
        Some(match test {
            TestSpec::Versus { measure, scale: Effect::Ratio, bound, .. } => {
                // Of memory and the like, a command's is told against the reference's, as in its table.
                let (claim, as_good) = match Amount::of_order(claim) {
                    Some(amount) => (&amount::inverse(claim), format!(" {}", amount.as_much())),
                    None => (claim, format!(" as {}", adjective(measure).0)),
                };
                let figure = |word: &str| times_apart(claim, &format!("{word}{as_good}"), &landmarks(*bound));
                let (words, figure) = (figure(" times")?, figure("x")?);
                ClaimFigure { clause: format!("{lead}{}", joined(&words)), figure }
            }
            TestSpec::Versus { measure, scale: Effect::Difference, .. } => {
                let figure = of_unit(measure);
                ClaimFigure { clause: format!("{lead}by {}", joined(&figure)), figure }
            }
            TestSpec::Predicate { measure, .. } => {
                let figure = of_unit(measure.as_ref()?);
                ClaimFigure { clause: format!("{lead}{}", joined(&figure)), figure }
            }
        })
    }
}

/// "6.1x (5.9 to 6.3)"; without a range the value alone.
pub(crate) fn joined(Figure { value, range, .. }: &Figure) -> String {
    if range.is_empty() { value.clone() } else { format!("{value} ({range})") }
}

/// The claim's ratio with its interval. Where two times were cut off, it could be anything above 0: that is no figure,
/// and bounds nothing.
pub(crate) fn ratio_figure(claim: &ClaimResult, landmarks: &[f64]) -> Figure {
    let [value, low, high] = bounding(claim);
    let figure = match (low, high) {
        (None, None) if claim.asked.judging != Judging::Exact => Figure::unbounded(value),
        _ => Figure::new(value, low, high, landmarks),
    };
    let range = match (low, high) {
        _ if ties_only(claim) => "all ties".into(),
        // Two time-outs, or zeros on either side.
        (None, None) if claim.ratio_low == Some(0.0) => match Amount::of_order(claim) {
            Some(_) => "open: zeros or time-outs".into(),
            None => "open: time-outs".into(),
        },
        _ => range(claim, false, figure.range),
    };
    Figure::said(figure.value, range)
}

/// "6.1x (5.9 to 6.3)": what the number is stands right after it. "at most 1.2x" where only a bound is known, and
/// `None` where not even that is.
pub(crate) fn times(claim: &ClaimResult, word: &str, landmarks: &[f64]) -> Option<String> {
    times_apart(claim, word, landmarks).as_ref().map(joined)
}

/// The same in its parts.
pub(crate) fn times_apart(claim: &ClaimResult, word: &str, landmarks: &[f64]) -> Option<Figure> {
    let figure = ratio_figure(claim, landmarks);
    match bounding(claim) {
        _ if claim.asked.judging == Judging::Exact => {
            Some(Figure::said(format!("{}{word}", figure.value), String::new()))
        }
        [None, None, None] => None,
        [None, ..] => Some(Figure::said(format!("{}{word}", figure.range), String::new())),
        [Some(_), ..] => Some(Figure::said(format!("{}{word}", figure.value), figure.range_in_words())),
    }
}

/// The ratio and the ends of its interval, as far as they say something: that of two time-outs does not.
fn bounding(claim: &ClaimResult) -> [Option<f64>; 3] {
    let says = |ratio: &f64| *ratio > 0.0 && !ties_only(claim);
    [claim.ratio, claim.ratio_low, claim.ratio_high].map(|ratio| ratio.filter(says))
}

/// The trials in which the claim's tests were false. What was cut off leaves others open.
pub(crate) fn failures(of: Decided) -> u64 {
    [of.ties, of.unknown, of.successes].into_iter().fold(of.trials, u64::saturating_sub)
}

fn ties_only(claim: &ClaimResult) -> bool {
    claim.ties > 0 && claim.ties == claim.trials
}

/// The claim's rate with its interval.
pub(crate) fn rate_figure(claim: &ClaimResult) -> Figure {
    let figure = Figure::of_share(claim.rate, claim.rate_low, claim.rate_high, claim.rate_claimed);
    Figure::said(figure.value, range(claim, true, figure.range))
}

/// The range, or why there is none where that is not for want of trials.
fn range(claim: &ClaimResult, of_rate: bool, range: String) -> String {
    if claim.has_lost_interval(of_rate) { NOT_ALIKE.into() } else { range }
}

/// The numbers that an interval's ends must not be rounded onto.
pub(crate) fn landmarks(bound: Bound) -> Vec<f64> {
    match bound {
        Bound::AtLeast(mark) | Bound::AtMost(mark) => vec![1.0, mark],
        Bound::Within(low, high) => vec![1.0, low, high],
    }
}
