//! The path of a claim to its verdict.

use crate::values::{Bounds, Values};

/// The path of a claim to its verdict: the outcome and the e-values after each trial. It comes from judging the
/// recorded trials again, in their order.
///
/// The path has as many trials as the claim's result. It may continue after the verdict, if the number of trials was
/// fixed or if a precise interval was required. If trials are judged in sets, the path has e-values only at the end of
/// each set. Trials of an incomplete set are then missing in the path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimPath {
    /// Indices, within the experiment, of the trials that were counted, in order.
    pub trials: Vec<u64>,
    /// For each counted trial, `true` if the claim's tests were true. `None` for a tie that was dropped, and for a
    /// trial whose outcome is unknown because values were cut off.
    pub successes: Vec<Option<bool>>,
    /// The paired ratio or difference of each counted trial. Larger values are better for the candidate. Empty unless
    /// the claim is a comparison.
    pub statistics: Values,
    /// The claim's log e-values: at first after every trial, then at growing intervals, and always after the last
    /// trial. There are at most 2,000 items. Empty if the claim has no e-values (an exact claim, or `compare` with a
    /// margin).
    pub evidence: Vec<EvidencePoint>,
    /// The value that [`log_e_holds`](EvidencePoint::log_e_holds) must reach for the verdict that the claim holds.
    pub log_threshold_holds: f64,
    /// The value that [`log_e_refuted`](EvidencePoint::log_e_refuted) must reach for the verdict that the claim is
    /// refuted.
    pub log_threshold_refuted: f64,
    /// Number of counted trials that led to the verdict; `None` if there is no verdict.
    pub decided_after: Option<u64>,
}

/// The logarithms of a claim's e-values after a certain number of trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvidencePoint {
    /// Number of trials that had been counted, including ties.
    pub counted: u64,
    /// Natural logarithm of the e-value for the claim.
    pub log_e_holds: f64,
    /// Natural logarithm of the e-value against the claim.
    pub log_e_refuted: f64,
}

/// Maximum number of items in [`ClaimPath::evidence`], not counting the last item.
const MOST_POINTS: usize = 1_999;

/// A recorder for the path of a claim that is being judged: its outcomes and e-values over the trials.
#[derive(Clone)]
pub(crate) struct PathRecorder {
    path: ClaimPath,
    /// Number of trials at the start of the path during which log e-values are stored after every trial. They are then
    /// stored after every second trial up to twice this number, after every third up to three times this number, and so
    /// on.
    dense: u64,
    /// Number of counted trials at which log e-values are next stored.
    next: u64,
}

impl PathRecorder {
    pub fn new(log_threshold_holds: f64, log_threshold_refuted: f64) -> PathRecorder {
        let path = ClaimPath { log_threshold_holds, log_threshold_refuted, ..ClaimPath::default() };
        PathRecorder { path, dense: 1 << 11, next: 1 }
    }

    /// Adds the trial with the index `number`. `success` is `None` for a tie that was dropped and for an unknown
    /// outcome. `statistic` is the ratio or difference of a comparison.
    pub fn count(&mut self, number: u64, success: Option<bool>, statistic: Option<Bounds>) {
        self.path.trials.push(number);
        self.path.successes.push(success);
        statistic.into_iter().for_each(|value| self.path.statistics.push(value));
    }

    /// Stores the log e-values after a trial, if they are due or if the claim has just been decided. `log_e` computes
    /// two values: the log e-value for the claim, and the log e-value against it.
    pub fn look(&mut self, is_decided: bool, log_e: impl FnOnce() -> Option<(f64, f64)>) {
        let counted = self.path.trials.len() as u64;
        let decides = is_decided && self.path.decided_after.is_none();
        if decides {
            self.path.decided_after = Some(counted);
        }
        if counted < self.next && !decides {
            return;
        }
        self.next = after(counted, self.dense);
        self.push(counted, log_e());
        while self.path.evidence.len() > MOST_POINTS {
            self.thin();
        }
    }

