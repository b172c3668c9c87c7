//! Compares an offer with the reference: workload by workload, and in the geometric mean.

use ascertain_report::cost::{CostComparison, CostDecision, CostMean, Interval, Load, WorkloadCost};
use ascertain_stats::{MeanInterval, MeanPart, cautious_mean_interval, mean_interval, student_tails};

use super::measured::{MachineValue, MeasuredType, Series};
use super::request::PricedType;

/// The error probability of all intervals. Medians of recorded runs have intervals at this error too.
pub(super) const ERROR: f64 = 0.05;

/// Smallest number of workloads for which the mean has an interval that covers other workloads.
pub(super) const FEWEST_WORKLOADS: usize = 3;

/// Degrees of freedom at which Student's t distribution equals the normal distribution.
const NORMAL: f64 = 1e9;

/// A workload of both types, with the logarithm of their ratio of speeds.
#[derive(Clone, Debug)]
pub(super) struct Matched<'a> {
    /// The workload on the reference, and on the offer.
    pub both: [&'a Series; 2],
    pub threads: [u64; 2],
    pub load: Load,
    /// Natural logarithm of the offer's speed divided by the reference's speed.
    pub log: LogRatio,
}

/// The logarithm of a ratio with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LogRatio {
    pub value: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Standard error, if several machines of both types were measured.
    pub standard_error: Option<f64>,
    /// Degrees of freedom of the standard error.
    pub degrees: Option<f64>,
}

impl LogRatio {
    fn of(interval: MeanInterval) -> LogRatio {
        let MeanInterval { mean, low, high, standard_error, degrees } = interval;
        let (low, high) = (Some(low), Some(high));
        LogRatio { value: mean, low, high, standard_error: Some(standard_error), degrees: Some(degrees) }
    }

    pub(super) fn ratio(&self) -> Interval {
        Interval { value: self.value.exp(), low: self.low.map(f64::exp), high: self.high.map(f64::exp) }
    }

    /// Returns the chance that the true logarithm is above `bound`. `None` without an interval.
    fn chance_above(&self, bound: f64) -> Option<f64> {
        let distance = self.value - bound;
        let (error, degrees) = match (self.standard_error, self.degrees) {
            (Some(error), Some(degrees)) => (error, degrees),
            // The side of the interval that faces the bound gives the standard error.
            _ => {
                let half = if distance > 0.0 { self.value - self.low? } else { self.high? - self.value };
                (half / ascertain_stats::student_size(ERROR, NORMAL).ok()?, NORMAL)
            }
        };
        Some(chance_above_zero(distance, error, degrees))
    }
}

/// Returns the chance that a quantity is above zero, if its estimate is `distance`.
fn chance_above_zero(distance: f64, standard_error: f64, degrees: f64) -> f64 {
    if standard_error == 0.0 {
        return if distance > 0.0 { 1.0 } else { 0.0 };
    }
    let tail = student_tails(distance / standard_error, degrees) / 2.0;
    if distance > 0.0 { 1.0 - tail } else { tail }
}

/// Matches the workloads of two types with the same load. The numbers of threads must be equal, except under full load.
pub(super) fn matched<'a>(reference: &'a PricedType, offer: &'a PricedType) -> Vec<Matched<'a>> {
    let mut pairs = Vec::new();
    for one in &reference.measured.series {
        let load = reference.load(one);
        let same = offer.measured.series.iter().filter(|other| {
            other.workload == one.workload && other.unit.name() == one.unit.name() && offer.load(other) == load
        });
        let has_equal_threads = |other: &&Series| offer.threads(other) == reference.threads(one);
        let equal = same.clone().find(has_equal_threads);
        let Some(other) = equal.or_else(|| same.clone().find(|_| load == Load::Full)) else { continue };
        let log = if reference.is_same_as(offer) {
            LogRatio { value: 0.0, low: Some(0.0), high: Some(0.0), standard_error: Some(0.0), degrees: Some(NORMAL) }
        } else {
            log_ratio([one, other])
        };
        let threads = [reference.threads(one), offer.threads(other)];
        pairs.push(Matched { both: [one, other], threads, load, log });
    }
    pairs
}

