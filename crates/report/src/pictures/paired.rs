//! Pictures of a claim's trials in the order measured: the ratio or difference of each pair, or the value of the
//! predicate's metric. Lines across the plot show the claimed bounds.

use ascertain_engine::claim::{Bound, Effect, Judging, Measure, Test};
use ascertain_engine::outcome::ClaimResult;
use ascertain_engine::predicate::Condition;
use ascertain_engine::recorded::{ClaimPath, RecordedRun};
use ascertain_engine::unit::Unit;
use ascertain_engine::values::{Bounds, Values};
use ascertain_stats::quantile_ranks;

use super::claim::{claim_in_words, directions};
use super::measured::{MetricRows, ascending, scale_for};
use super::trials::not_drawn;
use super::{Picture, PictureKind, Table, names};
use crate::amount::Amount;
use crate::clause::{ClaimFigure, adjective, failures, joined};
use crate::plot::{Axis, Layer, Plot, Range, Scale, Which};
use crate::text::{capitalised, counted, plain};

/// The divisor that determines how often the estimate is computed. With 8, the estimate is computed again whenever the
/// number of trials has grown by one eighth.
const LOOK_EVERY_SHARE: usize = 8;

/// Draws the ratio or difference of each trial, with ties as hollow dots, and the claimed bound. A line and a band show
/// how the estimate and its interval changed during the run. `None` if the claim is not a comparison, or if nothing can
/// be drawn.
pub(super) fn paired(claim: &ClaimResult, path: &ClaimPath, id: String) -> Option<Picture> {
    let effect = PairedEffect::new(claim)?;
    let is_ratio = effect.scale == Effect::Ratio;
    // If a value was stopped at the time limit, only a bound of the ratio or difference is known. The dot is drawn at
    // this bound.
    let place = |index: usize| {
        let Bounds { low, high } = path.statistics.bounds(index);
        let ends = if low < high && high.is_infinite() { [low, high] } else { [high, low] };
        let value = ends.into_iter().find(|value| value.is_finite() && (!is_ratio || *value > 0.0))?;
        Some(([index as f64 + 1.0, value], path.successes[index]))
    };
    let drawn: Vec<([f64; 2], Option<bool>)> = (0..path.statistics.len()).filter_map(place).collect();
    if drawn.is_empty() {
        return None;
    }
    let mut series: Vec<String> = effect.sides(claim).into();
    let dots = |series, outcome| {
        let points = drawn.iter().filter(|(_, success)| *success == outcome).map(|(point, _)| *point).collect();
        Layer::Dots { series, points, hollow: outcome.is_none() }
    };
    let mut layers = vec![dots(Some(0), Some(true)), dots(Some(1), Some(false))];
    if count(path, None) > 0 {
        layers.push(dots(Some(series.len()), None));
        series.push(open_ones(claim).into());
    }
    if let Some(quantile) = claim.asked.quantile(claim.rate_claimed) {
        layers.splice(0..0, running(claim, path, quantile, series.len()));
        series.push(format!("{} so far", quantile_name(quantile)));
    }
    layers.extend(effect.rules(claim, Which::Y));
    let (good, better) = adjective(effect.measure);
    let (what, label) = match Amount::of_order(claim) {
        Some(amount) => ("ratio", amount.ratio()),
        None if is_ratio => ("ratio", format!("times as {good} (above 1: {better})")),
        None => ("difference", format!("{better} by")),
    };
    let plot = Plot {
        id,
        title: format!("Paired {what}s in the order measured{}", not_drawn(path.statistics.len() - drawn.len())),
        alt: format!("{}: {}", claim_in_words(claim), in_words(claim, path, effect)),
        x: Axis::new("trials judged", Scale::Linear, Unit::One),
        y: Axis::new(&label, if is_ratio { Scale::Log } else { Scale::Linear }, effect.unit()),
        series,
        layers,
    };
    Some(Picture { kind: PictureKind::Ratios, plot, table: table(claim, path, effect) })
}

/// Returns the name of a quantile: `median`, `p10`.
fn quantile_name(quantile: f64) -> String {
    if quantile == 0.5 { "median".into() } else { format!("p{}", Unit::One.exact(quantile * 100.0)) }
}

/// Draws the quantile of the trials so far as a line, and its confidence sequence as a band. The band ends with the
/// interval of the claim.
fn running(claim: &ClaimResult, path: &ClaimPath, quantile: f64, series: usize) -> [Layer; 2] {
    let error = if claim.asked.judging == Judging::Order { claim.error / 2.0 } else { claim.error };
    let all = path.statistics.len();
    let (mut seen, mut points, mut ranges) = (Values::default(), Vec::new(), Vec::new());
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    let mut look = 1;
    loop {
        let n = look.min(all);
        (seen.len()..n).for_each(|index| seen.push(path.statistics.bounds(index)));
        let sorted = seen.sorted();
        if let Ok(ranks) = quantile_ranks(n as u64, quantile, error, error) {
            let ends = sorted.between(ranks);
            (low, high) = (low.max(ends.0), high.min(ends.1));
        }
        if n == all {
            low = claim.ratio_low.map_or(low, |end| low.max(end));
            high = claim.ratio_high.map_or(high, |end| high.min(end));
        }
        let estimate = sorted.quantile(quantile).and_then(Bounds::estimate);
        points.push([n as f64, estimate.unwrap_or(f64::NAN)]);
        // The interval is unknown if there are too few trials, or if the trials changed during the run.
        if low <= high && low.is_finite() && high.is_finite() {
            ranges.push(Range { x: n as f64, low, high });
        }
        if n == all {
            break;
        }
        look = n + 1 + n / LOOK_EVERY_SHARE;
    }
    let series = Some(series);
    [Layer::Band { series, ranges }, Layer::Line { series, points, steps: false, dashed: true }]
}

