//! The handle with which a thread uses a collector, and the guards that protect the thread's reads.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ops::Deref;
use std::ptr::NonNull;

use super::Published;
use super::collector::{Bag, Collector, Inner, PINNED, Participant, UNPINNED};
use crate::barrier::{Barrier, ExpeditedOrFences};
use crate::drop_all::drop_all;
use crate::primitives::{AtomicPtr, AtomicU64, Ordering};
use crate::reclaim::{Record, Retired};

/// Number of retired objects that a handle collects before it puts them into a [`Bag`], which has an epoch as its
/// label.
const BATCH: usize = 64;
/// Minimum number of waiting objects at which [`Handle::collect`] blocks until the [heavy side](Barrier::heavy) of the
/// memory barrier is complete.
const WAITING_MAX: usize = 16 * BATCH;

/// A participant, with which a thread reads and retires objects. It can be sent to another thread while it is not
/// pinned.
///
/// Dropping the handle unregisters the participant. The objects that it has not freed go to the collector. They are
/// freed by the next participant that collects, or when the collector ends.
pub struct Handle<B: Barrier> {
    participant: NonNull<Record<Participant>>,
    collector: Collector<B>,
    /// The number of guards beyond the first one that pin this handle now, or 0 if it is not pinned. Once
    /// [`leave`](Self::leave) was called, the value is one more. A pin that is not nested only reads it, so the next
    /// pin does not wait for a store to it.
    nested: Cell<usize>,
    /// `true` if the handle was left to its guards, because the handle's thread has ended or is about to end. The last
    /// guard then frees the handle.
    is_left: Cell<bool>,
    garbage: RefCell<Garbage>,
}

// SAFETY: the participant's word belongs to the handle, not to the thread; garbage may be freed on any thread.
unsafe impl<B: Barrier> Send for Handle<B> {}

#[derive(Default)]
struct Garbage {
    /// Objects that were retired since the last [`Bag`], the batch of objects that get one epoch as their label.
    fresh: Vec<Retired>,
    bags: Vec<Bag>,
}

impl<B: Barrier> Handle<B> {
    pub(super) fn new(collector: Collector<B>, participant: NonNull<Record<Participant>>) -> Self {
        let (nested, is_left) = (Cell::new(0), Cell::new(false));
        Self { participant, collector, nested, is_left, garbage: RefCell::default() }
    }

