//! What a thread holds of a collector.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ops::Deref;
use std::ptr::NonNull;

use super::Published;
use super::collector::{Bag, Collector, PINNED, Participant, UNPINNED};
use crate::barrier::{Barrier, ExpeditedOrFences};
use crate::drop_all::drop_all;
use crate::primitives::{AtomicPtr, Ordering};
use crate::reclaim::{Record, Retired};

/// Objects that are given a label together.
const BATCH: usize = 64;
/// A heavy side that is slow is waited for when so many objects are waiting for it.
const WAITING_MAX: usize = 16 * BATCH;

/// A participant: what a thread reads and retires with. It can be sent to another thread while it is not pinned.
///
/// Dropping it gives its place back, and what it has not freed to the collector: the next participant that collects
/// frees that, or the collector's end.
pub struct Handle<B: Barrier> {
    participant: NonNull<Record<Participant>>,
    collector: Collector<B>,
    /// Guards that live, and one more once it is left to them.
    depth: Cell<usize>,
    /// Whether the thread that it was made for has ended, or is about to: the last guard frees it.
    is_left: Cell<bool>,
    garbage: RefCell<Garbage>,
}

// SAFETY: the participant's word belongs to the handle, not to the thread; garbage may be freed on any thread.
unsafe impl<B: Barrier> Send for Handle<B> {}

#[derive(Default)]
struct Garbage {
    /// Retired since the last label was put on.
    fresh: Vec<Retired>,
    bags: Vec<Bag>,
}

impl<B: Barrier> Handle<B> {
    pub(super) fn new(collector: Collector<B>, participant: NonNull<Record<Participant>>) -> Self {
        let (depth, is_left) = (Cell::new(0), Cell::new(false));
        Self { participant, collector, depth, is_left, garbage: RefCell::default() }
    }

