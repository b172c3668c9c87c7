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
        let [doing, since_ns, trial_since_ns] = [REST, 0, 0].map(AtomicU64::new);
        Now(Arc::new(Shared { lanes, doing, since_ns, trial_since_ns }))
    }

    pub(crate) fn opens(&self) {
        self.note(OPENING, clock::now_ns());
    }

    pub(crate) fn begins_trial(&self, start_ns: u64) {
        self.0.trial_since_ns.store(start_ns, Relaxed);
    }

    pub(crate) fn measures(&self, lane: usize, slot: usize, start_ns: u64) {
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
                Doing::Measuring { arm: lane.get((place % PLACES) as usize)?, trial_ns: gone(&self.0.trial_since_ns) }
            }
        };
        Some((doing, gone(&self.0.since_ns)))
    }
}