/// Returns the number of trials with this outcome: success (`true`) or failure (`false`). `None` counts ties and trials
/// that were stopped at the time limit.
fn count(path: &ClaimPath, outcome: Option<bool>) -> usize {
    path.successes.iter().filter(|success| **success == outcome).count()
}

/// Returns the legend's words for trials without an outcome: ties, and trials that were stopped at the time limit.
fn open_ones(claim: &ClaimResult) -> &'static str {
    if claim.unknown > 0 { "cut off or tied" } else { "tie, not counted" }
}

fn in_words(claim: &ClaimResult, path: &ClaimPath, effect: PairedEffect) -> String {
    let [kept, missed] = effect.sides(claim);
    let text = format!("{} {kept}, {} {missed}", count(path, Some(true)), count(path, Some(false)));
    let open = match (count(path, None), claim.unknown) {
        (0, _) => String::new(),
        (ties, 0) => format!(", {}", counted(ties, "tie")),
        (open, _) => format!(", {open} {}", open_ones(claim)),
    };
    let figure = ClaimFigure::new(claim).map(|figure| format!("; {}", plain(&figure.clause)));
    format!("of {}, {text}{open}{}.", counted(path.successes.len(), "trial"), figure.unwrap_or_default())
}

fn table(claim: &ClaimResult, path: &ClaimPath, effect: PairedEffect) -> Table {
    let [kept, missed] = effect.sides(claim);
    let mut table = Table::new(&["", ""]);
    let mut row = |name: &str, cell: String| table.rows.push(vec![capitalised(name), cell]);
    let sorted = path.statistics.sorted();
    row("trials", path.successes.len().to_string());
    row(&kept, count(path, Some(true)).to_string());
    row(&missed, count(path, Some(false)).to_string());
    if count(path, None) > 0 {
        row(if claim.unknown > 0 { "cut off or ties" } else { "ties" }, count(path, None).to_string());
    }
    for (name, q) in [("least", 0.0), ("p25", 0.25), ("median", 0.5), ("p75", 0.75), ("greatest", 1.0)] {
        let value = sorted.quantile(q).and_then(Bounds::estimate);
        row(name, value.map_or_else(|| "-".into(), |value| effect.unit().human(value)));
    }
    if let Some(figure) = ClaimFigure::new(claim) {
        row("the claim's figure", joined(&figure.figure));
    }
    table
}

/// Draws the predicate's metric in each judged trial, with the claimed bound. `None` if the predicate has several
/// metrics, if nothing can be drawn, or if all values are equal.
pub(super) fn values(run: &RecordedRun, claim: &ClaimResult, path: &ClaimPath, id: String) -> Option<Picture> {
    let [Test::Predicate { arm, predicate, measure: Some(measure), conditions }] = claim.asked.tests.as_slice() else {
        return None;
    };
    let spec = run.header.experiments.iter().find(|spec| spec.id == claim.experiment)?;
    let metric = &spec.metrics[spec.metric(&measure.metric)?];
    let measured = MetricRows::recorded(run, spec, metric, Some(arm));
    let row = measured.rows.iter().find(|row| row.key.is_empty())?;
    let judged = path.trials.iter().zip(&path.successes).zip(1..);
    let seen = judged.filter_map(|((trial, success), place)| Some((f64::from(place), row.of_trial(*trial)?, *success)));
    let seen: Vec<(f64, f64, Option<bool>)> = seen.collect();
    let drawn: Vec<_> = seen.iter().filter(|(_, value, _)| value.is_finite()).collect();
    let rules = rules_of_predicate(conditions, measure);
    let scale = scale_for(drawn.iter().map(|(_, value, _)| *value).chain(places(&rules)));
    let not_drawn = not_drawn(seen.len() - drawn.len());
    // If all values are equal, there is no picture, because the sentence has the value.
    drawn.iter().find(|(_, value, _)| *value != drawn[0].1)?;
    let dots = [true, false].into_iter().enumerate().map(|(series, outcome)| {
        let points = drawn.iter().filter(|(.., success)| *success == Some(outcome)).map(|(x, y, _)| [*x, *y]).collect();
        Layer::Dots { series: Some(series), points, hollow: false }
    });
    let failures = failures(claim.judged());
    let name = names::spoken(&measure.metric);
    let plot = Plot {
        id,
        title: format!("{} in the order measured{not_drawn}", capitalised(&name)),
        alt: format!(
            "{}: {predicate} was met in {} and missed in {failures}; the median {name} is {}.",
            claim_in_words(claim),
            counted(claim.successes, "trial"),
            row.median.in_unit(measure.unit)
        ),
        x: Axis::new("trials judged", Scale::Linear, Unit::One),
        y: Axis::new(&name, scale, measure.unit),
        series: ["condition met", "condition missed"].map(String::from).into(),
        layers: dots.chain(rules).collect(),
    };
    let mut table = Table::new(&["", "Trials", "Least", "Median", "Greatest"]);
    for (name, outcome) in [("Condition met", true), ("Condition missed", false)] {
        let of_outcome = seen.iter().filter(|(.., success)| *success == Some(outcome)).map(|(_, value, _)| *value);
        let sorted = ascending(of_outcome);
        let at = |q| ascertain_stats::quantile_sorted(&sorted, q).map_or_else(|| "-".into(), |v| measure.unit.human(v));
        table.rows.push(vec![name.into(), sorted.len().to_string(), at(0.0), at(0.5), at(1.0)]);
    }
    Some(Picture { kind: PictureKind::Values, plot, table })
}

