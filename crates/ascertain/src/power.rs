//! Predicts, before anything is measured, how many trials a verdict will need.

use ascertain_engine::claim::Judging;
use ascertain_report::power::{PowerAnalysis, PowerAt};
use ascertain_stats::{Judge, expected_growth, power_growth};

use crate::error::Error;

/// A request to predict how many trials a verdict needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Power {
    /// The verdict to predict: on a rate, or on which of two commands wins more pairs.
    pub question: Question,
    /// True rates for which to predict the verdict. If empty, rates around the claimed one are chosen. For
    /// [`Question::Order`], a true rate is the share of pairs that one command wins.
    pub true_rates: Vec<f64>,
    /// Highest probability that the verdict is wrong. If a run has several claims, give the part of the run's error
    /// probability that one claim gets.
    pub error: f64,
    /// Maximum number of trials; if it is reached, the verdict stays undecided. The default is usually enough for a
    /// verdict if the true odds of failure are a fifth lower than claimed.
    pub max_trials: Option<u64>,
}

/// The verdict to predict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question {
    /// Predicts the verdict on whether the rate of success is at least the claimed rate.
    AtLeast {
        /// The claimed rate, in (0, 1).
        rate: f64,
        /// Tolerance around the claimed rate. If the true rate is within it, either verdict is acceptable.
        margin: Option<f64>,
        /// `true` if the verdicts "holds" and "refuted" each get half of the error. `false` if each gets the whole
        /// error; this is valid because at any true rate, only one of the two verdicts can be wrong.
        two_sided: bool,
    },
    /// Predicts the verdict on the question which of two commands wins more pairs. The error is divided equally between
    /// the two possible answers.
    Order,
}

impl Power {
    /// Returns the claimed rate, the margin, and the error probability of each verdict. For [`Question::Order`], the
    /// claim is that one command wins at least half of the pairs.
    fn terms(&self) -> (f64, Option<f64>, f64) {
        match self.question {
            Question::AtLeast { rate, margin, two_sided: false } => (rate, margin, self.error),
            Question::AtLeast { rate, margin, two_sided: true } => (rate, margin, self.error / 2.0),
            Question::Order => (0.5, None, self.error / 2.0),
        }
    }

    fn table(&self) -> Vec<f64> {
        match self.question {
            _ if !self.true_rates.is_empty() => self.true_rates.clone(),
            Question::Order => SHARES_OF_PAIRS.into(),
            Question::AtLeast { rate, .. } => table_rates(rate),
        }
    }

    fn most_trials(&self) -> u64 {
        let (rate, _, error) = self.terms();
        self.max_trials.unwrap_or_else(|| enough_trials(rate, error))
    }

    /// Estimates how many seconds [`power`] takes in an optimised program.
    ///
    /// # Errors
    /// If the computation would take longer than a minute.
    pub fn seconds(&self) -> Result<f64, Error> {
        let ((rate, margin, error), table) = (self.terms(), self.table());
        check_cost(ends(rate, margin), error, &[&table[..], &curve_rates(rate, &table)].concat(), self.most_trials())
    }
}

/// Computes the exact probability of each verdict for every true rate. Calls `observe` with two numbers: how many true
/// rates are done, and how many there are.
///
/// # Errors
/// If a rate or an error is out of range, or if the computation would take too long.
pub fn power(asked: &Power, observe: &mut dyn FnMut(usize, usize)) -> Result<PowerAnalysis, Error> {
    let (rate, margin, error) = asked.terms();
    let judge = match margin {
        Some(margin) => Judge::with_margin(rate, margin, error)?,
        None => Judge::new(rate, error)?,
    };
    asked.seconds()?;
    let (rates, max_trials) = (asked.table(), asked.most_trials());
    let curve = curve_rates(rate, &rates);
    let (all, mut done) = (rates.len() + curve.len(), 0);
    let mut at = |rates: &[f64]| -> Result<Vec<PowerAt>, Error> {
        let fate_at = |&true_rate: &f64| {
            observe(done, all);
            done += 1;
            fate(&judge, true_rate, max_trials)
        };
        rates.iter().map(fate_at).collect()
    };
    Ok(PowerAnalysis {
        judging: if asked.question == Question::Order { Judging::Order } else { Judging::Rate },
        rate_claimed: rate,
        margin,
        error_holds: error,
        error_refuted: error,
        max_trials,
        rates: at(&rates)?,
        curve: at(&curve)?,
    })
}

