//! The parts of the sentences about a claim: its subject, its complement, and its measured value in words.

use ascertain_engine::claim::{Bound, Effect, Hypothesis, Judging, Measure, Test};
use ascertain_engine::experiment::{Arm, Better, Level};
use ascertain_engine::outcome::{ClaimResult, Decided, Decision, Outcome, PointSummary};
use ascertain_engine::predicate::{Condition, Relation};
use ascertain_engine::unit::Unit;

use crate::amount::{self, Amount};
use crate::figure::{Figure, exact_percent};
use crate::grid::is_judged;
use crate::text::{escape_controls, quoted};

/// Subject and complement of a claim, such as "`kahan`" and "at least 8 times as fast as `naive`". Sentences put "was"
/// or "is" between the two.
pub(crate) struct Clause {
    pub subject: String,
    pub complement: String,
}

impl Clause {
    pub fn new(asked: &Hypothesis) -> Clause {
        match asked.tests.as_slice() {
            [] => Clause { subject: "the condition".into(), complement: "true".into() },
            [Test::Versus { measure, candidate, baseline, scale, bound }] => {
                let (candidate, baseline) = arm_names(candidate, baseline);
                let baseline = quoted(&baseline);
                Clause {
                    subject: quoted(&candidate),
                    complement: comparison_in_words(measure, *scale, *bound, &baseline),
                }
            }
            [Test::Predicate { arm, predicate, .. }] => {
                Clause { subject: quoted(predicate), complement: format!("true of {}", quoted(&arm.variant)) }
            }
            tests => Clause { subject: format!("each of its {} conditions", tests.len()), complement: "true".into() },
        }
    }
}

/// Returns a bound in words: "at least 3 ms", "3 ms to 5 ms". `exact` writes a number of the bound.
fn bound_in_words(bound: Bound, exact: impl Fn(f64) -> String) -> String {
    match bound {
        Bound::AtLeast(low) => format!("at least {}", exact(low)),
        Bound::AtMost(high) => format!("at most {}", exact(high)),
        Bound::Within(low, high) => format!("{} to {}", exact(low), exact(high)),
    }
}

/// Returns a comparison in words: "at least 8 times as fast as `naive`", "faster than `naive` by at least 5 ms".
fn comparison_in_words(measure: &Measure, scale: Effect, bound: Bound, baseline: &str) -> String {
    let as_good = |times: &str| format!("{times}as {} as {baseline}{}", adjective(measure).0, in_metric(measure));
    let number = |times: f64| Unit::One.exact(times);
    let times = |times: f64| if times == 1.0 { String::new() } else { format!("{} times ", number(times)) };
    let by = |amount: String| format!("{} than {baseline} by {amount}{}", adjective(measure).1, in_metric(measure));
    match (scale, bound) {
        (Effect::Ratio, Bound::AtLeast(low)) => as_good(&format!("at least {}", times(low))),
        (Effect::Ratio, Bound::AtMost(high)) => as_good(&format!("at most {}", times(high))),
        (Effect::Ratio, Bound::Within(low, high)) => {
            as_good(&format!("from {} to {} times ", number(low), number(high)))
        }
        (Effect::Difference, Bound::Within(_, high)) if is_symmetric(bound) => {
            format!("within ±{} of {baseline}{}", measure.unit.exact(high), in_metric(measure))
        }
        (Effect::Difference, bound) => by(bound_in_words(bound, |amount| measure.unit.exact(amount))),
    }
}

/// Returns whether the bound on a difference is a range that is as wide above 0 as below it.
fn is_symmetric(bound: Bound) -> bool {
    matches!(bound, Bound::Within(low, high) if low == -high)
}

/// The text in place of an interval if the rate or ratio changed during the run, because no interval is valid then.
pub(crate) const NOT_ALIKE: &str = "no interval: results changed during the run";

