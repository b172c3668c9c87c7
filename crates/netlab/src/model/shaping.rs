//! Traffic shaping and policing: what holds segments back, or drops them, for the sake of a rate.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Work is counted in nanobits: a rate in bits a second is as many of them a nanosecond.
const NANOBITS_PER_BYTE: u128 = 8_000_000_000;

/// A segment's work. It fits into 97 bits.
pub(super) fn nanobits(bytes: u64) -> u128 {
    u128::from(bytes) * NANOBITS_PER_BYTE
}

/// How long that much work takes, rounded up.
fn ns_for(nanobits: u128, rate_bits_per_s: u64) -> u64 {
    u64::try_from(nanobits.div_ceil(u128::from(rate_bits_per_s))).unwrap_or(u64::MAX)
}

/// What sends segments at a rate, without rounding errors that add up.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    /// Without, everything is sent at once.
    rate_bits_per_s: Option<u64>,
    /// When it is done with what it was given, in whole nanoseconds.
    pub free_ns: u64,
    /// What of that nanosecond is left: less than the rate.
    spare_nanobits: u128,
}

impl Wire {
    pub fn new(rate_bits_per_s: Option<u64>) -> Self {
        Self { rate_bits_per_s, free_ns: 0, spare_nanobits: 0 }
    }

    /// Begins to send a segment, once it is free, and says when it is done.
    pub fn send(&mut self, begins_ns: u64, nanobits: u128) -> u64 {
        // What is left of a nanosecond is for the segment that follows at once.
        let spare = if begins_ns == self.free_ns { self.spare_nanobits } else { 0 };
        self.free_ns = begins_ns;
        if let Some(rate) = self.rate_bits_per_s {
            let needed = nanobits.saturating_sub(spare);
            let takes_ns = ns_for(needed, rate);
            self.free_ns = begins_ns.saturating_add(takes_ns);
            // Less than nothing only at the end of time.
            self.spare_nanobits = (u128::from(takes_ns) * u128::from(rate) + spare).saturating_sub(nanobits);
        }
        self.free_ns
    }
}

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

/// From where to where a segment goes. Where a protocol has no ports they are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Who sent it.
    pub source: SocketAddr,
    /// Whom it is for.
    pub destination: SocketAddr,
}

/// Whom a provider favours: what is left out may be anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Favoured {
    /// Its address.
    pub address: Option<IpAddr>,
    /// Its port.
    pub port: Option<u16>,
}

impl Favoured {
    /// Whether it is at either end of the flow: answers are favoured like questions.
    #[must_use]
    pub fn takes_part_in(&self, flow: &Flow) -> bool {
        let is_it = |end: SocketAddr| {
            self.address.is_none_or(|address| address == end.ip()) && self.port.is_none_or(|port| port == end.port())
        };
        is_it(flow.source) || is_it(flow.destination)
    }
}

/// A provider that drops what exceeds a rate, and favours some: those flows alone are let through, or, while there is
/// such a flow, every flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Throttle {
    /// What flows are held back to, all of them together.
    pub bucket: TokenBucket,
    /// With whom flows are let through.
    pub favoured: Vec<Favoured>,
    /// Lets every flow through until that long after the latest segment of a favoured one.
    pub lifted_for_all: Option<Duration>,
}

/// A throttle at work.
#[derive(Clone, Debug)]
pub(super) struct Throttling {
    tokens: Tokens,
    favoured: Vec<Favoured>,
    lifted_for_all_ns: Option<u64>,
    lifted_until_ns: Option<u64>,
}

impl Throttling {
    pub fn new(throttle: &Throttle) -> Self {
        let lifted_for_all = throttle.lifted_for_all;
        Self {
            tokens: Tokens::new(throttle.bucket),
            favoured: throttle.favoured.clone(),
            lifted_for_all_ns: lifted_for_all.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
            lifted_until_ns: None,
        }
    }

    /// Whether it lets a segment through; what is favoured costs no tokens.
    pub fn lets_through(&mut self, now_ns: u64, nanobits: u128, flow: &Flow) -> bool {
        if self.favoured.iter().any(|favoured| favoured.takes_part_in(flow)) {
            self.lifted_until_ns = self.lifted_for_all_ns.map(|time_ns| now_ns.saturating_add(time_ns));
            return true;
        }
        if self.lifted_until_ns.is_some_and(|until_ns| now_ns <= until_ns) {
            return true;
        }
        let conforms = self.tokens.ready_ns(now_ns, nanobits) == now_ns;
        if conforms {
            self.tokens.spend(now_ns, nanobits);
        }
        conforms
    }
}