fn fate(judge: &Judge, true_rate: f64, max_trials: u64) -> Result<PowerAt, Error> {
    let mut at = PowerAt {
        true_rate,
        holds: 0.0,
        refuted: 0.0,
        undecided: 1.0,
        expected_trials: 0.0,
        trials_80: None,
        trials_95: None,
    };
    for (trials, power) in (1..=max_trials).zip(power_growth(judge, true_rate)?) {
        (at.holds, at.refuted) = (power.holds, power.refuted);
        (at.undecided, at.expected_trials) = (power.undecided, power.expected_trials);
        for (by, share) in [(&mut at.trials_80, 0.8), (&mut at.trials_95, 0.95)] {
            if power.holds + power.refuted >= share {
                by.get_or_insert(trials);
            }
        }
    }
    Ok(at)
}

/// True rates in the table for [`Question::Order`]: the share of pairs that the better command wins.
const SHARES_OF_PAIRS: [f64; 11] = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99];

/// Returns the true rates for the table: the claimed rate, and rates around it. Their odds of failure are multiples of
/// the odds at the claimed rate.
fn table_rates(rate: f64) -> Vec<f64> {
    const TIMES: [f64; 11] = [10.0, 5.0, 2.0, 1.25, 1.1, 1.0, 1.0 / 1.1, 0.8, 0.5, 0.2, 0.1];
    let around = |&times: &f64| if times == 1.0 { rate } else { rounded(with_odds(rate, times)) };
    TIMES.iter().map(around).filter(is_inside).collect()
}

/// Returns the true rates for the plotted curve, over the same range as the table. They are closer together near the
/// claimed rate, where the verdict changes.
fn curve_rates(rate: f64, table: &[f64]) -> Vec<f64> {
    const STEPS: i32 = 24;
    let log_odds = |rate: f64| (rate / (1.0 - rate)).ln();
    let distance = |other: &f64| (log_odds(*other) - log_odds(rate)).abs();
    let farthest = table.iter().map(distance).fold(0.5, f64::max);
    let step = |step: i32| {
        let share = f64::from(step) / f64::from(STEPS);
        with_odds(rate, (-share * share.abs() * farthest).exp())
    };
    (-STEPS..=STEPS).map(|index| if index == 0 { rate } else { step(index) }).filter(is_inside).collect()
}

/// Returns whether a rate is between 0 and 1, both excluded. Rates that are computed around a very high or low claim
/// may be rounded to 0 or 1.
fn is_inside(rate: &f64) -> bool {
    *rate > 0.0 && *rate < 1.0
}

/// Returns the rate at which the odds of failure are `times` as high as at `rate`.
fn with_odds(rate: f64, times: f64) -> f64 {
    rate / (rate + (1.0 - rate) * times)
}

/// Rounds a rate, so that its distance to 0 or 1, whichever is nearer, has two significant digits: 0.99592 becomes
/// 0.9959.
fn rounded(rate: f64) -> f64 {
    let missing = rate.min(1.0 - rate);
    let short: f64 = format!("{missing:.1e}").parse().unwrap_or(missing);
    // In binary, 1 - 0.0041 is not exactly 0.9959; drop the last digits.
    if rate < 0.5 { short } else { format!("{:.15}", 1.0 - short).parse().unwrap_or(rate) }
}

/// Returns the default maximum of trials: three times the expected number, rounded up, but at most a million. The
/// expected number of trials assumes that the true odds of failure are a fifth lower than claimed.
fn enough_trials(rate: f64, error: f64) -> u64 {
    let needed = 3.0 * (1.0 / error).ln() / expected_growth(rate, with_odds(rate, 0.8));
    let mut round = (0..6).flat_map(|exponent| [1, 2, 5].map(|digit| digit * 10_u64.pow(exponent)));
    round.find(|&trials| trials as f64 >= needed).unwrap_or(1_000_000)
}

/// Maximum estimated time of a computation, in seconds. A computation that would take longer is refused.
const LONGEST_S: f64 = 60.0;

