//! What one direction of a link is like.

use std::time::Duration;

use super::{Throttle, TokenBucket};
use crate::Error;

/// The conditions of one direction of a link. By default there are none: everything arrives at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditions {
    /// How long a segment is under way once it was sent: half a round trip, where both directions are alike.
    pub delay: Duration,
    /// How fast segments are sent; without, at once.
    pub rate_bits_per_s: Option<u64>,
    /// How much may wait to be sent, besides the segment that is being sent: a queue of nothing still lets one segment
    /// after the other through. What does not fit is dropped as it comes.
    pub queue_bytes: usize,
    /// The share of segments that are lost, each by a chance of its own.
    pub loss: f64,
    /// Segments that are lost besides, counted from 0 as they are offered.
    pub lost: Vec<u64>,
    /// Credit for bursts, as with machines whose network is fast until it is used up.
    pub bucket: Option<TokenBucket>,
    /// A provider that holds back all flows but some.
    pub throttle: Option<Throttle>,
    /// What chance is drawn from: the same seed loses the same segments.
    pub seed: u64,
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            rate_bits_per_s: None,
            queue_bytes: 1 << 20,
            loss: 0.0,
            lost: Vec::new(),
            bucket: None,
            throttle: None,
            seed: 0,
        }
    }
}

impl Conditions {
    /// Whether a carrier has to look at what it carries: without a throttle every flow is alike.
    #[must_use]
    pub fn tell_flows_apart(&self) -> bool {
        self.throttle.is_some()
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let throttle = self.throttle.as_ref().map(|throttle| throttle.bucket.rate_bits_per_s);
        let rates = [
            ("the link's rate", self.rate_bits_per_s),
            ("the rate at which the bucket is filled", self.bucket.map(|bucket| bucket.rate_bits_per_s)),
            ("the throttle's rate", throttle),
        ];
        if let Some((what, _)) = rates.into_iter().find(|(_, rate)| *rate == Some(0)) {
            return Err(Error::NoRate { what });
        }
        if !(0.0..=1.0).contains(&self.loss) {
            return Err(Error::NotAShare { loss: self.loss });
        }
        Ok(())
    }
}
