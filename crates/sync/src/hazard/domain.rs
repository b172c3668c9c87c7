//! The slots of all readers, and the objects that wait for them.

use std::fmt;
use std::sync::Arc;

use super::{Hazard, Retirer};
use crate::barrier::Barrier;
use crate::primitives::{AtomicPtr, Ordering};
use crate::reclaim::{Orphans, Reclaimer, Records, Retired};

/// Hazard pointers and the objects that they protect.
///
/// A clone is the same domain. It ends with the last clone, [`Hazard`], [`Retirer`] and owned guard, and then frees all
/// that was retired in it.
pub struct Domain<B: Barrier>(Arc<Inner<B>>);

struct Inner<B> {
    barrier: B,
    slots: Records<Slot>,
    orphans: Orphans<Retired>,
}

/// The object that its owner may be reading, or null.
#[derive(Debug, Default)]
pub(super) struct Slot(pub(super) AtomicPtr<()>);

impl<B: Barrier> Domain<B> {
    /// A domain without slots.
    pub fn new(barrier: B) -> Self {
        Self(Arc::new(Inner { barrier, slots: Records::new(), orphans: Orphans::new() }))
    }

    /// A hazard pointer, for one object at a time. A thread may have as many as it likes.
    pub fn hazard(&self) -> Hazard<B> {
        Hazard::new(self.clone(), self.0.slots.take())
    }

    /// What frees objects, for one thread at a time.
    pub fn retirer(&self) -> Retirer<B> {
        Retirer::new(self.clone())
    }

    /// How many slots there are: the most hazard pointers that there were at a time.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.0.slots.values().count()
    }

    /// The domain's barrier.
    #[inline(always)]
    pub fn barrier(&self) -> &B {
        &self.0.barrier
    }

    pub(super) fn orphans(&self) -> &Orphans<Retired> {
        &self.0.orphans
    }

    /// What the slots hold now, ascending; and how many slots there are.
    pub(super) fn protected(&self) -> (Vec<*mut ()>, usize) {
        let mut slots = 0;
        let held = self.0.slots.values().map(|slot| {
            slots += 1;
            // Acquire: what a reader did before it let go of an object comes before the object is freed.
            slot.0.load(Ordering::Acquire)
        });
        let mut protected: Vec<_> = held.filter(|object| !object.is_null()).collect();
        protected.sort_unstable();
        (protected, slots)
    }
}

impl<B: Barrier> Clone for Domain<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B: Barrier> Domain<B> {
    /// Leaves objects for whoever frees next, and frees where there are too many by now.
    pub(super) fn leave(&self, retired: Vec<Retired>) {
        self.0.orphans.add(retired);
        self.0.orphans.free_if_many(|| self.retirer().free_unprotected());
    }
}

impl<B: Barrier> fmt::Debug for Domain<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Domain").field("slots", &self.slots()).finish_non_exhaustive()
    }
}

impl<B: Barrier> Reclaimer for Domain<B> {
    #[inline(always)]
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn adopt(&self, retired: Retired) {
        self.leave(vec![retired]);
    }
}