/// Returns the logarithm of the ratio of speeds. Several machines of both types are samples of their types (Banerjee's
/// interval). With one machine each, the interval comes from the intervals of both medians (the method of variance
/// estimates recovery).
fn log_ratio(both: [&Series; 2]) -> LogRatio {
    let logs = both.map(log_speeds);
    let parts: Vec<MeanPart> = [(-1.0, &logs[0]), (1.0, &logs[1])]
        .into_iter()
        .filter_map(|(weight, logs)| MeanPart::new(weight, logs))
        .collect();
    if parts.len() == 2
        && let Ok(Some(interval)) = cautious_mean_interval(&parts, ERROR)
    {
        return LogRatio::of(interval);
    }
    let value = mean(&logs[1]) - mean(&logs[0]);
    let [low, high] = match both.map(|series| (series, series.machines.as_slice())) {
        [(reference, [one]), (offer, [other])] => recovered(value, (reference, one), (offer, other)),
        _ => [None, None],
    };
    LogRatio { value, low, high, standard_error: None, degrees: None }
}

/// Returns the load under which workloads have a cost: full load if there is any; `None` if no workload has a cost.
pub(super) fn priced_load(pairs: &[Matched], full_load: bool) -> Option<Load> {
    match pairs.iter().any(|pair| pair.load == Load::Full) {
        true => Some(Load::Full),
        false => Some(Load::Part).filter(|_| !full_load),
    }
}

/// Returns whether no other figure of the workload was measured under a higher load. Several figures of one workload
/// are not several workloads, so only this one is part of a mean.
pub(super) fn is_best(pair: &Matched, pairs: &[Matched]) -> bool {
    let of_workload = pairs.iter().filter(|other| other.both[0].workload == pair.both[0].workload);
    let most = of_workload.max_by_key(|other| (other.load == Load::Full, other.threads[0]));
    most.is_some_and(|most| std::ptr::eq(most, pair))
}

/// Returns the logarithm of the ratio of speeds at which a workload costs the same on the reference and the offer. If
/// the workload does not use all cores, it pays only for the cores that it uses.
pub(super) fn break_even_log(pair: &Matched, [reference, offer]: [&PricedType; 2]) -> f64 {
    let share = offer.share(pair.both[1]) / reference.share(pair.both[0]);
    (offer.offer.price_per_hour / reference.offer.price_per_hour * share).ln()
}

/// Returns the ratio of speeds at which the mean costs the same: the mean over the workloads' bounds, or the ratio of
/// the prices if there are no workloads.
pub(super) fn break_even(bounds: &[f64], [reference, offer]: [&PricedType; 2]) -> f64 {
    match bounds {
        [] => offer.offer.price_per_hour / reference.offer.price_per_hour,
        _ => mean(bounds).exp(),
    }
}