    /// Pins this handle: while the guard lives, no object that this thread can find is freed. Guards may be nested.
    ///
    /// Pinning takes two loads, a store, and the barrier's light side. Dropping the last guard takes a load and a store.
    ///
    /// # Panics
    /// If there are `usize::MAX` guards, which is possible only if guards are forgotten.
    #[inline]
    pub fn pin(&self) -> Guard<'_, B> {
        // SAFETY: the guard borrows the handle.
        unsafe { Self::pin_at(NonNull::from(self)) }
    }

    /// Pins this handle as [`pin`](Self::pin) does. The returned guard may free the handle when it is dropped.
    ///
    /// # Safety
    /// No other code may free the handle before the guard is dropped. To [leave](Self::leave) the handle to its guards,
    /// call `leave` with the same pointer.
    #[inline(always)]
    pub(super) unsafe fn pin_at<'h>(handle: NonNull<Self>) -> Guard<'h, B> {
        // SAFETY: the caller ensures that the handle lives.
        let (word, collector) = unsafe { handle.as_ref() }.enter();
        Guard { handle, word, collector, borrow: PhantomData }
    }

    /// Pins this handle. Returns its word and the data of its collector.
    #[inline(always)]
    fn enter(&self) -> (NonNull<AtomicU64>, NonNull<Inner<B>>) {
        // Each pointer is loaded once. After an acquire load, the compiler would load it again.
        let (word, collector) = (self.word(), self.collector.inner());
        // The word tells whether this pin is nested, so that the usual pin stores nothing but the word. Only a branch
        // depends on this load, so the processor does not wait for the store that ended the previous pin. Relaxed: only
        // this handle writes the word.
        if word.load(Ordering::Relaxed) == UNPINNED {
            // Acquire: this thread does not find objects that were taken out before the epoch began. A light side
            // without instructions does not ensure that. It only orders this thread with a heavy side, and the last
            // heavy side may have been complete before these objects were taken out.
            let epoch = collector.current().load(Ordering::Acquire);
            // Release: this thread's reads during earlier pins come before any epoch that begins because of this store.
            word.store(epoch | PINNED, Ordering::Release);
            collector.barrier().light();
        } else {
            self.nested.set(deeper(self.nested.get()));
        }
        (NonNull::from(word), NonNull::from(collector))
    }

    /// Pins this handle as [`pin`](Self::pin) does, and moves the handle into the returned guard.
    ///
    /// # Panics
    /// Panics in the same cases as [`pin`](Self::pin).
    #[must_use]
    pub fn into_pinned(self) -> OwnedGuard<B> {
        mem::forget(self.pin());
        OwnedGuard { handle: self }
    }

    /// Ends the pin of one guard. `word` is the word of this handle. Returns `true` if the handle was left to its guards
    /// and this was the last guard. The caller must then free the handle.
    #[inline(always)]
    fn unpin(&self, word: &AtomicU64) -> bool {
        let nested = self.nested.get();
        if nested == 0 {
            word.store(UNPINNED, Ordering::Release);
            return false;
        }
        self.nested.set(nested - 1);
        nested == 1 && self.is_left.get()
    }

    /// Leaves a handle to its guards: the last guard frees the handle. If there is no guard, this function frees it.
    /// Freeing the handle does not block, and does not run the destructors of objects that other threads have retired.
    ///
    /// # Safety
    /// The handle must be allocated in a box, and from now on only guards may use it.
    pub(super) unsafe fn leave(handle: NonNull<Self>) {
        // SAFETY: the caller ensures that the handle is allocated in a box, which no code has freed.
        let this = unsafe { handle.as_ref() };
        this.is_left.set(true);
        if this.is_pinned() {
            // The count becomes the number of guards. So the last guard finds a count of 1, and the frequent path
            // (count 0) never frees the handle. If the count is at its maximum, guards were forgotten, and the handle
            // is never freed anyway.
            this.nested.set(this.nested.get().saturating_add(1));
        } else {
            // SAFETY: the caller ensures that only guards use the handle, and there is no guard.
            unsafe { free(handle) };
        }
    }

    #[inline(always)]
    fn word(&self) -> &AtomicU64 {
        // SAFETY: the record lives as long as the collector, which lives as long as `self`.
        &unsafe { self.participant.as_ref() }.value.0
    }

    /// Returns whether a guard exists. Only this handle writes the word, so the load returns its last store.
    fn is_pinned(&self) -> bool {
        self.word().load(Ordering::Relaxed) != UNPINNED
    }

    /// Retires a boxed object. The object is freed when all participants that may have found it have ended their pins.
    ///
    /// # Safety
    /// The object is from [`Box::into_raw`] and is retired only once. Participants that are pinned from now on cannot
    /// find it.
    pub unsafe fn retire<T: Send + 'static>(&self, object: *mut T) {
        // SAFETY: the caller ensures the conditions of `boxed`.
        self.add(unsafe { Retired::boxed(object) });
    }

    /// Retires an object as [`retire`](Self::retire) does, with a function that frees the object.
    ///
    /// # Safety
    /// `free` may be called with `object` on any thread, once. The object is retired only once, and participants that
    /// are pinned from now on cannot find it.
    pub unsafe fn retire_with(&self, object: *mut (), free: unsafe fn(*mut ())) {
        // SAFETY: the caller ensures the conditions of `new`.
        self.add(unsafe { Retired::new(object, free) });
    }

    /// Calls `closure`, on any thread, when all guards that exist now have ended.
    ///
    /// The closure counts as a retired object, and is called when such an object would be freed, at the latest when the
    /// collector ends. If the closure panics, the other objects are freed nevertheless, and the first panic is resumed
    /// after that.
    pub fn defer<F: FnOnce() + Send + 'static>(&self, closure: F) {
        self.add(Retired::closure(closure));
    }

    fn add(&self, retired: Retired) {
        let mut garbage = self.garbage.borrow_mut();
        if garbage.fresh.is_empty() {
            // One allocation for the whole batch, instead of one each time that the vector has to grow.
            garbage.fresh.reserve(BATCH);
        }
        garbage.fresh.push(retired);
        let fresh = garbage.fresh.len();
        drop(garbage);
        if fresh >= BATCH {
            self.collect();
        } else if fresh == 1 {
            // A handle that ends before its first batch is full leaves its objects to the collector. If many such
            // objects are waiting, this frees them.
            self.collector.free_if_many();
        }
    }

    /// Makes progress towards the next epoch, and frees the objects that are safe to free. Usually this does not block.
    /// If 1,024 or more objects are waiting, it blocks until the [heavy side](Barrier::heavy) of the memory barrier is
    /// complete.
    pub fn collect(&self) {
        self.step(self.waiting() >= WAITING_MAX);
    }

    /// Frees the objects that were retired so far. Blocks while it executes the [heavy side](Barrier::heavy) of the
    /// memory barrier, once for each epoch that must end. If objects are still [`waiting`](Self::waiting) afterwards, a
    /// participant is pinned (perhaps by this thread), or another thread is advancing the epoch at that moment.
    pub fn flush(&self) {
        // Freed objects may have retired others.
        while self.step(true) && (self.own() > 0 || !self.collector.orphans().is_empty()) {}
    }

    /// Frees the objects that other threads left behind, if no participant that may have found them is still pinned.
    /// Blocks while it executes the heavy side of the barrier. Returns the number of this handle's objects that are
    /// still waiting.
    pub(super) fn free_ripe(&self) -> usize {
        let _ = self.step(true) && self.step(true);
        self.own()
    }

    /// Makes progress towards the next epoch, and frees objects. Waits for the heavy side of the barrier only if
    /// `is_blocking` is true. Returns whether the epoch has advanced.
    fn step(&self, is_blocking: bool) -> bool {
        self.seal();
        let has_advanced = self.collector.advance(is_blocking);
        let is_ripe = |bag: &mut Bag| self.collector.is_ripe(bag);
        let ripe: Vec<_> = self.garbage.borrow_mut().bags.extract_if(.., is_ripe).collect();
        // The garbage must not be borrowed here, because the destructor of an object may retire others.
        drop_all(ripe);
        has_advanced
    }

    fn seal(&self) {
        let garbage = &mut *self.garbage.borrow_mut();
        self.collector.orphans().take_all(&mut garbage.bags);
        if garbage.fresh.is_empty() {
            return;
        }
        let mut bag = self.collector.bag(mem::take(&mut garbage.fresh));
        match garbage.bags.last_mut().filter(|last| last.epoch == bag.epoch) {
            Some(last) => last.objects.append(&mut bag.objects),
            None => garbage.bags.push(bag),
        }
    }

    /// Returns the number of waiting objects that [`collect`](Self::collect) frees as soon as it is safe. These are the
    /// objects that were retired with this handle, and the objects that the collector got from dropped [`Published`]
    /// objects and handles.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.own() + self.collector.orphans().objects()
    }

    fn own(&self) -> usize {
        let garbage = self.garbage.borrow();
        garbage.fresh.len() + garbage.bags.iter().map(|bag| bag.objects.len()).sum::<usize>()
    }

    /// Returns the handle's collector.
    #[inline(always)]
    pub fn collector(&self) -> &Collector<B> {
        &self.collector
    }
}

