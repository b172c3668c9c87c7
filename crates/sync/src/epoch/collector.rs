//! The epoch, who is pinned in it, and what waits for it.

use std::fmt;
use std::mem;
use std::sync::Arc;

use super::Handle;
use crate::barrier::{Barrier, Ticket};
use crate::drop_all::drop_all;
use crate::primitives::{AtomicU64, Ordering, UnsafeCell};
use crate::reclaim::{Leavable, Orphans, Reclaimer, Records, Retired, Turn};

/// Epochs are even, so that a participant's one word tells that it is pinned by its last bit. The epoch after the
/// last is 0.
const STEP: u64 = 2;
/// What a participant's word says that is not pinned. No epoch and `PINNED` together are that.
pub(super) const UNPINNED: u64 = 0;
pub(super) const PINNED: u64 = 1;

/// Epoch-based reclamation: participants and the objects that wait for them.
///
/// A clone is the same collector. It ends with the last clone, [`Handle`] and owned guard, and then frees all that was
/// retired in it.
pub struct Collector<B: Barrier>(Arc<Inner<B>>);

struct Inner<B> {
    barrier: B,
    epoch: AtomicU64,
    participants: Records<Participant>,
    orphans: Orphans<Bag>,
    advance: Advance,
}

/// [`UNPINNED`], or the epoch that it was pinned in with [`PINNED`].
#[derive(Debug, Default)]
pub(super) struct Participant(pub(super) AtomicU64);

/// Objects that were retired in an epoch or before it.
#[derive(Debug)]
pub(super) struct Bag {
    pub(super) epoch: u64,
    pub(super) objects: Vec<Retired>,
}

impl Leavable for Bag {
    fn objects(&self) -> usize {
        self.objects.len()
    }
}

impl Drop for Bag {
    fn drop(&mut self) {
        drop_all(mem::take(&mut self.objects));
    }
}

/// The heavy side that the next epoch waits for.
struct Advance {
    turn: AtomicU64,
    state: UnsafeCell<State>,
}

enum State {
    NotBegun,
    Begun(Ticket),
    /// Who is pinned is seen to be: only they are waited for.
    Over,
}

// SAFETY: the state is used by whoever has the turn, one at a time.
unsafe impl Sync for Advance {}

impl<B: Barrier> Collector<B> {
    /// A collector without participants, in epoch 0.
    pub fn new(barrier: B) -> Self {
        Self::starting_at(0, barrier)
    }

    /// As [`new`](Self::new), in another epoch: to see what happens after the last, which is `u64::MAX / 2`.
    pub fn starting_at(epoch: u64, barrier: B) -> Self {
        Self(Arc::new(Inner {
            barrier,
            epoch: AtomicU64::new(epoch.wrapping_mul(STEP)),
            participants: Records::new(),
            orphans: Orphans::new(),
            advance: Advance { turn: AtomicU64::new(0), state: UnsafeCell::new(State::NotBegun) },
        }))
    }

    /// A participant. A thread needs one, however many objects it reads.
    pub fn register(&self) -> Handle<B> {
        Handle::new(self.clone(), self.0.participants.take())
    }

