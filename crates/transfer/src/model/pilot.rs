//! Who says which block is next, and learns from each that came through.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::fit::{CROWDED, Fitted, fit_all, median};
use super::probe::{Next, PROBED, Probe};
use super::{AS_GOOD, FAST_BYTES_PER_S, LEAST_BYTES, Link, Observation, Plan, Room, Shape, is_near};

/// Another shape has to be better than this.
const WORTH_IT: f64 = 0.9;
/// What is kept of what was seen: the first ones, when few were under way, and the latest.
const KEPT: usize = 512;
/// What is near and takes no small blocks begins over so many connections.
const FEW: usize = 4;
/// Without a probe the first blocks are no larger: what comes back tells whether the next ones should be.
const FIRST_BYTES: u64 = 1 << 20;
/// What is near begins with such blocks over one connection, which may be all that both ends can do: so many, of which
/// one may be late, …
const NEAR_BYTES: u64 = 256 << 10;
const NEAR_BLOCKS: usize = 3;
/// … and then with as large ones, which tell what a request costs whatever its size, …
const LARGER_BYTES: u64 = 1 << 20;
const LARGER_BLOCKS: usize = 3;
/// … if small ones take no longer than that.
const SHORT_S: f64 = 0.02;
/// What is near is foretold from no fewer blocks than that, where they may be so small.
const FORETELLING: u64 = 8;
/// How often the interval fits again what chance might have shown instead.
const RESAMPLES: usize = 60;
/// What a model can't know adds this share of the time that is left to either end of the interval.
const UNKNOWN: f64 = 0.1;
/// The spread of a few blocks says too little of what others would have shown: by so many divided by how many.
const SO_FEW: f64 = 16.0;

/// A block that was handed out, to be handed back.
#[derive(Debug)]
pub struct Ticket {
    /// Its size.
    pub bytes: u64,
    is_one_of_few: bool,
    began_s: f64,
    began_area: f64,
}

/// Hands out blocks: first small ones that find out what the link is like, then as planned; and plans again as it goes.
#[derive(Debug)]
pub struct Pilot {
    room: Room,
    bytes: u64,
    left: u64,
    back_bytes: u64,
    /// When the first block was handed out.
    began_s: f64,
    blocks: usize,
    probe: Probe,
    /// Without a probe, how many blocks must be back before there is a plan.
    first_round: usize,
    shape: Shape,
    seen: Vec<Observation>,
    /// When it was last fitted, in blocks seen.
    fitted: usize,
    latency_s: Option<f64>,
    fixed_s: f64,
    /// The blocks that are, and since when.
    under_way: Vec<(u64, f64)>,
    most_under_way: usize,
    /// The integral of how many are under way over time, up to `at_s`.
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
        // There it would cost more than to find out while moving.
        let probe = if is_near(latency_s) { Probe::default() } else { Probe::new(bytes, &room) };
        let (shape, first_round) = first_round(bytes, &room, latency_s);
        Self {
            room,
            bytes,
            left: bytes,
            back_bytes: 0,
            began_s: 0.0,
            first_round,
            blocks: 0,
            probe,
            shape,
            seen: Vec::new(),
            fitted: 0,
            latency_s,
            fixed_s: 0.0,
            under_way: Vec::new(),
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
        if self.left == 0 || self.under_way.len() >= self.room.max_concurrency {
            return None;
        }
        let mut next = Next::Plan;
        if self.plan.is_none() && !self.probe.is_none() {
            next = self.probe.next(self.under_way.len(), self.count, &self.seen, self.latency_s);
            if next == Next::Plan {
                self.replan(now_s);
            }
        }
        let (block_bytes, is_one_of_few) = match next {
            Next::Block { bytes, is_one_of_few } => (bytes, is_one_of_few),
            Next::Wait => return None,
            Next::Plan if self.under_way.len() >= self.shape.concurrency => return None,
            Next::Plan => (self.shape.block_bytes, false),
        };
        let blocks_left = self.room.limits.max_blocks.saturating_sub(self.blocks);
        let bytes = block_bytes.max(self.room.least_block_bytes(self.left, blocks_left)).min(self.left);
        (self.left, self.blocks) = (self.left - bytes, self.blocks + 1);
        Some(self.hand_out(bytes, is_one_of_few, now_s))
    }

    /// A block that was handed out by another pilot, if one should be under way now.
    pub fn take_again(&mut self, bytes: u64, now_s: f64) -> Option<Ticket> {
        if self.under_way.len() >= self.shape.concurrency {
            return None;
        }
        self.blocks += 1;
        Some(self.hand_out(bytes, false, now_s))
    }

