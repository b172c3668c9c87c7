//! What a judge will do at a given true rate, exactly.

use crate::boundary::Boundary;
use crate::error::check_rate;
use crate::{Error, Judge};

/// Less probability than this, at the edge of what is still undecided, is not followed any further.
const NEGLIGIBLE: f64 = 1e-24;

/// The fate of a judge over a limited number of independent trials at one true rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    /// The chance of [`Verdict::Holds`](crate::Verdict::Holds).
    pub holds: f64,
    /// The chance of [`Verdict::Refuted`](crate::Verdict::Refuted).
    pub refuted: f64,
    /// The chance that the trials end first.
    pub undecided: f64,
    /// The mean number of trials until the verdict or the limit.
    pub expected_trials: f64,
}

/// What a judge like `judge`, from scratch, does in at most `max_trials` trials that succeed at `true_rate`.
///
/// By dynamic programming over the tallies that are still undecided, so exact but for rounding: no simulation. The
/// judge looks after every trial. Takes time in proportion to `max_trials` times the distance of the two boundaries,
/// which is of the order of `√max_trials`. A [`MarginJudge`](crate::MarginJudge) is a judge too.
///
/// # Errors
/// [`Error::Rate`], where the true rate is not strictly between 0 and 1.
///
/// ```
/// use ascertain_stats::{Judge, power};
/// let judge = Judge::new(0.5, 0.001)?;
/// let power = power(&judge, 0.8, 200)?;
/// assert!(power.holds > 0.99 && power.refuted < 1e-6);
/// assert!(power.expected_trials < 60.0);
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
pub fn power(judge: &Judge, true_rate: f64, max_trials: u64) -> Result<Power, Error> {
    let mut growth = power_growth(judge, true_rate)?;
    growth.by_ref().take(usize::try_from(max_trials).unwrap_or(usize::MAX)).for_each(drop);
    Ok(growth.power)
}

/// The same after at most 1 trial, 2 trials, and so on: the distribution of the trial at which the verdict falls.
///
/// Ends where nothing is left undecided that is worth following (a chance of 10⁻²⁴ a tally).
///
/// # Errors
/// As [`power()`].
///
/// ```
/// use ascertain_stats::{Judge, power_growth};
/// // Which of two is faster, half of the error for each answer: how many pairs until it is known with a chance of
/// // 80 %, where one wins four fifths of them?
/// let judge = Judge::with_errors(0.5, 0.0005, 0.0005)?;
/// let pairs = 1 + power_growth(&judge, 0.8)?.take_while(|power| power.undecided > 0.2).count();
/// assert_eq!(pairs, 65);
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
pub fn power_growth(judge: &Judge, true_rate: f64) -> Result<PowerGrowth, Error> {
    let true_rate = check_rate(true_rate)?;
    let (holds, refuted) = judge.boundaries();
    Ok(PowerGrowth {
        true_rate,
        holds: Edge { boundary: holds.anew(), least: 1 },
        refuted: Edge { boundary: refuted.anew(), least: 1 },
        power: Power { holds: 0.0, refuted: 0.0, undecided: 1.0, expected_trials: 0.0 },
        trials: 0,
        fewest: 0,
        undecided: vec![1.0],
        next: Vec::new(),
    })
}

/// A judge's fate, trial by trial. From [`power_growth`].
#[derive(Clone, Debug)]
pub struct PowerGrowth {
    true_rate: f64,
    holds: Edge,
    refuted: Edge,
    power: Power,
    trials: u64,
    /// The probability of each undecided tally, by successes from `fewest` on.
    fewest: u64,
    undecided: Vec<f64>,
    /// Room for those after the next trial.
    next: Vec<f64>,
}

impl Iterator for PowerGrowth {
    type Item = Power;

    fn next(&mut self) -> Option<Power> {
        if self.undecided.is_empty() {
            return None;
        }
        self.power.expected_trials += self.power.undecided;
        self.trials += 1;
        advance(&self.undecided, &mut self.next, self.true_rate);
        std::mem::swap(&mut self.undecided, &mut self.next);
        self.holds.advance(self.trials);
        self.refuted.advance(self.trials);
        self.decide();
        self.power.undecided = sum(&self.undecided);
        Some(self.power)
    }
}

impl PowerGrowth {
    /// Moves the probability of what is decided now, and of what is negligible, out of the undecided.
    fn decide(&mut self) {
        let is_negligible = |probability: &&f64| **probability < NEGLIGIBLE;
        // The greatest number of successes that is refuted is `trials - least`.
        let refuted = (self.trials + 1).saturating_sub(self.fewest + self.refuted.least);
        let refuted = (refuted as usize).min(self.undecided.len());
        self.power.refuted += sum(&self.undecided[..refuted]);
        let gone = refuted + self.undecided[refuted..].iter().take_while(is_negligible).count();
        self.undecided.drain(..gone);
        self.fewest += gone as u64;
        let kept = self.holds.least.saturating_sub(self.fewest) as usize;
        if kept < self.undecided.len() {
            self.power.holds += sum(&self.undecided[kept..]);
            self.undecided.truncate(kept);
        }
        let gone = self.undecided.iter().rev().take_while(is_negligible).count();
        self.undecided.truncate(self.undecided.len() - gone);
    }
}

/// One more trial for every tally.
fn advance(undecided: &[f64], next: &mut Vec<f64>, true_rate: f64) {
    let (success, failure) = (true_rate, 1.0 - true_rate);
    next.clear();
    next.push(undecided[0] * failure);
    next.extend(undecided.windows(2).map(|pair| pair[1] * failure + pair[0] * success));
    next.push(undecided[undecided.len() - 1] * success);
}

/// The sum, by several partial sums, which need not wait for one another.
fn sum(probabilities: &[f64]) -> f64 {
    let (whole, rest) = probabilities.as_chunks::<8>();
    let mut partial = [0.0; 8];
    for chunk in whole {
        for (sum, probability) in partial.iter_mut().zip(chunk) {
            *sum += probability;
        }
    }
    partial.iter().chain(rest).fold(0.0, |sum, probability| sum + probability)
}

/// A boundary by trials: the least favourable outcomes among so many trials that reach it, perhaps more than there are.
#[derive(Clone, Debug)]
struct Edge {
    boundary: Boundary,
    least: u64,
}

impl Edge {
    /// One more trial. If it is favourable, one more suffices for sure; if it is not, no fewer do.
    fn advance(&mut self, trials: u64) {
        if self.least > trials || !self.boundary.is_reached(self.least, trials - self.least) {
            self.least += 1;
        }
    }
}