/// Returns the value that a claim states, in the unit of the measured value. Examples: "at least 8 times as fast", "at
/// most 5 ms", "size 660 B to 1.1 kB", "time <= 5 ms in 99 % of trials". Empty for a comparison without a stated value,
/// and for a claim with several tests.
pub(crate) fn claimed(claim: &ClaimResult) -> String {
    let is_rate = claim.asked.judging == Judging::Rate && claim.rate_claimed != 0.5;
    let often = if is_rate { format!(" in {} of trials", exact_percent(claim.rate_claimed)) } else { String::new() };
    match claim.asked.tests.as_slice() {
        _ if claim.asked.judging == Judging::Order => String::new(),
        [Test::Versus { measure, scale, bound, .. }] => {
            let good = adjective(measure).0;
            let times = |ratio: f64| match Unit::One.exact(ratio).as_str() {
                "1" => format!("as {good}"),
                number => format!("{number} times as {good}"),
            };
            let asked = match (scale, *bound) {
                (Effect::Ratio, Bound::Within(low, high)) => {
                    format!("{} to {} times as {good}", Unit::One.exact(low), Unit::One.exact(high))
                }
                (Effect::Ratio, bound) => bound_in_words(bound, times),
                (Effect::Difference, Bound::Within(_, high)) if is_symmetric(*bound) => {
                    format!("±{}", measure.unit.exact(high))
                }
                (Effect::Difference, bound) => bound_in_words(bound, |amount| measure.unit.exact(amount)),
            };
            asked + &often
        }
        [Test::Predicate { predicate, conditions, .. }] => {
            between(conditions).unwrap_or_else(|| predicate.clone()) + &often
        }
        _ => String::new(),
    }
}

/// Returns two conditions on one metric as a range: "25 to 50 ms" for `time >= 25 ms and time <= 50 ms`. `None` for
/// other conditions.
pub(crate) fn between(conditions: &[Condition]) -> Option<String> {
    let [low, high] = conditions else { return None };
    let relations = (low.relation, high.relation);
    if low.measure != high.measure || relations != (Relation::AtLeast, Relation::AtMost) {
        return None;
    }
    let Measure { metric, unit, .. } = &low.measure;
    let [(least, of_least), (_, of_most)] = [low.bound, high.bound].map(|bound| unit.exact_apart(bound));
    // If both ends have the same unit, it is written only once.
    let least = if of_least == of_most { least } else { unit.exact(low.bound) };
    // The name of the metric is left out if the metric is time.
    let lead = if matches!(metric.as_str(), "time" | "wall") { String::new() } else { format!("{metric} ") };
    Some(format!("{lead}{least} to {}", unit.exact(high.bound)))
}

/// A claim about which of two arms is better by a metric.
#[derive(Clone, Copy)]
pub(crate) struct ArmComparison<'a> {
    pub claim: &'a ClaimResult,
    /// The metric by which the arms are compared.
    pub measure: &'a Measure,
    pub candidate: &'a Arm,
    pub reference: &'a Arm,
}

impl<'a> ArmComparison<'a> {
    /// Returns the comparison in a claim; `None` if the claim is not a comparison of two arms.
    pub fn new(claim: &'a ClaimResult) -> Option<ArmComparison<'a>> {
        match claim.asked.tests.as_slice() {
            [Test::Versus { measure, candidate, baseline, .. }] if claim.asked.judging == Judging::Order => {
                Some(ArmComparison { claim, measure, candidate, reference: baseline })
            }
            _ => None,
        }
    }

    /// Returns the decision of the comparison; `None` if its pairs were not judged.
    pub fn decision(&self) -> Option<Decision> {
        self.claim.decision.filter(|_| is_judged(self.claim) && self.claim.trials > 0)
    }

    /// Returns the summary of the values that this arm has for the metric of the comparison; `None` if the outcome has
    /// none.
    pub fn summary<'o>(&self, arm: &Arm, outcome: &'o Outcome) -> Option<&'o PointSummary> {
        outcome.points.iter().find(|point| {
            point.metric == self.measure.metric && point.is_of(&self.claim.experiment, arm) && point.n > 0
        })
    }

    /// Returns the arm with the best median of the metric; `None` if no arm has a median.
    pub fn best_median(&self, arms: impl Iterator<Item = &'a Arm>, outcome: &Outcome) -> Option<&'a Arm> {
        let medians = arms.filter_map(|arm| Some((arm, self.summary(arm, outcome)?.median?)));
        let is_better = |one: f64, other: f64| match self.measure.better {
            Better::Lower => one < other,
            Better::Higher => one > other,
        };
        medians.reduce(|best, next| if is_better(next.1, best.1) { next } else { best }).map(|(arm, _)| arm)
    }
}

