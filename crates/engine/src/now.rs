//! What a run does at this moment, for another thread to see: a trial may take minutes, in which nobody is told
//! anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ascertain_sys::clock;

/// What a run does at this moment, while it goes on. Clones see the same.
///
/// Whoever measures notes it in a few nanoseconds and waits for nobody, so that reading it disturbs nothing. It is for
/// people: what is read while it changes may be a part of the old and a part of the new.
#[derive(Clone, Debug)]
pub struct Now(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The arms of each lane, by their places.
    lanes: Vec<Vec<String>>,
    /// One of [`REST`], [`OPENING`], or the arm that is measured.
    doing: AtomicU64,
    since_ns: AtomicU64,
    trial_since_ns: AtomicU64,
    /// The arms of the trial, and how many of them have begun.
    arms: AtomicU64,
    begun: AtomicU64,
}

const REST: u64 = u64::MAX;
const OPENING: u64 = u64::MAX - 1;
/// A lane has fewer places than that.
const PLACES: u64 = 1 << 16;

/// What a run is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing<'n> {
    /// Arms are made ready: set-ups, peers that are compiled, answers that are checked.
    Opening,
    /// An arm is measured.
    Measuring {
        /// The arm's name.
        arm: &'n str,
        /// How long its trial has taken, this arm included.
        trial_ns: u64,
        /// How long the trial will take if the arms that are left take as long as those that have ended; none before
        /// the first has, and where it has taken longer already.
        whole_ns: Option<u64>,
    },
}

impl Default for Now {
    /// Of a run without arms, which does nothing.
    fn default() -> Now {
        Now::new(Vec::new())
    }
}

impl Now {
    /// For lanes with these arms.
    pub(crate) fn new(lanes: Vec<Vec<String>>) -> Now {
        let [doing, since_ns, trial_since_ns, arms, begun] = [REST, 0, 0, 0, 0].map(AtomicU64::new);
        Now(Arc::new(Shared { lanes, doing, since_ns, trial_since_ns, arms, begun }))
    }

    pub(crate) fn opens(&self) {
        self.note(OPENING, clock::now_ns());
    }

    pub(crate) fn begins_trial(&self, arms: usize, start_ns: u64) {
        self.0.arms.store(arms as u64, Relaxed);
        self.0.begun.store(0, Relaxed);
        self.0.trial_since_ns.store(start_ns, Relaxed);
    }

    pub(crate) fn measures(&self, lane: usize, slot: usize, start_ns: u64) {
        // Nobody else writes: a plain store is quicker than an atomic sum.
        self.0.begun.store(self.0.begun.load(Relaxed) + 1, Relaxed);
        self.note(lane as u64 * PLACES + slot as u64, start_ns);
    }

    pub(crate) fn rests(&self) {
        self.0.doing.store(REST, Relaxed);
    }

    fn note(&self, doing: u64, since_ns: u64) {
        self.0.since_ns.store(since_ns, Relaxed);
        self.0.doing.store(doing, Relaxed);
    }

    /// What it waits for, and for how long it has, in nanoseconds; `None` where that is nothing that lasts.
    #[must_use]
    pub fn doing(&self) -> Option<(Doing<'_>, u64)> {
        let now_ns = clock::now_ns();
        let gone = |since: &AtomicU64| now_ns.saturating_sub(since.load(Relaxed));
        let doing = match self.0.doing.load(Relaxed) {
            REST => return None,
            OPENING => Doing::Opening,
            place => {
                let lane = self.0.lanes.get((place / PLACES) as usize)?;
                let arm = lane.get((place % PLACES) as usize)?;
                let trial_ns = gone(&self.0.trial_since_ns);
                let whole_ns = self.whole_ns().filter(|whole_ns| *whole_ns >= trial_ns);
                Doing::Measuring { arm, trial_ns, whole_ns }
            }
        };
        Some((doing, gone(&self.0.since_ns)))
    }

    /// How long the trial takes by what its arms took that have ended.
    fn whole_ns(&self) -> Option<u64> {
        let [arms, begun, since_ns, trial_since_ns] =
            [&self.0.arms, &self.0.begun, &self.0.since_ns, &self.0.trial_since_ns].map(|noted| noted.load(Relaxed));
        let ended = begun.checked_sub(1).filter(|ended| *ended > 0)?;
        Some(since_ns.saturating_sub(trial_since_ns).saturating_mul(arms) / ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arms_that_are_left_are_taken_to_last_as_long_as_those_that_ended() {
        let now = Now::new(vec![vec!["a".into(), "b".into(), "c".into()]]);
        let whole_ns = || match now.doing() {
            Some((Doing::Measuring { whole_ns, .. }, _)) => whole_ns,
            _ => None,
        };
        // Far ahead, so that no time goes by.
        let start_ns = clock::now_ns() + 1_000_000_000_000;
        for _ in 0..2 {
            now.begins_trial(3, start_ns);
            now.measures(0, 1, start_ns);
            assert_eq!(whole_ns(), None);
            now.measures(0, 0, start_ns + 10);
            assert_eq!(whole_ns(), Some(30));
            now.measures(0, 2, start_ns + 40);
            assert_eq!(whole_ns(), Some(60));
            now.rests();
            assert_eq!(whole_ns(), None);
        }
    }
}
