//! What is moved to find out what a link is like.

use std::collections::VecDeque;

use super::{Observation, Room};

/// Of a file of so many bytes or more, …
const LARGE_BYTES: u64 = 256_000_000;
/// … this share is moved before the plan is made. A smaller one would be through in the time that it takes to probe.
pub(super) const PROBED: f64 = 0.03;
/// Smaller blocks tell of latency alone.
const LEAST_BYTES: u64 = 4 << 10;
/// Larger ones tell no more, and are slow where links are slow.
const MOST_BYTES: u64 = 64 << 10;
/// How many of its small blocks would be one of its large ones, which tell the rate of a connection, …
const LARGER: u64 = 11;
/// … unless that lasted longer than so many latencies.
const LARGE_LATENCIES: f64 = 10.0;
/// One connection of so many is among the few.
const FEW_OF: usize = 16;
/// So much of the probe is fixed. The rest keeps connections busy until there is a plan.
const SCRIPTED: f64 = 0.75;
/// Blocks in a fixed order. Small ones go over few connections and then over many, where they take longer if there is
/// a ceiling; beside the latter, large ones go over few, and tell the rate of a connection. Each goes twice, for the
/// first block of a connection finds its window closed. In a large file there are large ones over many in the end.
#[derive(Debug, Default)]
pub(super) struct Probe {
    script: VecDeque<Step>,
    few: usize,
    many: usize,
    small_bytes: u64,
    large_bytes: u64,
    has_rest: bool,
    /// Large ones, few at once, that were not handed out, and those that were and are not back.
    large: usize,
    large_under_way: usize,
    /// What is left of what may be probed.
    left_bytes: u64,
    /// How many blocks must be back before there is a plan.
    enough: usize,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    bytes: u64,
    /// How many may be under way with it.
    at_once: usize,
    /// How many must be back.
    after: usize,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Next {
    /// To hand out this block; `is_one_of_few` is to be said when it is back.
    Block { bytes: u64, is_one_of_few: bool },
    /// To wait until another block is back.
    Wait,
    /// To plan.
    Plan,
}

impl Probe {
    pub fn new(bytes: u64, room: &Room) -> Self {
        let many = room.max_concurrency;
        let few = many.div_ceil(FEW_OF);
        let (small, large) = (2 * few + 2 * many, 2 * few);
        let left_bytes = bytes as f64 * PROBED;
        let small_bytes = (left_bytes * SCRIPTED) as u64 / (small as u64 + LARGER * large as u64);
        let small_bytes = small_bytes.min(MOST_BYTES);
        let (large_bytes, left_bytes) = (small_bytes * LARGER, left_bytes as u64);
        let is_possible = bytes >= LARGE_BYTES
            && small_bytes >= room.limits.min_block_bytes.max(LEAST_BYTES)
            && large_bytes <= room.limits.max_block_bytes
            && large_bytes * many as u64 <= room.memory_bytes
            && small + large <= room.limits.max_blocks / 4;
        if !is_possible {
            return Self::default();
        }
        let rest_bytes = left_bytes - small_bytes * small as u64 - large_bytes * large as u64;
        let rest_bytes = ((rest_bytes as f64 * SCRIPTED) as u64 / (2 * many as u64)).min(large_bytes);
        let step = |bytes, at_once, after| Step { bytes, at_once, after };
        let mut script = VecDeque::from(vec![step(small_bytes, few, 0); 2 * few]);
        script.extend(vec![step(small_bytes, many, 2 * few - stragglers(few)); 2 * many]);
        let has_rest = rest_bytes >= 3 * small_bytes;
        if has_rest {
            script.extend(vec![step(rest_bytes, many, 1); 2 * many]);
        }
        let enough = script.len() + large - stragglers(many) / 4;
        Self { script, few, many, small_bytes, large_bytes, has_rest, large, large_under_way: 0, left_bytes, enough }
    }

    /// Whether there is none, for blocks can't be that small, or the file is not large.
    pub fn is_none(&self) -> bool {
        self.small_bytes == 0
    }

    /// How many large blocks there are at once, while small ones fill the rest.
    pub fn few(&self) -> usize {
        self.few
    }

    /// What comes next, while so many are under way and so many are back.
    pub fn next(&mut self, under_way: usize, back: usize, seen: &[Observation], latency_s: Option<f64>) -> Next {
        let step = self.script.front().copied();
        if under_way >= self.many || step.is_some_and(|step| back < step.after) {
            return Next::Wait;
        }
        let is_among_few = step.is_some_and(|step| step.after == 0);
        if !is_among_few && self.large > 0 && self.large_under_way < self.few {
            self.limit_large(seen, latency_s);
            (self.large, self.large_under_way) = (self.large - 1, self.large_under_way + 1);
            return self.block(self.large_bytes, true);
        }
        let are_few_back = self.large == 0 && self.large_under_way <= stragglers(self.few);
        let Some(step) = step.filter(|step| are_few_back || step.bytes == self.small_bytes) else {
            if (step.is_none() && are_few_back && back >= self.enough) || under_way == 0 {
                return Next::Plan;
            }
            let kept_bytes =
                self.large as u64 * self.large_bytes + self.script.iter().map(|step| step.bytes).sum::<u64>();
            let bytes = self.small_bytes;
            if self.left_bytes < bytes + kept_bytes || (step.is_none() && self.has_rest) {
                return Next::Wait;
            }
            self.enough += usize::from(step.is_some());
            return self.block(bytes, false);
        };
        if under_way >= step.at_once {
            return Next::Wait;
        }
        self.script.pop_front();
        self.block(step.bytes.min(self.large_bytes), false)
    }

    fn block(&mut self, bytes: u64, is_one_of_few: bool) -> Next {
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
        Next::Block { bytes, is_one_of_few }
    }

    /// A block that is one of few is back.
    pub fn is_back(&mut self) {
        self.large_under_way -= 1;
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
}

/// How many of as many are not waited for.
fn stragglers(of: usize) -> usize {
    if of > 1 { of.div_ceil(4) } else { 0 }
}