/// Returns two words for the better side of a comparison: the adjective ("fast", as in "as fast as") and the
/// comparative ("faster").
pub(crate) fn adjective(measure: &Measure) -> (&'static str, &'static str) {
    match (measure.unit, measure.better) {
        (Unit::Nanosecond, Better::Lower) => ("fast", "faster"),
        (Unit::BytePerSecond | Unit::PerSecond, Better::Higher) => ("fast", "faster"),
        (Unit::Byte, Better::Lower) => ("small", "smaller"),
        _ => ("good", "better"),
    }
}

/// Returns the comparative for the worse side of a comparison: "slower", "larger" or "worse".
pub(crate) fn worse(measure: &Measure) -> &'static str {
    match adjective(measure).1 {
        "faster" => "slower",
        "smaller" => "larger",
        _ => "worse",
    }
}

/// Returns the name of a metric for a sentence: "`user`", or "time" for wall-clock time.
pub(crate) fn metric_name(measure: &Measure) -> String {
    match measure.metric.as_str() {
        "wall" | "time" => "time".into(),
        metric => quoted(metric),
    }
}

/// Returns the metric for the end of a sentence: " in `user`"; empty for wall-clock time.
pub(crate) fn in_metric(measure: &Measure) -> String {
    let name = metric_name(measure);
    if name == "time" { String::new() } else { format!(" in {name}") }
}

/// Returns the names of both arms. A name has two kinds of factors: those whose levels differ between the arms, and
/// those whose levels are part of the arm's command line.
pub(crate) fn arm_names(one: &Arm, other: &Arm) -> (String, String) {
    let name = |arm: &Arm, against: &Arm| {
        let differs = |factor: &String, level: &Level| against.point.get(factor) != Some(level) || arm.shows(factor);
        Arm { variant: arm.variant.clone(), point: arm.point.only(differs) }.to_string()
    };
    (name(one, other), name(other, one))
}

/// Returns the names of the candidate and the reference. The candidate's name also has the levels that both arms share,
/// because a run may compare the arms at several inputs. A shared level is left out if the reference's command line
/// shows it and the candidate's does not. If both arms are the same variant at different levels, a name consists only
/// of the arm's levels: "size=4096".
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

/// Returns the name of an arm with all of its factors; control characters are escaped.
pub(crate) fn arm_label(arm: &Arm) -> String {
    escape_controls(&arm.to_string())
}

/// The measured value of a claim in words: the ratio or difference of two arms, or a quantile of a metric.
pub(crate) struct ClaimFigure {
    /// The value and its interval, as a clause of a sentence: "at the median 6.1 times as fast (99.9 % interval: 5.9 to
    /// 6.3)".
    pub clause: String,
    /// The value and its interval, as shown in tables: "6.1 times as fast" and "5.9 to 6.3", "43.10 ms" and "42.00 to
    /// 45.20".
    pub figure: Figure,
}