    fn hand_out(&mut self, bytes: u64, is_one_of_few: bool, now_s: f64) -> Ticket {
        if self.most_under_way == 0 {
            self.began_s = now_s;
        }
        self.pass(now_s);
        self.under_way.push((bytes, now_s));
        self.most_under_way = self.most_under_way.max(self.under_way.len());
        Ticket { bytes, is_one_of_few, began_s: now_s, began_area: self.area }
    }

    /// A block is through. It says something of the link if it went straight through; then `connecting_s` is how long
    /// its connection took to make, where it was a new one.
    pub fn done(&mut self, ticket: &Ticket, now_s: f64, went: Option<Option<f64>>) {
        self.pass(now_s);
        let is_this = |one: &(u64, f64)| *one == (ticket.bytes, ticket.began_s);
        self.under_way.iter().position(is_this).map(|index| self.under_way.swap_remove(index));
        (self.count, self.back_bytes) = (self.count + 1, self.back_bytes + ticket.bytes);
        if ticket.is_one_of_few {
            self.probe.is_back();
        }
        let Some(connecting_s) = went else { return };
        let all_s = now_s - ticket.began_s;
        let in_flight = match all_s {
            _ if ticket.is_one_of_few => self.probe.few() as f64,
            0.0.. if all_s > 0.0 => (self.area - ticket.began_area) / all_s,
            _ => 1.0,
        };
        let seconds = (all_s - connecting_s.unwrap_or(0.0)).max(1e-9);
        let is_fresh = connecting_s.is_some();
        self.seen.push(Observation { bytes: ticket.bytes, seconds, ended_s: now_s, in_flight, is_fresh });
        if self.seen.len() > KEPT {
            self.seen.drain(KEPT / 2..KEPT * 3 / 4);
        }
        if self.plan.is_none() && self.count == self.first_round && self.is_larger_worth_it() {
            self.shape = self.room.fitting(LARGER_BYTES, 1);
            self.first_round += LARGER_BLOCKS;
        }
        let enough = match self.plan {
            Some(_) if self.first.is_none() && self.is_probed() => 0,
            Some(_) => self.fitted + self.shape.concurrency.max(8),
            None if self.probe.is_none() => self.first_round,
            None => usize::MAX,
        };
        if self.count >= enough {
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
        self.room.max_concurrency = (self.under_way.len() * 3 / 4).clamp(1, self.room.max_concurrency);
        self.shape.concurrency = self.shape.concurrency.min(self.room.max_concurrency);
    }

    /// The plan as it was first made, and near by, where it is made of very little, when as much was moved as is probed
    /// elsewhere.
    #[must_use]
    pub fn first(&self) -> Option<&Plan> {
        self.first.as_ref().or(self.plan.as_ref())
    }

    fn is_near(&self) -> bool {
        is_near(self.latency_s)
    }

    fn is_probed(&self) -> bool {
        !self.is_near() || self.back_bytes as f64 >= self.bytes as f64 * PROBED
    }

    /// Whether larger blocks over one connection, after the first small ones, tell something and take next to no time.
    fn is_larger_worth_it(&self) -> bool {
        let bytes = NEAR_BLOCKS as u64 * NEAR_BYTES + LARGER_BLOCKS as u64 * LARGER_BYTES;
        let is_first = self.is_near() && self.shape == Shape { block_bytes: NEAR_BYTES, concurrency: 1 };
        let small_s = median(self.seen.iter().map(|one| one.seconds).collect());
        is_first && bytes as f64 <= self.bytes as f64 * PROBED && small_s.is_some_and(|seconds| seconds <= SHORT_S)
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

    fn pass(&mut self, now_s: f64) {
        self.area += self.under_way.len() as f64 * (now_s - self.at_s).max(0.0);
        self.at_s = self.at_s.max(now_s);
    }

    fn replan(&mut self, now_s: f64) {
        let is_moving = self.plan.is_some();
        let seen = if is_moving { self.seen.clone() } else { self.seen_or_late(now_s) };
        let Some(mut fitted) = fit_all(&seen, self.latency_s, self.fixed_s, is_moving) else { return };
        let link = &mut fitted.link;
        // Over the number of connections that just reaches a ceiling it is not seen.
        let met_bytes_per_s = self.plan.and_then(|plan| plan.link.ceiling_bytes_per_s);
        if let (None, Some(met)) = (link.ceiling_bytes_per_s, met_bytes_per_s)
            && fitted.now_bytes_per_s < met * CROWDED
        {
            link.ceiling_bytes_per_s = Some(fitted.now_bytes_per_s.max(met));
        }
        // How it goes over very many more than were tried nobody knows; nor, where as much is moved near by as both ends
        // may do at all, whether there is anything left for them.
        let may_be_all = self.is_near() && fitted.seen_bytes_per_s >= FAST_BYTES_PER_S;
        let more = if may_be_all { 2 } else { 4 };
        let so_many = match self.is_near() {
            // Of those that have just begun nobody knows what they do.
            true => seen.iter().map(|one| one.in_flight).fold(1.0, f64::max).round() as usize,
            false => self.most_under_way,
        };
        let mut tried = Room { max_concurrency: self.room.max_concurrency.min(more * so_many), ..self.room };
        if !self.is_probed() {
            // In as many blocks as say something of what is foretold.
            let most = ((self.bytes as f64 * PROBED) as u64 / FORETELLING).max(LARGER_BYTES);
            tried.limits.max_block_bytes = tried.limits.max_block_bytes.min(most.max(tried.limits.min_block_bytes));
        }
        let chosen = link.choose(self.left.max(1), &tried);
        let left_s = |shape| self.ahead_s(shape, link, now_s) - now_s;
        if !is_moving && !self.probe.is_none() {
            self.shape = chosen;
        } else if self.left > 0 {
            // Far away never fewer at once: what looks like a ceiling may be a connection that has become slower. Near by
            // each costs both ends something, and as few are taken as are as good.
            let least = if self.is_near() { 1 } else { self.shape.concurrency };
            let chosen = self.room.fitting(chosen.block_bytes, chosen.concurrency.max(least));
            // Near by fresh memory for blocks of another size costs more than a few percent of their time.
            let same = self.room.fitting(self.shape.block_bytes, chosen.concurrency);
            let is_alike = chosen.block_bytes.max(same.block_bytes) / 2 < chosen.block_bytes.min(same.block_bytes);
            let is_as_good = self.is_near() && is_alike && left_s(same) <= AS_GOOD * left_s(chosen);
            let chosen = if is_as_good { same } else { chosen };
            let enough = if self.is_near() { AS_GOOD } else { WORTH_IT };
            if left_s(chosen) < enough * left_s(self.shape) {
                self.shape = chosen;
            }
        }
        // The first correction comes early.
        self.fitted = if is_moving { self.count } else { self.count.saturating_sub(self.shape.concurrency / 2) };
        let mut foretold = fitted.link;
        if self.is_near() {
            // Both ends may be all there is: more than was seen to be moved at once is not foretold.
            foretold.ceiling_bytes_per_s.get_or_insert(fitted.seen_bytes_per_s);
        }
        let mut expected_s = self.ahead_s(self.shape, &foretold, now_s);
        if !is_moving && self.left == 0 && !self.under_way.is_empty() {
            expected_s = expected_s.max(self.last_s(now_s) + self.fixed_s / 2.0);
        }
        let (low_s, high_s) = self.interval(&seen, &fitted, expected_s, now_s);
        let plan = Plan { shape: self.shape, expected_s, low_s, high_s, link: fitted.link };
        self.plan = Some(plan);
        if self.is_probed() {
            self.first.get_or_insert(plan);
        }
    }

    /// With blocks that are not back and already took longer than is usual: to leave them out would be to count only
    /// those that were quick.
    fn seen_or_late(&self, now_s: f64) -> Vec<Observation> {
        let mut seen = self.seen.clone();
        for (bytes, began_s) in &self.under_way {
            let alike = self.seen.iter().filter(|one| one.bytes == *bytes).map(|one| one.seconds);
            let (seconds, in_flight) = (now_s - began_s, self.most_under_way as f64);
            if median(alike.collect()).is_some_and(|usual_s| seconds > usual_s) {
                seen.push(Observation { bytes: *bytes, seconds, ended_s: now_s, in_flight, is_fresh: false });
            }
        }
        seen
    }

    /// What might be, nine times in ten: by what chance might have shown instead, and by what may not have been seen.
    fn interval(&mut self, seen: &[Observation], fitted: &Fitted, expected_s: f64, now_s: f64) -> (f64, f64) {
        let Fitted { link, now_bytes_per_s, seen_bytes_per_s, rests_on } = *fitted;
        let is_moving = self.plan.is_some();
        let mut might = Vec::with_capacity(RESAMPLES);
        for _ in 0..RESAMPLES {
            let mut drawn: Vec<usize> = (0..seen.len()).map(|_| self.random.random_range(..seen.len())).collect();
            // In the order in which they came.
            drawn.sort_unstable();
            let drawn: Vec<Observation> = drawn.into_iter().map(|index| seen[index]).collect();
            let fitted = fit_all(&drawn, self.latency_s, self.fixed_s, is_moving);
            might.extend(fitted.map(|fitted| self.ahead_s(self.shape, &fitted.link, now_s)));
        }
        might.sort_by(f64::total_cmp);
        let at = |share: f64| might.get((share * might.len() as f64) as usize).copied().unwrap_or(expected_s);
        let wider = 1.0 + SO_FEW / rests_on.max(1) as f64;
        // A ceiling that was not met may be just above what was, and what has become slower may do so once more.
        let least_bytes_per_s = match link.ceiling_bytes_per_s {
            None => seen_bytes_per_s,
            Some(ceiling) => ceiling * now_bytes_per_s / seen_bytes_per_s,
        };
        // Near by something may be late that is not back: at worst all goes on as it went so far.
        let so_far =
            if self.is_near() { self.back_bytes as f64 / (now_s - self.began_s).max(1e-9) } else { f64::INFINITY };
        let least_bytes_per_s = least_bytes_per_s.min(so_far);
        let worst = Link { ceiling_bytes_per_s: Some(least_bytes_per_s), ..link };
        // The first blocks of their connections took longer than others will, and nobody knows by how much.
        let unknown = if self.seen.iter().all(|one| one.is_fresh) { 2.0 * UNKNOWN } else { UNKNOWN };
        let unknown_s = unknown * (expected_s - now_s);
        let low_s = expected_s - (expected_s - at(0.05)).max(0.0) * wider - unknown_s;
        let high_s = expected_s + (at(0.95) - expected_s).max(0.0) * wider;
        (low_s.max(now_s), high_s.max(self.ahead_s(self.shape, &worst, now_s)) + unknown_s)
    }

    /// When the last of an only round will be back, of which the quickest are: it takes them as long again, at the least,
    /// as lay between the first and the last of these.
    fn last_s(&self, now_s: f64) -> f64 {
        let first_s = self.seen.iter().map(|one| one.ended_s).fold(now_s, f64::min);
        now_s + (now_s - first_s)
    }

    /// When all will be through, if each block takes as long as the link says: connections that are free first take
    /// the blocks that are left, in rounds. Half of the fixed cost is the commit's.
    fn ahead_s(&self, shape: Shape, link: &Link, now_s: f64) -> f64 {
        let Shape { block_bytes, concurrency } = shape;
        let block_s = |bytes: u64| link.block_s(bytes, concurrency);
        let mut free_s: Vec<f64> =
            self.under_way.iter().map(|(bytes, began_s)| (began_s + block_s(*bytes)).max(now_s)).collect();
        let idle = concurrency.saturating_sub(free_s.len());
        let fresh_s = if concurrency > self.most_under_way { link.fresh_s } else { 0.0 };
        free_s.extend(vec![now_s + fresh_s; idle]);
        free_s.sort_by(f64::total_cmp);
        // More than there may be now take nothing more on.
        free_s.drain(..free_s.len() - concurrency);
        let blocks = self.left.div_ceil(block_bytes) as usize;
        let (rounds, more) = (blocks / free_s.len(), blocks % free_s.len());
        let round_s = block_s(block_bytes.min(self.left));
        let last_s = free_s.last().copied().unwrap_or(now_s);
        let last_s = match more.checked_sub(1) {
            Some(index) => last_s.max(free_s[index] + round_s),
            None => last_s,
        };
        last_s + rounds as f64 * round_s + link.fixed_s / 2.0
    }
}

/// Without a probe: the first shape, and how many blocks must be back before there is a plan.
///
/// What is not near goes over all connections from the beginning, in one round if that is short: each is new and costs
/// round trips, and to know more would cost a second round. What is near begins with few small blocks over one, and goes
/// on as they say a moment later. Where blocks can't be that small, one connection that is slow would take too long to
/// say so, and what is near begins over few.
fn first_round(bytes: u64, room: &Room, latency_s: Option<f64>) -> (Shape, usize) {
    let (most, is_near) = (room.max_concurrency, is_near(latency_s));
    if is_near && room.limits.min_block_bytes <= NEAR_BYTES {
        return (room.fitting(room.least_block_bytes(bytes, room.limits.max_blocks).max(NEAR_BYTES), 1), NEAR_BLOCKS);
    }
    let concurrency = if is_near { FEW.min(most) } else { most };
    let rounds = bytes.div_ceil(FIRST_BYTES * most as u64).max(1);
    let even = if is_near { 0 } else { bytes.div_ceil(rounds * most as u64) };
    let least = room.least_block_bytes(bytes, room.limits.max_blocks).max(LEAST_BYTES);
    let shape = room.fitting(least.max(even), concurrency);
    let blocks = bytes.div_ceil(shape.block_bytes) as usize;
    let round = shape.concurrency.min(blocks);
    // Those that are back first are the quickest: most of a round says more. Of an only one that is too late to tell.
    let enough = if blocks > round { (round * 3 / 4).max(2) } else { round.div_ceil(4) };
    (shape, enough)
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
        pilot.probe = Probe::default();
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