/// The ratio or difference of two arms that a claim is about.
#[derive(Clone, Copy)]
pub(super) struct PairedEffect<'a> {
    pub measure: &'a Measure,
    pub scale: Effect,
    pub bound: Bound,
}

impl<'a> PairedEffect<'a> {
    /// Returns the ratio or difference of the claim's first comparison of two arms, the only one that is recorded.
    /// `None` if the claim compares no arms.
    pub fn new(claim: &'a ClaimResult) -> Option<PairedEffect<'a>> {
        claim.asked.tests.iter().find_map(|test| match test {
            Test::Versus { measure, scale, bound, .. } => Some(PairedEffect { measure, scale: *scale, bound: *bound }),
            Test::Predicate { .. } => None,
        })
    }

    /// Returns the unit of the ratio or difference.
    pub fn unit(self) -> Unit {
        match self.scale {
            Effect::Ratio => Unit::One,
            Effect::Difference => self.measure.unit,
        }
    }

    /// Returns lines across the plot ([`Layer::Rule`]) at the claimed bounds. A claim that only asks which arm is
    /// better has no claimed bounds. Such a claim has one line at equality or, if it has a margin, two lines at the
    /// ends of the margin.
    pub fn rules(self, claim: &ClaimResult, on: Which) -> Vec<Layer> {
        let rule = |at: f64, label: String| Layer::Rule { on, at, label };
        let write = |number: f64| self.unit().exact(number);
        match (claim.asked.judging, claim.asked.margin, self.bound) {
            (Judging::Order, None, _) => vec![rule(1.0, "equal".into())],
            (Judging::Order, Some(margin), _) => {
                let [better, worse] = directions(claim);
                let beyond = 1.0 + margin;
                vec![rule(1.0 / beyond, format!("{worse} below")), rule(beyond, format!("{better} above"))]
            }
            (_, _, Bound::AtLeast(low)) => vec![rule(low, format!("claimed: at least {}", write(low)))],
            (_, _, Bound::AtMost(high)) => vec![rule(high, format!("claimed: at most {}", write(high)))],
            (_, _, Bound::Within(low, high)) => {
                let labels = [(low, "from"), (high, "to")];
                labels.map(|(at, word)| rule(at, format!("claimed: {word} {}", write(at)))).into()
            }
        }
    }

    /// Returns two names for the legend: one for trials that support the claim, and one for the other trials.
    pub fn sides(self, claim: &ClaimResult) -> [String; 2] {
        let write = |number: f64| self.unit().exact(number);
        match (claim.asked.judging, self.bound) {
            _ if claim.asked.tests.len() > 1 => ["all conditions true".into(), "not all true".into()],
            (Judging::Order, _) => directions(claim).map(String::from),
            (_, Bound::AtLeast(low)) => [format!("at least {}", write(low)), format!("below {}", write(low))],
            (_, Bound::AtMost(high)) => [format!("at most {}", write(high)), format!("above {}", write(high))],
            (_, Bound::Within(low, high)) => [format!("from {} to {}", write(low), write(high)), "outside".to_string()],
        }
    }
}

/// Returns lines across the plot ([`Layer::Rule`]) at the bounds in the conditions of a predicate.
pub(super) fn rules_of_predicate(conditions: &[Condition], measure: &Measure) -> Vec<Layer> {
    let rules = conditions.iter().filter(|condition| condition.measure == *measure).map(|condition| {
        let label = format!("claimed: {} {}", condition.relation, measure.unit.exact(condition.bound));
        Layer::Rule { on: Which::Y, at: condition.bound, label }
    });
    rules.collect()
}

/// Returns the numbers at which these lines ([`Layer::Rule`]) are drawn.
pub(super) fn places(rules: &[Layer]) -> impl Iterator<Item = f64> {
    rules.iter().filter_map(|rule| match rule {
        Layer::Rule { at, .. } => Some(*at),
        _ => None,
    })
}
