//! Counts that somebody else made, judged: the stateless test.

use ascertain_engine::outcome::Verdict;
use ascertain_report::judgement::{self, Judgement};
use ascertain_stats::{self as stats, Tally};

use crate::error::Error;

/// A count of successes that exists, and the claim on its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judge {
    /// Trials and successes so far.
    pub tally: Tally,
    /// The rate of success is at least this, in (0, 1).
    pub at_least: f64,
    /// The chance that the verdict is wrong, however often one looks, in (0, 1).
    pub error: f64,
    /// The sequential test.
    pub method: Method,
}

/// A sequential test, whose interval is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// A mixture of beta-binomial e-processes: needs the fewest trials.
    #[default]
    Mixture,
    /// Robbins' confidence sequence method.
    Csm,
}

/// What so many successes say of the claim. It may be asked again while the count grows.
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
/// When a rate or an error is none.
pub fn judge(asked: &Judge) -> Result<Judgement, Error> {
    let Judge { tally, at_least: rate, error, method } = *asked;
    let (method, verdict, interval) = match method {
        Method::Mixture => ("mixture", stats::verdict(tally, rate, error)?, stats::rate_interval(tally, error, error)?),
        Method::Csm => ("csm", stats::csm_verdict(tally, rate, error)?, stats::csm_interval(tally, error)?),
    };
    let credible = stats::credible_interval(tally, error)?;
    Ok(Judgement {
        schema: judgement::SCHEMA,
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
