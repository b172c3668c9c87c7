//! How many trials it will take, before anything is measured.

use ascertain_engine::claim::Judging;
use ascertain_report::power::{PowerAnalysis, PowerAt, SCHEMA};
use ascertain_stats::{Judge, MarginJudge, expected_growth, power_growth};

use crate::error::{Error, refused};

/// What is to be judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Power {
    /// A claim on a rate, or an order of two commands.
    pub question: Question,
    /// True rates (of an order: the share of the pairs that one wins) to answer for; when empty, some around the claim.
    pub true_rates: Vec<f64>,
    /// The chance that the verdict is wrong: of several claims in a run, one's share.
    pub error: f64,
    /// Trials after which it stays undecided; by default enough where the claim is wrong by a fifth of the odds.
    pub max_trials: Option<u64>,
}

/// What a judge is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question {
    /// Whether the rate of success is at least so much.
    AtLeast {
        /// The claimed rate, in (0, 1).
        rate: f64,
        /// Rates this close to the claimed one need not be told apart.
        margin: Option<f64>,
        /// Half of the error for each verdict; otherwise each has all of it, as at any true rate only one is wrong.
        two_sided: bool,
    },
    /// Which of two commands wins more pairs; half of the error for each answer.
    Order,
}

impl Power {
    /// The claimed rate, the margin, and the error of each verdict. Whether one wins at least half of the pairs is what
    /// an order asks.
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

    /// About how many seconds [`power`] takes in a program that is optimised.
    ///
    /// # Errors
    /// When nobody would wait for it.
    pub fn seconds(&self) -> Result<f64, Error> {
        let ((rate, margin, error), table) = (self.terms(), self.table());
        check_cost(ends(rate, margin), error, &[&table[..], &curve_rates(rate, &table)].concat(), self.most_trials())
    }
}

/// The chance of each verdict by the true rate, exactly; `observe` hears how many true rates of how many are done.
///
/// # Errors
/// When a rate or an error is none, or when it would take too long.
pub fn power(asked: &Power, observe: &mut dyn FnMut(usize, usize)) -> Result<PowerAnalysis, Error> {
    let (rate, margin, error) = asked.terms();
    let judge = match margin {
        Some(margin) => (*MarginJudge::new(rate, margin, error)?).clone(),
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
        schema: SCHEMA.into(),
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

/// What a command may win of the pairs; who wins less loses as much.
const SHARES_OF_PAIRS: [f64; 11] = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99];

/// The claimed rate and some around it, by how many times the odds of a failure are the claimed ones.
fn table_rates(rate: f64) -> Vec<f64> {
    const TIMES: [f64; 11] = [10.0, 5.0, 2.0, 1.25, 1.1, 1.0, 1.0 / 1.1, 0.8, 0.5, 0.2, 0.1];
    let around = |&times: &f64| if times == 1.0 { rate } else { rounded(with_odds(rate, times)) };
    TIMES.iter().map(around).filter(is_inside).collect()
}

/// More rates, closer to one another near the claimed one, where the verdict turns; as far as the table's.
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

/// Next to 0 or 1 the rates around a claim are rounded to them.
fn is_inside(rate: &f64) -> bool {
    *rate > 0.0 && *rate < 1.0
}

/// The rate at which a failure's odds are so many times those at this one.
fn with_odds(rate: f64, times: f64) -> f64 {
    rate / (rate + (1.0 - rate) * times)
}

/// The rate in two digits of what is missing to 0 or 1.
fn rounded(rate: f64) -> f64 {
    let missing = rate.min(1.0 - rate);
    let short: f64 = format!("{missing:.1e}").parse().unwrap_or(missing);
    // 1 - 0.0041 is 0.9959 only when its last digits are dropped.
    if rate < 0.5 { short } else { format!("{:.15}", 1.0 - short).parse().unwrap_or(rate) }
}

/// Three times as many trials as it takes, expectedly, where the odds of a failure are four fifths of those
/// claimed, as a round number; a million at most.
fn enough_trials(rate: f64, error: f64) -> u64 {
    let needed = 3.0 * (1.0 / error).ln() / expected_growth(rate, with_odds(rate, 0.8));
    let mut round = (0..6).flat_map(|exponent| [1, 2, 5].map(|digit| digit * 10_u64.pow(exponent)));
    round.find(|&trials| trials as f64 >= needed).unwrap_or(1_000_000)
}

/// Longer than that nobody waits for a plan.
const LONGEST_S: f64 = 60.0;

/// The rates of which one is rejected in the end: the claimed one, or those that the margin leads to.
fn ends(rate: f64, margin: Option<f64>) -> [f64; 2] {
    let margin = margin.unwrap_or(0.0);
    [rate - margin, rate + margin]
}

/// About how many seconds it takes, by the number of tallies that are followed; refuses what would take too long.
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
    refused(format!(
        "{max_trials} trials at {} true rates would take about {} min to compute; allow fewer (--max-trials {}), or \
         ask for true rates that are farther from the claim",
        true_rates.len(),
        (seconds / 60.0).ceil(),
        fitting / scale * scale
    ))
}

/// About how long a rate takes, in seconds.
fn cost_s(ends: [f64; 2], error: f64, true_rate: f64, max_trials: u64) -> f64 {
    // So much evidence leaves no tally undecided that is worth following.
    const MOST_EVIDENCE: f64 = 300.0;
    // Of a program that is optimised: each trial, and each tally that is undecided after it.
    const TRIAL_S: f64 = 0.7e-6;
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
        assert!(message.contains("--max-trials") && message.contains("farther"), "{message}");
        let with_margin = check_cost(ends(0.5, Some(0.01)), 0.001, &table_rates(0.5), u64::MAX);
        assert!(with_margin.is_ok(), "it ends by itself: {with_margin:?}");
    }
}
