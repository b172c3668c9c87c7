//! The measured values of a metric in the form for pictures: a row for each arm, a value for each trial.

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
use crate::figure::Estimate;
use crate::plot::{Axis, Scale};
use crate::text::capitalised;

/// The error probability at each end of a 95 % interval. Intervals of claims have the error probability of the claim
/// instead.
const ERROR_OF_END: f64 = 0.025;
/// The smallest spread (the largest value divided by the smallest) for which an axis is logarithmic.
const WIDE_SPREAD: f64 = 10.0;

/// The values of one metric for several arms.
#[derive(Clone)]
pub(super) struct MetricRows<'a> {
    pub metric: &'a str,
    pub unit: Unit,
    /// The variants of the experiment; empty if they are unknown.
    pub variants: &'a [Variant],
    /// The levels that all of these rows have, and that rows of the same metric in other plots do not have: `type=f32`.
    pub at: String,
    /// The time limit at which values were stopped, if it is known.
    pub limit: Option<f64>,
    /// The rows that have values, in the order of their recording.
    pub rows: Vec<ArmRow<'a>>,
}

/// The values of a metric for one arm and one key.
#[derive(Clone)]
pub(super) struct ArmRow<'a> {
    pub name: String,
    pub arm: &'a Arm,
    /// The key of the values, for example a stage or a server; empty for a metric without keys.
    pub key: &'a str,
    /// For each value, the index of its trial, in ascending order. Empty if the indices are unknown.
    pub trials: Cow<'a, [u64]>,
    /// The value of each trial, in the order measured; never NaN. A value that was stopped at the time limit is
    /// infinite.
    pub values: Cow<'a, Values>,
    pub sorted: Sorted,
    pub median: Estimate,
}

/// The data of a row: an arm, a key, the indices of the trials, and the values.
type ArmValues<'a> = (&'a Arm, &'a str, Cow<'a, [u64]>, Cow<'a, Values>);

/// A calculator of medians and their intervals. The ends of an interval are values at certain ranks. The ranks depend
/// only on the number of values, and are computed once for each number.
#[derive(Default)]
pub(super) struct Medians {
    ranks: BTreeMap<u64, Option<QuantileRanks>>,
}

