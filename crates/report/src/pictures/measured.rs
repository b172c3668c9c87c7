//! What was measured of a metric, as pictures need it: a row an arm, a value a trial.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ascertain_engine::experiment::{Arm, Metric, Reduce, Spec, Variant};
use ascertain_engine::observations::Observations;
use ascertain_engine::outcome::{Outcome, PointSummary};
use ascertain_engine::recorded::{RecordedRun, Series};
use ascertain_engine::unit::Unit;
use ascertain_engine::values::{Bounds, Sorted, Values};
use ascertain_stats::{QuantileRanks, quantile_ranks, quantile_sorted};

use super::names;
use crate::figure::Figure;
use crate::plot::{Axis, Scale};
use crate::text::capitalised;

/// The error of each end of an interval that is not a claim's.
const ERROR_OF_END: f64 = 0.025;
/// As many times as large as the least must the greatest be for a logarithmic axis.
const WIDE_SPREAD: f64 = 10.0;

/// A metric of several arms.
#[derive(Clone)]
pub(super) struct Measured<'a> {
    pub metric: &'a str,
    pub unit: Unit,
    /// The experiment's variants, where they are known.
    pub variants: &'a [Variant],
    /// The levels that set these rows apart from others of the metric, which have plots of their own: `type=f32`.
    pub at: String,
    /// The time limit at which values were cut off, where it is known.
    pub limit: Option<f64>,
    /// Those that have values, in the order in which they were named.
    pub rows: Vec<ArmRow<'a>>,
}

/// A metric of one arm, under one key.
#[derive(Clone)]
pub(super) struct ArmRow<'a> {
    pub name: String,
    pub arm: &'a Arm,
    /// Which of several series; empty for a scalar.
    pub key: &'a str,
    /// The trials' numbers; empty where they are not known.
    pub trials: Cow<'a, [u64]>,
    /// The trials' values in the order measured: none of them NaN, infinite where cut off.
    pub values: Cow<'a, Values>,
    pub sorted: Sorted,
    pub median: MedianInterval,
}

/// An arm, a key, the trials' numbers and their values.
type OfArm<'a> = (&'a Arm, &'a str, Cow<'a, [u64]>, Cow<'a, Values>);

/// Medians with their intervals. The ranks of an interval's ends are looked up once for so many values.
#[derive(Default)]
pub(super) struct Medians {
    ranks: BTreeMap<u64, Option<QuantileRanks>>,
}