/// Returns `nested + 1`, where `nested` is the number of nested guards. Panics on overflow: if the count wrapped around,
/// the end of one guard would remove the protection of all guards. On 32 bits, forgetting 2^32 guards takes only
/// seconds.
#[inline(always)]
fn deeper(nested: usize) -> usize {
    nested.checked_add(1).expect("too many guards: their count would overflow")
}

impl<B: Barrier> Drop for Handle<B> {
    /// Releases the participant. Guards borrow the handle, so no guard can be in use now. A guard that is still counted
    /// was forgotten (by `mem::forget`), and protects no reads.
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
        f.debug_struct("Handle").field("is_pinned", &self.is_pinned()).finish_non_exhaustive()
    }
}

/// A guard: while it lives, no object that this thread may have found is freed. It dereferences to the pinned handle.
#[derive(Debug)]
pub struct Guard<'h, B: Barrier = ExpeditedOrFences> {
    /// A pointer, because dropping the guard may free the handle. A reference would promise that the handle exists
    /// until the end of the function that drops the guard.
    handle: NonNull<Handle<B>>,
    /// The word of the handle, so that the end of the pin need not load its address.
    word: NonNull<AtomicU64>,
    /// The data of the handle's collector, so that a read need not load its address.
    collector: NonNull<Inner<B>>,
    borrow: PhantomData<&'h Handle<B>>,
}