impl ClaimFigure {
    /// Returns the value and interval of a claim in words. `None` if nothing was measured, or if the claim has
    /// conditions on several metrics.
    pub fn new(claim: &ClaimResult) -> Option<ClaimFigure> {
        let [test] = claim.asked.tests.as_slice() else { return None };
        // If times were stopped at a limit, only a bound of the ratio may be known.
        if claim.ratio.is_none() && !matches!(test, Test::Versus { scale: Effect::Ratio, .. }) {
            return None;
        }
        let is_exact = claim.asked.judging == Judging::Exact;
        let named = |figure: Figure| joined(&with_interval_name(claim, false, figure));
        let lead = if is_exact { "" } else { "at the median " };
        let of_unit = |measure: &Measure| {
            let figure = Figure::of_unit(measure.unit, claim.ratio, claim.ratio_low, claim.ratio_high);
            let range = if is_exact { String::new() } else { range(claim, false, figure.range_in_words()) };
            Figure { range, ..figure }
        };
        Some(match test {
            Test::Versus { measure, scale: Effect::Ratio, .. } if is_in_words(claim) => {
                let [clause, figure] = has_ratio(claim).then(|| amount::size_of_median(claim, measure)).flatten()?;
                ClaimFigure { clause: format!("{lead}{}", named(clause)), figure }
            }
            Test::Versus { measure, scale: Effect::Ratio, bound, .. } => {
                let as_good = format!(" times as {}", adjective(measure).0);
                let figure = times_apart(claim, &as_good, &landmarks(*bound))?;
                ClaimFigure { clause: format!("{lead}{}", named(figure.clone())), figure }
            }
            Test::Versus { measure, scale: Effect::Difference, bound, .. } => {
                let figure = of_unit(measure);
                let by = if is_symmetric(*bound) { "a difference of" } else { "by" };
                ClaimFigure { clause: format!("{lead}{by} {}", named(figure.clone())), figure }
            }
            Test::Predicate { measure, .. } => {
                let figure = of_unit(measure.as_ref()?);
                ClaimFigure { clause: format!("{lead}{}", named(figure.clone())), figure }
            }
        })
    }
}

/// Returns whether the ratio of a claim is written in words such as "9.3 % longer", not as a multiple such as "6.1
/// times as fast". This is always the case for a comparison of two commands. For other claims, it is the case if the
/// measured ratio is below 1 and the claimed ratio is not.
pub(crate) fn is_in_words(claim: &ClaimResult) -> bool {
    let [Test::Versus { scale: Effect::Ratio, bound, .. }] = claim.asked.tests.as_slice() else { return false };
    let is_below_one = |ratio: f64| ratio > 0.0 && ratio < 1.0;
    let ratio = claim.ratio.or(claim.ratio_high);
    claim.asked.judging == Judging::Order
        || (ratio.is_some_and(is_below_one) && !landmarks(*bound).into_iter().any(is_below_one))
}

/// Returns the figure with the name of its interval: "99.9 % interval: 5.9 to 6.3". A text in place of an interval
/// stays unchanged. With `of_rate`, the interval is the interval of the rate, and its name has no level.
pub(crate) fn with_interval_name(claim: &ClaimResult, of_rate: bool, figure: Figure) -> Figure {
    let starts_with_number = figure.range.starts_with(|c: char| c.is_ascii_digit() || "-−".contains(c));
    let is_interval = starts_with_number
        || ["at least ", "at most ", "over ", "under ", "between "].iter().any(|word| figure.range.starts_with(word));
    if !is_interval || claim.has_lost_interval(of_rate) || claim.asked.judging == Judging::Exact {
        return figure;
    }
    // A sentence about a rate is long, and ends with the error.
    let name = if of_rate { "interval".into() } else { amount::interval_name(std::slice::from_ref(claim)) };
    let range = format!("{name}: {}", figure.range);
    Figure { range, ..figure }
}

/// Returns the value with its range in parentheses: "6.1 times as fast (5.9 to 6.3)"; the value alone if the range is
/// empty.
pub(crate) fn joined(Figure { value, range, .. }: &Figure) -> String {
    if range.is_empty() { value.clone() } else { format!("{value} ({range})") }
}