/// An estimate with its interval, whose ends are infinite where nothing bounds them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MedianInterval {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl<'a> Measured<'a> {
    /// A metric of a recorded run: of all arms, or of one.
    pub fn recorded(run: &'a RecordedRun, spec: &'a Spec, metric: &'a Metric, only: Option<&Arm>) -> Measured<'a> {
        let is_of = |series: &&Series| {
            let Series { experiment, arm, metric: name, .. } = series;
            *experiment == spec.id && *name == metric.name && only.is_none_or(|only| arm == only)
        };
        let kept = run.series.iter().filter(is_of).filter(|series| !is_taken_back(&run.outcome, series));
        let rows = kept.map(|series| {
            let (trials, values) = known_by_trial(series, metric.reduce);
            (&series.arm, series.key.as_str(), trials, values)
        });
        let of_metric = run.outcome.points.iter().filter(|p| p.experiment == spec.id && p.metric == metric.name);
        let limit = of_metric.filter_map(|point| point.limit).reduce(f64::max);
        Measured { limit, variants: &spec.variants, ..Measured::new(&metric.name, metric.unit, rows.collect()) }
    }

    /// An experiment's first metric, as a run that has just ended holds it.
    pub fn observed(point: &'a PointSummary, outcome: &'a Outcome, observations: &'a Observations) -> Measured<'a> {
        let arms = observations.arms().iter().filter(|values| values.experiment == point.experiment);
        let of_metric = arms.filter_map(|observed| {
            let mut of_arm = outcome.points.iter().filter(|summary| {
                summary.experiment == observed.experiment
                    && summary.variant == observed.arm.variant
                    && summary.at == observed.arm.point
            });
            let index = of_arm.position(|summary| summary.metric == point.metric)?;
            let values = observed.of_points().nth(index)?;
            Some((&observed.arm, "", Cow::Borrowed(&[][..]), Cow::Borrowed(values)))
        });
        Measured::new(&point.metric, point.unit, of_metric.collect())
    }

    fn new(metric: &'a str, unit: Unit, mut rows: Vec<OfArm<'a>>) -> Self {
        rows.retain(|(.., values)| !values.is_empty());
        let names = names::of_rows(&rows.iter().map(|(arm, key, ..)| (*arm, *key)).collect::<Vec<_>>());
        let mut medians = Medians::default();
        let rows = names.into_iter().zip(rows).map(|(name, (arm, key, trials, values))| {
            let sorted = values.sorted();
            ArmRow { name, arm, key, trials, values, median: medians.of(&sorted), sorted }
        });
        Measured { metric, unit, variants: &[], at: String::new(), limit: None, rows: rows.collect() }
    }

    /// The same metric of these rows.
    fn with(&self, rows: Vec<ArmRow<'a>>) -> Measured<'a> {
        Measured { at: self.at.clone(), rows, ..*self }
    }

    /// The rows by the levels of these factors, those at the same ones together and named by what tells them apart; all
    /// as they are where no level differs.
    pub fn by_levels(&self, factors: &[&str]) -> Vec<Measured<'a>> {
        let mut parts: BTreeMap<String, Vec<ArmRow<'a>>> = BTreeMap::new();
        for row in &self.rows {
            let levels = factors.iter().filter_map(|factor| Some(names::setting(factor, row.arm.point.get(factor)?)));
            parts.entry(levels.collect::<Vec<_>>().join(" ")).or_default().push(row.clone());
        }
        if parts.len() < 2 {
            return vec![self.clone()];
        }
        let part = |(levels, mut rows): (String, Vec<ArmRow<'a>>)| {
            let names = names::of_rows(&rows.iter().map(|row| (row.arm, row.key)).collect::<Vec<_>>());
            rows.iter_mut().zip(names).for_each(|(row, name)| row.name = name);
            let at =
                [self.at.as_str(), &levels].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
            Measured { at, ..self.with(rows) }
        };
        parts.into_iter().map(part).collect()
    }

    /// A value in words: one that was cut off has no number.
    pub fn human(&self, value: f64) -> String {
        if value.is_infinite() { "stopped".into() } else { self.unit.human(value) }
    }

    /// The one value of all trials that were not cut off, if there is no other and some were.
    pub fn but_for_stopped(&self) -> Option<f64> {
        let mut finite =
            self.rows.iter().flat_map(|row| row.sorted.as_slice().iter().copied()).filter(|value| value.is_finite());
        let first = finite.next()?;
        (self.censored() > 0 && finite.all(|value| value == first)).then_some(first)
    }

    /// The axis of the metric, logarithmic where that serves these numbers.
    pub fn axis(&self, numbers: impl Iterator<Item = f64>) -> Axis {
        Axis::new(&names::spoken(self.metric), scale_for(numbers), self.unit)
    }

    /// The metric's name as a title begins: `Time (type=f32)`.
    pub fn title(&self) -> String {
        let name = capitalised(&names::spoken(self.metric));
        if self.at.is_empty() { name } else { format!("{name} ({})", self.at) }
    }

    /// Whether no row's values differ.
    pub fn is_constant(&self) -> bool {
        self.rows.iter().map(|row| row.sorted.as_slice()).all(|sorted| sorted.first() == sorted.last())
    }

    /// The one value of all trials of all rows, if there is no other.
    pub fn everywhere(&self) -> Option<f64> {
        everywhere(self.rows.iter())
    }

    /// Those rows that have at least so many values.
    pub fn with_values(&self, least: u64) -> Measured<'a> {
        self.with(self.rows.iter().filter(|row| row.n() >= least).cloned().collect())
    }

    /// How many values were cut off.
    pub fn censored(&self) -> usize {
        self.rows.iter().map(ArmRow::censored).sum()
    }

    /// Where the medians are, in words: each of a few rows, or those of the first and last.
    pub fn medians_in_words(&self) -> String {
        let said = |row: &ArmRow| format!("{}: {}", row.name, row.median.figure(self.unit));
        if self.rows.len() <= 4 {
            return format!("Medians: {}.", self.rows.iter().map(said).collect::<Vec<_>>().join("; "));
        }
        let by_median = |a: &&ArmRow, b: &&ArmRow| a.median.value.total_cmp(&b.median.value);
        let (least, most) = (self.rows.iter().min_by(by_median), self.rows.iter().max_by(by_median));
        let ends: Vec<String> = least.into_iter().chain(most).map(said).collect();
        format!("Of {} medians, the least and the greatest: {}.", self.rows.len(), ends.join("; "))
    }

    /// Which series each row is, and the names of all.
    pub fn series(&self) -> (Vec<usize>, Vec<String>) {
        names::series(self.variants, &self.rows.iter().map(|row| (row.arm, row.name.clone())).collect::<Vec<_>>())
    }

    /// At most so many rows: the least, the greatest, and evenly many between, by median; and how the title says so.
    pub fn selection(&self, most: usize) -> (Measured<'a>, String) {
        let all = self.rows.len();
        if all <= most {
            return (self.clone(), String::new());
        }
        let mut by_median: Vec<usize> = (0..all).collect();
        by_median.sort_by(|&a, &b| self.rows[a].median.value.total_cmp(&self.rows[b].median.value));
        let mut chosen: Vec<usize> = (0..most).map(|place| by_median[place * (all - 1) / (most - 1)]).collect();
        chosen.sort_unstable();
        let rows = chosen.into_iter().map(|index| self.rows[index].clone()).collect();
        (self.with(rows), format!(": {most} of {all}, from the least median to the greatest; the table has the others"))
    }
}

