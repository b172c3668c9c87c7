//! Who says which block is next, and learns from each that came through.

use std::collections::VecDeque;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{LEAST_BYTES, Link, Observation, Plan, Room, Shape, fit};

/// Of a file of so many bytes or more, …
const LARGE_BYTES: u64 = 256_000_000;
/// … this share is moved before the plan is made, and of a smaller one as much as of that, …
const PROBED: f64 = 0.03;
/// … or at most this share.
const PROBED_OF_SMALL: f64 = 0.125;
/// Smaller blocks tell of latency alone.
const LEAST_PROBE_BYTES: u64 = 4 << 10;
/// Larger ones tell no more, and are slow where links are slow.
const MOST_PROBE_BYTES: u64 = 1 << 20;
/// How many of its small blocks would be one of its large ones, which tell the rate of a connection, …
const LARGER: u64 = 20;
/// … unless that lasted longer than so many latencies.
const LARGE_LATENCIES: f64 = 20.0;
/// So much of the probe is fixed. The rest keeps connections busy until there is a plan.
const SCRIPTED: f64 = 0.75;
/// So much of the fixed part is seen before there is a plan: the last ones may have been lost.
const ENOUGH: f64 = 0.9;
/// Another shape has to be better than this.
const WORTH_IT: f64 = 0.9;
/// What is kept of what was seen: the first ones, when few were under way, and the latest.
const KEPT: usize = 512;
/// How often the interval fits again what chance might have shown instead.
const RESAMPLES: usize = 60;
/// What a model can't know adds as much to either end of the interval.
const UNKNOWN: f64 = 0.05;

/// A block that was handed out, to be handed back.
#[derive(Debug)]
pub struct Ticket {
    /// Its size.
    pub bytes: u64,
    began_s: f64,
    began_area: f64,
}

/// What is moved to find out what the link is like.
#[derive(Debug)]
struct Probe {
    /// Blocks of the fixed part that were not handed out, and how many may be under way with each.
    script: VecDeque<(Size, usize)>,
    small_bytes: u64,
    large_bytes: u64,
    /// What is left of what may be probed.
    left_bytes: u64,
    /// How many blocks must be seen before there is a plan, …
    enough: usize,
    /// … and how many of these are large.
    large: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    Small,
    Large,
}

impl Probe {
    /// Small blocks over few connections, large ones among them; then small ones over as many as there may be.
    fn new(bytes: u64, room: &Room) -> Self {
        let most = room.max_concurrency;
        let few = most.div_ceil(4);
        let large = few.div_ceil(6);
        let small = 2 * few + 2 * most;
        let of_large = bytes.max(LARGE_BYTES) as f64 * PROBED;
        let left_bytes = of_large.min(bytes as f64 * if bytes < LARGE_BYTES { PROBED_OF_SMALL } else { PROBED });
        let small_bytes = (left_bytes * SCRIPTED) as u64 / (small as u64 + LARGER * large as u64);
        let small_bytes = small_bytes.min(MOST_PROBE_BYTES);
        let large_bytes = small_bytes * LARGER;
        let is_possible = small_bytes >= room.limits.min_block_bytes.max(LEAST_PROBE_BYTES)
            && large_bytes <= room.limits.max_block_bytes
            && small_bytes * most as u64 + large_bytes * large as u64 <= room.memory_bytes
            && small + large <= room.limits.max_blocks / 4;
        let mut script = VecDeque::new();
        if !is_possible {
            return Self { script, small_bytes: 0, large_bytes: 0, left_bytes: 0, enough: 2, large: 0 };
        }
        script.extend((0..2 * few).map(|_| (Size::Small, few)));
        // By then some of the second blocks of their connections are back, which say what is large.
        script.extend((0..large).map(|_| (Size::Large, few.div_ceil(2))));
        script.extend((0..2 * most).map(|_| (Size::Small, most)));
        let enough = (script.len() as f64 * ENOUGH) as usize;
        Self { script, small_bytes, large_bytes, left_bytes: left_bytes as u64, enough, large }
    }

    /// A large block is no larger than what tells the rate well, as far as small ones say what that is.
    fn limit_large(&mut self, seen: &[Observation], latency_s: Option<f64>) {
        let Some(latency_s) = latency_s else { return };
        let warm = seen.iter().filter(|one| !one.is_fresh);
        let Some(small_s) = warm.map(|one| one.seconds).min_by(f64::total_cmp) else { return };
        let bytes_per_s = self.small_bytes as f64 / (small_s - latency_s).max(small_s / 50.0);
        let most = (LARGE_LATENCIES * latency_s * bytes_per_s) as u64;
        self.large_bytes = self.large_bytes.min(most).max(3 * self.small_bytes);
    }

    /// The size of the next block, and how many may be under way with it; none once there is enough for a plan.
    fn next(&mut self, has_enough: bool) -> Option<(u64, usize)> {
        let (size, concurrency) = match self.script.front() {
            Some(next) => *next,
            None if has_enough || self.left_bytes < self.small_bytes.max(1) => return None,
            None => (Size::Small, usize::MAX),
        };
        Some((if size == Size::Large { self.large_bytes } else { self.small_bytes }, concurrency))
    }

