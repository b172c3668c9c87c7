//! Reshuffling until it is decided.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::reshuffles::Reshuffles;
use ascertain_stats::{self as stats, BettingDecision, BettingTest, Interval, Tally, Verdict};

/// What is to be decided, and by which sequential test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// Is the null hypothesis rejected at `alpha`? By betting ([`BettingTest`]): soon, and by that alone.
    Betting {
        /// The chance that a true null hypothesis is rejected, at most.
        alpha: f64,
    },
    /// On which side of `alpha` is the p-value? By the confidence sequence method ([`stats::csm_verdict`]), with an
    /// interval of the p-value.
    Csm {
        /// Where the p-value is compared with.
        alpha: f64,
        /// The chance that the p-value is put on the wrong side of it, or outside of its interval, at most.
        error: f64,
    },
}

/// When to stop, decided or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// After so many reshuffles.
    pub max_shuffles: u64,
    /// After that long.
    pub max_time: Option<Duration>,
}

impl Default for Budget {
    /// A million reshuffles, however long they take.
    fn default() -> Budget {
        Budget { max_shuffles: 1_000_000, max_time: None }
    }
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub struct Reshuffled {
    /// Reshuffles so far.
    pub shuffles: u64,
    /// Those that were at least as far from the null hypothesis as the data.
    pub exceedances: u64,
    /// The time that they took.
    pub elapsed: Duration,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Decision {
    /// The null hypothesis is rejected: by betting at `alpha`; by CSM, the p-value is below `alpha`.
    Different,
    /// It is not, and more reshuffles would not change that; by CSM, the p-value is above `alpha`. No proof that it is
    /// true.
    NotShown,
    /// The budget ended first.
    Undecided,
}

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum End {
    /// It was decided.
    Decided,
    /// So many reshuffles were to be made at most.
    MaxShuffles,
    /// The time was over.
    MaxTime,
    /// Whoever watches said so.
    Interrupted,
}

impl Decision {
    /// The word in outputs.
    pub fn word(self) -> &'static str {
        match self {
            Decision::Different => "different",
            Decision::NotShown => "not_shown",
            Decision::Undecided => "undecided",
        }
    }
}

impl End {
    /// The word in outputs.
    pub fn word(self) -> &'static str {
        match self {
            End::Decided => "decided",
            End::MaxShuffles => "max_shuffles",
            End::MaxTime => "max_time",
            End::Interrupted => "interrupted",
        }
    }
}

/// What reshuffling came to. What a method does not say is `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conclusion {
    /// The decision.
    pub decision: Decision,
    /// Why it ended.
    pub end: End,
    /// Reshuffles made.
    pub shuffles: u64,
    /// Those that were at least as far from the null hypothesis as the data.
    pub exceedances: u64,
    /// By betting: the anytime-valid p-value, never below 0.9 of alpha ([`BettingTest::p_value`]).
    pub p_anytime: Option<f64>,
    /// By betting: the natural logarithm of the wealth at the end.
    pub log_wealth: Option<f64>,
    /// By CSM: the share of exceedances, which estimates the p-value.
    pub p: Option<f64>,
    /// By CSM: which p-values are possible ([`stats::csm_interval`]).
    pub p_interval: Option<Interval>,
    /// The time that the reshuffles took.
    pub elapsed: Duration,
}

/// Time between looks at the budget's time, and between calls of `watch`.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Reshuffles until it is decided or the budget ends. `watch` is called every now and then; when it says false, that is
/// the end.
///
/// # Errors
/// When alpha or the error is not strictly between 0 and 1.
pub fn decide(
    reshuffles: &mut Reshuffles,
    method: Method,
    budget: &Budget,
    watch: &mut dyn FnMut(&Reshuffled) -> bool,
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
            if !watch(&Reshuffled { shuffles, exceedances, elapsed }) {
                break (Decision::Undecided, End::Interrupted);
            }
        }
    };
    test.conclude(decision, end, start.elapsed())
}

/// The running test.
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
