//! One direction of a link at work.

use std::collections::VecDeque;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::shaping::{Throttling, Tokens, Wire, nanobits};
use super::{Conditions, Flow};
use crate::Error;

/// What becomes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives at this moment, in nanoseconds; never before one that was offered earlier.
    Due(u64),
    /// It never arrives.
    Dropped(Why),
}

/// Why a segment never arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// It exceeds what the provider lets through.
    Throttled,
    /// It would have to wait, and there is no room.
    QueueFull,
    /// It was lost on the wire.
    Lost,
}

/// Segments, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub segments: u64,
    /// Their sizes together.
    pub bytes: u64,
}

/// What a line did: each segment that was offered is in one of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// What it was given.
    pub offered: Tally,
    /// What arrives.
    pub due: Tally,
    /// What the provider dropped.
    pub throttled: Tally,
    /// What the queue had no room for.
    pub queue_full: Tally,
    /// What was lost on the wire.
    pub lost: Tally,
}

/// One direction of a link under its [`Conditions`]: it says of each segment that it is offered when that arrives.
#[derive(Clone, Debug)]
pub struct Line {
    delay_ns: u64,
    throttling: Option<Throttling>,
    queue: Queue,
    tokens: Option<Tokens>,
    wire: Wire,
    loss: f64,
    /// Sorted.
    lost: Vec<u64>,
    chance: Xoshiro256PlusPlus,
    now_ns: u64,
    counts: Counts,
}

impl Line {
    /// A line on which nothing has been sent yet.
    ///
    /// # Errors
    /// [`Error::NoRate`] and [`Error::NotAShare`], where the conditions mean nothing.
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

    /// Offers a segment at this moment. An empty one counts as a byte.
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

    /// What it did so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What waits to be sent at this moment, besides the segment that is being sent.
    pub fn waiting_bytes(&mut self, now_ns: u64) -> u64 {
        self.now_ns = self.now_ns.max(now_ns);
        self.queue.at(self.now_ns).bytes
    }

    fn fate(&mut self, number: u64, bytes: u64, flow: &Flow) -> Fate {
        let (now_ns, work) = (self.now_ns, nanobits(bytes));
        // Chance is drawn for every segment, so that other conditions leave those alone which a seed loses.
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

/// What waits to be sent.
#[derive(Clone, Debug)]
struct Queue {
    limit_bytes: u64,
    bytes: u64,
    /// When each segment's turn is, and its size.
    waiting: VecDeque<(u64, u64)>,
}

impl Queue {
    /// The queue at this moment, which is not before the latest.
    fn at(&mut self, now_ns: u64) -> &mut Self {
        while let Some(&(begins_ns, bytes)) = self.waiting.front()
            && begins_ns <= now_ns
        {
            self.waiting.pop_front();
            self.bytes -= bytes;
        }
        self
    }

    /// Takes a segment that has to wait, where there is room for it.
    fn takes(&mut self, begins_ns: u64, bytes: u64) -> bool {
        let fits = bytes <= self.limit_bytes - self.bytes;
        if fits {
            self.bytes += bytes;
            self.waiting.push_back((begins_ns, bytes));
        }
        fits
    }
}