/// Returns the logarithms of the ratios of speeds, shifted as if every workload had the mean of the bounds. The results
/// spread as the costs do.
pub(super) fn logs_around(pairs: &[&Matched], bounds: &[f64]) -> Vec<f64> {
    let bound = mean(bounds);
    pairs.iter().zip(bounds).map(|(pair, own)| pair.log.value - (own - bound)).collect()
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn log_speeds(series: &Series) -> Vec<f64> {
    series.machines.iter().map(|machine| series.unit.speed(machine.value).ln()).collect()
}

/// Returns the interval of a difference of two logarithms from the intervals of both.
fn recovered(value: f64, reference: (&Series, &MachineValue), offer: (&Series, &MachineValue)) -> [Option<f64>; 2] {
    let ends = |(series, machine): (&Series, &MachineValue)| {
        let log = |figure: f64| series.unit.speed(figure).ln();
        let (low, high) = (log(machine.low?), log(machine.high?));
        let (low, high) = if series.unit.is_time() { (high, low) } else { (low, high) };
        let middle = log(machine.value);
        Some([middle - low, high - middle])
    };
    let (Some([below_reference, above_reference]), Some([below_offer, above_offer])) = (ends(reference), ends(offer))
    else {
        return [None, None];
    };
    [Some(value - below_offer.hypot(above_reference)), Some(value + above_offer.hypot(below_reference))]
}

/// Compares an offer with the reference.
pub(super) fn comparison(reference: &PricedType, offer: &PricedType, units: f64, full_load: bool) -> CostComparison {
    let (both, pairs) = ([reference, offer], matched(reference, offer));
    let priced_load = priced_load(&pairs, full_load);
    let is_in_mean = |pair: &Matched| Some(pair.load) == priced_load && is_best(pair, &pairs);
    let rows = pairs.iter().map(|pair| row(pair, both, units, is_in_mean(pair)));
    let workloads: Vec<WorkloadCost> = rows.collect();
    let in_mean: Vec<&Matched> = pairs.iter().filter(|pair| is_in_mean(pair)).collect();
    let bounds: Vec<f64> = in_mean.iter().map(|pair| break_even_log(pair, both)).collect();
    let suite = suite(&in_mean, &bounds);
    let decision = suite.as_ref().map_or(CostDecision::Undecided, |suite| match suite.cost_ratio {
        Interval { high: Some(high), .. } if high < 1.0 => CostDecision::Cheaper,
        Interval { low: Some(low), .. } if low > 1.0 => CostDecision::Dearer,
        Interval { value, low: None, .. } if value < 1.0 => CostDecision::CheaperOnTheseFigures,
        Interval { value, low: None, .. } if value > 1.0 => CostDecision::DearerOnTheseFigures,
        _ => CostDecision::Undecided,
    });
    let is_cheaper = suite.as_ref().is_some_and(|suite| suite.cost_ratio.value < 1.0);
    let contrary = |row: &&WorkloadCost| {
        let ratio = row.cost_ratio.map_or(1.0, |ratio| ratio.value);
        row.is_in_mean && if is_cheaper { ratio > 1.0 } else { ratio < 1.0 }
    };
    let mut reversing: Vec<&WorkloadCost> = workloads.iter().filter(contrary).collect();
    reversing.sort_by(|one, other| {
        let order = one.speed.value.total_cmp(&other.speed.value);
        if is_cheaper { order } else { order.reverse() }
    });
    CostComparison {
        offer: offer.offer.name.clone(),
        reference: reference.offer.name.clone(),
        break_even: break_even(&bounds, both),
        decision,
        reversing: reversing.iter().map(|row| row.workload.clone()).collect(),
        suite,
        workloads,
    }
}

fn row(pair: &Matched, [reference, offer]: [&PricedType; 2], units: f64, is_in_mean: bool) -> WorkloadCost {
    let [of_reference, of_offer] = pair.both;
    let cost = |of: &PricedType, series: &Series| {
        let speed = mean(&log_speeds(series)).exp();
        units * of.offer.price_per_hour / 3600.0 * of.share(series) / speed
    };
    let (reference_cost, own_cost) = (cost(reference, of_reference), cost(offer, of_offer));
    let speed = pair.log.ratio();
    let break_even = own_cost / reference_cost * speed.value;
    WorkloadCost {
        workload: of_offer.workload.clone(),
        unit_of_work: of_offer.unit.name().to_string(),
        threads: pair.threads[1],
        reference_threads: pair.threads[0],
        load: pair.load,
        is_in_mean,
        speed,
        degrees: pair.log.degrees.filter(|degrees| *degrees < NORMAL),
        cost: is_in_mean.then_some(own_cost),
        reference_cost: is_in_mean.then_some(reference_cost),
        cost_ratio: is_in_mean.then(|| speed.under(break_even)),
        chance_cheaper: pair.log.chance_above(break_even.ln()).filter(|_| is_in_mean),
        machines: [of_offer, of_reference].map(|series| series.machines.len() as u64),
    }
}

/// Returns the mean of the workloads with its intervals; `None` if there are no workloads. `bounds` has, for each
/// workload, the logarithm of the ratio of speeds at which both costs are equal.
fn suite(pairs: &[&Matched], bounds: &[f64]) -> Option<CostMean> {
    let count = pairs.len();
    let (mean, machines) = (mean_of(pairs)?, machines_effect(pairs));
    let (bound, logs) = (self::mean(bounds), logs_around(pairs, bounds));
    let over_workloads = if count < FEWEST_WORKLOADS { None } else { mean_interval(&logs, ERROR).ok().flatten() };
    let log = match over_workloads {
        Some(_) => over_both(&logs, machines).unwrap_or(mean),
        None => mean,
    };
    // A further workload differs from the mean by the spread of the workloads.
    let next = over_workloads.map(|interval| {
        let spread = interval.standard_error * (count as f64 * (1.0 + 1.0 / count as f64)).sqrt();
        let machines = machines.map_or(0.0, |machines| machines.variance);
        chance_above_zero(log.value - bound, spread.hypot(machines.sqrt()), interval.degrees)
    });
    let speed = log.ratio();
    Some(CostMean {
        workloads: count as u64,
        load: pairs[0].load,
        speed,
        speed_other_machines: machines.and_then(|machines| of_machines(&logs, machines)).map(|log| log.ratio()),
        cost_ratio: speed.under(bound.exp()),
        degrees: log.degrees.filter(|degrees| *degrees < NORMAL),
        chance_cheaper: log.chance_above(bound),
        chance_next_cheaper: next,
    })
}

/// Returns the mean of the logarithms, with the interval of a single workload if there is only one.
fn mean_of(pairs: &[&Matched]) -> Option<LogRatio> {
    match pairs {
        [] => None,
        [one] => Some(one.log),
        several => {
            let logs: Vec<f64> = several.iter().map(|pair| pair.log.value).collect();
            match machines_effect(several) {
                Some(machines) => of_machines(&logs, machines),
                None => {
                    let value = mean(&logs);
                    Some(LogRatio { value, low: None, high: None, standard_error: None, degrees: None })
                }
            }
        }
    }
}

/// Returns the interval of the mean for workloads like these. If the effect of the machines is known, the interval also
/// covers other machines like these.
pub(super) fn over_both(logs: &[f64], machines: Option<MeanPart>) -> Option<LogRatio> {
    let workloads = MeanPart::new(1.0, logs)?;
    let parts: Vec<MeanPart> = [Some(workloads), machines].into_iter().flatten().collect();
    cautious_mean_interval(&parts, ERROR).ok().flatten().map(LogRatio::of)
}

/// Returns the interval of the mean for these workloads on other machines.
fn of_machines(logs: &[f64], machines: MeanPart) -> Option<LogRatio> {
    let mean = mean(logs);
    cautious_mean_interval(&[MeanPart { mean, ..machines }], ERROR).ok().flatten().map(LogRatio::of)
}

/// Returns the effect of the choice of machines on the mean, as a part with the mean 0. `None` unless several machines
/// of both types were measured in each workload.
///
/// If every machine has all workloads, the effect comes from the means of the machines. Otherwise it is unknown how the
/// workloads depend on one another through their machines. The standard error is then the mean of the workloads'
/// standard errors, which is an upper bound.
pub(super) fn machines_effect(pairs: &[&Matched]) -> Option<MeanPart> {
    // Two prices of one type have the same figures, so the choice of machines has no effect.
    if pairs.iter().all(|pair| std::ptr::eq(pair.both[0], pair.both[1])) {
        return None;
    }
    let complete = [0, 1].map(|side| complete_means(pairs, side));
    if let [Some(reference), Some(offer)] = complete {
        let parts = [MeanPart::new(-1.0, &reference)?, MeanPart::new(1.0, &offer)?];
        let interval = cautious_mean_interval(&parts, ERROR).ok().flatten()?;
        let variance = interval.standard_error * interval.standard_error;
        return Some(MeanPart { weight: 1.0, mean: 0.0, variance, degrees: interval.degrees });
    }
    let of_pair = |pair: &&Matched| Some((pair.log.standard_error?, pair.log.degrees?));
    let errors: Vec<(f64, f64)> = pairs.iter().map(of_pair).collect::<Option<_>>()?;
    let mean = errors.iter().map(|(error, _)| error).sum::<f64>() / errors.len() as f64;
    let degrees = errors.iter().map(|(_, degrees)| *degrees).reduce(f64::min)?;
    Some(MeanPart { weight: 1.0, mean: 0.0, variance: mean * mean, degrees })
}

/// Returns, for each machine of one side, the mean of the logarithms of its speeds over all workloads. `None` if there
/// are fewer than two machines, or if a machine lacks a workload.
fn complete_means(pairs: &[&Matched], side: usize) -> Option<Vec<f64>> {
    let names = |pair: &Matched| -> Vec<String> {
        let mut names: Vec<String> = pair.both[side].machines.iter().map(|machine| machine.machine.clone()).collect();
        names.sort();
        names
    };
    let all = names(pairs.first()?);
    if all.len() < 2 || pairs.iter().any(|pair| names(pair) != all) {
        return None;
    }
    let mean_of = |name: &String| {
        let logs = pairs.iter().filter_map(|pair| {
            let series = pair.both[side];
            let machine = series.machines.iter().find(|machine| machine.machine == *name)?;
            Some(series.unit.speed(machine.value).ln())
        });
        logs.sum::<f64>() / pairs.len() as f64
    };
    Some(all.iter().map(mean_of).collect())
}

/// Returns the names of the workloads of `one` that have a figure without a match: `other` has none under the same load.
pub(super) fn unmatched(one: &MeasuredType, pairs: &[Matched], side: usize) -> Vec<String> {
    let is_matched = |series: &Series| pairs.iter().any(|pair| std::ptr::eq(pair.both[side], series));
    let mut names: Vec<String> = Vec::new();
    for series in one.series.iter().filter(|series| !is_matched(series)) {
        if !names.contains(&series.workload) {
            names.push(series.workload.clone());
        }
    }
    names
}
