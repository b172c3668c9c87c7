//! When a request may race, and what all requests share: what was counted, what may still be spent, and after how
//! long the cache is late.

use std::time::Duration;

use super::delay::{Delay, MOST_QUANTILE};

/// What a request to the origin costs: budgets are counted in millionths of it, so that no rounding adds up.
const REQUEST: u64 = 1_000_000;
/// As [`Policy::Percentile`] has it.
const MOST_SAVED: u64 = 100 * REQUEST;

/// When the origin is asked although the cache may still answer. It is always asked when the cache has failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// Never.
    Never,
    /// At once, for every request whose answer the cache has not at hand.
    Always,
    /// When the cache has taken that long.
    After(Duration),
    /// When the cache takes longer than it mostly did of late.
    Percentile {
        /// Mostly: the share of requests that the cache answers within the delay, 0.95 for example. There is no delay,
        /// and no race, before `1 / (1 - quantile)` requests have been answered. It is 0.999 at most.
        quantile: f64,
        /// Of all requests at most this share may cost the origin one that the cache could have spared it. What is not
        /// used is saved for later, up to 100 requests: a cache that stops is not to turn into a crowd at the origin.
        budget: f64,
    },
    /// Never, and the cache is asked for no more than so many at once; others wait for their turn, in order.
    Throttled {
        /// How many.
        at_once: usize,
    },
}

/// A quantile or a budget that is no share, or a limit of nothing at once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadPolicy(String);

impl Policy {
    /// Whether it is one.
    pub(super) fn check(self) -> Result<Self, BadPolicy> {
        let error = |what: String| Err(BadPolicy(what));
        match self {
            Self::Percentile { quantile, .. } if !(quantile > 0.0 && quantile < 1.0) => {
                error(format!("a race's quantile is between 0 and 1, and not {quantile}"))
            }
            Self::Percentile { quantile, .. } if quantile > MOST_QUANTILE => error(format!(
                "a race's quantile is at most {MOST_QUANTILE}, and not {quantile}: too few would be late to tell when \
                 one is"
            )),
            Self::Percentile { budget, .. } if !(0.0..=1.0).contains(&budget) => {
                error(format!("a race's budget is a share of the requests, from 0 to 1, and not {budget}"))
            }
            Self::Throttled { at_once: 0 } => {
                error("a cache that may be asked for nothing at once never answers".into())
            }
            policy => Ok(policy),
        }
    }
}

/// What a [`Racer`](super::Racer) did so far.
///
/// `requests` is the sum of those under way, `cancelled`, `failed`, those that the cache answered without a race,
/// `cache_won`, `network_won`, and those of `cache_failed` that the origin answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Requests that were begun.
    pub requests: u64,
    /// Those for which the origin was asked while the cache might still answer.
    pub raced: u64,
    /// Of these, those that the cache answered: first, or because the origin failed.
    pub cache_won: u64,
    /// Of these, those that the origin answered before the cache had said anything.
    pub network_won: u64,
    /// Of these, those for which the origin need not have been asked, as far as is known: all but those for which the
    /// cache turned out to have nothing. A [`Policy::Percentile`]'s budget bounds this.
    pub extra: u64,
    /// Requests that were late enough to race, and did not, since the budget was used up.
    pub withheld: u64,
    /// Requests for which the cache had no answer.
    pub cache_failed: u64,
    /// Requests for which the origin was asked and had no answer.
    pub origin_failed: u64,
    /// Requests that nobody answered.
    pub failed: u64,
    /// Requests that were dropped before there was an answer.
    pub cancelled: u64,
}

#[derive(Debug)]
pub(super) struct Ledger {
    policy: Policy,
    /// What each request adds to what may be spent.
    share: u64,
    saved: u64,
    late: Delay,
    pub counts: Counts,
}

impl Ledger {
    pub fn new(policy: Policy) -> Self {
        let (quantile, budget) = match policy {
            Policy::Percentile { quantile, budget } => (quantile, budget),
            _ => (0.5, 0.0),
        };
        // Rounded down, so that the budget is never exceeded.
        let share = (budget * REQUEST as f64) as u64;
        Self { policy, share, saved: 0, late: Delay::new(quantile), counts: Counts::default() }
    }

    /// After how long a request that begins now is to race.
    pub fn delay(&self) -> Option<Duration> {
        match self.policy {
            Policy::Never | Policy::Throttled { .. } => None,
            Policy::Always => Some(Duration::ZERO),
            Policy::After(delay) => Some(delay),
            Policy::Percentile { .. } => self.late.told(),
        }
    }

    pub fn begin(&mut self) -> Option<Duration> {
        self.counts.requests += 1;
        self.saved = (self.saved + self.share).min(MOST_SAVED);
        self.delay()
    }

    /// Whether a request that is late may race: it does then.
    pub fn may_race(&mut self) -> bool {
        if let Policy::Percentile { .. } = self.policy {
            let Some(rest) = self.saved.checked_sub(REQUEST) else {
                self.counts.withheld += 1;
                return false;
            };
            self.saved = rest;
        }
        self.counts.raced += 1;
        self.counts.extra += 1;
        true
    }

    /// The origin would have been asked anyway: what a race cost is given back.
    pub fn was_needed(&mut self) {
        self.counts.extra -= 1;
        if let Policy::Percentile { .. } = self.policy {
            self.saved = (self.saved + REQUEST).min(MOST_SAVED);
        }
    }

    /// The cache was waited for that long: until it answered, or nobody waited any longer. The request was to race
    /// after that delay.
    pub fn waited(&mut self, time: Duration, is_cut: bool, delay: Option<Duration>) {
        if let Policy::Percentile { .. } = self.policy {
            self.late.push(time, is_cut, delay);
        }
    }
}