    fn took(&mut self, bytes: u64) {
        self.script.pop_front();
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
    }
}

/// Hands out blocks: first small ones that find out what the link is like, then as planned; and plans again as it goes.
#[derive(Debug)]
pub struct Pilot {
    room: Room,
    left: u64,
    blocks: usize,
    probe: Probe,
    shape: Shape,
    seen: Vec<Observation>,
    /// When it was last fitted, in blocks seen.
    fitted: usize,
    latency_s: Option<f64>,
    fixed_s: f64,
    under_way: usize,
    under_way_bytes: u64,
    most_under_way: usize,
    /// The integral of `under_way` over time, up to `at_s`.
    area: f64,
    at_s: f64,
    /// When it was last asked for less.
    slowed_s: f64,
    count: usize,
    first: Option<Plan>,
    plan: Option<Plan>,
    random: Xoshiro256PlusPlus,
}

impl Pilot {
    /// For so many bytes. `latency_s` is what a request without a block takes, if that is known.
    #[must_use]
    pub fn new(bytes: u64, room: Room, latency_s: Option<f64>, seed: u64) -> Self {
        let most = room.max_concurrency;
        let probe = Probe::new(bytes, &room);
        // Without a probe, as many as latency asks for: what is near needs few.
        let far = 4.0 + latency_s.unwrap_or(0.025) / 0.0005;
        let least = room.least_block_bytes(bytes, room.limits.max_blocks).max(LEAST_BYTES);
        let shape = room.fitting(least, far.min(most as f64) as usize);
        Self {
            room,
            left: bytes,
            blocks: 0,
            probe,
            shape,
            seen: Vec::new(),
            fitted: 0,
            latency_s,
            fixed_s: 0.0,
            under_way: 0,
            under_way_bytes: 0,
            most_under_way: 0,
            area: 0.0,
            at_s: 0.0,
            slowed_s: f64::NEG_INFINITY,
            count: 0,
            first: None,
            plan: None,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// Begin and commit take this, together, each as much.
    pub fn fixed(&mut self, seconds: f64) {
        self.fixed_s = seconds;
    }

    /// The next block, if one should be under way now.
    pub fn take(&mut self, now_s: f64) -> Option<Ticket> {
        if self.left == 0 {
            return None;
        }
        let has_enough = self.probe.script.is_empty() && self.count >= self.probe.enough && self.large_are_back();
        if self.probe.script.front().is_some_and(|(size, _)| *size == Size::Large) {
            self.probe.limit_large(&self.seen, self.latency_s);
        }
        let next = if self.plan.is_some() { None } else { self.probe.next(has_enough) };
        let is_probing = next.is_some();
        if !is_probing && self.plan.is_none() && self.count >= self.probe.enough {
            self.replan(now_s);
        }
        let (block_bytes, concurrency) = next.unwrap_or((self.shape.block_bytes, self.shape.concurrency));
        if self.under_way >= concurrency.min(self.room.max_concurrency) {
            return None;
        }
        let blocks_left = self.room.limits.max_blocks.saturating_sub(self.blocks);
        let bytes = block_bytes.max(self.room.least_block_bytes(self.left, blocks_left)).min(self.left);
        if is_probing {
            self.probe.took(bytes);
        }
        (self.left, self.blocks) = (self.left - bytes, self.blocks + 1);
        Some(self.hand_out(bytes, now_s))
    }

    /// A block that was handed out by another pilot, if one should be under way now.
    pub fn take_again(&mut self, bytes: u64, now_s: f64) -> Option<Ticket> {
        let few = self.probe.script.front().map_or(self.shape.concurrency, |(_, concurrency)| *concurrency);
        if self.under_way >= few.min(self.room.max_concurrency) {
            return None;
        }
        self.blocks += 1;
        Some(self.hand_out(bytes, now_s))
    }

    fn hand_out(&mut self, bytes: u64, now_s: f64) -> Ticket {
        self.pass(now_s);
        (self.under_way, self.under_way_bytes) = (self.under_way + 1, self.under_way_bytes + bytes);
        self.most_under_way = self.most_under_way.max(self.under_way);
        Ticket { bytes, began_s: now_s, began_area: self.area }
    }

    /// A block is through. It says something of the link if it went straight through; then `connecting_s` is how long
    /// its connection took to make, where it was a new one.
    pub fn done(&mut self, ticket: &Ticket, now_s: f64, went: Option<Option<f64>>) {
        self.pass(now_s);
        self.under_way -= 1;
        self.under_way_bytes -= ticket.bytes;
        self.count += 1;
        let Some(connecting_s) = went else { return };
        let all_s = now_s - ticket.began_s;
        let in_flight = if all_s > 0.0 { (self.area - ticket.began_area) / all_s } else { 1.0 };
        let seconds = (all_s - connecting_s.unwrap_or(0.0)).max(1e-9);
        self.seen.push(Observation { bytes: ticket.bytes, seconds, in_flight, is_fresh: connecting_s.is_some() });
        if self.seen.len() > KEPT {
            self.seen.drain(KEPT / 2..KEPT * 3 / 4);
        }
        if self.plan.is_some() && self.count >= self.fitted + self.shape.concurrency.max(8) {
            self.replan(now_s);
        }
    }

    /// The store asked for less, over this block: fewer at once from now on. Blocks that were under way when it last
    /// did were turned away together, and count once.
    pub fn slow_down(&mut self, ticket: &Ticket) {
        if ticket.began_s < self.slowed_s {
            return;
        }
        self.slowed_s = self.at_s;
        self.room.max_concurrency = (self.under_way * 3 / 4).clamp(1, self.room.max_concurrency);
        self.shape.concurrency = self.shape.concurrency.min(self.room.max_concurrency);
    }

    /// The plan as it was first made.
    #[must_use]
    pub fn first(&self) -> Option<&Plan> {
        self.first.as_ref()
    }

    /// The plan as it is now.
    #[must_use]
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// What is not handed out yet.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Whether the large blocks of the probe have been seen.
    fn large_are_back(&self) -> bool {
        self.seen.iter().filter(|one| one.bytes >= 3 * self.probe.small_bytes).count() >= self.probe.large
    }

    fn pass(&mut self, now_s: f64) {
        self.area += self.under_way as f64 * (now_s - self.at_s).max(0.0);
        self.at_s = self.at_s.max(now_s);
    }

    fn replan(&mut self, now_s: f64) {
        self.fitted = self.count;
        let Some(link) = fit(&self.seen, self.latency_s, self.fixed_s) else { return };
        let chosen = link.choose(self.left.max(1), &self.room);
        let is_first = self.plan.is_none();
        let better =
            |one: Shape, other: Shape| link.seconds(self.left, one) < WORTH_IT * link.seconds(self.left, other);
        if is_first {
            self.shape = chosen;
        } else if self.left > 0 {
            // Never fewer at once: what looks like a ceiling may be a connection that has become slower.
            let chosen = self.room.fitting(chosen.block_bytes, chosen.concurrency.max(self.shape.concurrency));
            if better(chosen, self.shape) {
                self.shape = chosen;
            }
        }
        let expected_s = self.ahead_s(&link, now_s);
        let mut might = Vec::with_capacity(RESAMPLES);
        for _ in 0..RESAMPLES {
            let drawn: Vec<Observation> =
                (0..self.seen.len()).map(|_| self.seen[self.random.random_range(..self.seen.len())]).collect();
            might.extend(fit(&drawn, self.latency_s, self.fixed_s).map(|link| self.ahead_s(&link, now_s)));
        }
        might.sort_by(f64::total_cmp);
        let at = |share: f64| might.get((share * might.len() as f64) as usize).copied().unwrap_or(expected_s);
        let rest_s = expected_s - now_s;
        let low_s = at(0.05).min(expected_s) - UNKNOWN * rest_s;
        let high_s = at(0.95).max(expected_s) + UNKNOWN * rest_s;
        let plan = Plan { shape: self.shape, expected_s, low_s, high_s, link };
        self.plan = Some(plan);
        self.first.get_or_insert(plan);
    }

    /// When all will be through: what is under way is half through on average, and half of the fixed cost is the
    /// commit's.
    fn ahead_s(&self, link: &Link, now_s: f64) -> f64 {
        let rest = self.left + self.under_way_bytes / 2;
        let has_new = self.shape.concurrency > self.most_under_way;
        let fresh_s = if has_new { link.fresh_s } else { 0.0 };
        now_s + link.fixed_s / 2.0 + fresh_s + link.streaming_s(rest, self.shape, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Integrity, Limits};

    #[test]
    fn a_burst_of_refusals_counts_once() {
        let limits = Limits {
            min_block_bytes: 1,
            max_block_bytes: 1 << 40,
            max_blocks: 10_000,
            max_put_bytes: 1 << 40,
            integrity: Integrity::Blocks,
        };
        let room = Room { limits, memory_bytes: 1 << 30, max_concurrency: 64 };
        let mut pilot = Pilot::new(1 << 40, room, Some(0.1), 0);
        pilot.probe.script.clear();
        pilot.probe.left_bytes = 0;
        let burst = |pilot: &mut Pilot, now_s: f64| {
            let tickets: Vec<Ticket> = std::iter::from_fn(|| pilot.take(now_s)).collect();
            for ticket in &tickets {
                pilot.done(ticket, now_s + 0.5, None);
                pilot.slow_down(ticket);
            }
            tickets.len()
        };
        assert_eq!([burst(&mut pilot, 0.0), burst(&mut pilot, 1.0), burst(&mut pilot, 2.0)], [64, 47, 34]);
    }
}
