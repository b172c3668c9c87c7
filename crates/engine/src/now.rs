//! The current activity of a run, which another thread can read at any time. A trial may take minutes, and the observer
//! gets progress reports only between trials.

use std::collections::BTreeMap;
use std::mem::discriminant;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ascertain_sys::clock;

use crate::finding::Remark;

/// A handle to the current activity of a run. Clones refer to the same activity.
///
/// The measuring thread needs only a few nanoseconds to update the activity, and never waits. So reading the activity
/// does not disturb the measurement. Use it only for display: during an update, a reader may see a mixture of old and
/// new values.
#[derive(Clone, Debug)]
pub struct Now(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Names of the arms in each lane (a group of arms that are measured together). The index of a name is the arm's
    /// slot.
    lanes: Vec<Vec<String>>,
    /// The arm that is being measured, as one number made from its lane and slot (see [`PLACES`]). If no arm is being
    /// measured, the value is [`IDLE`] or [`OPENING`].
    activity: AtomicU64,
    since_ns: AtomicU64,
    trial_since_ns: AtomicU64,
    /// Number of arms in the current trial.
    arms: AtomicU64,
    /// Number of arms in the current trial whose measurement has begun.
    begun: AtomicU64,
    /// For each arm, the last remark of each kind. The key is the number of the arm, made from its lane and slot.
    remarks: Mutex<BTreeMap<u64, Vec<Remark>>>,
}

const IDLE: u64 = u64::MAX;
const OPENING: u64 = u64::MAX - 1;
/// Factor for combining the lane and the slot of an arm into one number: `lane * PLACES + slot`. It must be larger than
/// every slot.
const PLACES: u64 = 1 << 16;

/// An activity that may take a long time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity<'n> {
    /// Arms are prepared: their set-up commands run, programs are compiled, and answers are verified.
    Opening,
    /// An arm is being measured.
    Measuring {
        /// Name of the arm.
        arm: &'n str,
        /// Time since the start of the trial, in nanoseconds.
        trial_ns: u64,
        /// Predicted duration of the whole trial in nanoseconds: the remaining arms are expected to take as long as the
        /// arms that have finished. It is `None` before the first arm has finished, and after the trial has exceeded
        /// the prediction.
        whole_ns: Option<u64>,
    },
}

impl Default for Now {
    /// Returns an idle activity, for a run without lanes.
    fn default() -> Now {
        Now::new(Vec::new())
    }
}

impl Now {
    /// Returns an idle activity. `lanes` has the names of the arms in each group of arms that are measured together.
    pub(crate) fn new(lanes: Vec<Vec<String>>) -> Now {
        let [activity, since_ns, trial_since_ns, arms, begun] = [IDLE, 0, 0, 0, 0].map(AtomicU64::new);
        let remarks = Mutex::default();
        Now(Arc::new(Shared { lanes, activity, since_ns, trial_since_ns, arms, begun, remarks }))
    }

    pub(crate) fn set_opening(&self) {
        self.set(OPENING, clock::now_ns());
    }

    pub(crate) fn begin_trial(&self, arms: usize, start_ns: u64) {
        self.0.arms.store(arms as u64, Relaxed);
        self.0.begun.store(0, Relaxed);
        self.0.trial_since_ns.store(start_ns, Relaxed);
    }

    pub(crate) fn set_measuring(&self, lane: usize, slot: usize, start_ns: u64) {
        // Only the measuring thread writes, so a plain store is enough. It is faster than an atomic addition.
        self.0.begun.store(self.0.begun.load(Relaxed) + 1, Relaxed);
        self.set(lane as u64 * PLACES + slot as u64, start_ns);
    }

    pub(crate) fn set_idle(&self) {
        self.0.activity.store(IDLE, Relaxed);
    }

    fn set(&self, activity: u64, since_ns: u64) {
        self.0.since_ns.store(since_ns, Relaxed);
        self.0.activity.store(activity, Relaxed);
    }

    /// Returns the current activity, and its duration so far in nanoseconds. Returns `None` during activities that are
    /// always short.
    #[must_use]
    pub fn activity(&self) -> Option<(Activity<'_>, u64)> {
        let now_ns = clock::now_ns();
        let gone = |since: &AtomicU64| now_ns.saturating_sub(since.load(Relaxed));
        let activity = match self.0.activity.load(Relaxed) {
            IDLE => return None,
            OPENING => Activity::Opening,
            place => {
                let lane = self.0.lanes.get((place / PLACES) as usize)?;
                let arm = lane.get((place % PLACES) as usize)?;
                let trial_ns = gone(&self.0.trial_since_ns);
                let whole_ns = self.whole_ns().filter(|whole_ns| *whole_ns >= trial_ns);
                Activity::Measuring { arm, trial_ns, whole_ns }
            }
        };
        Some((activity, gone(&self.0.since_ns)))
    }

    /// Adds a remark on the arm that is being measured, in place of an earlier remark of the same kind. Takes a lock,
    /// so don't call this while time is measured.
    pub fn remark(&self, remark: Remark) {
        let place = self.0.activity.load(Relaxed);
        if place < OPENING {
            let mut remarks = self.remarks();
            let of_arm = remarks.entry(place).or_default();
            match of_arm.iter_mut().find(|before| discriminant(*before) == discriminant(&remark)) {
                Some(before) => *before = remark,
                None => of_arm.push(remark),
            }
        }
    }

    /// Returns the remark to show for the arm that is being measured. If there are remarks of several kinds, chooses
    /// the kind that occurred first, and returns the latest remark of this kind.
    #[must_use]
    pub fn latest_remark(&self) -> Option<Remark> {
        self.remarks().get(&self.0.activity.load(Relaxed))?.first().cloned()
    }

    /// Returns all remarks. Each comes with the index of its arm's lane and the slot of the arm in this lane.
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

    /// Returns the predicted duration of the trial in nanoseconds, from the arms that have finished.
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
        // If no arm is being measured, the remark is dropped.
        now.remark(said(0.0));
        now.set_opening();
        now.remark(said(0.0));
        now.set_measuring(1, 1, 0);
        assert_eq!(now.latest_remark(), None);
        now.remark(said(1.0));
        now.remark(other.clone());
        now.remark(said(2.0));
        assert_eq!(now.latest_remark(), Some(said(2.0)));
        now.set_idle();
        assert_eq!((now.latest_remark(), now.all_remarks()), (None, vec![((1, 1), said(2.0)), ((1, 1), other)]));
    }

    #[test]
    fn the_arms_that_are_left_are_taken_to_last_as_long_as_those_that_ended() {
        let now = Now::new(vec![vec!["a".into(), "b".into(), "c".into()]]);
        let whole_ns = || match now.activity() {
            Some((Activity::Measuring { whole_ns, .. }, _)) => whole_ns,
            _ => None,
        };
        // The start is far in the future, so that the real clock does not matter.
        let start_ns = clock::now_ns() + 1_000_000_000_000;
        for _ in 0..2 {
            now.begin_trial(3, start_ns);
            now.set_measuring(0, 1, start_ns);
            assert_eq!(whole_ns(), None);
            now.set_measuring(0, 0, start_ns + 10);
            assert_eq!(whole_ns(), Some(30));
            now.set_measuring(0, 2, start_ns + 40);
            assert_eq!(whole_ns(), Some(60));
            now.set_idle();
            assert_eq!(whole_ns(), None);
        }
    }
}
