//! Checks whether trials are alike. They are not if conditions change, or if one trial influences the next. The verdict
//! on the measured trials is valid even then, but their success rate does not predict the rate of other trials.

use crate::finding::Unlike;

/// Counts of the outcomes of trials, in the order in which they were measured. The memory does not depend on the number
/// of trials.
#[derive(Clone, Debug, Default)]
pub(crate) struct Diagnostics {
    /// The successes in each block of [`per_block`](Self::per_block) consecutive outcomes. The last block may be
    /// incomplete.
    blocks: Vec<u64>,
    per_block: u64,
    outcomes: u64,
    successes: u64,
    /// Number of neighbouring outcomes that are both successes.
    both: u64,
    first: bool,
    last: bool,
    /// The outcome of the current trial; `None` if the trial has no outcome yet, is a tie, or has an unknown outcome.
    outcome: Option<bool>,
    /// `true` if the previous trial measured the candidate last, and `false` if it measured the baseline last. `None`
    /// if another arm was last, or if there was no trial.
    candidate_was_last: Option<bool>,
    /// Counts of trials by the arm that the previous trial measured last, and by outcome. The first index is 1 for the
    /// candidate and 0 for the baseline. The second index is 1 for a success and 0 for a failure.
    after: [[u64; 2]; 2],
}

/// Largest number of blocks. If there are more outcomes, each two neighbouring blocks become one.
const MOST_BLOCKS: usize = 4096;

/// Minimum number of outcomes for checking whether trials are alike. The checks approximate the number of successes by
/// a normal distribution, so its variance must be at least 10. If half of the trials succeed, 40 trials are enough for
/// this variance.
pub(crate) const FEWEST: usize = 40;
/// Minimum deviation from the value expected by chance, in standard deviations, that is reported as a sign that the
/// trials are not alike. Chance alone produces such a sign in 1 of 15,000 claims.
const NOTABLE: f64 = 4.0;
/// Minimum deviation from the value expected by chance, in standard deviations, at which interference between trials is
/// reported. The verdict is then not called "exact". Chance alone causes this in 1 of 370 claims.
const NOTABLE_INTERFERENCE: f64 = 3.0;

impl Diagnostics {
    /// Reserves the memory for all blocks, so that counting allocates nothing.
    #[cfg(feature = "commands")]
    pub fn reserve(&mut self) {
        self.blocks.reserve_exact(MOST_BLOCKS - self.blocks.len());
    }

    /// Returns the size in bytes of the memory that [`reserve`](Self::reserve) reserves.
    #[cfg(feature = "commands")]
    pub fn reserved_bytes() -> u64 {
        (MOST_BLOCKS * size_of::<u64>()) as u64
    }

    pub fn push(&mut self, success: bool) {
        if self.outcomes == 0 {
            (self.first, self.per_block) = (success, 1);
        }
        if self.outcomes == self.blocks.len() as u64 * self.per_block {
            if self.blocks.len() == MOST_BLOCKS {
                for index in 0..MOST_BLOCKS / 2 {
                    self.blocks[index] = self.blocks[2 * index] + self.blocks[2 * index + 1];
                }
                self.blocks.truncate(MOST_BLOCKS / 2);
                self.per_block *= 2;
            }
            self.blocks.push(0);
        }
        if let Some(block) = self.blocks.last_mut() {
            *block += u64::from(success);
        }
        self.both += u64::from(success && self.last && self.outcomes > 0);
        self.outcomes += 1;
        self.successes += u64::from(success);
        self.last = success;
        self.outcome = Some(success);
    }

    /// Ends the current trial. `candidate_is_last` is `true` if the trial measured the candidate last, and `false` if
    /// it measured the baseline last. It is `None` if another arm was last.
    pub fn end_trial(&mut self, candidate_is_last: Option<bool>) {
        let outcome = self.outcome.take();
        if let (Some(success), Some(candidate)) = (outcome, self.candidate_was_last) {
            self.after[usize::from(candidate)][usize::from(success)] += 1;
        }
        self.candidate_was_last = candidate_is_last;
    }

