//! Counting trials of which only the outcomes are known. The memory does not depend on the number of trials.

#[cfg(feature = "recorded")]
use ascertain_stats::Tally;

use super::ClaimJudge;
#[cfg(feature = "commands")]
use crate::block::Slots;
#[cfg(feature = "commands")]
use crate::judging::bound::{TrialOutcome, TrialValues};
#[cfg(feature = "commands")]
use crate::judging::diagnostics::Diagnostics;
#[cfg(feature = "commands")]
use crate::values::Bounds;

impl ClaimJudge {
    /// Reserves the memory for the diagnostics, so that counting allocates nothing.
    #[cfg(feature = "commands")]
    pub fn reserve(&mut self) {
        self.diagnostics.reserve();
    }

    /// Returns the size in bytes of the memory that [`reserve`](Self::reserve) reserves.
    #[cfg(feature = "commands")]
    pub fn reserved_bytes() -> u64 {
        Diagnostics::reserved_bytes()
    }

    /// For each condition, the number of trials in which it was false.
    #[cfg(feature = "commands")]
    pub fn broken_counts(&self) -> &[u64] {
        &self.broken
    }

    /// Adds counts of the trials in which each condition was false.
    #[cfg(feature = "recorded")]
    pub fn add_broken(&mut self, counts: &[u64]) {
        self.broken.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
    }

    /// Applies the tests to the values of a trial of a single arm. Returns whether the trial was a success, and the
    /// conditions that were false, as bits.
    #[cfg(feature = "commands")]
    pub fn test(&self, row: &[Bounds], is_interrupted: bool) -> (Option<bool>, u64) {
        match self.tests.evaluate(&trial(row, is_interrupted)) {
            Ok(TrialOutcome { success, broken, .. }) => (success, broken),
            Err(_) => (Some(false), 0),
        }
    }

    /// Counts a trial. `broken` has a bit for each condition that was false.
    #[cfg(feature = "commands")]
    pub fn count_outcome(&mut self, success: Option<bool>, broken: u64, is_interrupted: bool, elapsed_ns: u64) {
        let outcome = TrialOutcome { success, tie: false, statistic: None, value: None, broken };
        self.count(&outcome, &trial(&[], is_interrupted), elapsed_ns);
    }

    /// Counts several trials at once, of which `unknown` reached a time limit. Nothing is known about their order, so an
    /// answer is only looked for if all trials so far are whole sets of `look_every` trials.
    #[cfg(feature = "recorded")]
    pub fn count_batch(&mut self, known: Tally, unknown: u64) {
        self.trials += known.trials + unknown;
        self.measured += known.trials + unknown;
        self.successes += known.successes;
        self.unknown += unknown;
        self.has_met_limit |= unknown > 0;
        self.unseen.known += known;
        self.unseen.unknown += unknown;
        if self.unseen.trials().is_multiple_of(self.claim.look_every.max(1)) {
            let answer = self.rule.observe(std::mem::take(&mut self.unseen), None);
            if let (Some(answer), None) = (answer, self.answer) {
                self.decide(answer);
            }
        }
        self.look();
    }
}

#[cfg(feature = "commands")]
fn trial(row: &[Bounds], is_interrupted: bool) -> TrialValues<'_> {
    let held = Slots::default().with(0);
    TrialValues { number: 0, values: row, metrics: row.len(), held, last: Some(0), is_interrupted, whole_ns: None }
}