    /// The current epoch: the number of times that it has advanced, if it began at 0.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.0.epoch.load(Ordering::Relaxed) / STEP
    }

    /// How many participants there were at a time, at most.
    #[must_use]
    pub fn participants(&self) -> usize {
        self.0.participants.values().count()
    }

    /// The collector's barrier.
    #[inline(always)]
    pub fn barrier(&self) -> &B {
        &self.0.barrier
    }

    #[inline(always)]
    pub(super) fn current(&self) -> &AtomicU64 {
        &self.0.epoch
    }

    pub(super) fn orphans(&self) -> &Orphans<Bag> {
        &self.0.orphans
    }

    /// Puts a label on objects that were taken out of reach: the epoch, or one that has begun since.
    pub(super) fn bag(&self, objects: Vec<Retired>) -> Bag {
        // Not a load, which may find an epoch that is past: a reader that is pinned in a later epoch than this label
        // finds them no more, on machines too whose threads don't all see a store at the same time. Release: with the
        // next epoch comes that they were taken out.
        Bag { epoch: self.0.epoch.fetch_add(0, Ordering::Release), objects }
    }

    /// Whether the epoch has advanced twice since the label was put on. At the first time everybody was pinned in the
    /// label's epoch or not at all; at the second those had ended.
    pub(super) fn is_ripe(&self, bag: &Bag) -> bool {
        // A label would look new again 2^63 epochs later, which takes centuries.
        // Acquire: what participants did while they were pinned comes before what is freed now.
        self.0.epoch.load(Ordering::Acquire).wrapping_sub(bag.epoch) >= 2 * STEP
    }

    /// Goes on towards the next epoch: begins the heavy side, and when that is over advances if nobody is pinned in an
    /// earlier one. Returns whether the epoch advanced here.
    pub(super) fn advance(&self, is_blocking: bool) -> bool {
        let advance = &self.0.advance;
        let Some(turn) = Turn::take(&advance.turn) else { return false };
        let step = |state: *mut State| {
            if turn.is_inherited {
                // SAFETY: as below. It may have been half written: what is there is not dropped.
                unsafe { state.write(State::NotBegun) };
            }
            // SAFETY: everybody else finds the turn taken until it is given back.
            let state = unsafe { &mut *state };
            state.step(&self.0.barrier, is_blocking, || self.try_advance())
        };
        advance.state.with_mut(step)
    }

    /// For who has the turn, after a heavy side in the current epoch.
    fn try_advance(&self) -> bool {
        let current = self.0.epoch.load(Ordering::Relaxed);
        // Acquire: what a participant did before it was unpinned comes before the new epoch.
        let mut words = self.0.participants.values().map(|participant| participant.0.load(Ordering::Acquire));
        let is_free = words.all(|word| word == UNPINNED || word == current | PINNED);
        if is_free {
            // Acquire: what has a label of the epoch before was taken out before this one. It wraps.
            self.0.epoch.fetch_add(STEP, Ordering::AcqRel);
        }
        is_free
    }

    /// For who has left some objects: frees where there are too many by now.
    pub(super) fn free_if_many(&self) {
        self.0.orphans.free_if_many(|| self.register().free_ripe());
    }
}

impl State {
    /// Goes on towards the next epoch, to which `try_advance` goes if nobody is pinned in an earlier one.
    fn step(&mut self, barrier: &impl Barrier, is_blocking: bool, try_advance: impl FnOnce() -> bool) -> bool {
        if matches!(self, Self::NotBegun) {
            *self = Self::Begun(barrier.ticket());
        }
        if let Self::Begun(ticket) = self {
            if is_blocking {
                ticket.wait();
            } else if !ticket.is_passed() {
                return false;
            }
            *self = Self::Over;
        }
        let has_advanced = try_advance();
        if has_advanced {
            *self = Self::NotBegun;
        }
        has_advanced
    }
}

impl<B: Barrier> Clone for Collector<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B: Barrier> fmt::Debug for Collector<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("epoch", &self.epoch()).finish_non_exhaustive()
    }
}

impl<B: Barrier> Reclaimer for Collector<B> {
    #[inline(always)]
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn adopt(&self, retired: Retired) {
        self.0.orphans.add(vec![self.bag(vec![retired])]);
        self.free_if_many();
    }
}

#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
mod tests {
    use ascertain_sys::fork::generation;

    use super::*;
    use crate::barrier::Scripted;

    #[test]
    #[cfg_attr(miri, ignore = "it leaks, as it must")]
    fn what_a_thread_of_the_parents_was_at_begins_anew() {
        let barrier = Scripted::default();
        let collector = Collector::new(barrier.clone());
        let handle = collector.register();
        handle.collect();
        assert_eq!((collector.epoch(), barrier.tickets()), (0, 1));
        // A child finds the turn taken so, and the state half written, with a ticket that may be one for nothing.
        collector.0.advance.turn.store(generation() + 1, Ordering::Relaxed);
        barrier.end_with(Some(Ok(())));
        handle.collect();
        assert_eq!((collector.epoch(), barrier.tickets()), (1, 2));
    }
}