    /// Keeps everything that can be reached from being freed while the guard lives. Guards nest.
    ///
    /// A load, a store, and the barrier's light side; a store when the last guard is dropped.
    ///
    /// # Panics
    /// If there are `usize::MAX` guards, which takes forgotten ones.
    #[inline]
    pub fn pin(&self) -> Guard<'_, B> {
        // SAFETY: the guard borrows the handle.
        unsafe { Self::pin_at(NonNull::from(self)) }
    }

    /// As [`pin`](Self::pin), with a guard that may free the handle.
    ///
    /// # Safety
    /// The handle lives as long as the guard. If it is [left](Self::leave) to its guards, it is so by this pointer.
    #[inline(always)]
    pub(super) unsafe fn pin_at<'h>(handle: NonNull<Self>) -> Guard<'h, B> {
        // SAFETY: by the contract.
        unsafe { handle.as_ref() }.enter();
        Guard { handle, borrow: PhantomData }
    }

    #[inline(always)]
    fn enter(&self) {
        let depth = self.depth.get();
        // Constants where they are known: a counter that is read back would make each pin wait for the one before.
        if depth == 0 {
            self.depth.set(1);
            // Acquire: what was taken out before the epoch began is not found. A light side that is nothing does not
            // see to that: the heavy side before the epoch may have been over when it was taken out.
            let epoch = self.collector.current().load(Ordering::Acquire);
            // Release: what was read while pinned before comes before the epochs that this one lets begin.
            self.word().store(epoch | PINNED, Ordering::Release);
            self.collector.barrier().light();
        } else {
            self.depth.set(deeper(depth));
        }
    }

    /// As [`pin`](Self::pin), with a guard that the handle goes into.
    ///
    /// # Panics
    /// As of [`pin`](Self::pin).
    #[must_use]
    pub fn into_pinned(self) -> OwnedGuard<B> {
        mem::forget(self.pin());
        OwnedGuard { handle: self }
    }

    /// Returns whether the handle was left to its guards, and this was the last one.
    #[inline(always)]
    fn unpin(&self) -> bool {
        let depth = self.depth.get();
        if depth == 1 {
            self.word().store(UNPINNED, Ordering::Release);
            self.depth.set(0);
            return false;
        }
        self.depth.set(depth - 1);
        depth == 2 && self.is_left.get()
    }

    /// Leaves a handle to its guards: the last one frees it, or this if there is none. Its end runs no destructors of
    /// what others have left, and blocks for nothing.
    ///
    /// # Safety
    /// The handle comes from a box, and from now on only guards lead to it.
    pub(super) unsafe fn leave(handle: NonNull<Self>) {
        // SAFETY: by the contract.
        let this = unsafe { handle.as_ref() };
        this.is_left.set(true);
        match this.depth.get() {
            // SAFETY: by the contract, and there is no guard.
            0 => unsafe { free(handle) },
            // With one more, no guard is the last one on the path that is nearly always taken. Where guards were
            // forgotten until they can't be counted, none is the last one anyway.
            depth => this.depth.set(depth.saturating_add(1)),
        }
    }

    #[inline(always)]
    fn word(&self) -> &crate::primitives::AtomicU64 {
        // SAFETY: the record lives as long as the collector, which lives as long as `self`.
        &unsafe { self.participant.as_ref() }.value.0
    }

    /// Frees a boxed object, when nobody is pinned any more who may have found it.
    ///
    /// # Safety
    /// The object comes from [`Box::into_raw`], is retired once, and can be found no more by who is pinned from now on.
    pub unsafe fn retire<T: Send + 'static>(&self, object: *mut T) {
        // SAFETY: by the contract.
        self.add(unsafe { Retired::boxed(object) });
    }

    /// As [`retire`](Self::retire), with a function of one's own that frees the object.
    ///
    /// # Safety
    /// As of [`retire`](Self::retire), but that `free` may be called with `object` on any thread, once.
    pub unsafe fn retire_with(&self, object: *mut (), free: unsafe fn(*mut ())) {
        // SAFETY: by the contract.
        self.add(unsafe { Retired::new(object, free) });
    }

    /// Calls `closure`, on whatever thread, when no guard is left of those that live now.
    ///
    /// It is an object as any that is retired: it counts as one, and is called where that would be freed, at the latest
    /// at the collector's end. Where it panics the others are called all the same, and the first panic goes on when
    /// they have.
    pub fn defer<F: FnOnce() + Send + 'static>(&self, closure: F) {
        self.add(Retired::closure(closure));
    }

    fn add(&self, retired: Retired) {
        let mut garbage = self.garbage.borrow_mut();
        garbage.fresh.push(retired);
        let fresh = garbage.fresh.len();
        drop(garbage);
        if fresh >= BATCH {
            self.collect();
        } else if fresh == 1 {
            // What handles leave that end before their first batch is somebody's to free.
            self.collector.free_if_many();
        }
    }

    /// Goes on towards the next epoch and frees what is ripe. It blocks for a heavy side only where 1,024 objects or
    /// more are waiting for that.
    pub fn collect(&self) {
        self.step(self.waiting() >= WAITING_MAX);
    }

    /// Frees what was retired so far, blocking for heavy sides. What is still [`waiting`](Self::waiting) then waits
    /// for somebody who is pinned (this thread, perhaps), or another thread is advancing the epoch at the moment.
    pub fn flush(&self) {
        // What was freed may have left others.
        while self.step(true) && (self.own() > 0 || !self.collector.orphans().is_empty()) {}
    }

    /// Frees what was left behind, if nobody is pinned who may have found it, blocking for heavy sides; how many are
    /// left.
    pub(super) fn free_ripe(&self) -> usize {
        let _ = self.step(true) && self.step(true);
        self.own()
    }

    /// Returns whether the epoch has advanced.
    fn step(&self, is_blocking: bool) -> bool {
        self.seal();
        let has_advanced = self.collector.advance(is_blocking);
        let is_ripe = |bag: &mut Bag| self.collector.is_ripe(bag);
        let ripe: Vec<_> = self.garbage.borrow_mut().bags.extract_if(.., is_ripe).collect();
        // Not while the garbage is borrowed: an object's destructor may retire others.
        drop_all(ripe);
        has_advanced
    }

    fn seal(&self) {
        let garbage = &mut *self.garbage.borrow_mut();
        self.collector.orphans().take(&mut garbage.bags);
        if garbage.fresh.is_empty() {
            return;
        }
        let mut bag = self.collector.bag(mem::take(&mut garbage.fresh));
        match garbage.bags.last_mut().filter(|last| last.epoch == bag.epoch) {
            Some(last) => last.objects.append(&mut bag.objects),
            None => garbage.bags.push(bag),
        }
    }

    /// How many objects wait that this handle would free: those that were retired with it, and what dropped
    /// [`Published`] and handles left to the collector.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.own() + self.collector.orphans().objects()
    }

    fn own(&self) -> usize {
        let garbage = self.garbage.borrow();
        garbage.fresh.len() + garbage.bags.iter().map(|bag| bag.objects.len()).sum::<usize>()
    }

    /// The handle's collector.
    #[inline(always)]
    pub fn collector(&self) -> &Collector<B> {
        &self.collector
    }
}

