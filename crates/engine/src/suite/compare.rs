//! Ratios of workloads, their geometric mean and its intervals.

use ascertain_stats::{
    MeanInterval, MeanPart, Moments, OrderJudge, Verdict, cautious_mean_interval, combined_mean_interval,
    mean_interval, skewed_mean_interval, student_size,
};

use super::{
    ERROR, Ends, Estimate, LEAST_SAMPLE, LeftOutWorkload, MeanWithout, SuiteComparison, SuiteMean, WorkloadLack,
    WorkloadRatio,
};
use crate::outcome::Decision;
use crate::values::Bounds;

/// The logarithms of a workload's paired ratios, each as a range, with the indices of their trials.
pub(super) struct Pairs {
    pub workload: String,
    pub trials: Vec<u64>,
    pub ranges: Vec<[f64; 2]>,
}

impl Pairs {
    /// Pairs the values of two arms by their trials. Leaves out trials with a value of only one arm.
    ///
    /// # Errors
    /// The reason why the workload has no ratio, and for each arm whether it is at fault.
    pub fn new(
        workload: &str,
        candidate: impl Iterator<Item = (u64, Bounds)>,
        baseline: impl Iterator<Item = (u64, Bounds)>,
    ) -> Result<Pairs, (WorkloadLack, [bool; 2])> {
        let [candidate, baseline] = [candidate.collect::<Vec<_>>(), baseline.collect::<Vec<_>>()];
        let is_valid = |(_, bounds): &(u64, Bounds)| bounds.low > 0.0;
        let fails = [&candidate, &baseline].map(|values| values.is_empty() || !values.iter().all(is_valid));
        if fails.contains(&true) {
            return Err((WorkloadLack::Failed, fails));
        }
        let mut pairs = Pairs { workload: workload.into(), trials: Vec::new(), ranges: Vec::new() };
        let mut baselines = baseline.iter().peekable();
        for (trial, of_candidate) in &candidate {
            while baselines.next_if(|(other, _)| other < trial).is_some() {}
            let Some((_, of_baseline)) = baselines.peek().filter(|(other, _)| other == trial) else { continue };
            let ratio = of_baseline.over(*of_candidate);
            pairs.trials.push(*trial);
            pairs.ranges.push([ratio.low, ratio.high].map(f64::ln));
        }
        let is_open = |range: &[f64; 2]| range[0] == f64::NEG_INFINITY && range[1] == f64::INFINITY;
        match pairs.ranges.iter().any(is_open) {
            true => Err((WorkloadLack::BothStopped, [true; 2])),
            false if pairs.ranges.is_empty() => Err((WorkloadLack::Failed, [true; 2])),
            false => Ok(pairs),
        }
    }

    fn ends(&self) -> [Vec<f64>; 2] {
        [0, 1].map(|end| self.ranges.iter().map(|range| range[end]).collect())
    }

    /// Returns the workload's ratio, with a verdict at this error.
    pub fn ratio(&self, error: f64) -> WorkloadRatio {
        let ends = self.ends();
        let count = self.ranges.len() as u64;
        WorkloadRatio {
            workload: self.workload.clone(),
            ratio: estimate(&ends),
            interval: interval(&ends),
            values: [count; 2],
            decision: order_decision(self.ranges.iter().copied(), error),
            censored: self.ranges.iter().filter(|[low, high]| low != high).count() as u64,
        }
    }
}

/// Returns the verdict of the sequential test of these logarithms, in the order of the trials, at this error.
pub(super) fn order_decision(ranges: impl Iterator<Item = [f64; 2]>, error: f64) -> Option<Decision> {
    let mut judge = OrderJudge::new(error / 2.0, error / 2.0).ok()?;
    let mut verdict = None;
    for [low, high] in ranges {
        verdict = match () {
            () if low > 0.0 => judge.observe(low),
            () if high < 0.0 => judge.observe(high),
            () if low == high => judge.observe(0.0),
            () => judge.observe_unknown(),
        };
    }
    Some(match verdict {
        Some(_) if judge.contradicted() => Decision::Undecided,
        Some(Verdict::Holds) => Decision::Faster,
        Some(Verdict::Refuted) => Decision::Slower,
        None => Decision::Undecided,
    })
}

/// Values of one workload that are not paired: for each process, the mean of its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// Name of the workload.
    pub workload: String,
    /// The processes of the candidate.
    pub candidate: Vec<f64>,
    /// The processes of the baseline.
    pub baseline: Vec<f64>,
}

