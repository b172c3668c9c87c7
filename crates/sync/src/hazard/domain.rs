//! The slots, in which readers store pointers to the objects that they read, and the retirers, which free an object
//! once no slot contains it.

use std::fmt;
use std::mem;
use std::sync::Arc;

use super::Hazard;
use crate::barrier::{Barrier, Ticket};
use crate::drop_all::drop_all;
use crate::primitives::{AtomicPtr, Ordering};
use crate::reclaim::{Orphans, Reclaimer, Records, Retired};

/// A domain of hazard pointers, and the objects that they protect from being freed.
///
/// Clones refer to the same domain. The domain ends when its last clone, [`Hazard`], [`Retirer`] or owned guard is
/// dropped, and then frees everything that was retired in it.
pub struct Domain<B: Barrier>(Arc<Inner<B>>);

struct Inner<B> {
    barrier: B,
    slots: Records<Slot>,
    orphans: Orphans<Retired>,
}

/// The slot of a hazard pointer. It contains the object that the slot's owner may be reading, or null.
#[derive(Debug, Default)]
pub(super) struct Slot(pub(super) AtomicPtr<()>);

impl<B: Barrier> Domain<B> {
    /// Creates a domain without slots.
    pub fn new(barrier: B) -> Self {
        Self(Arc::new(Inner { barrier, slots: Records::new(), orphans: Orphans::new() }))
    }

    /// Creates a hazard pointer, which protects one object at a time. A thread may have any number of them.
    pub fn hazard(&self) -> Hazard<B> {
        Hazard::new(self.clone(), self.0.slots.claim())
    }

    /// Creates a retirer, which frees objects. Only one thread may use it at a time.
    pub fn retirer(&self) -> Retirer<B> {
        Retirer::new(self.clone())
    }

    /// Returns the number of slots: the maximum number of hazard pointers that existed at the same time.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.0.slots.values().count()
    }

    /// Returns the domain's barrier.
    #[inline(always)]
    pub fn barrier(&self) -> &B {
        &self.0.barrier
    }

    pub(super) fn orphans(&self) -> &Orphans<Retired> {
        &self.0.orphans
    }

    /// Returns the objects that the slots contain, by ascending address, and the number of slots.
    pub(super) fn protected(&self) -> (Vec<*mut ()>, usize) {
        let mut slots = 0;
        let held = self.0.slots.values().map(|slot| {
            slots += 1;
            // Acquire: the actions of a reader before it released an object come before the object is freed.
            slot.0.load(Ordering::Acquire)
        });
        let mut protected: Vec<_> = held.filter(|object| !object.is_null()).collect();
        protected.sort_unstable();
        (protected, slots)
    }

    /// Gives retired objects to the domain, where the next thread that frees objects finds them. Frees objects if too
    /// many are waiting by now.
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
    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn adopt(&self, retired: Retired) {
        self.leave(vec![retired]);
    }
}

/// Minimum number of objects in a batch: the retired objects that wait for the same [heavy side](Barrier::heavy).
const BATCH: usize = 64;
/// Maximum number of batches that wait for the [heavy side](Barrier::heavy) of a slow barrier. When this many wait, the
/// retirer blocks until the heavy side is complete.
const BATCHES_MAX: usize = 16;

/// Frees objects once no hazard pointer protects them. Only one thread may use it at a time.
///
/// Retired objects are collected in batches, each of 64 objects plus two for each slot:
///
/// 1. When a batch is full, the retirer takes a ticket for a [heavy side](Barrier::heavy) of the barrier. It does not
///    wait for the heavy side, so a slow barrier does not stop the thread.
/// 2. Once the ticket has passed, the retirer reads the slots of the domain.
/// 3. It frees the objects of the batch that are in no slot. Each slot keeps at most one object, so most of a batch is
///    always freed.
///
/// If the barrier is slow, at most 16 batches wait for the current ticket, and at most 16 more for the next one. When
/// this many wait, the retirer blocks until the heavy side is complete.
///
/// When a retirer is dropped, the objects that it has not freed go to the domain. They are freed by the next retirer
/// that scans, or when the domain ends.
pub struct Retirer<B: Barrier> {
    domain: Domain<B>,
    /// Objects that were retired after the retirer took its latest ticket. They must wait for the heavy side of the
    /// next ticket.
    fresh: Vec<Retired>,
    /// Objects that were retired before the retirer took its ticket, or that were still protected when it last read the
    /// slots.
    sealed: Vec<Retired>,
    ticket: Option<Ticket>,
    batch: usize,
    /// The number of fresh objects at which the retirer next calls [`collect`](Self::collect) by itself.
    look_at: usize,
}