    /// Returns whether there are too few outcomes to check whether trials are alike.
    pub fn has_too_few(&self) -> bool {
        self.outcomes < FEWEST as u64
    }

    /// Returns the share of trials that the candidate won, for two groups of trials. In the first group, the previous
    /// trial measured the baseline last. In the second group, it measured the candidate last. The order of the arms is
    /// random, so the shares only differ by chance, unless a trial influences the next one. Returns `None` if chance
    /// explains the difference.
    pub fn interference(&self) -> Option<[f64; 2]> {
        let n = self.after.map(|[failures, successes]| (failures + successes) as f64);
        let shares = [0, 1].map(|last| self.after[last][1] as f64 / n[last]);
        let share = (self.after[0][1] + self.after[1][1]) as f64 / (n[0] + n[1]);
        let variance = share * (1.0 - share);
        let deviation = (variance / n[0] + variance / n[1]).sqrt();
        let is_notable = (shares[1] - shares[0]).abs() / deviation > NOTABLE_INTERFERENCE;
        // For smaller counts, normal approximations are not valid.
        (n[0].min(n[1]) * variance >= 2.5 && is_notable).then_some(shares)
    }

    /// Returns the signs that the trials are not alike.
    pub fn signs(&self) -> Vec<Unlike> {
        let mut signs = Vec::new();
        if let Some([after_baseline, after_candidate]) = self.interference() {
            signs.push(Unlike::Interferes { after_candidate, after_baseline });
        }
        if self.has_too_few() {
            return signs;
        }
        let n = self.outcomes as f64;
        let rate = self.successes as f64 / n;
        let variance = rate * (1.0 - rate);
        // For smaller counts, normal approximations are not valid.
        if n * variance < 10.0 {
            return signs;
        }
        let correlation = self.lag_1(rate) / variance;
        if correlation.abs() * n.sqrt() > NOTABLE {
            signs.push(Unlike::Neighbours { correlation });
        }
        let (early, late) = self.halves();
        if (late - early).abs() / (4.0 * variance / n).sqrt() > NOTABLE {
            signs.push(Unlike::Drifts { early, late });
        }
        signs
    }

    /// Returns the mean product of the deviations of neighbouring outcomes from `rate`.
    fn lag_1(&self, rate: f64) -> f64 {
        let n = self.outcomes as f64;
        let all_but = |end: bool| self.successes as f64 - f64::from(u8::from(end));
        let sums = all_but(self.last) + all_but(self.first);
        (self.both as f64 - rate * sums + (n - 1.0) * rate * rate) / n
    }

    /// Returns the shares of successes in the first and in the second half of the trials. With more than
    /// [`MOST_BLOCKS`] outcomes, the halves end at the nearest block.
    fn halves(&self) -> (f64, f64) {
        let blocks = (self.outcomes / 2 / self.per_block) as usize;
        let early = self.blocks[..blocks].iter().sum::<u64>();
        let trials = blocks as u64 * self.per_block;
        let late = (self.successes - early) as f64 / (self.outcomes - trials) as f64;
        (early as f64 / trials as f64, late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(outcomes: impl IntoIterator<Item = bool>) -> Diagnostics {
        let mut diagnostics = Diagnostics::default();
        outcomes.into_iter().for_each(|success| diagnostics.push(success));
        diagnostics
    }

    fn signs(outcomes: impl IntoIterator<Item = bool>) -> Vec<Unlike> {
        counted(outcomes).signs()
    }

    #[test]
    fn like_trials_raise_nothing() {
        let mut state = 1_u64;
        let mut coin = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 63 == 1
        };
        assert_eq!(signs((0..2000).map(|_| coin())), []);
        assert_eq!(signs([]), []);
        assert_eq!(signs([true; 100]), []);
    }

    /// Simulates a machine with caches: the last arm of a trial finds its caches warm if it is the first of the next
    /// trial.
    #[test]
    fn what_reaches_into_the_next_trial_is_seen() {
        let mut state = 7_u64;
        let mut coin = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 63 == 1
        };
        let mut found = [false; 2];
        for (interferes, found) in [false, true].into_iter().zip(&mut found) {
            let (mut diagnostics, mut candidate_was_last) = (Diagnostics::default(), false);
            for _ in 0..400 {
                let (candidate_is_first, noise) = (coin(), coin());
                let warm = interferes && candidate_is_first == candidate_was_last;
                diagnostics.push(if warm { candidate_is_first } else { noise });
                candidate_was_last = !candidate_is_first;
                diagnostics.end_trial(Some(candidate_was_last));
            }
            *found = diagnostics.interference().is_some();
            assert_eq!(matches!(diagnostics.signs().first(), Some(Unlike::Interferes { .. })), *found);
        }
        assert_eq!(found, [false, true]);
    }