/// Returns the ratio of a claim with its interval. No end of the interval is rounded to one of the `landmarks`, such as
/// the claimed ratio. If both times of a pair were stopped at a limit, the ratio of this pair could be anything above
/// 0. The claim then has no interval.
pub(crate) fn ratio_figure(claim: &ClaimResult, landmarks: &[f64]) -> Figure {
    let [value, low, high] = bounding(claim);
    let figure = match (low, high) {
        (None, None) if claim.asked.judging != Judging::Exact => Figure::unbounded(value),
        _ => Figure::new(value, low, high, landmarks),
    };
    let range = match (low, high) {
        _ if ties_only(claim) => "all ties".into(),
        // In some pairs, both times were stopped at a limit, or both values were zero.
        (None, None) if claim.ratio_low == Some(0.0) => match Amount::of_order(claim) {
            Some(_) => "no interval: zeros or time-outs".into(),
            None => "no interval: time-outs".into(),
        },
        _ => range(claim, false, figure.range),
    };
    Figure { value: figure.value, range }
}

/// Returns the ratio with `word` after the number: "6.1x (5.9 to 6.3)". If only a bound is known: "at most 1.2x". No
/// end of the interval is rounded to one of the `landmarks`, such as the claimed ratio. `None` if nothing is known.
pub(crate) fn times(claim: &ClaimResult, word: &str, landmarks: &[f64]) -> Option<String> {
    times_apart(claim, word, landmarks).as_ref().map(joined)
}

/// Returns the same as [`times`] in two parts: the number with `word`, and its interval.
pub(crate) fn times_apart(claim: &ClaimResult, word: &str, landmarks: &[f64]) -> Option<Figure> {
    let figure = ratio_figure(claim, landmarks);
    let (number, range) = match bounding(claim) {
        _ if claim.asked.judging == Judging::Exact => (figure.value, String::new()),
        [None, None, None] => return None,
        [None, ..] => (figure.range, String::new()),
        [Some(_), ..] => (figure.value.clone(), figure.range_in_words()),
    };
    Some(Figure { value: format!("{number}{word}"), range })
}

/// Returns the ratio and the two ends of its interval. A number that is unknown or zero becomes `None`, because it
/// bounds nothing. All three are `None` if all pairs are ties.
fn bounding(claim: &ClaimResult) -> [Option<f64>; 3] {
    let says = |ratio: &f64| *ratio > 0.0 && !ties_only(claim);
    [claim.ratio, claim.ratio_low, claim.ratio_high].map(|ratio| ratio.filter(says))
}

/// Returns whether the ratio or an end of its interval is known.
pub(crate) fn has_ratio(claim: &ClaimResult) -> bool {
    bounding(claim) != [None; 3]
}

/// Returns the number of trials in the counts `of` that contradict the claim. Ties and stopped trials do not contradict
/// it.
pub(crate) fn failures(of: Decided) -> u64 {
    [of.ties, of.unknown, of.successes].into_iter().fold(of.trials, u64::saturating_sub)
}

fn ties_only(claim: &ClaimResult) -> bool {
    claim.ties > 0 && claim.ties == claim.trials
}

/// Returns the rate of a claim with its interval, even if the rate changed during the run and the interval is therefore
/// invalid.
pub(crate) fn share_figure(claim: &ClaimResult) -> Figure {
    Figure::of_share(claim.rate, claim.rate_low, claim.rate_high, claim.rate_claimed)
}

/// Returns the rate of a claim with its interval. If the rate changed during the run, a note replaces the interval.
pub(crate) fn rate_figure(claim: &ClaimResult) -> Figure {
    let figure = share_figure(claim);
    Figure { value: figure.value, range: range(claim, true, figure.range) }
}

/// Returns `range`, the text of an interval, or a note if the interval is invalid because the trials changed during the
/// run. With `of_rate`, `range` is the interval of the rate; otherwise it is the interval of the ratio or the
/// difference.
fn range(claim: &ClaimResult, of_rate: bool, range: String) -> String {
    if claim.has_lost_interval(of_rate) { NOT_ALIKE.into() } else { range }
}

/// Returns the landmarks of a claim: 1 and the claimed bounds. An end of an interval must not be rounded to a landmark,
/// because it would then look equal to the landmark.
pub(crate) fn landmarks(bound: Bound) -> Vec<f64> {
    match bound {
        Bound::AtLeast(mark) | Bound::AtMost(mark) => vec![1.0, mark],
        Bound::Within(low, high) => vec![1.0, low, high],
    }
}
