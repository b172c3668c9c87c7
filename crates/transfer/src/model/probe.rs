//! The probe of a link: the first parts of a large file, which measure the link's properties.

use std::collections::VecDeque;

use super::{Constraints, Observation};

/// Smallest size in bytes of a file whose first parts are a probe.
const LARGE_BYTES: u64 = 256_000_000;
/// Share of the file that is transferred before the first plan of the remaining parts is made.
pub(super) const PROBED: f64 = 0.03;
/// Smallest size in bytes of a part in a probe of a link. A smaller part would measure only the latency.
const LEAST_BYTES: u64 = 4 << 10;
/// Largest size in bytes of the small parts of a probe. Larger parts would measure nothing more, and would take long on
/// slow links.
const MOST_BYTES: u64 = 64 << 10;
/// Size of the large parts of a probe, as a multiple of the size of its small parts. The large parts measure the rate
/// of one connection.
const LARGER: u64 = 11;
/// Longest duration of a large part of a probe, as a multiple of the link's latency.
const LARGE_LATENCIES: f64 = 10.0;
/// A probe compares the durations of parts over few connections and over the maximum number of connections. The few
/// connections are the maximum number divided by this constant.
const FEW_OF: usize = 16;
/// Share of the probe's bytes that is divided into parts in advance. The other bytes keep the connections busy until
/// the first plan is made.
const SCRIPTED: f64 = 0.75;
/// A fixed sequence of parts that measures a link:
///
/// 1. Small parts go over few connections.
/// 2. Small parts go over many connections. If they are slower than the parts of step 1, the link has a ceiling.
/// 3. During step 2, large parts go over few connections, and measure the rate of one connection. Each of these
///    connections carries two large parts, because its congestion window is still small during the first part.
/// 4. If the file is large enough, parts that are larger than the parts of step 2 follow over many connections.
#[derive(Debug, Default)]
pub(super) struct Probe {
    script: VecDeque<Step>,
    few: usize,
    many: usize,
    small_bytes: u64,
    large_bytes: u64,
    has_rest: bool,
    /// Number of the probe's large parts that have not been handed out yet.
    large: usize,
    large_under_way: usize,
    /// Number of bytes that the probe may still use.
    left_bytes: u64,
    /// Number of parts that must be transferred before the first plan is made.
    enough: usize,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    bytes: u64,
    /// Maximum number of parts in flight, including the part of this step.
    at_once: usize,
    /// Number of parts that must be transferred before the part of this step starts.
    after: usize,
}

/// The planner's next action during a probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ProbeStep {
    /// The planner hands out a part of `bytes` bytes. If `is_one_of_few`, it is one of the large parts that go over few
    /// connections. The planner must then call [`Probe::is_back`] when this part is transferred.
    Part { bytes: u64, is_one_of_few: bool },
    /// The planner waits until another part is transferred.
    Wait,
    /// The planner makes the first plan, because the probe is complete.
    Forecast,
}

impl Probe {
    pub fn new(bytes: u64, constraints: &Constraints) -> Self {
        let many = constraints.max_concurrency;
        let few = many.div_ceil(FEW_OF).max(constraints.min_concurrency).min(many);
        let (small, large) = (2 * few + 2 * many, 2 * few);
        let left_bytes = bytes as f64 * PROBED;
        let small_bytes = (left_bytes * SCRIPTED) as u64 / (small as u64 + LARGER * large as u64);
        let small_bytes = small_bytes.min(MOST_BYTES);
        let (large_bytes, left_bytes) = (small_bytes * LARGER, left_bytes as u64);
        let is_possible = bytes >= LARGE_BYTES
            && small_bytes >= constraints.limits.min_part_bytes.max(LEAST_BYTES)
            && large_bytes <= constraints.limits.max_part_bytes
            && large_bytes * many as u64 <= constraints.memory_bytes
            && small + large <= constraints.limits.max_parts / 4;
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

    /// Returns whether the link is not probed, because the file is too small, or because the limits do not permit the
    /// parts of a probe.
    pub fn is_none(&self) -> bool {
        self.small_bytes == 0
    }

    /// Returns the number of connections that carry large parts, while the other connections carry small parts.
    pub fn few(&self) -> usize {
        self.few
    }

    /// Returns the planner's next action, if `under_way` parts are in flight and `back` parts are complete. `seen` are
    /// the measurements so far, and `latency_s` is the duration of a request without a part.
    pub fn next(&mut self, under_way: usize, back: usize, seen: &[Observation], latency_s: Option<f64>) -> ProbeStep {
        let step = self.script.front().copied();
        if under_way >= self.many || step.is_some_and(|step| back < step.after) {
            return ProbeStep::Wait;
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
                return ProbeStep::Forecast;
            }
            let kept_bytes =
                self.large as u64 * self.large_bytes + self.script.iter().map(|step| step.bytes).sum::<u64>();
            let bytes = self.small_bytes;
            if self.left_bytes < bytes + kept_bytes || (step.is_none() && self.has_rest) {
                return ProbeStep::Wait;
            }
            self.enough += usize::from(step.is_some());
            return self.block(bytes, false);
        };
        if under_way >= step.at_once {
            return ProbeStep::Wait;
        }
        self.script.pop_front();
        self.block(step.bytes.min(self.large_bytes), false)
    }

    fn block(&mut self, bytes: u64, is_one_of_few: bool) -> ProbeStep {
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
        ProbeStep::Part { bytes, is_one_of_few }
    }

    /// Records that one of the large parts was transferred.
    pub fn is_back(&mut self) {
        self.large_under_way -= 1;
    }

    /// Reduces the size of the probe's large parts, so that they take no longer than needed to measure the rate. The
    /// rate of one connection is estimated from `seen`, the complete small parts.
    fn limit_large(&mut self, seen: &[Observation], latency_s: Option<f64>) {
        let Some(latency_s) = latency_s else { return };
        let warm = seen.iter().filter(|one| !one.is_fresh);
        let Some(small_s) = warm.map(|one| one.seconds).min_by(f64::total_cmp) else { return };
        let bytes_per_s = self.small_bytes as f64 / (small_s - latency_s).max(small_s / 50.0);
        let most = (LARGE_LATENCIES * latency_s * bytes_per_s) as u64;
        self.large_bytes = self.large_bytes.min(most).max(3 * self.small_bytes);
    }
}

/// Returns how many of a group of `of` parts may still be in flight when the next group starts.
fn stragglers(of: usize) -> usize {
    if of > 1 { of.div_ceil(4) } else { 0 }
}
