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
/// By dynamic programming over the tallies that are still undecided, so exact but for rounding: no simulation. The judge
/// looks after every trial. Takes time in proportion to `max_trials` times the distance of the two boundaries, which is of
/// the order of `√max_trials`.
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
    check_rate(true_rate)?;
    let (holds, refuted) = judge.boundaries();
    let mut edges = (Edge { boundary: holds, least: 1 }, Edge { boundary: refuted, least: 1 });
    let mut power = Power { holds: 0.0, refuted: 0.0, undecided: 1.0, expected_trials: 0.0 };
    // The probability of each undecided tally, by successes from `fewest` on.
    let mut fewest = 0;
    let mut undecided = vec![1.0];
    for trials in 1..=max_trials {
        power.expected_trials += undecided.iter().sum::<f64>();
        advance(&mut undecided, true_rate);
        edges.0.advance(trials);
        edges.1.advance(trials);
        // The greatest number of successes that is refuted is `trials - least`.
        while !undecided.is_empty() && fewest + edges.1.least <= trials {
            power.refuted += undecided.remove(0);
            fewest += 1;
        }
        while !undecided.is_empty() && fewest + undecided.len() as u64 > edges.0.least {
            power.holds += undecided.pop().unwrap_or(0.0);
        }
        while undecided.first().is_some_and(|&probability| probability < NEGLIGIBLE) {
            undecided.remove(0);
            fewest += 1;
        }
        while undecided.last().is_some_and(|&probability| probability < NEGLIGIBLE) {
            undecided.pop();
        }
        if undecided.is_empty() {
            break;
        }
    }
    power.undecided = undecided.iter().fold(0.0, |sum, probability| sum + probability);
    Ok(power)
}

/// One more trial for every tally.
fn advance(undecided: &mut Vec<f64>, true_rate: f64) {
    let mut with_one_less = 0.0;
    for probability in undecided.iter_mut() {
        let before = *probability;
        *probability = before * (1.0 - true_rate) + with_one_less * true_rate;
        with_one_less = before;
    }
    undecided.push(with_one_less * true_rate);
}

/// A boundary by trials: the least favourable outcomes among so many trials that reach it, perhaps more than there are.
struct Edge<'a> {
    boundary: &'a Boundary,
    least: u64,
}

impl Edge<'_> {
    /// One more trial. If it is favourable, one more suffices for sure; if it is not, no fewer do.
    fn advance(&mut self, trials: u64) {
        if self.least > trials || self.boundary.surplus(self.least, trials - self.least) < 0.0 {
            self.least += 1;
        }
    }
}
