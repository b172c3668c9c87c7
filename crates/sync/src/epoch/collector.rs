//! The epoch, the pinned participants, and the objects that wait to be freed.

use std::fmt;
use std::mem;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::Handle;
use crate::barrier::{Barrier, Ticket};
use crate::drop_all::drop_all;
use crate::primitives::{AtomicU64, Ordering, UnsafeCell};
use crate::reclaim::{Leavable, Orphans, Reclaimer, Records, Retired, Turn};

/// The difference between the numbers of two consecutive epochs. Epochs have even numbers, so that the last bit of a
/// participant's word can indicate that the participant is pinned. The epoch after the last epoch is 0.
const STEP: u64 = 2;
/// The word of a participant that is not pinned. No epoch combined with `PINNED` has this value.
pub(super) const UNPINNED: u64 = 0;
pub(super) const PINNED: u64 = 1;

/// Epoch-based reclamation: the participants, which read objects, and the retired objects, which are freed when no
/// participant can read them.
///
/// Clones refer to the same collector. The collector ends when its last clone, [`Handle`] or owned guard is dropped,
/// and then frees everything that was retired in it.
pub struct Collector<B: Barrier>(Arc<Inner<B>>);

/// The data of a collector, which its clones share.
pub(super) struct Inner<B> {
    barrier: B,
    epoch: AtomicU64,
    participants: Records<Participant>,
    orphans: Orphans<Bag>,
    advance: Advance,
}

/// The word of a participant: [`UNPINNED`], or [`PINNED`] together with the epoch in which it was pinned.
#[derive(Debug, Default)]
pub(super) struct Participant(pub(super) AtomicU64);

/// Retired objects, labelled with the epoch in which they were retired, or with a later epoch.
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

/// The progress towards the next epoch. Before the epoch advances, a heavy side of the barrier must be complete.
struct Advance {
    turn: AtomicU64,
    state: UnsafeCell<State>,
}

enum State {
    NotBegun,
    Begun(Ticket),
    /// The heavy side is complete. So every participant that was pinned before the heavy side is visible, and the epoch
    /// needs to wait only for these participants.
    Over,
}

// SAFETY: only the thread that has the turn uses the state, and only one thread has it at a time.
unsafe impl Sync for Advance {}

impl<B> Inner<B> {
    #[inline(always)]
    pub(super) fn current(&self) -> &AtomicU64 {
        &self.epoch
    }

    #[inline(always)]
    pub(super) fn barrier(&self) -> &B {
        &self.barrier
    }
}

impl<B: Barrier> Collector<B> {
    /// Creates a collector without participants, in epoch 0.
    pub fn new(barrier: B) -> Self {
        Self::starting_at(0, barrier)
    }

    /// Creates a collector as [`new`](Self::new) does, but in the given epoch. This is for tests of the last epoch,
    /// which is `u64::MAX / 2`.
    pub fn starting_at(epoch: u64, barrier: B) -> Self {
        Self(Arc::new(Inner {
            barrier,
            epoch: AtomicU64::new(epoch.wrapping_mul(STEP)),
            participants: Records::new(),
            orphans: Orphans::new(),
            advance: Advance { turn: AtomicU64::new(0), state: UnsafeCell::new(State::NotBegun) },
        }))
    }

    /// Registers a participant. A thread needs only one participant, however many objects it reads.
    pub fn register(&self) -> Handle<B> {
        Handle::new(self.clone(), self.0.participants.claim())
    }