impl ArmRow<'_> {
    pub fn n(&self) -> u64 {
        self.values.len() as u64
    }

    pub fn censored(&self) -> usize {
        self.values.iter().filter(|value| value.is_infinite()).count()
    }

    pub fn quantile(&self, q: f64) -> f64 {
        quantile_sorted(self.sorted.as_slice(), q).unwrap_or(f64::NAN)
    }

    /// The least value that so large a share of the values does not exceed.
    pub fn reached(&self, q: f64) -> f64 {
        let rank = (q * self.values.len() as f64 - 1e-9).ceil().max(1.0) as usize;
        self.sorted.as_slice().get(rank - 1).copied().unwrap_or(f64::NAN)
    }

    /// The trial's value.
    pub fn of_trial(&self, trial: u64) -> Option<f64> {
        self.trials.binary_search(&trial).ok().map(|index| self.values[index])
    }
}

impl MedianInterval {
    /// Whether both ends are known.
    pub fn is_bounded(self) -> bool {
        self.low.is_finite() && self.high.is_finite()
    }

    /// The estimate in words: `23.41 ms (23.38 to 23.45)`.
    pub fn figure(self, unit: Unit) -> Figure {
        Figure::of_unit(unit, Some(self.value), Some(self.low), Some(self.high))
    }
}

impl Medians {
    /// The median of sorted values and its interval.
    pub fn of(&mut self, sorted: &Sorted) -> MedianInterval {
        let values = sorted.as_slice();
        let ranks = *self.ranks.entry(values.len() as u64).or_insert_with_key(|n| ranks(*n, 0.5));
        let (low, high) = ranks.map_or((f64::NEG_INFINITY, f64::INFINITY), |ranks| sorted.between(ranks));
        let value = sorted.quantile(0.5).map_or(f64::NAN, |median| median.estimate().unwrap_or(median.high));
        MedianInterval { value, low, high }
    }
}

/// Between which ranks a quantile of so many values lies.
pub(super) fn ranks(n: u64, q: f64) -> Option<QuantileRanks> {
    quantile_ranks(n, q, ERROR_OF_END, ERROR_OF_END).ok()
}

/// The one value of all trials of these rows, if there is no other.
pub(super) fn everywhere<'a>(mut rows: impl Iterator<Item = &'a ArmRow<'a>>) -> Option<f64> {
    let one = |row: &ArmRow| {
        let sorted = row.sorted.as_slice();
        sorted.first().filter(|first| sorted.last() == Some(first)).copied()
    };
    let first = one(rows.next()?)?;
    rows.all(|row| one(row) == Some(first)).then_some(first)
}

/// A logarithmic scale where all numbers are above zero and far apart, else a linear one.
pub(super) fn scale_for(numbers: impl Iterator<Item = f64>) -> Scale {
    let mut ends: Option<(f64, f64)> = None;
    for number in numbers.filter(|number| number.is_finite()) {
        let (low, high) = ends.unwrap_or((number, number));
        ends = Some((low.min(number), high.max(number)));
    }
    match ends {
        Some((low, high)) if low > 0.0 && high / low >= WIDE_SPREAD => Scale::Log,
        _ => Scale::Linear,
    }
}

/// The axis with zero in sight where lengths can be compared: what falls by 3 % must not look like a cliff.
pub(super) fn from_zero(axis: Axis) -> Axis {
    if axis.scale == Scale::Linear { axis.showing(0.0, 0.0) } else { axis }
}

/// An arm whose answer was wrong: its values were taken back.
pub(super) fn is_taken_back(outcome: &Outcome, series: &Series) -> bool {
    let Series { experiment, arm, .. } = series;
    let is_left_out = outcome.left_out.iter().any(|left_out| left_out.is_of(experiment, arm));
    is_left_out && outcome.points.iter().filter(|point| point.is_of(experiment, arm)).all(|point| point.n == 0)
}

/// A series with one number a trial, as claims judge it, without those of which nothing is known.
fn known_by_trial(series: &Series, reduce: Reduce) -> (Cow<'_, [u64]>, Cow<'_, Values>) {
    let (trials, values) = series.by_trial(reduce);
    let is_known = |index: &usize| !values.bounds(*index).is_none() && values.bounds(*index) != Bounds::UNKNOWN;
    if (0..values.len()).all(|index| is_known(&index)) {
        return (trials, values);
    }
    let known = (0..values.len()).filter(is_known).map(|index| (trials[index], values.bounds(index)));
    let (trials, values): (Vec<u64>, Values) = known.unzip();
    (Cow::Owned(trials), Cow::Owned(values))
}
