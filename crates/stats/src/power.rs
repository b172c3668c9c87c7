//! The exact behaviour of a judge at a given true rate.

use crate::boundary::Boundary;
use crate::error::check_rate;
use crate::{Error, Judge};

/// Probability below which an undecided tally is dropped. Only the tallies with the most and the fewest successes are
/// so improbable.
const NEGLIGIBLE: f64 = 1e-24;

/// The probabilities of a judge's verdicts over a limited number of independent trials at one true rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    /// The probability of [`Verdict::Holds`](crate::Verdict::Holds).
    pub holds: f64,
    /// The probability of [`Verdict::Refuted`](crate::Verdict::Refuted).
    pub refuted: f64,
    /// The probability that the trials end before a verdict.
    pub undecided: f64,
    /// The mean number of trials until a verdict or the limit.
    pub expected_trials: f64,
}

/// Computes the probability of each verdict, for a new judge with the settings of `judge`. There are at most
/// `max_trials` trials, which succeed at `true_rate`.
///
/// The function uses dynamic programming over the tallies that are still undecided. It does not simulate, so the
/// results are exact except for rounding. The judge looks after every trial, and may have a margin. The time is
/// proportional to `max_trials` times the distance between the two boundaries, which is of the order of `√max_trials`.
///
/// # Errors
/// Returns [`Error::Rate`] if the true rate is not strictly between 0 and 1.
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

/// Computes the results of [`power()`] for at most 1 trial, 2 trials, and so on: the distribution of the number of
/// trials until the verdict.
///
/// The iterator ends when every undecided tally has a probability of less than 10⁻²⁴.
///
/// # Errors
/// Fails in the cases of [`power()`].
///
/// ```
/// use ascertain_stats::{Judge, power_growth};
/// // Which of two commands is faster? Each of the two possible answers may be wrong with probability 0.0005. One
/// // command wins four fifths of the pairs. How many pairs are needed for a verdict with a probability of 80 %?
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

/// The probabilities of a judge's verdicts, trial by trial. Created by [`power_growth`].
#[derive(Clone, Debug)]
pub struct PowerGrowth {
    true_rate: f64,
    holds: Edge,
    refuted: Edge,
    power: Power,
    trials: u64,
    /// Smallest number of successes of an undecided tally. The first entry of `undecided` is for this number.
    fewest: u64,
    undecided: Vec<f64>,
    /// A buffer for the probabilities of the undecided tallies after the next trial.
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
    /// Removes from `undecided` the probabilities of tallies that are now decided or negligible.
    fn decide(&mut self) {
        let is_negligible = |probability: &&f64| **probability < NEGLIGIBLE;
        // The greatest number of successes at which the verdict is *refuted* is `trials - least`.
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

/// Computes the probabilities of the undecided tallies after one more trial, and stores them in `next`.
fn advance(undecided: &[f64], next: &mut Vec<f64>, true_rate: f64) {
    let (success, failure) = (true_rate, 1.0 - true_rate);
    next.clear();
    next.push(undecided[0] * failure);
    next.extend(undecided.windows(2).map(|pair| pair[1] * failure + pair[0] * success));
    next.push(undecided[undecided.len() - 1] * success);
}

/// Returns the sum of these probabilities, computed as several independent partial sums for speed.
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

/// A [`Boundary`] at a given number of trials. `least` is the smallest number of favourable outcomes that reaches the
/// boundary. It may be greater than the number of trials, and then the boundary cannot be reached yet.
#[derive(Clone, Debug)]
struct Edge {
    boundary: Boundary,
    least: u64,
}

impl Edge {
    /// Advances to `trials`, one more than before. `least` grows by at most one, and never falls.
    fn advance(&mut self, trials: u64) {
        if self.least > trials || !self.boundary.is_reached(self.least, trials - self.least) {
            self.least += 1;
        }
    }
}
