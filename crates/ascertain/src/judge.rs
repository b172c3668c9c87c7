//! Judges counts of successes that were measured elsewhere. Keeps no state between calls.

use ascertain_engine::outcome::Verdict;
use ascertain_report::judgement::Judgement;
use ascertain_stats::{self as stats, Tally};

use crate::error::Error;

/// A count of successes, and a claim about the rate of success.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judge {
    /// Number of trials and number of successes so far.
    pub tally: Tally,
    /// The claimed rate, in (0, 1). The claim is that the true rate of success is at least this.
    pub at_least: f64,
    /// Highest probability that any verdict is ever wrong, in (0, 1). It holds even if the count is judged again and
    /// again while it grows.
    pub error: f64,
    /// The sequential test that gives the verdict.
    pub method: Method,
}

/// A sequential test of a claim about a rate. Each test also gives a confidence interval of the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Uses a mixture of beta-binomial e-processes. It needs the fewest trials.
    #[default]
    Mixture,
    /// Uses Robbins' confidence sequence method.
    Csm,
}

/// Judges a claim about the rate of success. You may call this again and again while the count grows.
///
/// ```
/// use ascertain::engine::outcome::Verdict;
/// use ascertain::judge::{Judge, Method, judge};
/// use ascertain::stats::Tally;
///
/// let tally = Tally::new(4000, 3972)?;
/// let judgement = judge(&Judge { tally, at_least: 0.98, error: 0.001, method: Method::Mixture })?;
/// assert_eq!(judgement.verdict, Verdict::Holds);
/// # Ok::<_, ascertain::Error>(())
/// ```
///
/// # Errors
/// If a rate or an error is not in (0, 1).
pub fn judge(asked: &Judge) -> Result<Judgement, Error> {
    let Judge { tally, at_least: rate, error, method } = *asked;
    let (method, verdict, interval) = match method {
        Method::Mixture => ("mixture", stats::verdict(tally, rate, error)?, stats::rate_interval(tally, error, error)?),
        Method::Csm => ("csm", stats::csm_verdict(tally, rate, error)?, stats::csm_interval(tally, error)?),
    };
    let credible = stats::credible_interval(tally, error)?;
    Ok(Judgement {
        verdict: match verdict {
            Some(stats::Verdict::Holds) => Verdict::Holds,
            Some(stats::Verdict::Refuted) => Verdict::Refuted,
            None => Verdict::Undecided,
        },
        trials: tally.trials,
        successes: tally.successes,
        method: method.into(),
        rate_claimed: rate,
        error,
        log_level: Some(stats::log_level(tally, rate)),
        log_e_holds: Some(stats::log_e_holds(tally, rate)),
        log_e_refuted: Some(stats::log_e_refuted(tally, rate)),
        rate: (tally.trials > 0).then(|| tally.successes as f64 / tally.trials as f64),
        rate_low: Some(interval.low),
        rate_high: Some(interval.high),
        credible_low: Some(credible.low),
        credible_high: Some(credible.high),
    })
}
