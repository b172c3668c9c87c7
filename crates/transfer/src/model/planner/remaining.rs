//! The planner's predictions of the remaining time.

use super::super::fit::median;
use super::super::forecast::{Forecast, Pace};
use super::super::{Link, Observation, Shape, TransferPlan};
use super::Planner;

/// Weight of the longest part in the forecast of the last round. The longest of `n` parts usually exceeds the average
/// by `sqrt(2 ln n)` standard deviations; the forecast includes this share of the excess.
const TAIL: f64 = 0.5;
/// Shortest and longest remaining time of a single round, as multiples of the expected remaining time.
const LAST: [f64; 2] = [0.7, 2.5];

impl Planner {
    /// Predicts the duration of the transfer from the parts that were transferred last. `None` if they do not permit a
    /// useful forecast.
    pub(super) fn predict(&self, plan: &TransferPlan, now_s: f64) -> Option<Forecast> {
        let Shape { part_bytes, concurrency } = self.shape;
        let part_bytes = match self.is_folder {
            true => part_bytes.min(self.left / self.files_left.max(1) as u64),
            false => part_bytes.min(self.left),
        };
        // The first parts that are complete are the fastest, so late parts must count too.
        let late = (self.count < 2 * concurrency).then(|| self.seen_or_late(now_s));
        let seen = late.as_ref().unwrap_or(&self.seen);
        let pace = Pace::new(seen, concurrency, self.latency_s, part_bytes)?;
        let is_only_round = self.left == 0 && self.count + self.under_way.len() <= self.most_under_way;
        // The last of several parts that end at about the same time takes longer than their average.
        let tail = if is_only_round { 0.0 } else { TAIL * pace.deviation * (2.0 * (concurrency as f64).ln()).sqrt() };
        let rest_s = |(latency_s, byte_s): &(f64, f64)| {
            let bytes_per_s = 1.0 / byte_s.max(f64::MIN_POSITIVE);
            let link = Link { latency_s: *latency_s, bytes_per_s, ceiling_bytes_per_s: None, ..plan.link };
            self.ahead_s(self.shape, &link, now_s) - now_s + tail * link.block_s(part_bytes, concurrency)
        };
        let mut rests_s: Vec<f64> = pace.guesses.iter().map(rest_s).collect();
        // If the total rate is limited, the last parts are faster, because fewer are in flight.
        let rest_of = |(bytes, began_s): &(u64, f64)| (*bytes as f64 - (now_s - began_s) / pace.byte_s).max(0.0);
        let under_way_bytes: f64 = self.under_way.iter().map(rest_of).sum();
        let commit_s = self.fixed_s / 2.0;
        rests_s.push((self.left as f64 + under_way_bytes) / pace.bytes_per_s + commit_s);
        let may_grow = self.is_near() && !plan.link.is_at_ends() && plan.link.ceiling_bytes_per_s.is_none();
        if may_grow && self.left > 0 {
            // More connections may be opened, and may help.
            let more = self.constraints.fitting(self.shape.part_bytes, 2 * concurrency).concurrency;
            let least_s = rests_s.iter().copied().fold(f64::INFINITY, f64::min);
            rests_s.push(least_s * concurrency as f64 / more.max(concurrency) as f64);
        }
        let limited_bytes = self.bytes.saturating_sub(self.shape.part_bytes) as f64;
        let limit_bytes_per_s = self.constraints.limit_bytes_per_s;
        let mut least_s = limit_bytes_per_s.map_or(0.0, |limit| limited_bytes / limit as f64 - now_s);
        if is_only_round {
            let last_s = self.last_s(now_s);
            let [early, late] = LAST;
            least_s = least_s.max(early * last_s + commit_s);
            rests_s.push(late * last_s + commit_s);
        }
        rests_s.iter_mut().for_each(|rest_s| *rest_s = rest_s.max(least_s));
        pace.forecast(now_s, &rests_s)
    }

    /// Predicts how long the last part of a single round still takes, in seconds. Assumes that the times when parts end
    /// have a logistic distribution. Its width is estimated from the first end and the share of parts that have ended.
    fn last_s(&self, now_s: f64) -> f64 {
        let (back, under_way) = (self.seen.len() as f64, self.under_way.len() as f64);
        let large_bytes = self.seen.iter().map(|one| one.bytes).max().unwrap_or(0);
        let ends_s = self.seen.iter().filter(|one| one.bytes > large_bytes / 2).map(|one| one.ended_s);
        let first_s = ends_s.fold(now_s, f64::min);
        let (all, now) = ((back + under_way).ln(), (back / under_way.max(0.5)).ln());
        (now_s - first_s) * (all - now) / (all + now).max(0.1)
    }

    /// Predicts the time in seconds at which the transfer ends, if each part takes as long as `link` predicts. Assigns
    /// the remaining parts to free connections, in rounds. The commit takes half of the link's fixed cost.
    pub(super) fn ahead_s(&self, shape: Shape, link: &Link, now_s: f64) -> f64 {
        let Shape { part_bytes, concurrency } = shape;
        let block_s = |bytes: u64| link.block_s(bytes, concurrency);
        let mut free_s: Vec<f64> =
            self.under_way.iter().map(|(bytes, began_s)| (began_s + block_s(*bytes)).max(now_s)).collect();
        let idle = concurrency.saturating_sub(free_s.len());
        let fresh_s = if concurrency > self.most_under_way { link.fresh_s } else { 0.0 };
        free_s.extend(vec![now_s + fresh_s; idle]);
        free_s.sort_by(f64::total_cmp);
        // If more connections are in use than `shape` permits, the connections that become free first get no further
        // part.
        free_s.drain(..free_s.len() - concurrency);
        let (blocks, part_bytes) = match self.left.div_ceil(part_bytes) as usize {
            blocks if blocks < self.files_left && self.is_folder => {
                (self.files_left, self.left.div_ceil(self.files_left as u64))
            }
            blocks => (blocks, part_bytes),
        };
        let (rounds, more) = (blocks / free_s.len(), blocks % free_s.len());
        let round_s = block_s(part_bytes.min(self.left));
        let last_s = free_s.last().copied().unwrap_or(now_s);
        let last_s = match more.checked_sub(1) {
            Some(index) => last_s.max(free_s[index] + round_s),
            None => last_s,
        };
        last_s + rounds as f64 * round_s + link.fixed_s / 2.0
    }

    /// Returns the measured parts, and the parts in flight that have already taken longer than usual at `now_s`.
    /// Without these late parts, only fast parts would count.
    pub(super) fn seen_or_late(&self, now_s: f64) -> Vec<Observation> {
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
}
