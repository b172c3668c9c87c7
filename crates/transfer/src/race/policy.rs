use std::time::Duration;

use super::delay::MOST_QUANTILE;
use crate::Error;

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

impl Policy {
    /// Whether it is one.
    pub(super) fn check(self) -> Result<Self, Error> {
        let error = |what: String| Err(Error::Request(what));
        match self {
            Self::Percentile { quantile, .. } if !(quantile > 0.0 && quantile < 1.0) => {
                error(format!("a race's quantile is between 0 and 1, and not {quantile}"))
            }
            Self::Percentile { quantile, .. } if quantile > MOST_QUANTILE => error(format!(
                "a race's quantile is at most {MOST_QUANTILE}, and not {quantile}: too few would be late to tell when one is"
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
