//! What a run does at this moment, for another thread to see: a trial may take minutes, in which nobody is told
//! anything.

use std::collections::BTreeMap;
use std::mem::discriminant;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ascertain_sys::clock;

use crate::finding::Remark;

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
    /// The last one of each kind, of each arm.
    remarks: Mutex<BTreeMap<u64, Vec<Remark>>>,
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
        let remarks = Mutex::default();
        Now(Arc::new(Shared { lanes, doing, since_ns, trial_since_ns, arms, begun, remarks }))
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

    /// Says something of the arm that is measured, instead of what was said of the kind before: the run's outcome has
    /// the last one of each kind. It takes a lock: that is nothing for what is timed.
    pub fn remark(&self, remark: Remark) {
        let place = self.0.doing.load(Relaxed);
        if place < OPENING {
            let mut remarks = self.remarks();
            let of_arm = remarks.entry(place).or_default();
            match of_arm.iter_mut().find(|before| discriminant(*before) == discriminant(&remark)) {
                Some(before) => *before = remark,
                None => of_arm.push(remark),
            }
        }
    }

    /// The kind of remark that came first of the arm that is measured, as last said.
    #[must_use]
    pub fn remarked(&self) -> Option<Remark> {
        self.remarks().get(&self.0.doing.load(Relaxed))?.first().cloned()
    }

    /// What was said of arms, with their lanes and their places there.
    pub(crate) fn all_remarks(&self) -> Vec<((usize, usize), Remark)> {
        let place = |place: &u64| ((place / PLACES) as usize, (place % PLACES) as usize);
        let remarks = self.remarks();
        let of_arm = |(at, remarks): (&u64, &Vec<Remark>)| {
            let at = place(at);
            remarks.iter().map(move |remark| (at, remark.clone())).collect::<Vec<_>>()
        };
        remarks.iter().flat_map(of_arm).collect()
    }

    fn remarks(&self) -> MutexGuard<'_, BTreeMap<u64, Vec<Remark>>> {
        self.0.remarks.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn the_last_of_each_kind_that_is_said_of_an_arm_is_kept() {
        let now = Now::new(vec![Vec::new(), vec!["a".into(), "b".into()]]);
        let said = |text: f64| Remark::Failure { said: text.to_string() };
        let other = Remark::NoAddress { servers: vec!["a".into()] };
        // Of nothing that is measured nothing is said.
        now.remark(said(0.0));
        now.opens();
        now.remark(said(0.0));
        now.measures(1, 1, 0);
        assert_eq!(now.remarked(), None);
        now.remark(said(1.0));
        now.remark(other.clone());
        now.remark(said(2.0));
        assert_eq!(now.remarked(), Some(said(2.0)));
        now.rests();
        assert_eq!((now.remarked(), now.all_remarks()), (None, vec![((1, 1), said(2.0)), ((1, 1), other)]));
    }

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