/// Returns the two rates against which "holds" and "refuted" are tested: the lower and the upper bound of the
/// tolerance. Without a margin, both are the claimed rate, because there is no tolerance.
fn ends(rate: f64, margin: Option<f64>) -> [f64; 2] {
    let margin = margin.unwrap_or(0.0);
    [rate - margin, rate + margin]
}

/// Estimates how many seconds the computation for all true rates takes. `ends` are the bounds of the tolerance. Returns
/// an error if the time is longer than [`LONGEST_S`].
fn check_cost(ends: [f64; 2], error: f64, true_rates: &[f64], max_trials: u64) -> Result<f64, Error> {
    let cost_s = |trials: u64| true_rates.iter().map(|&at| cost_s(ends, error, at, trials)).sum::<f64>();
    let (seconds, mut fitting) = (cost_s(max_trials), max_trials);
    if seconds <= LONGEST_S {
        return Ok(seconds);
    }
    while cost_s(fitting) > LONGEST_S {
        fitting /= 2;
    }
    let scale = 10_u64.pow(fitting.ilog10());
    Err(Error::TooManyTrials {
        max_trials,
        true_rates: true_rates.len(),
        minutes: (seconds / 60.0).ceil(),
        fitting: fitting / scale * scale,
    })
}

/// Estimates how many seconds the computation for one true rate takes. `ends` are the bounds of the tolerance.
fn cost_s(ends: [f64; 2], error: f64, true_rate: f64, max_trials: u64) -> f64 {
    // A natural logarithm of an e-value. Once the expected e-value is this large, almost every count of successes is
    // decided.
    const MOST_EVIDENCE: f64 = 300.0;
    // Time of one trial, in seconds, measured in an optimised program.
    const TRIAL_S: f64 = 0.7e-6;
    // Additional time for each count of successes that is still undecided after a trial, in seconds, measured in the
    // same program.
    const TALLY_S: f64 = 0.5e-9;
    let growth = ends.map(|end| expected_growth(end, true_rate)).into_iter().fold(0.0, f64::max);
    let trials = (max_trials as f64).min(MOST_EVIDENCE / growth);
    let variance = ends.map(|end| end * (1.0 - end)).into_iter().fold(0.0, f64::max);
    let distance = 2.0 * (2.0 * trials * variance * ((1.0 / error).ln() + 4.0)).sqrt();
    trials * (TRIAL_S + TALLY_S * distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_around_a_claim() {
        let rates = table_rates(0.98);
        assert_eq!(rates, [0.83, 0.907, 0.961, 0.975, 0.978, 0.98, 0.982, 0.984, 0.99, 0.9959, 0.998]);
        for rate in [1e-9, 0.02, 0.5, 0.9, 0.999_999] {
            let (rates, curve) = (table_rates(rate), curve_rates(rate, &table_rates(rate)));
            assert!(rates.is_sorted_by(|a, b| a < b) && rates.contains(&rate), "{rates:?}");
            assert!(curve.is_sorted_by(|a, b| a < b) && curve.contains(&rate), "{curve:?}");
            assert!(curve[0] <= rates[1] && *curve.last().unwrap() >= rates[9]);
        }
        let close = 1.0 - 1e-15;
        assert!(table_rates(close).iter().chain(&curve_rates(close, &[])).all(is_inside), "a double has no room");
    }

    #[test]
    fn enough_is_enough_and_not_too_much() {
        for (rate, error, enough) in [(0.5, 0.001, 5000), (0.98, 0.001, 50_000), (0.999_999, 0.001, 1_000_000)] {
            assert_eq!(enough_trials(rate, error), enough);
            assert!(check_cost(ends(rate, None), error, &table_rates(rate), enough).is_ok());
            let all = [table_rates(rate), curve_rates(rate, &table_rates(rate))].concat();
            let seconds = check_cost(ends(rate, None), error, &all, enough).unwrap();
            assert_eq!(seconds > 5.0, rate > 0.99, "{seconds}");
        }
        let message = check_cost(ends(0.5, None), 0.001, &table_rates(0.5), u64::MAX).unwrap_err().to_string();
        assert!(message.contains("allow at most ") && message.contains("farther"), "{message}");
        let with_margin = check_cost(ends(0.5, Some(0.01)), 0.001, &table_rates(0.5), u64::MAX);
        assert!(with_margin.is_ok(), "it ends by itself: {with_margin:?}");
    }
}
