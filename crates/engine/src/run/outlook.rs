//! Predicts how much time a run needs for its answers. If the time is too short, defers claims or extends the time
//! limit of comparisons.

use std::time::Duration;

use super::TrialLoop;
use crate::claim::Judging;
use crate::finding::Reason;
use crate::judging::{ClosedReason, RunJudge};
use crate::observer::Outlook;

/// Factor by which the planned time for a comparison exceeds the estimate. The estimate itself is too optimistic: it
/// assumes that one command wins every pair, and that later pairs are as fast as the first.
const ROOM: f64 = 1.25;

impl TrialLoop<'_, '_> {
    /// Defers claims that cannot be decided in time, or extends the time limit of comparisons if the plan allows this.
    /// Reports how much time is needed. Call this as soon as the duration of a trial is known in each lane.
    pub(super) fn look_ahead(&mut self) {
        self.has_looked_ahead = true;
        if self.judge.config.exact_trials.is_some() {
            return;
        }
        (0..self.is_open.len()).for_each(|lane| self.defer(lane));
        if let Some(outlook) = self.outlook() {
            // First report the current time limit, because a progress bar may be shown below the outlook.
            let lane = self.is_open.iter().position(|is_open| *is_open).unwrap_or(0);
            self.observer.progress(&self.progress(self.now_ns(), lane));
            self.observer.outlook(&outlook);
        }
    }

    /// Returns the duration of a trial in the lane (group of arms) plus the gap to the next trial, in nanoseconds.
    fn trial_ns(&self, lane: usize) -> f64 {
        self.judge.lanes[lane].cost_ns + self.judge.config.gap.map_or(0.0, |gap| gap.as_nanos() as f64)
    }

    /// Defers the claims of a lane (group of arms) whose quickest possible verdict needs more than the remaining time.
    /// Never defers comparisons, because their figures are useful without a verdict. Never defers claims that the
    /// trials of a table can decide, because the table needs these trials anyway.
    pub(super) fn defer(&mut self, lane: usize) {
        if self.goes_on[lane] || self.judge.config.exact_trials.is_some() {
            return;
        }
        let (left_ns, trial_ns) = (self.time_left_ns() as f64, self.trial_ns(lane));
        let RunJudge { lanes, claims, config, .. } = &mut *self.judge;
        let lane = &lanes[lane];
        for &claim in &lane.claims {
            let judge = &mut claims[claim];
            if judge.claim.asked.judging == Judging::Order || !judge.is_open() {
                continue;
            }
            let trials = judge.soonest_verdict();
            if config.table_trials.is_some_and(|wanted| trials <= wanted) && lane.table.contains(judge.slots()) {
                continue;
            }
            let fits = |trials: u64| trial_ns * trials.saturating_sub(lane.trials) as f64 <= left_ns;
            if !fits(trials) {
                let needed_ns = trial_ns * trials as f64;
                let at_error = judge.soonest_at_easier().filter(|at| fits(at.trials));
                judge.close(ClosedReason::NotJudged(Reason::TooLong { needed_ns, trials, at_error, run_ns: None }));
            }
        }
    }

    /// Predicts the time that open claims need. Returns `None` if the time limit is long enough. Also returns `None` if
    /// the run has several lanes (groups of arms), unless it compares commands. If the plan allows it, the time limit
    /// of comparisons is extended.
    fn outlook(&mut self) -> Option<Outlook> {
        let is_comparison = self.judge.is_comparison();
        if !is_comparison && self.is_open.len() > 1 {
            return None;
        }
        let lanes = (0..self.is_open.len()).filter(|&lane| self.is_open[lane]);
        // Claims of one lane share its trials, so only the slowest claim of each lane counts.
        let slowest = lanes.filter_map(|lane| {
            let least = self.judge.open_claims(lane).map(|claim| claim.least_with_tails(Some(self.trial_ns(lane))));
            Some((lane, least.max_by_key(|least| least.trials)?))
        });
        let slowest: Vec<_> = slowest.collect();
        let (_, mut least) = *slowest.iter().max_by_key(|(_, least)| least.trials)?;
        let takes_ns: f64 = slowest.iter().filter_map(|(_, least)| least.takes_ns).sum();
        least.takes_ns = Some(takes_ns);
        let trials = slowest.iter().map(|(lane, _)| self.judge.lanes[*lane].trials).min()?;
        let trial_ns = takes_ns / least.trials as f64;
        let clock = self.clock;
        let left = |end_ns: u64| end_ns.saturating_sub(clock.now_ns()) as f64;
        // A user who set a smaller maximum of trials than the answers need has already limited the run, and needs no
        // prediction.
        let is_limited = self.judge.config.max_trials.is_some_and(|most| most < least.trials);
        let needed_ns = trial_ns * least.trials.saturating_sub(trials) as f64;
        let longest = self.judge.config.longest_time.filter(|_| is_comparison);
        let wanted_ns = if longest.is_some() { needed_ns * ROOM } else { needed_ns };
        if is_limited || wanted_ns <= left(self.time_ns.end) {
            return None;
        }
        let longest_ns = longest.map(|longest| self.time_ns.start.saturating_add(longest.as_nanos() as u64));
        let is_longer = longest_ns.is_some_and(|longest_ns| needed_ns <= left(longest_ns));
        if is_longer {
            self.time_ns.end = self.now_ns().saturating_add(wanted_ns as u64).min(longest_ns?);
        }
        // A trial that starts before the time limit counts, because the run completes it.
        let allowed = trials + (left(self.time_ns.end) / trial_ns).ceil() as u64;
        Some(Outlook { least, allowed, max_time: self.max_time(), is_longer })
    }

    /// Returns the current time limit of the run, which may have been extended.
    pub(super) fn max_time(&self) -> Duration {
        Duration::from_nanos(self.time_ns.end.saturating_sub(self.time_ns.start))
    }
}