/// Compares two arms that were measured one after the other, by the logarithms of the processes' means. Values of one
/// process depend on one another, so they never count as several values. The intervals are Banerjee's, because Welch's
/// are too narrow if one side has few processes.
#[must_use]
pub fn compare_samples(candidate: &str, baseline: &str, samples: &[Samples]) -> SuiteComparison {
    let is_valid = |values: &[f64]| !values.is_empty() && values.iter().all(|value| *value > 0.0 && value.is_finite());
    let mut comparison =
        SuiteComparison { candidate: candidate.into(), baseline: baseline.into(), ..SuiteComparison::default() };
    let (mut parts, mut estimates): (Vec<Option<[MeanPart; 2]>>, Vec<[f64; 2]>) = (Vec::new(), Vec::new());
    for Samples { workload, candidate: of_candidate, baseline: of_baseline } in samples {
        let fails = [!is_valid(of_candidate), !is_valid(of_baseline)];
        if fails.contains(&true) {
            let arms = lacking([candidate, baseline], fails);
            comparison.left_out.push(LeftOutWorkload {
                workload: workload.clone(),
                arms,
                reason: WorkloadLack::Failed,
            });
            continue;
        }
        let [logs, base_logs] =
            [of_candidate, of_baseline].map(|values| values.iter().map(|value| value.ln()).collect::<Vec<f64>>());
        let log_ratio = mean_of(&base_logs) - mean_of(&logs);
        let both = MeanPart::new(1.0, &base_logs).zip(MeanPart::new(-1.0, &logs));
        let both = both.map(|(one, other)| [one, other]);
        let own = both.and_then(|both| cautious_mean_interval(&both, ERROR).ok()?);
        parts.push(both);
        estimates.push([log_ratio; 2]);
        comparison.workloads.push(WorkloadRatio {
            workload: workload.clone(),
            ratio: estimate_of([log_ratio; 2]),
            interval: own.map(|interval| ends_of(&interval)),
            values: [of_candidate.len(), of_baseline.len()].map(|count| count as u64),
            decision: None,
            censored: 0,
        });
    }
    let error = ERROR / parts.len() as f64;
    for (workload, both) in comparison.workloads.iter_mut().zip(&parts) {
        workload.decision = both.and_then(|both| decision_of(&cautious_mean_interval(&both, error).ok()??));
    }
    let parts: Option<Vec<[MeanPart; 2]>> = parts.into_iter().collect();
    let this_suite = parts.and_then(|parts| {
        let sides = [0, 1].map(|side| side_mean(parts.iter().map(|both| both[side])));
        cautious_mean_interval(&[sides[0]?, sides[1]?], ERROR).ok()?
    });
    finish(&mut comparison, &estimates, this_suite.map(|interval| ends_of(&interval)), 0.0);
    comparison
}

/// Returns the mean of one side over its workloads. All workloads of a side have about the same number of processes, so
/// Welch's degrees of freedom are right for them.
fn side_mean(parts: impl ExactSizeIterator<Item = MeanPart>) -> Option<MeanPart> {
    let share = 1.0 / parts.len() as f64;
    let parts: Vec<MeanPart> = parts.map(|part| MeanPart { weight: part.weight * share, ..part }).collect();
    if let [only] = parts[..] {
        return Some(only);
    }
    let MeanInterval { mean, standard_error, degrees, .. } = combined_mean_interval(&parts, ERROR).ok()??;
    Some(MeanPart { weight: 1.0, mean, variance: standard_error * standard_error, degrees })
}

/// Returns the decision that an interval of a logarithm gives.
fn decision_of(interval: &MeanInterval) -> Option<Decision> {
    Some(match interval {
        MeanInterval { low, .. } if *low > 0.0 => Decision::Faster,
        MeanInterval { high, .. } if *high < 0.0 => Decision::Slower,
        _ => Decision::Undecided,
    })
}

/// Adds the paired workloads to a comparison, with their mean. `error` is the error probability of each workload's
/// verdict.
pub(super) fn add_pairs(comparison: &mut SuiteComparison, pairs: &[Pairs], error: f64) {
    comparison.is_paired = true;
    comparison.workloads.extend(pairs.iter().map(|pairs| pairs.ratio(error)));
    let estimates: Vec<[f64; 2]> = pairs.iter().map(|pairs| pairs.ends().map(|values| mean_of(&values))).collect();
    let this_suite = of_trials(pairs);
    finish(comparison, &estimates, this_suite, shared_variance(pairs));
}

/// Returns the interval of the mean ratio, for this suite and these builds only. It is computed from one mean over all
/// workloads per trial; trials that lack a workload are ignored.
fn of_trials(pairs: &[Pairs]) -> Option<Ends> {
    let means = trial_means(pairs);
    // On busy machines, the means of trials are skewed, and Student's t alone would miss up to 8 times in 100.
    interval_by(skewed_mean_interval, &[0, 1].map(|end| means.iter().map(|(_, mean)| mean[end]).collect()))
}

