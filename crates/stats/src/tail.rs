//! A test of which of two alternatives is more often above a threshold in the tail of their values.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::deviance::log_binomial;
use crate::error::{check_error, check_quantile};
use crate::judge::soonest;
use crate::{Error, Judge, Verdict};

/// Number of past values above the threshold from which a level counts. With fewer values, the threshold would be
/// little more than the largest of a handful.
const FEWEST_ABOVE: f64 = 5.0;

/// Allowance for the rounding of `q · n` and `5/(1 − q)`, relative to the result.
const ROUNDING: f64 = 1e-9;

/// The value of one alternative in a pair. Larger values are worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TailValue {
    /// The value was observed.
    Known(f64),
    /// The observation was stopped at this limit, so the value is above it. An infinite limit or NaN stands for a limit
    /// that is not known.
    Stopped(f64),
}

impl TailValue {
    /// Returns the value, or the limit at which the observation was stopped.
    fn number(self) -> f64 {
        match self {
            TailValue::Known(number) | TailValue::Stopped(number) => number,
        }
    }

    fn is_above(self, threshold: f64) -> bool {
        match self {
            TailValue::Known(value) => value > threshold,
            TailValue::Stopped(_) => true,
        }
    }
}

/// Counts of the pairs that a [`TailJudge`] has judged, or that [`tail_excess`] looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TailCounts {
    /// Number of pairs, including those that were cut off.
    pub pairs: u64,
    /// Number of pairs in which the candidate was above the threshold.
    pub candidate_above: u64,
    /// Number of pairs in which the reference was above the threshold.
    pub reference_above: u64,
    /// Number of pairs in which only the candidate was above the threshold.
    pub only_candidate: u64,
    /// Number of pairs in which only the reference was above the threshold.
    pub only_reference: u64,
    /// Number of pairs that were cut off.
    pub unknown: u64,
    /// Smallest and largest threshold of the pairs; `None` if there was no pair.
    pub thresholds: Option<(f64, f64)>,
}

impl TailCounts {
    /// Counts a pair. Returns whether the candidate was above the threshold, if only one of the two was.
    fn add(&mut self, threshold: f64, [candidate, reference]: [TailValue; 2]) -> Option<bool> {
        let (low, high) = self.thresholds.unwrap_or((threshold, threshold));
        self.thresholds = Some((low.min(threshold), high.max(threshold)));
        let [candidate, reference] = [candidate, reference].map(|value| value.is_above(threshold));
        self.pairs += 1;
        self.candidate_above += u64::from(candidate);
        self.reference_above += u64::from(reference);
        self.only_candidate += u64::from(candidate && !reference);
        self.only_reference += u64::from(reference && !candidate);
        (candidate != reference).then_some(candidate)
    }
}

/// A running test of whether a candidate is above a threshold more often than a reference, or less often.
///
/// The threshold of each pair is a quantile of the values of both alternatives in all earlier pairs, at the given
/// level. A pair in which only one of the two is above the threshold is *discordant*; the others change nothing.
/// [`Verdict::Holds`] means that the candidate was above more often, [`Verdict::Refuted`] less often. A [`Judge`] of
/// "at least half" of the discordant pairs decides.
///
/// # Guarantee
///
/// Assume that the two do not differ, and that a coin decides for each pair which is measured first. Given the past and
/// the two values, each value then belongs to either alternative with the same probability. The threshold is part of
/// the past, so a discordant pair is a fair coin. The chance that the verdict is ever *more often* is then at most
/// `error`, and ever *less often* at most `error`. This holds for every noise, drift and dependence between pairs.
///
/// The verdict is about the pairs that were measured. It does not say that a percentile differs.
///
/// # Time limits and pairs that were cut off
///
/// A value that was stopped at its limit is above every threshold. It enters the past as its limit, so no threshold
/// exceeds the limit. A pair that was cut off counts against both verdicts, as in [`Judge::observe_unknown`].
///
/// ```
/// use ascertain_stats::{TailJudge, TailValue::Known, Verdict};
/// let mut judge = TailJudge::new(0.95, 0.0005)?;
/// // Every tenth run of the candidate takes three times as long.
/// let pair = |pair: u64| [Known(if pair % 10 == 0 { 30.0 } else { 10.0 }), Known(10.0)];
/// let decided = (0..1000).find(|&number| judge.observe(pair(number)).is_some());
/// assert_eq!(judge.verdict(), Some(Verdict::Holds));
/// // 50 pairs before the level counts, then 15 discordant ones.
/// assert_eq!(decided, Some(190));
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TailJudge {
    level: f64,
    past: Past,
    judge: Judge,
    counts: TailCounts,
    decided_at: Option<u64>,
}