/// Where guards that are forgotten would make the count wrap, as 2^32 of them do on 32 bits in seconds, the last one
/// dropped would leave the others without protection.
#[inline(always)]
fn deeper(depth: usize) -> usize {
    depth.checked_add(1).expect("more guards than can be counted")
}

impl<B: Barrier> Drop for Handle<B> {
    /// Guards borrow the handle: one that has not been dropped was forgotten, and protects nobody.
    fn drop(&mut self) {
        self.seal();
        self.collector.orphans().add(mem::take(&mut self.garbage.get_mut().bags));
        self.word().store(UNPINNED, Ordering::Release);
        // SAFETY: the record lives as long as the collector.
        unsafe { self.participant.as_ref() }.release();
        if !self.is_left.get() {
            self.collector.free_if_many();
        }
    }
}

impl<B: Barrier> fmt::Debug for Handle<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("is_pinned", &(self.depth.get() > 0)).finish_non_exhaustive()
    }
}

/// While it lives nothing is freed that this thread may have found. It is used as the handle that is pinned.
#[derive(Debug)]
pub struct Guard<'h, B: Barrier = ExpeditedOrFences> {
    /// Not a reference, which would promise that the handle is there until the end of a function that drops the guard.
    handle: NonNull<Handle<B>>,
    borrow: PhantomData<&'h Handle<B>>,
}

impl<B: Barrier> Guard<'_, B> {
    /// What `source` points to; `None` for null. A bare load.
    ///
    /// # Safety
    /// - `source` is null or points to a valid `T` whenever this reads it.
    /// - What it points to is freed only by being retired with this collector, after it was taken out of `source` and
    ///   out of whatever else leads to it.
    #[inline(always)]
    pub unsafe fn load<'g, T>(&'g self, source: &AtomicPtr<T>) -> Option<&'g T> {
        // SAFETY: whoever finds it while pinned is waited for.
        unsafe { source.load(Ordering::Acquire).as_ref() }
    }
}

impl<B: Barrier> Deref for Guard<'_, B> {
    type Target = Handle<B>;

    #[inline(always)]
    fn deref(&self) -> &Handle<B> {
        // SAFETY: by the borrow, or else until the last guard frees it.
        unsafe { self.handle.as_ref() }
    }
}

/// # Safety
/// The handle comes from a box, and nobody else has it.
#[cold]
#[inline(never)]
unsafe fn free<B: Barrier>(handle: NonNull<Handle<B>>) {
    // SAFETY: by the contract.
    drop(unsafe { Box::from_raw(handle.as_ptr()) });
}

impl<B: Barrier> Drop for Guard<'_, B> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.unpin() {
            // SAFETY: it was left to its guards, by this pointer, and this is the last one.
            unsafe { free(self.handle) };
        }
    }
}

/// A handle that is pinned while this lives: it can be kept, and sent. It is used as the handle that is in it.
#[derive(Debug)]
pub struct OwnedGuard<B: Barrier> {
    handle: Handle<B>,
}

