//! The slots of all readers, and the writers' side: what was retired, and is freed once it is in no slot.

use std::fmt;
use std::mem;
use std::sync::Arc;

use super::Hazard;
use crate::barrier::{Barrier, Ticket};
use crate::drop_all::drop_all;
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

    /// Leaves objects for whoever frees next, and frees where there are too many by now.
    pub(super) fn leave(&self, retired: Vec<Retired>) {
        self.0.orphans.add(retired);
        self.0.orphans.free_if_many(|| self.retirer().free_unprotected());
    }
}

impl<B: Barrier> Clone for Domain<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
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

/// Objects that wait for a heavy side together, at least.
const BATCH: usize = 64;
/// A heavy side that is slow is waited for when so many batches have gathered behind it.
const BATCHES_MAX: usize = 16;

/// Frees objects once nobody protects them. For one thread at a time.
///
/// Retired objects gather in batches. A batch waits for one heavy side, by ticket, so that a slow barrier does not
/// stop the thread; then the domain's slots are looked at once, and what is in none of them is freed. A batch is 64
/// objects and two for each slot: at most one a slot is kept, so that most of a batch is always freed.
///
/// Not more than 16 batches gather behind a barrier that is slow, beside as many at most that wait for it: then it is
/// waited for. When a retirer is dropped what it has not freed goes to the domain, and is freed by the next retirer
/// that looks, or with the domain.
pub struct Retirer<B: Barrier> {
    domain: Domain<B>,
    /// Retired since the ticket was taken.
    fresh: Vec<Retired>,
    /// Retired before the ticket was taken, or found to be protected.
    sealed: Vec<Retired>,
    ticket: Option<Ticket>,
    batch: usize,
    /// As many fresh objects as make it worth looking.
    look_at: usize,
}

impl<B: Barrier> Retirer<B> {
    pub(super) fn new(domain: Domain<B>) -> Self {
        let batch = BATCH + 2 * domain.slots();
        Self { domain, fresh: Vec::new(), sealed: Vec::new(), ticket: None, batch, look_at: batch }
    }

    /// Frees a boxed object, when nobody protects it any more.
    ///
    /// # Safety
    /// The object comes from [`Box::into_raw`], is retired once, and no pointer from which a reader might still
    /// [`protect`](super::Hazard::protect) it leads to it.
    pub unsafe fn retire<T: Send + 'static>(&mut self, object: *mut T) {
        // SAFETY: by the contract.
        self.add(unsafe { Retired::boxed(object) });
    }

    /// As [`retire`](Self::retire), with a function of one's own that frees the object.
    ///
    /// # Safety
    /// As of [`retire`](Self::retire), but that `free` may be called with `object` on any thread, once. The address is
    /// the one that readers protect.
    pub unsafe fn retire_with(&mut self, object: *mut (), free: unsafe fn(*mut ())) {
        // SAFETY: by the contract.
        self.add(unsafe { Retired::new(object, free) });
    }

    pub(super) fn add(&mut self, retired: Retired) {
        self.fresh.push(retired);
        if self.fresh.len() >= self.look_at {
            self.collect();
        }
    }

    /// Goes on as far as it gets without blocking: frees what is ripe, and begins a heavy side for what is not.
    pub fn collect(&mut self) {
        if self.ticket.is_none() {
            self.seal();
        }
        let is_full = self.fresh.len() >= BATCHES_MAX * self.batch;
        match &self.ticket {
            Some(ticket) if ticket.is_passed() => self.scan(),
            Some(ticket) if is_full => {
                ticket.wait();
                self.scan();
            }
            _ => self.look_at = self.fresh.len() + self.batch,
        }
    }

    /// Frees everything retired so far that nobody protects, blocking for a heavy side.
    pub fn flush(&mut self) {
        self.free_unprotected();
        // What was freed may have left others.
        while !self.domain.orphans().is_empty() {
            self.free_unprotected();
        }
    }

    /// As [`flush`](Self::flush), once; how many are left of those that were there.
    pub(super) fn free_unprotected(&mut self) -> usize {
        self.seal();
        if let Some(ticket) = &self.ticket {
            ticket.wait();
            self.scan();
        }
        self.own()
    }

    /// How many objects wait that this retirer would free: those that were retired with it, and what dropped
    /// [`Published`](super::Published) and retirers left to the domain.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.own() + self.domain.orphans().objects()
    }

    fn own(&self) -> usize {
        self.fresh.len() + self.sealed.len()
    }

    pub(super) fn domain(&self) -> &Domain<B> {
        &self.domain
    }

    /// Begins a heavy side for everything there is.
    fn seal(&mut self) {
        self.domain.orphans().take(&mut self.fresh);
        if self.own() > 0 {
            // Before anything is moved: should this panic, an older ticket is not one for what is fresh.
            let ticket = self.domain.barrier().ticket();
            self.sealed.append(&mut self.fresh);
            self.ticket = Some(ticket);
        }
    }

    /// Frees what no slot holds. The ticket has passed: who protects one of the sealed objects is seen doing so.
    fn scan(&mut self) {
        self.ticket = None;
        let (protected, slots) = self.domain.protected();
        self.batch = BATCH + 2 * slots;
        self.look_at = self.batch;
        // SAFETY: no closures are retired here.
        let is_free = |retired: &mut Retired| protected.binary_search(&unsafe { retired.object() }).is_err();
        drop_all(self.sealed.extract_if(.., is_free));
    }
}