impl TailJudge {
    /// Creates a test at this level, such as 0.95. Each of the two verdicts is wrong with probability at most `error`.
    ///
    /// # Errors
    /// Returns [`Error::Quantile`] or [`Error::ErrorProbability`] if an argument is not strictly between 0 and 1.
    pub fn new(level: f64, error: f64) -> Result<TailJudge, Error> {
        let (level, judge) = (check_quantile(level)?, Judge::new(0.5, check_error(error)?)?);
        Ok(TailJudge { level, past: Past::default(), judge, counts: TailCounts::default(), decided_at: None })
    }

    /// Counts a pair, the candidate first, and returns the verdict; `None` as long as there is none. A verdict never
    /// changes. Until the level [counts](tail_pairs_before), a pair only adds to the past.
    pub fn observe(&mut self, pair: [TailValue; 2]) -> Option<Verdict> {
        let discordant = self.threshold().and_then(|threshold| self.counts.add(threshold, pair));
        if let Some(is_candidate) = discordant
            && self.judge.observe(is_candidate).is_some()
        {
            self.decided_at.get_or_insert(self.counts.pairs);
        }
        pair.into_iter().for_each(|value| self.past.push(value.number(), self.level));
        self.verdict()
    }

    /// Counts a pair that was cut off. It counts against both verdicts, and its values do not enter the past.
    pub fn observe_unknown(&mut self) -> Option<Verdict> {
        if self.threshold().is_some() {
            self.counts.pairs += 1;
            self.counts.unknown += 1;
            self.judge.observe_unknown();
        }
        self.verdict()
    }

    /// Returns the threshold for the next pair; `None` if the past has too few values.
    fn threshold(&self) -> Option<f64> {
        let has_enough = self.past.len() as f64 >= fewest_values(self.level);
        self.past.quantile().filter(|_| has_enough)
    }

    /// Returns the level, such as 0.95.
    pub fn level(&self) -> f64 {
        self.level
    }

    /// Returns the verdict, or `None` as long as there is none.
    pub fn verdict(&self) -> Option<Verdict> {
        self.judge.verdict()
    }

    /// Returns the counts of the pairs since the level counts.
    pub fn counts(&self) -> TailCounts {
        self.counts
    }

    /// Returns the number of counted pairs at the verdict; `None` as long as there is none.
    pub fn decided_at(&self) -> Option<u64> {
        self.decided_at
    }

    /// Returns whether later pairs contradict the verdict, as [`Judge::contradicted`] does.
    pub fn contradicted(&self) -> bool {
        self.judge.contradicted()
    }

    /// Returns `ln e` for "more often" and for "less often".
    pub fn log_e(&self) -> (f64, f64) {
        (self.judge.log_e_holds(), self.judge.log_e_refuted())
    }
}

/// Returns the smallest number of values from which a level counts, 5/(1 − level).
fn fewest_values(level: f64) -> f64 {
    (FEWEST_ABOVE / (1.0 - level) * (1.0 - ROUNDING)).ceil()
}

/// Returns the number of pairs before a level counts. Each pair adds two values to the past.
///
/// ```
/// use ascertain_stats::tail_pairs_before;
/// assert_eq!([0.95, 0.99, 0.999].map(tail_pairs_before), [50, 250, 2500]);
/// ```
pub fn tail_pairs_before(level: f64) -> u64 {
    (fewest_values(level) / 2.0).ceil() as u64
}

/// Returns the smallest number of pairs after which a [`TailJudge`] of this level can have a verdict.
pub fn soonest_tail_verdict(level: f64, error: f64) -> u64 {
    tail_pairs_before(level).saturating_add(soonest(Verdict::Holds, 0.5, error))
}

/// Past values, divided into those up to the quantile and those above it.
#[derive(Clone, Debug, Default)]
struct Past {
    up_to: BinaryHeap<i64>,
    above: BinaryHeap<Reverse<i64>>,
}

impl Past {
    /// Adds a value. Ignores values that are not finite. The level must be the same in each call.
    fn push(&mut self, value: f64, level: f64) {
        if !value.is_finite() {
            return;
        }
        let key = order_key(value);
        match self.up_to.peek() {
            Some(&quantile) if key > quantile => self.above.push(Reverse(key)),
            _ => self.up_to.push(key),
        }
        // One more value raises the rank of the quantile by at most 1.
        let rank = rank(level, self.len());
        if self.up_to.len() > rank {
            self.above.extend(self.up_to.pop().map(Reverse));
        } else if self.up_to.len() < rank {
            self.up_to.extend(self.above.pop().map(|Reverse(key)| key));
        }
    }

