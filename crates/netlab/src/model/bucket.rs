//! Tokens, spent on what is sent and filled up at a rate.

use super::{nanobits, ns_for};

/// A token bucket: full at first, it lets a burst through and then no more than it is filled with.
///
/// A segment may go when the bucket has tokens for all of it; one that is larger than the bucket goes when that is
/// full, and what follows pays for the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// How much it holds.
    pub burst_bytes: u64,
    /// How fast it is filled, also while tokens are spent.
    pub rate_bits_per_s: u64,
}

/// What is in a bucket at a moment, in nanobits.
#[derive(Clone, Debug)]
pub(super) struct Tokens {
    rate_bits_per_s: u64,
    capacity: i128,
    /// Below zero after a segment that is larger than the bucket.
    held: i128,
    at_ns: u64,
}

impl Tokens {
    pub fn new(bucket: TokenBucket) -> Self {
        let capacity = nanobits(bucket.burst_bytes).cast_signed();
        Self { rate_bits_per_s: bucket.rate_bits_per_s, capacity, held: capacity, at_ns: 0 }
    }

    fn held_at(&self, at_ns: u64) -> i128 {
        let elapsed_ns = i128::from(at_ns.saturating_sub(self.at_ns));
        let filled = elapsed_ns.saturating_mul(i128::from(self.rate_bits_per_s));
        self.held.saturating_add(filled).min(self.capacity)
    }

    /// When as much may go, at `at_ns` or later.
    pub fn ready_ns(&self, at_ns: u64, nanobits: u128) -> u64 {
        let missing = self.capacity.min(nanobits.cast_signed()).saturating_sub(self.held_at(at_ns));
        at_ns.saturating_add(u128::try_from(missing).map_or(0, |missing| ns_for(missing, self.rate_bits_per_s)))
    }

    /// Spends as much at that moment, which is not before the latest.
    pub fn spend(&mut self, at_ns: u64, nanobits: u128) {
        self.held = self.held_at(at_ns).saturating_sub(nanobits.cast_signed());
        self.at_ns = at_ns;
    }
}