    /// Returns the claim's path, cut off after its first `judged` trials. `is_decided` is `false` if the claim has no
    /// answer, for example because its answer was withdrawn. `log_e` computes the log e-values after the last trial, if
    /// they are missing.
    pub fn finish(mut self, judged: u64, is_decided: bool, log_e: impl FnOnce() -> Option<(f64, f64)>) -> ClaimPath {
        let path = &mut self.path;
        path.trials.truncate(judged as usize);
        path.successes.truncate(judged as usize);
        path.statistics.truncate(judged as usize);
        path.decided_after = is_decided.then_some(path.decided_after.unwrap_or(judged));
        if judged > 0 && path.evidence.last().is_none_or(|last| last.counted != judged) {
            self.push(judged, log_e());
        }
        self.path
    }

    fn push(&mut self, counted: u64, log_e: Option<(f64, f64)>) {
        let point = log_e.map(|(log_e_holds, log_e_refuted)| EvidencePoint { counted, log_e_holds, log_e_refuted });
        self.path.evidence.extend(point);
    }

    fn thin(&mut self) {
        self.dense = (self.dense / 2).max(1);
        self.next = 1;
        let decided_after = self.path.decided_after;
        self.path.evidence.retain(|point| {
            let stays = point.counted >= self.next || Some(point.counted) == decided_after;
            if stays {
                self.next = after(point.counted, self.dense);
            }
            stays
        });
    }
}

/// Returns the number of trials after which log e-values are stored next, if they were stored after `counted` trials.
/// The interval is one trial at first, and one trial longer after every `dense` trials.
fn after(counted: u64, dense: u64) -> u64 {
    counted + 1 + counted / dense
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(trials: u64, decided_after: u64) -> ClaimPath {
        let mut recorder = PathRecorder::new(7.0, 7.0);
        for trial in 0..trials {
            recorder.count(trial, Some(true), None);
            let evidence = trial as f64 + 1.0;
            recorder.look(trial + 1 >= decided_after, || Some((evidence, -evidence)));
        }
        recorder.finish(trials, trials >= decided_after, || Some((trials as f64, -(trials as f64))))
    }

    #[test]
    fn a_short_path_has_every_point() {
        let path = recorded(1_999, 20);
        assert_eq!((path.evidence.len(), path.decided_after), (1_999, Some(20)));
    }

    #[test]
    fn a_long_path_has_points_everywhere() {
        for trials in [2_000, 10_000, 1_000_000] {
            let decided_after = trials * 9 / 10 + 1;
            let evidence = recorded(trials, decided_after).evidence;
            assert!((900..=2_000).contains(&evidence.len()), "{}", evidence.len());
            assert_eq!(evidence.last().map(|point| point.counted), Some(trials));
            assert!(evidence.iter().any(|point| point.counted == decided_after));
            for (before, point) in evidence.iter().zip(&evidence[1..]) {
                assert!(point.counted > before.counted && point.log_e_holds == point.counted as f64);
                // A gap may be twice the intended distance, because the item between these two may have been dropped.
                let gap = point.counted - before.counted;
                assert!(gap <= 2 * (1 + before.counted / 128), "{} {gap}", before.counted);
            }
        }
    }

    /// Trials that are not judged yet are not part of the path.
    #[test]
    fn a_path_ends_with_what_is_judged() {
        let mut recorder = PathRecorder::new(7.0, 7.0);
        (0..8).for_each(|trial| recorder.count(trial, Some(true), Some(Bounds::exact(1.0))));
        let path = recorder.finish(5, false, || Some((1.0, 2.0)));
        assert_eq!((path.trials.len(), path.successes.len(), path.statistics.len()), (5, 5, 5));
        assert_eq!((path.evidence.len(), path.evidence[0].counted, path.decided_after), (1, 5, None));
    }
}
