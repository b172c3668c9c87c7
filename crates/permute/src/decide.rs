//! Reshuffling until a decision is reached.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::reshuffles::Reshuffles;
use ascertain_stats::{self as stats, BettingDecision, BettingTest, Interval, Tally, Verdict};

/// The sequential test that decides, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// Decides by betting ([`BettingTest`]) whether the null hypothesis is rejected at `alpha`. This method needs few
    /// reshuffles, but computes no confidence interval for the p-value.
    Betting {
        /// The maximum probability of rejecting a true null hypothesis.
        alpha: f64,
    },
    /// Decides by the confidence sequence method ([`stats::csm_verdict`]) whether the p-value is below or above
    /// `alpha`, and computes a confidence interval for the p-value.
    Csm {
        /// The value that the p-value is compared with.
        alpha: f64,
        /// The maximum probability of an error: the decision is wrong, or the p-value is outside its confidence
        /// interval.
        error: f64,
    },
}

/// The limits of reshuffling. Reshuffling stops without a decision as soon as it reaches one of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// The maximum number of reshuffles.
    pub max_shuffles: u64,
    /// The maximum time; `None` if the time is unlimited.
    pub max_time: Option<Duration>,
}

impl Default for Budget {
    /// Allows a million reshuffles, without a time limit.
    fn default() -> Budget {
        Budget { max_shuffles: 1_000_000, max_time: None }
    }
}

/// The progress of a running test.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Number of reshuffles so far.
    pub shuffles: u64,
    /// Number of reshuffles so far that are at least as far from the null hypothesis as the data.
    pub exceedances: u64,
    /// The time that the reshuffles took.
    pub elapsed: Duration,
}

/// The decision of a test about its null hypothesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Decision {
    /// With [`Method::Betting`], the null hypothesis is rejected at `alpha`. With [`Method::Csm`], the p-value is below
    /// `alpha`.
    Different,
    /// With [`Method::Betting`], the null hypothesis is not rejected, and more reshuffles would hardly change that.
    /// With [`Method::Csm`], the p-value is above `alpha`. With either method, this does not prove that the null
    /// hypothesis is true.
    NotShown,
    /// The budget was used up, or the test was interrupted, before a decision.
    Undecided,
}

/// The reason why reshuffling ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum End {
    /// The test reached a decision.
    Decided,
    /// The maximum number of reshuffles was reached.
    MaxShuffles,
    /// The time limit was reached.
    MaxTime,
    /// The `watch` function that was passed to [`decide`] returned `false`.
    Interrupted,
}

impl Decision {
    /// Returns the name of this decision for outputs, such as `different`.
    pub fn word(self) -> &'static str {
        match self {
            Decision::Different => "different",
            Decision::NotShown => "not_shown",
            Decision::Undecided => "undecided",
        }
    }
}

impl End {
    /// Returns the name of this reason for outputs, such as `decided`.
    pub fn word(self) -> &'static str {
        match self {
            End::Decided => "decided",
            End::MaxShuffles => "max_shuffles",
            End::MaxTime => "max_time",
            End::Interrupted => "interrupted",
        }
    }
}

/// The result of reshuffling. A field is `None` if the [`Method`] does not compute it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conclusion {
    /// The decision of the test, or [`Decision::Undecided`].
    pub decision: Decision,
    /// The reason why reshuffling ended.
    pub end: End,
    /// Number of reshuffles that were drawn.
    pub shuffles: u64,
    /// Number of reshuffles that are at least as far from the null hypothesis as the data.
    pub exceedances: u64,
    /// The anytime-valid p-value ([`BettingTest::p_value`]). Only [`Method::Betting`] computes it. This p-value is the
    /// reciprocal of the bettor's highest wealth. The wealth is limited, so the p-value is never below 0.9 · alpha.
    pub p_anytime: Option<f64>,
    /// The natural logarithm of the bettor's wealth after the last reshuffle. Only [`Method::Betting`] computes it.
    pub log_wealth: Option<f64>,
    /// The share of exceedances among the reshuffles, which estimates the p-value. Only [`Method::Csm`] computes it.
    pub p: Option<f64>,
    /// The confidence interval for the p-value ([`stats::csm_interval`]). Only [`Method::Csm`] computes it.
    pub p_interval: Option<Interval>,
    /// The time that the reshuffles took.
    pub elapsed: Duration,
}