impl<B: Barrier> Guard<'_, B> {
    /// Returns the object that `source` points to; `None` for null. This costs only a load.
    ///
    /// # Safety
    /// - `source` is null or points to a valid `T` whenever this reads it.
    /// - The object is freed only by being retired with this collector, after it was taken out of `source` and out of
    ///   everything else that leads to it.
    #[inline(always)]
    pub unsafe fn load<'g, T>(&'g self, source: &AtomicPtr<T>) -> Option<&'g T> {
        // SAFETY: the object is freed only after the end of each pin during which a participant may have found it.
        unsafe { source.load(Ordering::Acquire).as_ref() }
    }
}

impl<B: Barrier> Deref for Guard<'_, B> {
    type Target = Handle<B>;

    #[inline(always)]
    fn deref(&self) -> &Handle<B> {
        // SAFETY: the handle is borrowed, or lives until the last guard frees it.
        unsafe { self.handle.as_ref() }
    }
}

/// Frees a handle that is in a box.
///
/// # Safety
/// The handle is allocated in a box, and no other code uses it.
#[cold]
#[inline(never)]
unsafe fn free<B: Barrier>(handle: NonNull<Handle<B>>) {
    // SAFETY: the caller ensures that the handle is allocated in a box, and that no other code uses it.
    drop(unsafe { Box::from_raw(handle.as_ptr()) });
}

impl<B: Barrier> Drop for Guard<'_, B> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the record of the word lives as long as the collector, which lives as long as the handle.
        if self.unpin(unsafe { self.word.as_ref() }) {
            // SAFETY: the handle was left to its guards, by this pointer, and this guard is the last one.
            unsafe { free(self.handle) };
        }
    }
}

/// A handle that is pinned while this lives. It can be stored and sent. It dereferences to the handle that it contains.
#[derive(Debug)]
pub struct OwnedGuard<B: Barrier> {
    handle: Handle<B>,
}

impl<B: Barrier> OwnedGuard<B> {
    /// Unpins the handle and returns it.
    #[must_use]
    pub fn into_handle(self) -> Handle<B> {
        self.handle.unpin(self.handle.word());
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
    /// Returns the current object, which is not freed while the guard lives.
    ///
    /// # Panics
    /// If the guard belongs to another collector.
    #[inline]
    pub fn load<'g>(&self, guard: &'g Guard<'_, B>) -> &'g T {
        self.check_owner(|collector| collector.has(guard.collector));
        // SAFETY: a published pointer is never null, and only this collector frees its object.
        unsafe { &*self.object().load(Ordering::Acquire) }
    }

    /// Replaces the object. Readers of the old object continue undisturbed.
    ///
    /// # Panics
    /// If the handle belongs to another collector.
    pub fn replace(&self, object: T, handle: &Handle<B>) {
        self.check(&handle.collector);
        handle.add(self.swap(object));
    }

    /// Replaces the object as [`replace`](Self::replace) does, but only if it is still `current`, a reference that
    /// [`load`](Self::load) returned.
    ///
    /// # Errors
    /// Returns `object` if another object has replaced `current`, even an equal one.
    ///
    /// # Panics
    /// If the handle belongs to another collector.
    pub fn compare_exchange(&self, current: &T, object: T, handle: &Handle<B>) -> Result<(), T> {
        self.check(&handle.collector);
        self.swap_if(current, object).map(|old| handle.add(old))
    }

    /// Replaces the object by the result of `change`. If another thread replaces the object meanwhile, `change` is
    /// called again, so no write is lost. If `change` returns `None`, the object stays, and this function returns
    /// `false`.
    ///
    /// # Panics
    /// If the handle belongs to another collector.
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
        // The scripted heavy side ends with a panic. So if `flush` panics, it has waited until the heavy side ended.
        barrier.end_with(Some(Err(1)));
        let handle = panics.register();
        // The second call panics too, because the first one has released the turn to advance the epoch.
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
        handle.nested.set(usize::MAX);
        assert!(catch_unwind(AssertUnwindSafe(|| mem::forget(handle.pin()))).is_err());
        // The refused guard has changed nothing, and the existing guards protect.
        assert_eq!(handle.nested.get(), usize::MAX);
        drop(guard);
        assert_ne!(handle.word().load(Ordering::Relaxed), UNPINNED);
    }
}