/// Returns the mean over all workloads for each trial that has all workloads.
pub(super) fn trial_means(pairs: &[Pairs]) -> Vec<(u64, [f64; 2])> {
    let Some((first, rest)) = pairs.split_first() else { return Vec::new() };
    let of_trial = |(index, trial): (usize, &u64)| {
        let mut sum = first.ranges[index];
        for other in rest {
            let place = other.trials.binary_search(trial).ok()?;
            (0..2).for_each(|end| sum[end] += other.ranges[place][end]);
        }
        Some((*trial, sum.map(|sum| sum / pairs.len() as f64)))
    };
    first.trials.iter().enumerate().filter_map(of_trial).collect()
}

/// Returns the variance of the mean over all trials and workloads that comes from noise which the workloads of a trial
/// share, such as a burst of other work. The spread of the workloads does not show this noise.
fn shared_variance(pairs: &[Pairs]) -> f64 {
    let means = trial_means(pairs).into_iter().map(|(_, [low, _])| low);
    let trials: Moments = means.filter(|log| log.is_finite()).collect();
    let own = |of: &Pairs| of.ends()[0].iter().copied().collect::<Moments>().variance().unwrap_or(0.0);
    let count = pairs.len() as f64;
    let if_independent = pairs.iter().map(own).sum::<f64>() / (count * count);
    let shared = trials.variance().map_or(0.0, |variance| (variance - if_independent) / trials.count() as f64);
    // Infinite ratios have no variance.
    if shared > 0.0 { shared } else { 0.0 }
}

/// Returns the interval of the mean for other workloads like these, from the range of each workload's logarithm.
/// `shared_variance` is added to the variance that the spread of the workloads shows.
fn like_these(ends: &[Vec<f64>; 2], shared_variance: f64) -> Option<Ends> {
    if ends[0].len() < LEAST_SAMPLE {
        return None;
    }
    let degrees = ends[0].len() as f64 - 1.0;
    let size = student_size(ERROR, degrees).ok()?;
    let [low, high] = [(&ends[0], -1.0), (&ends[1], 1.0)].map(|(logs, side)| {
        let part = MeanPart::new(1.0, logs)?;
        Some((part.mean + side * size * (part.variance + shared_variance).sqrt()).exp())
    });
    Some(Ends { low, high, degrees })
}

/// Sets the mean of a comparison, and the means without each workload. `estimates` has the range of each workload's
/// logarithm.
fn finish(comparison: &mut SuiteComparison, estimates: &[[f64; 2]], this_suite: Option<Ends>, shared_variance: f64) {
    if estimates.is_empty() {
        return;
    }
    let ends = [0, 1].map(|end| estimates.iter().map(|range| range[end]).collect::<Vec<f64>>());
    let like_these = like_these(&ends, shared_variance);
    comparison.mean = Some(SuiteMean { ratio: estimate(&ends), this_suite, like_these, decision: None });
    if estimates.len() < 2 {
        return;
    }
    let without = comparison.workloads.iter().enumerate().map(|(left_out, workload)| {
        let others = ends.clone().map(|mut values| {
            values.remove(left_out);
            values
        });
        MeanWithout { workload: workload.workload.clone(), ratio: estimate(&others) }
    });
    comparison.without = without.collect();
}

pub(super) fn lacking(names: [&str; 2], fails: [bool; 2]) -> Vec<String> {
    names.into_iter().zip(fails).filter(|(_, fails)| *fails).map(|(name, _)| name.to_string()).collect()
}

/// Returns the mean. An infinity makes it infinite, because then all infinite values have the same sign.
fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn estimate([lows, highs]: &[Vec<f64>; 2]) -> Estimate {
    estimate_of([mean_of(lows), mean_of(highs)])
}

fn estimate_of(range: [f64; 2]) -> Estimate {
    let [low, high] = range.map(|log| Some(log.exp()).filter(|_| log.is_finite()));
    Estimate { low, high }
}

/// Returns the interval of the mean of values that are known as ranges. The lower end comes from the lowest possible
/// values, and the upper end from the highest. So the interval covers the mean wherever the values are in their ranges,
/// and an end is unbounded if any value is. `None` for fewer than two values.
fn interval(ends: &[Vec<f64>; 2]) -> Option<Ends> {
    interval_by(mean_interval, ends)
}

/// A function that returns the interval of the mean of a sample.
type MeanMethod = fn(&[f64], f64) -> Result<Option<MeanInterval>, ascertain_stats::Error>;

fn interval_by(method: MeanMethod, ends: &[Vec<f64>; 2]) -> Option<Ends> {
    if ends[0].len() < 2 {
        return None;
    }
    let [lows, highs] = ends.each_ref().map(|values| method(values, ERROR).ok().flatten());
    let degrees = ends[0].len() as f64 - 1.0;
    Some(Ends { low: lows.map(|of| of.low.exp()), high: highs.map(|of| of.high.exp()), degrees })
}

pub(super) fn ends_of(interval: &MeanInterval) -> Ends {
    Ends { low: Some(interval.low.exp()), high: Some(interval.high.exp()), degrees: interval.degrees }
}