impl<B: Barrier> OwnedGuard<B> {
    /// The handle, no more pinned by this.
    #[must_use]
    pub fn into_handle(self) -> Handle<B> {
        self.handle.unpin();
        self.handle
    }
}

impl<B: Barrier> Deref for OwnedGuard<B> {
    type Target = Handle<B>;

    fn deref(&self) -> &Handle<B> {
        &self.handle
    }
}

impl<T: Send + Sync + 'static, B: Barrier> Published<T, B> {
    /// The object as it is now, which is not freed while the guard lives.
    ///
    /// # Panics
    /// If the guard is another collector's.
    #[inline]
    pub fn load<'g>(&self, guard: &'g Guard<'_, B>) -> &'g T {
        self.check(&guard.collector);
        // SAFETY: what is published is never null, and freed by this collector alone.
        unsafe { &*self.object().load(Ordering::Acquire) }
    }

    /// Puts another object in its place. Readers of the old one go on undisturbed.
    ///
    /// # Panics
    /// If the handle is another collector's.
    pub fn replace(&self, object: T, handle: &Handle<B>) {
        self.check(&handle.collector);
        handle.add(self.swap(object));
    }

    /// As [`replace`](Self::replace), if `current` is still the object, as a guard found it.
    ///
    /// # Errors
    /// Gives `object` back where another is there by now, even if it is equal to `current`.
    ///
    /// # Panics
    /// If the handle is another collector's.
    pub fn compare_exchange(&self, current: &T, object: T, handle: &Handle<B>) -> Result<(), T> {
        self.check(&handle.collector);
        self.swap_if(current, object).map(|old| handle.add(old))
    }

    /// Replaces the object by what `change` makes of it, which is called again where others replace it meanwhile: no
    /// write is lost. Where it returns `None` the object stays, and this returns false.
    ///
    /// # Panics
    /// If the handle is another collector's.
    pub fn update(&self, handle: &Handle<B>, mut change: impl FnMut(&T) -> Option<T>) -> bool {
        loop {
            let guard = handle.pin();
            let current = self.load(&guard);
            let Some(object) = change(current) else { return false };
            if let Ok(old) = self.swap_if(current, object) {
                drop(guard);
                handle.add(old);
                return true;
            }
        }
    }
}

#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::barrier::{Fences, Scripted};

    #[test]
    fn no_epoch_begins_before_its_heavy_side_is_over() {
        let barrier = Scripted::default();
        let [stays, panics] = [(); 2].map(|()| Collector::new(barrier.clone()));
        let handle = stays.register();
        (0..3).for_each(|_| handle.collect());
        assert_eq!((stays.epoch(), barrier.tickets()), (0, 1));
        // That it was waited for is seen by its panic.
        barrier.end_with(Some(Err(1)));
        let handle = panics.register();
        // Who comes next panics too, and does not find somebody at it for ever.
        for _ in 0..2 {
            assert!(catch_unwind(AssertUnwindSafe(|| handle.flush())).is_err());
        }
        assert_eq!((panics.epoch(), barrier.tickets()), (0, 2));
    }

    #[test]
    fn each_epoch_has_a_heavy_side_of_its_own() {
        let barrier = Scripted::default();
        barrier.end_with(Some(Ok(())));
        let collector = Collector::new(barrier.clone());
        let handle = collector.register();
        (0..3).for_each(|_| handle.collect());
        assert_eq!((collector.epoch(), barrier.tickets()), (3, 3));
    }

    #[test]
    fn guards_are_counted_or_refused() {
        let collector = Collector::new(Fences);
        let handle = collector.register();
        let guard = handle.pin();
        handle.depth.set(usize::MAX);
        assert!(catch_unwind(AssertUnwindSafe(|| mem::forget(handle.pin()))).is_err());
        // The one that was refused has changed nothing, and those that are there protect.
        assert_eq!(handle.depth.get(), usize::MAX);
        drop(guard);
        assert_ne!(handle.word().load(Ordering::Relaxed), UNPINNED);
    }
}