    /// Returns the current epoch. It is the number of advances, if the first epoch was 0.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.0.epoch.load(Ordering::Relaxed) / STEP
    }

    /// Returns the maximum number of participants that existed at the same time.
    #[must_use]
    pub fn participants(&self) -> usize {
        self.0.participants.values().count()
    }

    /// Returns the collector's barrier.
    #[inline(always)]
    pub fn barrier(&self) -> &B {
        &self.0.barrier
    }

    #[inline(always)]
    pub(super) fn inner(&self) -> &Inner<B> {
        &self.0
    }

    /// Returns whether `inner` is the data of this collector.
    #[inline(always)]
    pub(super) fn has(&self, inner: NonNull<Inner<B>>) -> bool {
        ptr::eq(Arc::as_ptr(&self.0), inner.as_ptr())
    }

    pub(super) fn orphans(&self) -> &Orphans<Bag> {
        &self.0.orphans
    }

    /// Puts retired objects into a bag, and labels it with the epoch that is current during this call. The caller has
    /// already taken the objects out of the data that threads share, so later reads cannot find them.
    pub(super) fn bag(&self, objects: Vec<Retired>) -> Bag {
        // A load is not enough: it may return a past epoch. This read-modify-write returns the latest one, even on
        // machines whose threads do not all see a store at the same time. Release: a thread that sees a later epoch
        // than the label also sees that the objects were taken out. So a reader that is pinned in a later epoch does
        // not find them.
        Bag { epoch: self.0.epoch.fetch_add(0, Ordering::Release), objects }
    }

    /// Returns whether the objects of the bag can be freed. They can if the epoch has advanced twice since the bag was
    /// labelled.
    ///
    /// Only participants that were pinned in the label's epoch, or before it, can have found the objects. The first
    /// advance shows that the pins in earlier epochs have ended. The second one shows that the pins in the label's
    /// epoch have ended.
    pub(super) fn is_ripe(&self, bag: &Bag) -> bool {
        // A label would look new again 2^63 epochs later, which takes centuries. Acquire: the actions of participants
        // while they were pinned come before the freeing.
        self.0.epoch.load(Ordering::Acquire).wrapping_sub(bag.epoch) >= 2 * STEP
    }

    /// Makes progress towards the next epoch. Begins a heavy side, and when that is complete, advances if no
    /// participant is pinned in an earlier epoch. Waits for the heavy side only if `is_blocking`. Returns whether this
    /// call advanced the epoch.
    pub(super) fn advance(&self, is_blocking: bool) -> bool {
        let advance = &self.0.advance;
        let Some(turn) = Turn::acquire(&advance.turn) else { return false };
        let step = |state: *mut State| {
            if turn.is_inherited {
                // SAFETY: as for `&mut *state` below. The old value is not dropped, because a thread of the parent
                // process may have written only a part of it.
                unsafe { state.write(State::NotBegun) };
            }
            // SAFETY: until the turn is released, all other threads find that it is taken.
            let state = unsafe { &mut *state };
            state.step(&self.0.barrier, is_blocking, || self.try_advance())
        };
        advance.state.with_mut(step)
    }

    /// Advances the epoch if no participant is pinned in an earlier epoch. Returns whether the epoch has advanced. Only
    /// the thread that holds the [`Turn`] may call this, after a heavy side in the current epoch is complete.
    fn try_advance(&self) -> bool {
        let current = self.0.epoch.load(Ordering::Relaxed);
        // Acquire: the actions of a participant before it was unpinned come before the new epoch.
        let mut words = self.0.participants.values().map(|participant| participant.0.load(Ordering::Acquire));
        let is_free = words.all(|word| word == UNPINNED || word == current | PINNED);
        if is_free {
            // Acquire: objects with a label of the epoch that ends here were taken out before the new epoch begins. The
            // addition wraps around.
            self.0.epoch.fetch_add(STEP, Ordering::AcqRel);
        }
        is_free
    }

    /// Frees objects that threads have left to the collector, if too many are waiting. Call this after leaving objects.
    pub(super) fn free_if_many(&self) {
        self.0.orphans.free_if_many(|| self.register().free_ripe());
    }
}

impl State {
    /// Makes progress towards the next epoch, and returns whether the epoch has advanced. If `is_blocking`, waits for
    /// the heavy side. `try_advance` must advance the epoch unless a participant is pinned in an earlier epoch.
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
    fn is_same(&self, other: &Self) -> bool {
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
    #[cfg_attr(miri, ignore = "the test leaks memory on purpose")]
    fn what_a_thread_of_the_parents_was_at_begins_anew() {
        let barrier = Scripted::default();
        let collector = Collector::new(barrier.clone());
        let handle = collector.register();
        handle.collect();
        assert_eq!((collector.epoch(), barrier.tickets()), (0, 1));
        // A child finds the turn taken by the parent's thread, and the state half written, with a ticket that may never
        // pass.
        collector.0.advance.turn.store(generation() + 1, Ordering::Relaxed);
        barrier.end_with(Some(Ok(())));
        handle.collect();
        assert_eq!((collector.epoch(), barrier.tickets()), (1, 2));
    }
}