impl<'a> MetricRows<'a> {
    /// Returns a metric of a recorded run, for all arms or only for the arm `only`.
    pub fn recorded(run: &'a RecordedRun, spec: &'a Spec, metric: &'a Metric, only: Option<&Arm>) -> MetricRows<'a> {
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
        MetricRows { limit, variants: &spec.variants, ..MetricRows::new(&metric.name, metric.unit, rows.collect()) }
    }

    /// Returns the metric of `point` for all arms of its experiment, from a run that has just ended.
    pub fn observed(point: &'a PointSummary, outcome: &'a Outcome, observations: &'a Observations) -> MetricRows<'a> {
        let arms = observations.arms().iter().filter(|values| values.experiment == point.experiment);
        let of_metric = arms.filter_map(|observed| {
            let mut of_arm = outcome.points.iter().filter(|summary| summary.is_of(&observed.experiment, &observed.arm));
            let index = of_arm.position(|summary| summary.metric == point.metric)?;
            let values = observed.of_points().nth(index)?;
            Some((&observed.arm, "", Cow::Borrowed(&[][..]), Cow::Borrowed(values)))
        });
        MetricRows::new(&point.metric, point.unit, of_metric.collect())
    }

    fn new(metric: &'a str, unit: Unit, mut rows: Vec<ArmValues<'a>>) -> Self {
        rows.retain(|(.., values)| !values.is_empty());
        let names = names::of_rows(&rows.iter().map(|(arm, key, ..)| (*arm, *key)).collect::<Vec<_>>());
        let mut medians = Medians::default();
        let rows = names.into_iter().zip(rows).map(|(name, (arm, key, trials, values))| {
            let sorted = values.sorted();
            ArmRow { name, arm, key, trials, values, median: medians.median(&sorted), sorted }
        });
        MetricRows { metric, unit, variants: &[], at: String::new(), limit: None, rows: rows.collect() }
    }

    /// Returns a copy with other rows of the same metric.
    fn with(&self, rows: Vec<ArmRow<'a>>) -> MetricRows<'a> {
        MetricRows { at: self.at.clone(), rows, ..*self }
    }

    /// Groups the rows by the levels of these factors. Each row gets a name that distinguishes it from the other rows
    /// of its group. Returns a single group if the levels don't differ.
    pub fn by_levels(&self, factors: &[&str]) -> Vec<MetricRows<'a>> {
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
            MetricRows { at, ..self.with(rows) }
        };
        parts.into_iter().map(part).collect()
    }

    /// Writes a value in the unit of the metric. An infinite value stands for a trial that was stopped at the time
    /// limit, and is written as "stopped".
    pub fn human(&self, value: f64) -> String {
        if value.is_infinite() { "stopped".into() } else { self.unit.human(value) }
    }

    /// Returns the value that all trials share, except for trials that were stopped at the time limit. `None` if no
    /// trial was stopped, or if the remaining values differ.
    pub fn but_for_stopped(&self) -> Option<f64> {
        let mut finite =
            self.rows.iter().flat_map(|row| row.sorted.as_slice().iter().copied()).filter(|value| value.is_finite());
        let first = finite.next()?;
        (self.censored() > 0 && finite.all(|value| value == first)).then_some(first)
    }

    /// Returns an axis for the metric. The axis is logarithmic if `numbers` have very different sizes.
    pub fn axis(&self, numbers: impl Iterator<Item = f64>) -> Axis {
        Axis::new(&names::spoken(self.metric), scale_for(numbers), self.unit)
    }

    /// Returns the name of the metric for a title: `Time (type=f32)`.
    pub fn title(&self) -> String {
        let name = capitalised(&names::spoken(self.metric));
        if self.at.is_empty() { name } else { format!("{name} ({})", self.at) }
    }

    /// Returns whether the values within each row are all equal. Different rows may have different values.
    pub fn is_constant(&self) -> bool {
        self.rows.iter().map(|row| row.sorted.as_slice()).all(|sorted| sorted.first() == sorted.last())
    }

    /// Returns the value that all trials of all rows share; `None` if values differ.
    pub fn everywhere(&self) -> Option<f64> {
        everywhere(self.rows.iter())
    }

    /// Returns the rows with at least `least` values.
    pub fn with_values(&self, least: u64) -> MetricRows<'a> {
        self.with(self.rows.iter().filter(|row| row.n() >= least).cloned().collect())
    }

    /// Returns the number of values that were stopped at the time limit, in all rows.
    pub fn censored(&self) -> usize {
        self.rows.iter().map(ArmRow::censored).sum()
    }

    /// Returns the medians of all rows in words; if there are more than four, only the lowest and the highest.
    pub fn medians_in_words(&self) -> String {
        let said = |row: &ArmRow| format!("{}: {}", row.name, row.median.in_unit(self.unit));
        if self.rows.len() <= 4 {
            return format!("Medians: {}.", self.rows.iter().map(said).collect::<Vec<_>>().join("; "));
        }
        let by_median = |a: &&ArmRow, b: &&ArmRow| a.median.value.total_cmp(&b.median.value);
        let (least, most) = (self.rows.iter().min_by(by_median), self.rows.iter().max_by(by_median));
        let ends: Vec<String> = least.into_iter().chain(most).map(said).collect();
        format!("The smallest and the largest of {} medians: {}.", self.rows.len(), ends.join("; "))
    }

    /// Returns the index of each row's series, and the names of all series. A series is a name in the legend with its
    /// own colour.
    pub fn series(&self) -> (Vec<usize>, Vec<String>) {
        names::series(self.variants, &self.rows.iter().map(|row| (row.arm, row.name.clone())).collect::<Vec<_>>())
    }

