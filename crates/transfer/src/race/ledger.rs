//! What all requests share: what was counted, what may still be spent, and after how long the cache is late.

use std::time::Duration;

use super::Policy;
use super::delay::Delay;

/// What a request to the origin costs: budgets are counted in millionths of it, so that no rounding adds up.
const REQUEST: u64 = 1_000_000;
/// As [`Policy::Percentile`] has it.
const MOST_SAVED: u64 = 100 * REQUEST;

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

    /// The cache was waited for that long: until it answered, or nobody waited any longer. The request was to race after
    /// that delay.
    pub fn waited(&mut self, time: Duration, is_cut: bool, delay: Option<Duration>) {
        if let Policy::Percentile { .. } = self.policy {
            self.late.push(time, is_cut, delay);
        }
    }
}
