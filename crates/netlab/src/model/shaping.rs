//! Traffic shaping and policing: delays or drops segments to enforce a rate.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Number of nanobits in a byte. Segment sizes are counted in nanobits, because a rate of one bit per second is one
/// nanobit per nanosecond.
const NANOBITS_PER_BYTE: u128 = 8_000_000_000;

/// Returns the size of a segment in nanobits. The result is below 2^97, so it cannot overflow.
pub(super) fn nanobits(bytes: u64) -> u128 {
    u128::from(bytes) * NANOBITS_PER_BYTE
}

/// Returns the time that it takes to send this number of nanobits at a rate. It is rounded up to whole nanoseconds.
fn ns_for(nanobits: u128, rate_bits_per_s: u64) -> u64 {
    u64::try_from(nanobits.div_ceil(u128::from(rate_bits_per_s))).unwrap_or(u64::MAX)
}

/// A wire that sends one segment after the other at a rate. Its rounding errors do not add up.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    /// Rate of the wire. With `None`, every segment is sent immediately.
    rate_bits_per_s: Option<u64>,
    /// Time at which the latest segment is completely sent, rounded up to whole nanoseconds.
    pub free_ns: u64,
    /// Number of further nanobits that the wire could still send in the last nanosecond before `free_ns`. This number
    /// is less than what the wire sends in a nanosecond.
    spare_nanobits: u128,
}

impl Wire {
    pub fn new(rate_bits_per_s: Option<u64>) -> Self {
        Self { rate_bits_per_s, free_ns: 0, spare_nanobits: 0 }
    }

    /// Sends a segment of this size on the wire from the time `begins_ns` on. Returns the time at which it is
    /// completely sent. `begins_ns` must not be before `free_ns`.
    pub fn send(&mut self, begins_ns: u64, nanobits: u128) -> u64 {
        // Only a segment that follows immediately can use the rest of the last nanosecond.
        let spare = if begins_ns == self.free_ns { self.spare_nanobits } else { 0 };
        self.free_ns = begins_ns;
        if let Some(rate) = self.rate_bits_per_s {
            let needed = nanobits.saturating_sub(spare);
            let takes_ns = ns_for(needed, rate);
            self.free_ns = begins_ns.saturating_add(takes_ns);
            // The difference is negative only if the time was limited to `u64::MAX`.
            self.spare_nanobits = (u128::from(takes_ns) * u128::from(rate) + spare).saturating_sub(nanobits);
        }
        self.free_ns
    }
}

/// A token bucket. It is full at first, so it lets a burst through. After that it limits traffic to the rate at which
/// it is filled.
///
/// A segment passes when the bucket has tokens for all of it. A segment larger than the bucket passes when the bucket
/// is full. The segments after it wait until the missing tokens have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// Capacity of the bucket, in bytes. It is the size of the largest burst.
    pub burst_bytes: u64,
    /// Rate at which the bucket is filled. Filling continues while tokens are spent.
    pub rate_bits_per_s: u64,
}

/// The tokens of a [`TokenBucket`] at the time `at_ns`. One token allows one nanobit of traffic.
#[derive(Clone, Debug)]
pub(super) struct Tokens {
    rate_bits_per_s: u64,
    capacity: i128,
    /// Number of tokens at the time `at_ns`. It is negative after a segment that is larger than the bucket.
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

    /// Returns the earliest time at which the bucket has enough tokens for a segment of this size. It is not before
    /// `at_ns`.
    pub fn ready_ns(&self, at_ns: u64, nanobits: u128) -> u64 {
        let missing = self.capacity.min(nanobits.cast_signed()).saturating_sub(self.held_at(at_ns));
        at_ns.saturating_add(u128::try_from(missing).map_or(0, |missing| ns_for(missing, self.rate_bits_per_s)))
    }

    /// Spends the tokens for a segment of this size. `at_ns` must not decrease from call to call.
    pub fn spend(&mut self, at_ns: u64, nanobits: u128) {
        self.held = self.held_at(at_ns).saturating_sub(nanobits.cast_signed());
        self.at_ns = at_ns;
    }
}

/// The source and the destination of a segment. Ports are 0 if the protocol has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Address and port of the sender.
    pub source: SocketAddr,
    /// Address and port of the receiver.
    pub destination: SocketAddr,
}

/// An endpoint whose traffic a provider does not limit. A field that is `None` matches any value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Favoured {
    /// IP address of the endpoint; `None` for any address.
    pub address: Option<IpAddr>,
    /// Port of the endpoint; `None` for any port.
    pub port: Option<u16>,
}

impl Favoured {
    /// Returns whether the flow comes from this endpoint or goes to it. So both directions of a connection are
    /// favoured.
    pub fn takes_part_in(&self, flow: &Flow) -> bool {
        let is_it = |end: SocketAddr| {
            self.address.is_none_or(|address| address == end.ip()) && self.port.is_none_or(|port| port == end.port())
        };
        is_it(flow.source) || is_it(flow.destination)
    }
}

/// Imitates a provider that drops traffic above a rate. Favoured flows are never dropped. With `lifted_for_all`, no
/// flow is dropped while a favoured flow is active.
#[derive(Clone, Debug, PartialEq)]
pub struct Throttle {
    /// Rate limit that all flows share, except for favoured flows.
    pub bucket: TokenBucket,
    /// Endpoints whose flows are favoured, so that they have no limit.
    pub favoured: Vec<Favoured>,
    /// Time after each segment of a favoured flow during which no flow is limited. With `None`, only favoured flows are
    /// not limited.
    pub lifted_for_all: Option<Duration>,
}

/// The state of a [`Throttle`], which drops the traffic above a rate.
#[derive(Clone, Debug)]
pub(super) struct Throttling {
    throttle: Throttle,
    tokens: Tokens,
    lifted_until_ns: Option<u64>,
}

impl Throttling {
    pub fn new(throttle: &Throttle) -> Self {
        Self { throttle: throttle.clone(), tokens: Tokens::new(throttle.bucket), lifted_until_ns: None }
    }

    /// Returns whether the throttle lets a segment through. The segments of favoured flows spend no tokens. While the
    /// limit is lifted for all flows, the segments of other flows spend no tokens either.
    pub fn lets_through(&mut self, now_ns: u64, nanobits: u128, flow: &Flow) -> bool {
        if self.throttle.favoured.iter().any(|favoured| favoured.takes_part_in(flow)) {
            let until_ns = |time: Duration| u128::from(now_ns).saturating_add(time.as_nanos());
            let until_ns = self.throttle.lifted_for_all.map(until_ns);
            self.lifted_until_ns = until_ns.map(|until_ns| u64::try_from(until_ns).unwrap_or(u64::MAX));
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
