//! The way of a claim to its verdict.

use crate::values::{Bounds, Values};

/// How a claim came to its verdict, trial by trial: recorded trials judged again in their order.
///
/// It has as many trials as the claim's result. One that was open beyond its verdict, since trials were
/// counted or an interval was to be narrow, has those too. Where evidence is looked at after sets of trials,
/// it has points there only, and not the trials of a set that was not finished.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimPath {
    /// The numbers of the trials that were counted, in order.
    pub trials: Vec<u64>,
    /// Whether the claim's tests were true of the trial; `None` for a tie that was dropped, and where what was
    /// cut off leaves it open.
    pub successes: Vec<Option<bool>>,
    /// The paired ratio or difference of each counted trial, larger when the candidate is better; empty
    /// for a claim that compares nothing.
    pub statistics: Values,
    /// The evidence after some of the trials: all of the first ones, then ever fewer, and the last; at
    /// most 2,000. Empty where the claim is not judged by evidence that grows (an exact claim; `compare`
    /// with a margin).
    pub evidence: Vec<EvidencePoint>,
    /// The logarithm that the evidence in favour must reach.
    pub log_threshold_holds: f64,
    /// The logarithm that the evidence against must reach.
    pub log_threshold_refuted: f64,
    /// After how many counted trials the verdict fell.
    pub decided_after: Option<u64>,
}

/// The evidence after so many trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvidencePoint {
    /// Trials counted so far, ties included.
    pub counted: u64,
    /// Natural logarithm of the evidence that the claim holds.
    pub log_e_holds: f64,
    /// Natural logarithm of the evidence that it does not.
    pub log_e_refuted: f64,
}

/// Points of evidence that are kept, the last one aside.
const MOST_POINTS: usize = 1_999;

/// Keeps a claim's path while it is judged.
#[derive(Clone)]
pub(crate) struct PathRecorder {
    path: ClaimPath,
    /// After so many trials points are two trials apart, after twice as many three, and so on.
    dense: u64,
    /// The next point is kept after so many trials.
    next: u64,
}

impl PathRecorder {
    pub fn new(log_threshold_holds: f64, log_threshold_refuted: f64) -> PathRecorder {
        let path = ClaimPath { log_threshold_holds, log_threshold_refuted, ..ClaimPath::default() };
        PathRecorder { path, dense: 1 << 11, next: 1 }
    }

    /// Counts a trial, `success` being `None` for a tie that was dropped, and for one that is left open.
    pub fn count(&mut self, number: u64, success: Option<bool>, statistic: Option<Bounds>) {
        self.path.trials.push(number);
        self.path.successes.push(success);
        statistic.into_iter().for_each(|value| self.path.statistics.push(value));
    }

    /// Looks at the evidence after a trial, where a point is due or it has decided.
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

    /// The path of the first trials, so many as are judged. The answer may have come late, or have been
    /// taken back.
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

/// When the next point is kept.
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
                // Twice what is wanted, where a point that would be in its place had been dropped before.
                let gap = point.counted - before.counted;
                assert!(gap <= 2 * (1 + before.counted / 128), "{} {gap}", before.counted);
            }
        }
    }

    /// Trials that are not judged yet are not on the path.
    #[test]
    fn a_path_ends_with_what_is_judged() {
        let mut recorder = PathRecorder::new(7.0, 7.0);
        (0..8).for_each(|trial| recorder.count(trial, Some(true), Some(Bounds::exact(1.0))));
        let path = recorder.finish(5, false, || Some((1.0, 2.0)));
        assert_eq!((path.trials.len(), path.successes.len(), path.statistics.len()), (5, 5, 5));
        assert_eq!((path.evidence.len(), path.evidence[0].counted, path.decided_after), (1, 5, None));
    }
}