    /// Returns at most `most` rows: those with the lowest and the highest median, and rows at equal steps of rank
    /// between them. Also returns a note for the title that states how many rows are shown. The note is empty if all
    /// rows are returned.
    pub fn selection(&self, most: usize) -> (MetricRows<'a>, String) {
        let all = self.rows.len();
        if all <= most {
            return (self.clone(), String::new());
        }
        let mut by_median: Vec<usize> = (0..all).collect();
        by_median.sort_by(|&a, &b| self.rows[a].median.value.total_cmp(&self.rows[b].median.value));
        let mut chosen: Vec<usize> = (0..most).map(|place| by_median[place * (all - 1) / (most - 1)]).collect();
        chosen.sort_unstable();
        let rows = chosen.into_iter().map(|index| self.rows[index].clone()).collect();
        (
            self.with(rows),
            format!(": {most} of {all}, from the smallest median to the largest; the table has the other medians"),
        )
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

    /// Returns the smallest value `x` such that at least the share `q` of all values is at most `x`.
    pub fn reached(&self, q: f64) -> f64 {
        let rank = (q * self.values.len() as f64 - 1e-9).ceil().max(1.0) as usize;
        self.sorted.as_slice().get(rank - 1).copied().unwrap_or(f64::NAN)
    }

    /// Returns the value of the trial with this index.
    pub fn of_trial(&self, trial: u64) -> Option<f64> {
        self.trials.binary_search(&trial).ok().map(|index| self.values[index])
    }
}

impl Medians {
    /// Returns the median of sorted values with its interval.
    pub fn median(&mut self, sorted: &Sorted) -> Estimate {
        let values = sorted.as_slice();
        let ranks = *self.ranks.entry(values.len() as u64).or_insert_with_key(|n| ranks(*n, 0.5));
        let (low, high) = ranks.map_or((f64::NEG_INFINITY, f64::INFINITY), |ranks| sorted.between(ranks));
        let value = sorted.quantile(0.5).map_or(f64::NAN, |median| median.estimate().unwrap_or(median.high));
        Estimate { value, low, high }
    }
}

/// Returns the ranks of the ends of the 95 % interval for quantile `q` of `n` values; `None` if `n` is too small.
pub(super) fn ranks(n: u64, q: f64) -> Option<QuantileRanks> {
    quantile_ranks(n, q, ERROR_OF_END, ERROR_OF_END).ok()
}

/// Returns the value that all trials of these rows share; `None` if values differ.
pub(super) fn everywhere<'a>(mut rows: impl Iterator<Item = &'a ArmRow<'a>>) -> Option<f64> {
    let one = |row: &ArmRow| {
        let sorted = row.sorted.as_slice();
        sorted.first().filter(|first| sorted.last() == Some(first)).copied()
    };
    let first = one(rows.next()?)?;
    rows.all(|row| one(row) == Some(first)).then_some(first)
}

/// Returns the lowest and the highest finite number; `None` if there are none.
pub(super) fn extremes(numbers: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = numbers.filter(|number| number.is_finite()).map(|number| (number, number));
    finite.reduce(|(least, most), (number, _)| (least.min(number), most.max(number)))
}

/// Returns the values in ascending order.
pub(super) fn ascending(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// Returns the id for the picture with this index. Ids after the first one get a number.
pub(super) fn numbered(id: String, index: usize) -> String {
    if index == 0 { id } else { format!("{id}-{}", index + 1) }
}

/// Returns a logarithmic scale if all numbers are positive and have very different sizes, otherwise a linear one.
pub(super) fn scale_for(numbers: impl Iterator<Item = f64>) -> Scale {
    match extremes(numbers) {
        Some((low, high)) if low > 0.0 && high / low >= WIDE_SPREAD => Scale::Log,
        _ => Scale::Linear,
    }
}

/// Returns the axis with zero visible if it is linear. Without zero on the axis, a decrease of 3 % could look like a
/// decrease to zero.
pub(super) fn from_zero(axis: Axis) -> Axis {
    if axis.scale == Scale::Linear { axis.showing(0.0, 0.0) } else { axis }
}

/// Returns whether the values of an arm were withdrawn because it computed a wrong answer.
pub(super) fn is_taken_back(outcome: &Outcome, series: &Series) -> bool {
    let Series { experiment, arm, .. } = series;
    let is_left_out = outcome.left_out.iter().any(|left_out| left_out.is_of(experiment, arm));
    is_left_out && outcome.points.iter().filter(|point| point.is_of(experiment, arm)).all(|point| point.n == 0)
}

/// Returns one value per trial of a series. `reduce` computes this value from the values of a trial, as it does for
/// claims. Unknown values are left out.
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