/// Time between two checks of the time limit, and between two calls of `watch`.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Reshuffles until there is a decision or the budget is used up. `watch` is called about every 20 ms; if it returns
/// `false`, reshuffling stops.
///
/// # Errors
/// Fails if alpha or the error is not strictly between 0 and 1.
pub fn decide(
    reshuffles: &mut Reshuffles,
    method: Method,
    budget: &Budget,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Conclusion, Error> {
    let mut test = Test::new(method)?;
    let start = Instant::now();
    let mut next_look = LOOK_EVERY;
    let (decision, end) = loop {
        if test.tally().trials >= budget.max_shuffles {
            break (Decision::Undecided, End::MaxShuffles);
        }
        if let Some(decision) = test.observe(reshuffles.draw().exceeds)? {
            break (decision, End::Decided);
        }
        let elapsed = start.elapsed();
        if budget.max_time.is_some_and(|max_time| elapsed >= max_time) {
            break (Decision::Undecided, End::MaxTime);
        }
        if elapsed >= next_look {
            next_look = elapsed + LOOK_EVERY;
            let Tally { trials: shuffles, successes: exceedances } = test.tally();
            if !watch(&Progress { shuffles, exceedances, elapsed }) {
                break (Decision::Undecided, End::Interrupted);
            }
        }
    };
    test.conclude(decision, end, start.elapsed())
}

/// A running sequential test, by one of the two methods.
enum Test {
    Betting(BettingTest),
    Csm { tally: Tally, alpha: f64, error: f64 },
}

impl Test {
    fn new(method: Method) -> Result<Test, Error> {
        Ok(match method {
            Method::Betting { alpha } => Test::Betting(BettingTest::new(alpha)?),
            Method::Csm { alpha, error } => {
                let tally = Tally::default();
                stats::csm_verdict(tally, alpha, error)?;
                Test::Csm { tally, alpha, error }
            }
        })
    }

    fn tally(&self) -> Tally {
        match self {
            Test::Betting(test) => test.tally(),
            Test::Csm { tally, .. } => *tally,
        }
    }

    fn observe(&mut self, exceeds: bool) -> Result<Option<Decision>, Error> {
        match self {
            Test::Betting(test) => Ok(test.observe(exceeds).map(|decision| match decision {
                BettingDecision::Rejected => Decision::Different,
                BettingDecision::Futile => Decision::NotShown,
            })),
            Test::Csm { tally, alpha, error } => {
                tally.add(exceeds);
                Ok(stats::csm_verdict(*tally, *alpha, *error)?.map(|verdict| match verdict {
                    Verdict::Refuted => Decision::Different,
                    Verdict::Holds => Decision::NotShown,
                }))
            }
        }
    }

    fn conclude(&self, decision: Decision, end: End, elapsed: Duration) -> Result<Conclusion, Error> {
        let Tally { trials: shuffles, successes: exceedances } = self.tally();
        let unknown = Conclusion {
            decision,
            end,
            shuffles,
            exceedances,
            p_anytime: None,
            log_wealth: None,
            p: None,
            p_interval: None,
            elapsed,
        };
        Ok(match self {
            Test::Betting(test) => {
                Conclusion { p_anytime: Some(test.p_value()), log_wealth: Some(test.log_wealth()), ..unknown }
            }
            Test::Csm { tally, error, .. } => Conclusion {
                p: (shuffles > 0).then(|| exceedances as f64 / shuffles as f64),
                p_interval: Some(stats::csm_interval(*tally, *error)?),
                ..unknown
            },
        })
    }
}
