//! One direction of a link: its conditions, and the outcome for each segment.

use std::collections::VecDeque;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Flow;
use super::shaping::{Throttle, Throttling, TokenBucket, Tokens, Wire, nanobits};
use crate::Error;

/// The conditions of one direction of a link. By default there is no delay, no rate limit and no loss, so every segment
/// arrives immediately.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditions {
    /// Propagation delay: the time from when the last bit of a segment is sent until the segment arrives. If both
    /// directions have the same delay, the round-trip time is twice this delay.
    pub delay: Duration,
    /// Rate at which segments are sent. With `None`, each segment is sent immediately.
    pub rate_bits_per_s: Option<u64>,
    /// Number of bytes that may wait in the queue, in addition to the segment that is being sent. A segment that does
    /// not fit is dropped. With 0, a segment arrives only if it can be sent immediately.
    pub queue_bytes: usize,
    /// Probability that a segment is lost, from 0 to 1. The losses of different segments are independent.
    pub loss: f64,
    /// Indexes of segments that are lost in addition to the random losses. The first offered segment has index 0.
    pub lost: Vec<u64>,
    /// Token bucket that allows bursts, as on machines whose network is fast until a credit is used up. `None` for a
    /// line without a token bucket.
    pub bucket: Option<TokenBucket>,
    /// Throttle that imitates a provider: it limits the rate of all flows except favoured ones. With `None`, no flow is
    /// throttled.
    pub throttle: Option<Throttle>,
    /// Seed of the random numbers for losses. With the same seed, the same segments are lost.
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
    /// Returns whether the outcome for a segment may depend on the segment's flow, as with a throttle. If not, the
    /// carrier need not determine the flow of each segment.
    pub fn tell_flows_apart(&self) -> bool {
        self.throttle.is_some()
    }

    fn check(&self) -> Result<(), Error> {
        let throttle = self.throttle.as_ref().map(|throttle| throttle.bucket.rate_bits_per_s);
        let rates = [
            ("the link's rate", self.rate_bits_per_s),
            ("the rate at which the bucket is filled", self.bucket.map(|bucket| bucket.rate_bits_per_s)),
            ("the throttle's rate", throttle),
        ];
        if let Some((what, _)) = rates.into_iter().find(|(_, rate)| *rate == Some(0)) {
            let why = "0 bits per second, so nothing would ever arrive; give a rate, or leave it out";
            return Err(Error::Invalid(format!("{what} is {why}")));
        }
        if !(0.0..=1.0).contains(&self.loss) {
            let loss = self.loss;
            return Err(Error::Invalid(format!("the loss {loss} is out of range; give a number from 0 to 1")));
        }
        Ok(())
    }
}

/// The outcome for a segment that was offered to a [`Line`] (one direction of a link).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The segment arrives at this time, in nanoseconds. A segment arrives no earlier than the segments that were
    /// offered before it.
    Due(u64),
    /// The segment never arrives, for this reason.
    Dropped(Why),
}

/// The reason why a segment never arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The segment exceeds the rate limit of the [`Throttle`].
    Throttled,
    /// The segment would have to wait, and the queue has no room.
    QueueFull,
    /// The segment is lost at random, or because [`Conditions::lost`] lists its index.
    Lost,
}

/// A count of segments, and the sum of their sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of segments.
    pub segments: u64,
    /// Sum of the segments' sizes, in bytes.
    pub bytes: u64,
}

/// The segments that were offered to a [`Line`], in total and by outcome. Each segment in `offered` is also counted in
/// one of the other fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Segments that were offered to the line.
    pub offered: Tally,
    /// Segments that arrive at the other side of the link.
    pub due: Tally,
    /// Segments that the throttle dropped.
    pub throttled: Tally,
    /// Segments that were dropped because the queue had no room.
    pub queue_full: Tally,
    /// Segments that were lost after they had been sent, at random or because [`Conditions::lost`] lists them.
    pub lost: Tally,
}

/// One direction of a link under its [`Conditions`]. It computes the arrival time of each segment that is offered to
/// it.
#[derive(Clone, Debug)]
pub struct Line {
    delay_ns: u64,
    throttling: Option<Throttling>,
    queue: Queue,
    tokens: Option<Tokens>,
    wire: Wire,
    loss: f64,
    /// The sorted indexes of the segments that are lost in addition to the random losses.
    lost: Vec<u64>,
    chance: Xoshiro256PlusPlus,
    now_ns: u64,
    counts: Counts,
}