impl<B: Barrier> Retirer<B> {
    pub(super) fn new(domain: Domain<B>) -> Self {
        let batch = BATCH + 2 * domain.slots();
        Self { domain, fresh: Vec::new(), sealed: Vec::new(), ticket: None, batch, look_at: batch }
    }

    /// Retires a boxed object. The object is freed when no hazard pointer protects it any more.
    ///
    /// # Safety
    /// The object is from [`Box::into_raw`] and is retired only once. No pointer that readers pass to
    /// [`protect`](super::Hazard::protect) leads to the object any more.
    pub unsafe fn retire<T: Send + 'static>(&mut self, object: *mut T) {
        // SAFETY: the caller ensures the conditions of `boxed`.
        self.add(unsafe { Retired::boxed(object) });
    }

    /// Retires an object as [`retire`](Self::retire) does, with a function that frees the object.
    ///
    /// # Safety
    /// `free` may be called with `object` on any thread, once. `object` is the address that readers protect. The other
    /// conditions are those of [`retire`](Self::retire): the object is retired only once, and no pointer that readers
    /// read leads to it any more.
    pub unsafe fn retire_with(&mut self, object: *mut (), free: unsafe fn(*mut ())) {
        // SAFETY: the caller ensures the conditions of `new`.
        self.add(unsafe { Retired::new(object, free) });
    }

    pub(super) fn add(&mut self, retired: Retired) {
        self.fresh.push(retired);
        if self.fresh.len() >= self.look_at {
            self.collect();
        }
    }

    /// Frees the objects that are safe to free. Starts the [heavy side](Barrier::heavy) of the barrier for the
    /// remaining objects if none is in progress. Blocks only if 16 batches are waiting.
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

    /// Frees everything that was retired so far and is not protected. Blocks until the [heavy side](Barrier::heavy) of
    /// the barrier is complete.
    pub fn flush(&mut self) {
        self.free_unprotected();
        // Destructors of freed objects may have left other objects.
        while !self.domain.orphans().is_empty() {
            self.free_unprotected();
        }
    }

    /// Does one round of [`flush`](Self::flush): waits for a heavy side and frees the objects that are not protected.
    /// Returns how many objects of this retirer still wait.
    pub(super) fn free_unprotected(&mut self) -> usize {
        self.seal();
        if let Some(ticket) = &self.ticket {
            ticket.wait();
            self.scan();
        }
        self.own()
    }

    /// Returns the number of waiting objects that [`collect`](Self::collect) frees as soon as it is safe. These are the
    /// objects that were retired with this retirer, and the objects that the domain got from dropped
    /// [`Published`](super::Published) objects and retirers.
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

    /// Takes a ticket for a heavy side of the barrier. All waiting objects become sealed: they may be freed when the
    /// ticket has passed.
    fn seal(&mut self) {
        self.domain.orphans().take_all(&mut self.fresh);
        if self.own() > 0 {
            // The ticket is taken before any fresh object becomes a sealed one. If the call panics, the retirer keeps
            // its older ticket, which does not count for the fresh objects.
            let ticket = self.domain.barrier().ticket();
            self.sealed.append(&mut self.fresh);
            self.ticket = Some(ticket);
        }
    }

    /// Frees the sealed objects that no slot contains. The ticket has passed, so a reader that protects one of the
    /// sealed objects is visible in its slot.
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

    /// A barrier whose heavy side panics while `IS_REFUSED` is set. It stands for a process whose system calls were
    /// restricted (seccomp) after the domain was created.
    #[derive(Clone)]
    struct Refused;

    // SAFETY: the sides are those of `Fences`. A heavy side that panics does not return, so it guarantees nothing.
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
    /// There are no conditions: this only counts its calls.
    unsafe fn free(_: *mut ()) {
        FREED.set(FREED.get() + 1);
    }

    #[test]
    fn nothing_is_freed_before_its_heavy_side_is_over() {
        let barrier = Scripted::default();
        let mut retirer = Domain::new(barrier.clone()).retirer();
        // SAFETY: `free` only counts its calls.
        unsafe { retirer.retire_with(std::ptr::null_mut(), free) };
        (0..3).for_each(|_| retirer.collect());
        assert_eq!((FREED.get(), barrier.tickets()), (0, 1));
        // The scripted heavy side ends with a panic. So if `flush` panics, it has waited until the heavy side ended.
        barrier.end_with(Some(Err(1)));
        assert!(catch_unwind(AssertUnwindSafe(|| retirer.flush())).is_err());
        assert_eq!(FREED.get(), 0);
        barrier.end_with(Some(Ok(())));
        retirer.flush();
        assert_eq!(FREED.get(), 1);
    }

    /// Each slot may keep one object, so batches grow with the number of slots. Then most of a batch is always freed.
    #[test]
    fn with_more_slots_batches_are_larger() {
        let barrier = Scripted::default();
        barrier.end_with(Some(Ok(())));
        let domain = Domain::new(barrier.clone());
        let mut retirer = domain.retirer();
        let hazards: Vec<_> = (0..BATCH).map(|_| domain.hazard()).collect();
        // SAFETY: `free` only counts its calls.
        (0..4 * BATCH).for_each(|_| unsafe { retirer.retire_with(std::ptr::null_mut(), free) });
        // The first batch had the size for a domain without slots.
        assert_eq!((barrier.tickets(), retirer.waiting()), (2, 0));
        drop(hazards);
    }

    /// While the object is protected, each dropped retirer leaves one more waiting object to the domain. The retirers
    /// must not check all waiting objects each time that one of them is dropped.
    #[test]
    fn what_can_not_be_freed_is_looked_at_rarely() {
        let barrier = Scripted::default();
        barrier.end_with(Some(Ok(())));
        let domain = Domain::new(barrier.clone());
        let mut hazard = domain.hazard();
        let source = AtomicPtr::new(Box::into_raw(Box::new(7)));
        // SAFETY: `source` leads to the box as long as the guard exists.
        let guard = unsafe { hazard.protect(&source) }.expect("it is not null");
        let object = std::ptr::from_ref(&*guard).cast_mut().cast();
        // SAFETY: `free` only counts its calls.
        (0..1_100).for_each(|_| unsafe { domain.retirer().retire_with(object, free) });
        assert_eq!((barrier.tickets(), domain.retirer().waiting()), (1, 1_100));
        drop(guard);
        domain.retirer().flush();
        assert_eq!(domain.retirer().waiting(), 0);
        // SAFETY: no other code uses the box.
        drop(unsafe { Box::from_raw(source.into_inner()) });
    }

    /// A destructor must not free objects while its thread panics: freeing panics if the kernel refuses the barrier,
    /// and a second panic would abort the process.
    #[test]
    fn nothing_is_freed_in_a_panic() {
        let domain = Domain::new(Refused);
        let many: Vec<_> = (0..2_000).map(|number| Published::new(number, &domain)).collect();
        IS_REFUSED.set(true);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _many = many;
            panic!("while many objects are waiting to be freed");
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
        // SAFETY: `free` only counts its calls.
        let retire = |retirer: &mut Retirer<_>| unsafe { retirer.retire_with(std::ptr::null_mut(), free) };
        retire(&mut retirer);
        retirer.seal();
        retire(&mut retirer);
        IS_REFUSED.set(true);
        assert!(catch_unwind(AssertUnwindSafe(|| retirer.flush())).is_err());
        // The ticket of the first object has passed; there is none for the second.
        retirer.collect();
        assert_eq!((FREED.get(), retirer.waiting()), (1, 1));
        IS_REFUSED.set(false);
        retirer.flush();
        assert_eq!((FREED.get(), retirer.waiting()), (2, 0));
    }
}
