//! The state that all requests of a racer share: the counts, the budget for races, and the delay. It decides which
//! requests may race: such requests go to the origin before the cache has answered.

use std::time::Duration;

use super::delay::{Delay, MOST_QUANTILE};

/// The cost of one request to the origin, in units of the budget. The units are small, so rounding errors stay small.
const REQUEST: u64 = 1_000_000;
/// Largest unused budget that is saved for later races; see [`Policy::Percentile`].
const MOST_SAVED: u64 = 100 * REQUEST;

/// Determines when a request is also sent to the origin while the cache has not failed. With every policy, a request
/// goes to the origin as soon as the cache fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// Sends a request to the origin only after the cache has failed.
    Never,
    /// Sends each request to the origin at once, unless the cache answers immediately.
    Always,
    /// Sends a request to the origin if the cache takes longer than this delay.
    After(Duration),
    /// Sends a request to the origin if the cache takes longer than for most recent requests, and the budget permits
    /// it.
    Percentile {
        /// The share of requests that the cache answers before they count as late, such as 0.95; at most 0.999. The
        /// delay that separates late requests is first known after `1 / (1 - quantile)` requests. Earlier requests do
        /// not race.
        quantile: f64,
        /// The largest share of requests that may go to the origin unnecessarily, from 0 to 1. Unused budget is saved,
        /// up to the cost of 100 requests. The budget protects the origin if the cache stops answering.
        budget: f64,
    },
    /// Sends a request to the origin only after the cache has failed, and lets only `at_once` requests read the cache
    /// at the same time. Further requests wait in order.
    Throttled {
        /// Maximum number of requests that read the cache at the same time; at least 1.
        at_once: usize,
    },
}

/// The error for an invalid policy: a quantile or budget is out of range, or no request may read the cache.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidPolicy(String);

impl Policy {
    /// Returns the policy if its parameters are valid.
    pub(super) fn check(self) -> Result<Self, InvalidPolicy> {
        let error = |what: String| Err(InvalidPolicy(what));
        match self {
            Self::Percentile { quantile, .. } if !(quantile > 0.0 && quantile < 1.0) => {
                error(format!("the quantile of a race must be between 0 and 1, but is {quantile}"))
            }
            Self::Percentile { quantile, .. } if quantile > MOST_QUANTILE => error(format!(
                "the quantile of a race must be at most {MOST_QUANTILE}, but is {quantile}: above that, there are too \
                 few late requests to estimate the delay"
            )),
            Self::Percentile { budget, .. } if !(0.0..=1.0).contains(&budget) => {
                error(format!("the budget of a race must be a share from 0 to 1, but is {budget}"))
            }
            Self::Throttled { at_once: 0 } => {
                error("the limit of simultaneous reads of the cache must be at least 1".into())
            }
            policy => Ok(policy),
        }
    }
}

/// The numbers of requests of a [`Racer`](super::Racer), by outcome.
///
/// `requests` is the sum of:
/// - the requests in flight
/// - `cancelled`, `failed`, `cache_won` and `network_won`
/// - the requests that the cache answered without a race
/// - the requests of `cache_failed` that the origin answered
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Number of requests that were started.
    pub requests: u64,
    /// Number of requests that raced: they were sent to the origin while the cache could still answer.
    pub raced: u64,
    /// Number of races that the cache won, because it answered first or the origin failed.
    pub cache_won: u64,
    /// Number of races that the origin won: it answered before the cache answered or failed.
    pub network_won: u64,
    /// Number of races in which the cache did not fail. The request to the origin was then unnecessary. The budget of
    /// [`Policy::Percentile`] limits this number.
    pub extra: u64,
    /// Number of requests that did not race although they were late, because the budget was used up.
    pub withheld: u64,
    /// Number of requests for which the cache failed.
    pub cache_failed: u64,
    /// Number of requests that were sent to the origin, but that the origin failed to answer.
    pub origin_failed: u64,
    /// Number of requests that neither the cache nor the origin answered, because both failed.
    pub failed: u64,
    /// Number of requests that the caller dropped before there was an answer.
    pub cancelled: u64,
}

#[derive(Debug)]
pub(super) struct Ledger {
    policy: Policy,
    /// The amount that each request adds to the budget, in millionths of the cost of one request to the origin.
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
        // The amount is rounded down, so that the races never exceed the budget.
        let share = (budget * REQUEST as f64) as u64;
        Self { policy, share, saved: 0, late: Delay::new(quantile), counts: Counts::default() }
    }

    /// Returns the delay after which a new request counts as late and may race. `None` if the policy permits no race,
    /// or the delay is not known yet.
    pub fn delay(&self) -> Option<Duration> {
        match self.policy {
            Policy::Never | Policy::Throttled { .. } => None,
            Policy::Always => Some(Duration::ZERO),
            Policy::After(delay) => Some(delay),
            Policy::Percentile { .. } => self.late.current(),
        }
    }

    pub fn begin(&mut self) -> Option<Duration> {
        self.counts.requests += 1;
        self.saved = (self.saved + self.share).min(MOST_SAVED);
        self.delay()
    }

    /// Returns whether the budget permits a late request to race. If so, counts the race and takes its cost from the
    /// budget.
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

    /// Gives the cost of a race back to the budget. The cache failed, so the request had to go to the origin anyway.
    pub fn was_needed(&mut self) {
        self.counts.extra -= 1;
        if let Policy::Percentile { .. } = self.policy {
            self.saved = (self.saved + REQUEST).min(MOST_SAVED);
        }
    }

    /// Records that a request has waited for the cache for `time`. If `is_cut`, the request was dropped then; otherwise
    /// the cache answered. `delay` is the delay that was known when the request started.
    pub fn waited(&mut self, time: Duration, is_cut: bool, delay: Option<Duration>) {
        if let Policy::Percentile { .. } = self.policy {
            self.late.push(time, is_cut, delay);
        }
    }
}