impl<B: Barrier> Drop for Retirer<B> {
    fn drop(&mut self) {
        self.sealed.append(&mut self.fresh);
        self.domain.leave(mem::take(&mut self.sealed));
    }
}

impl<B: Barrier> fmt::Debug for Retirer<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retirer").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
mod tests {
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::barrier::{Fences, Scripted};
    use crate::hazard::Published;

    thread_local! {
        static IS_REFUSED: Cell<bool> = const { Cell::new(false) };
        static FREED: Cell<u32> = const { Cell::new(0) };
    }

    /// As when a filter of system calls is installed.
    #[derive(Clone)]
    struct Refused;

    // SAFETY: as of `Fences`; none is given where it panics.
    unsafe impl Barrier for Refused {
        fn light(&self) {
            Fences.light();
        }

        fn ticket(&self) -> Ticket {
            assert!(!IS_REFUSED.get(), "refused");
            Fences.ticket()
        }
    }

    /// # Safety
    /// None: freeing it is counting it.
    unsafe fn free(_: *mut ()) {
        FREED.set(FREED.get() + 1);
    }

    #[test]
    fn nothing_is_freed_before_its_heavy_side_is_over() {
        let barrier = Scripted::default();
        let mut retirer = Domain::new(barrier.clone()).retirer();
        // SAFETY: freeing it is counting it.
        unsafe { retirer.retire_with(std::ptr::null_mut(), free) };
        (0..3).for_each(|_| retirer.collect());
        assert_eq!((FREED.get(), barrier.tickets()), (0, 1));
        // That it was waited for is seen by its panic.
        barrier.end_with(Some(Err(1)));
        assert!(catch_unwind(AssertUnwindSafe(|| retirer.flush())).is_err());
        assert_eq!(FREED.get(), 0);
        barrier.end_with(Some(Ok(())));
        retirer.flush();
        assert_eq!(FREED.get(), 1);
    }

    /// Of a batch most is freed, however many slots there are that may each keep one.
    #[test]
    fn with_more_slots_batches_are_larger() {
        let barrier = Scripted::default();
        barrier.end_with(Some(Ok(())));
        let domain = Domain::new(barrier.clone());
        let mut retirer = domain.retirer();
        let hazards: Vec<_> = (0..BATCH).map(|_| domain.hazard()).collect();
        // SAFETY: freeing it is counting it.
        (0..4 * BATCH).for_each(|_| unsafe { retirer.retire_with(std::ptr::null_mut(), free) });
        // The first one was as large as it must be without slots.
        assert_eq!((barrier.tickets(), retirer.waiting()), (2, 0));
        drop(hazards);
    }

    /// Else each that is left would be the reason to look at all of them.
    #[test]
    fn what_can_not_be_freed_is_looked_at_rarely() {
        let barrier = Scripted::default();
        barrier.end_with(Some(Ok(())));
        let domain = Domain::new(barrier.clone());
        let mut hazard = domain.hazard();
        let source = AtomicPtr::new(Box::into_raw(Box::new(7)));
        // SAFETY: it leads to the box for as long as there is the guard.
        let guard = unsafe { hazard.protect(&source) }.expect("it is not null");
        let object = std::ptr::from_ref(&*guard).cast_mut().cast();
        // SAFETY: freeing it is counting it.
        (0..1_100).for_each(|_| unsafe { domain.retirer().retire_with(object, free) });
        assert_eq!((barrier.tickets(), domain.retirer().waiting()), (1, 1_100));
        drop(guard);
        domain.retirer().flush();
        assert_eq!(domain.retirer().waiting(), 0);
        // SAFETY: nobody else has it.
        drop(unsafe { Box::from_raw(source.into_inner()) });
    }

    /// What is dropped while a thread panics may not panic, as freeing does where its barrier is refused.
    #[test]
    fn nothing_is_freed_in_a_panic() {
        let domain = Domain::new(Refused);
        let many: Vec<_> = (0..2_000).map(|number| Published::new(number, &domain)).collect();
        IS_REFUSED.set(true);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _many = many;
            panic!("with many objects to leave");
        }));
        IS_REFUSED.set(false);
        let mut retirer = domain.retirer();
        assert_eq!((panicked.is_err(), retirer.waiting()), (true, 2_000));
        retirer.flush();
        assert_eq!(retirer.waiting(), 0);
    }

    #[test]
    fn a_ticket_that_is_refused_leaves_the_older_one_what_it_is_for() {
        let domain = Domain::new(Refused);
        let mut retirer = domain.retirer();
        // SAFETY: freeing it is counting it.
        let retire = |retirer: &mut Retirer<_>| unsafe { retirer.retire_with(std::ptr::null_mut(), free) };
        retire(&mut retirer);
        retirer.seal();
        retire(&mut retirer);
        IS_REFUSED.set(true);
        assert!(catch_unwind(AssertUnwindSafe(|| retirer.flush())).is_err());
        // The first one's ticket has passed; for the second there is none.
        retirer.collect();
        assert_eq!((FREED.get(), retirer.waiting()), (1, 1));
        IS_REFUSED.set(false);
        retirer.flush();
        assert_eq!((FREED.get(), retirer.waiting()), (2, 0));
    }
}