impl Line {
    /// Creates a line to which nothing has been offered yet.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if a rate is zero or the loss is not between 0 and 1.
    pub fn new(conditions: &Conditions) -> Result<Self, Error> {
        conditions.check()?;
        let mut lost = conditions.lost.clone();
        lost.sort_unstable();
        Ok(Self {
            delay_ns: u64::try_from(conditions.delay.as_nanos()).unwrap_or(u64::MAX),
            throttling: conditions.throttle.as_ref().map(Throttling::new),
            queue: Queue { limit_bytes: conditions.queue_bytes as u64, bytes: 0, waiting: VecDeque::new() },
            tokens: conditions.bucket.map(Tokens::new),
            wire: Wire::new(conditions.rate_bits_per_s),
            loss: conditions.loss,
            lost,
            chance: Xoshiro256PlusPlus::seed_from_u64(conditions.seed),
            now_ns: 0,
            counts: Counts::default(),
        })
    }

    /// Offers a segment to the line at the time `now_ns`, and returns the outcome. An empty segment counts as one byte.
    pub fn offer(&mut self, now_ns: u64, segment_bytes: usize, flow: Flow) -> Fate {
        self.now_ns = self.now_ns.max(now_ns);
        let bytes = segment_bytes.max(1) as u64;
        let number = self.counts.offered.segments;
        let fate = self.fate(number, bytes, &flow);
        let tally = match fate {
            Fate::Due(_) => &mut self.counts.due,
            Fate::Dropped(Why::Throttled) => &mut self.counts.throttled,
            Fate::Dropped(Why::QueueFull) => &mut self.counts.queue_full,
            Fate::Dropped(Why::Lost) => &mut self.counts.lost,
        };
        for tally in [tally, &mut self.counts.offered] {
            tally.segments += 1;
            tally.bytes = tally.bytes.saturating_add(bytes);
        }
        fate
    }

    /// Returns the counts of the segments that were offered so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the number of bytes that wait in the queue at the time `now_ns`. The segment that is being sent does not
    /// count.
    pub fn waiting_bytes(&mut self, now_ns: u64) -> u64 {
        self.now_ns = self.now_ns.max(now_ns);
        self.queue.at(self.now_ns).bytes
    }

    fn fate(&mut self, number: u64, bytes: u64, flow: &Flow) -> Fate {
        let (now_ns, work) = (self.now_ns, nanobits(bytes));
        // A random number is drawn for every segment, even for one that is dropped below. So the same seed loses the
        // same segments under other conditions, too.
        let is_lost = self.chance.random_bool(self.loss) || self.lost.binary_search(&number).is_ok();
        if self.throttling.as_mut().is_some_and(|throttling| !throttling.lets_through(now_ns, work, flow)) {
            return Fate::Dropped(Why::Throttled);
        }
        let free_ns = now_ns.max(self.wire.free_ns);
        let begins_ns = self.tokens.as_ref().map_or(free_ns, |tokens| tokens.ready_ns(free_ns, work));
        if begins_ns > now_ns && !self.queue.at(now_ns).takes(begins_ns, bytes) {
            return Fate::Dropped(Why::QueueFull);
        }
        if let Some(tokens) = &mut self.tokens {
            tokens.spend(begins_ns, work);
        }
        let sent_ns = self.wire.send(begins_ns, work);
        if is_lost { Fate::Dropped(Why::Lost) } else { Fate::Due(sent_ns.saturating_add(self.delay_ns)) }
    }
}

/// The segments that wait to be sent on a line.
#[derive(Clone, Debug)]
struct Queue {
    limit_bytes: u64,
    bytes: u64,
    /// For each segment, the time at which it begins to be sent, and its size in bytes.
    waiting: VecDeque<(u64, u64)>,
}

impl Queue {
    /// Removes the segments that are no longer waiting at `now_ns` because their transmission has begun, and returns
    /// the queue. `now_ns` must not decrease from call to call.
    fn at(&mut self, now_ns: u64) -> &mut Self {
        while let Some(&(begins_ns, bytes)) = self.waiting.front()
            && begins_ns <= now_ns
        {
            self.waiting.pop_front();
            self.bytes -= bytes;
        }
        self
    }

    /// Queues a segment that begins to be sent at `begins_ns`, if the queue has room. Returns whether it had room.
    fn takes(&mut self, begins_ns: u64, bytes: u64) -> bool {
        let fits = bytes <= self.limit_bytes - self.bytes;
        if fits {
            self.bytes += bytes;
            self.waiting.push_back((begins_ns, bytes));
        }
        fits
    }
}