    fn len(&self) -> usize {
        self.up_to.len() + self.above.len()
    }

    fn quantile(&self) -> Option<f64> {
        self.up_to.peek().map(|&key| value_of(key))
    }
}

/// Returns the rank of the quantile among `count` values, from 1: at least a share `level` of the values is not above it.
fn rank(level: f64, count: usize) -> usize {
    let rank = (level * count as f64 * (1.0 - ROUNDING)).ceil() as usize;
    rank.clamp(usize::from(count > 0), count)
}

/// Returns an integer that has the same order among others as the value among finite values.
fn order_key(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// Returns the value of an [`order_key`].
fn value_of(key: i64) -> f64 {
    f64::from_bits((key ^ (((key >> 63) as u64) >> 1) as i64) as u64)
}

/// A comparison of two tails after the last pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailExcess {
    /// The counts at the threshold, which is the same for all pairs.
    pub counts: TailCounts,
    /// Probability of at least this many pairs with only the candidate above the threshold, if the two do not differ.
    pub p_value: f64,
}

/// Compares the tails of two alternatives after the last pair. Each pair has the candidate first. Returns `None` if no
/// pair has a finite value.
///
/// The threshold is the quantile of all values of both alternatives. It stays the same if the two values of a pair
/// change places. So each discordant pair is a fair coin, and the p-value is that of the exact sign test. The number of
/// pairs must not depend on the values; use a [`TailJudge`] to look again and again.
///
/// ```
/// use ascertain_stats::{TailValue::Known, tail_excess};
/// let pairs: Vec<_> = (0..100).map(|pair| [Known(if pair < 8 { 30.0 } else { 10.0 }), Known(10.0)]).collect();
/// let excess = tail_excess(0.95, &pairs).unwrap();
/// assert_eq!((excess.counts.only_candidate, excess.counts.only_reference), (8, 0));
/// assert!((excess.p_value - 0.5f64.powi(8)).abs() < 1e-9);
/// ```
pub fn tail_excess(level: f64, pairs: &[[TailValue; 2]]) -> Option<TailExcess> {
    let mut values: Vec<f64> = pairs.iter().flatten().map(|value| value.number()).filter(|n| n.is_finite()).collect();
    values.sort_unstable_by(f64::total_cmp);
    let threshold = *values.get(rank(level, values.len()).checked_sub(1)?)?;
    let mut counts = TailCounts::default();
    pairs.iter().for_each(|pair| _ = counts.add(threshold, *pair));
    let (all, ours) = (counts.only_candidate + counts.only_reference, counts.only_candidate);
    // The smallest terms are added first, so that rounding hardly matters.
    let terms = (ours..=all).rev().map(|above| libm::exp(log_binomial(all as f64, above as f64, 0.5)));
    Some(TailExcess { counts, p_value: terms.sum::<f64>().min(1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the running quantile with the quantile of the sorted values.
    #[test]
    fn the_running_quantile_is_the_quantile_of_all_values() {
        for level in [0.5, 0.95, 0.98] {
            let (mut past, mut values) = (Past::default(), Vec::new());
            for step in 0..500_u64 {
                // Values of both signs, many of them equal.
                let value = ((step * 7919) % 101) as f64 - 50.0;
                past.push(value, level);
                past.push(f64::NAN, level);
                values.push(value);
                values.sort_unstable_by(f64::total_cmp);
                assert_eq!(past.quantile(), Some(values[rank(level, values.len()) - 1]), "step {step}");
            }
        }
    }

    #[test]
    fn ranks_are_not_raised_by_rounding() {
        assert_eq!(
            [(0.95, 100), (0.99, 500), (0.999, 5000), (0.95, 101)].map(|(q, n)| rank(q, n)),
            [95, 495, 4995, 96]
        );
        assert_eq!([0, 1].map(|count| rank(0.5, count)), [0, 1]);
    }

    #[test]
    fn a_value_equal_to_the_threshold_is_not_above() {
        let mut judge = TailJudge::new(0.95, 0.05).unwrap();
        (0..200).for_each(|_| _ = judge.observe([TailValue::Known(10.0); 2]));
        assert_eq!((judge.counts().pairs, judge.counts().candidate_above), (150, 0));
    }
}