    /// Each arm has its own lasting noise, so that one arm may win all of the first trials. A few trials show no sign
    /// of this, and the diagnostics report that they are too few.
    #[test]
    fn noise_that_lasts_is_seen_or_it_is_said_that_it_cannot_be() {
        let mut state = 3_u64;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
        };
        for run in 0..50 {
            let (mut diagnostics, mut arms) = (Diagnostics::default(), [0.0; 2]);
            for trial in 0..1000 {
                assert_eq!(diagnostics.has_too_few(), trial < 40);
                assert!(!diagnostics.has_too_few() || diagnostics.signs().is_empty(), "run {run}, trial {trial}");
                arms = arms.map(|arm| 0.98 * arm + noise());
                diagnostics.push(arms[0] < arms[1]);
                diagnostics.end_trial(None);
            }
            assert!(!diagnostics.signs().is_empty(), "run {run}");
        }
    }

    #[test]
    fn drift_and_correlation_are_said() {
        let drifting = signs((0..1000).map(|i| i % 10 < if i < 500 { 3 } else { 6 }));
        assert!(drifting.contains(&Unlike::Drifts { early: 0.3, late: 0.6 }), "{drifting:?}");
        let alternating = signs((0..1000).map(|i| i % 2 == 0));
        assert!(matches!(alternating[0], Unlike::Neighbours { correlation } if correlation < -0.9), "{alternating:?}");
    }

    /// Compares the counts with sums over all outcomes, which a plain reference keeps.
    #[test]
    fn few_blocks_give_the_figures_of_all_outcomes() {
        let mut state = 5_u64;
        let mut coin = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 62 == 1
        };
        for count in [41, 1000, MOST_BLOCKS, MOST_BLOCKS + 1, 100_000] {
            let outcomes: Vec<bool> = (0..count).map(|_| coin()).collect();
            let diagnostics = counted(outcomes.iter().copied());
            let number = |success: bool| f64::from(u8::from(success));
            let share = |part: &[bool]| part.iter().map(|success| number(*success)).sum::<f64>() / part.len() as f64;
            let rate = share(&outcomes);
            let products = outcomes.windows(2).map(|pair| (number(pair[0]) - rate) * (number(pair[1]) - rate));
            let expected = products.sum::<f64>() / count as f64;
            assert!((diagnostics.lag_1(rate) - expected).abs() < 1e-9, "{count}");
            let half = count / 2 / diagnostics.per_block as usize * diagnostics.per_block as usize;
            assert_eq!(diagnostics.halves(), (share(&outcomes[..half]), share(&outcomes[half..])), "{count}");
            assert!(half.abs_diff(count / 2) <= count / 1024, "{count}");
            assert!(diagnostics.blocks.len() <= MOST_BLOCKS);
        }
    }
}
