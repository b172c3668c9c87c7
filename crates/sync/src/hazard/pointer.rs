//! The readers' side: hazard pointers and their guards.

use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;

use super::domain::{Domain, Slot};
use super::{Published, Retirer};
use crate::barrier::Barrier;
use crate::primitives::{AtomicPtr, Ordering};
use crate::reclaim::Record;

/// A hazard pointer: a slot in which a thread shows the domain's retirers which object it reads.
///
/// Create one for each object that a thread reads at the same time, and keep it, because creating it searches the
/// domain's slots. Dropping it releases the slot.
pub struct Hazard<B: Barrier> {
    slot: NonNull<Record<Slot>>,
    domain: Domain<B>,
}

// SAFETY: the slot belongs to the hazard pointer, not to the thread, and the domain of the slot is sent with it.
unsafe impl<B: Barrier> Send for Hazard<B> {}
// SAFETY: a shared hazard pointer can only be formatted.
unsafe impl<B: Barrier> Sync for Hazard<B> {}

impl<B: Barrier> Hazard<B> {
    pub(super) fn new(domain: Domain<B>, slot: NonNull<Record<Slot>>) -> Self {
        Self { slot, domain }
    }

    /// Reads `source` and protects the object that it points to: the object is not freed while the guard lives. Returns
    /// `None` for null.
    ///
    /// This takes two loads, a store, and the barrier's light side. If another thread changes `source` meanwhile, this
    /// starts again.
    ///
    /// # Safety
    /// - `source` is null or points to a valid `T` whenever this reads it.
    /// - The object is freed only by retirers of this domain. It is retired only after `source`, and everything else
    ///   that led to it, has been changed.
    #[inline]
    pub unsafe fn protect<'h, T>(&'h mut self, source: &AtomicPtr<T>) -> Option<Guard<'h, T>> {
        let this: &'h Self = self;
        NonNull::new(this.publish(source)).map(|object| Guard { object, slot: this.slot() })
    }

    /// Protects an object as [`protect`](Self::protect) does. The returned guard contains the hazard pointer, so it can
    /// be stored and sent.
    ///
    /// # Errors
    /// Returns the hazard pointer if `source` is null.
    ///
    /// # Safety
    /// The conditions of [`protect`](Self::protect).
    pub unsafe fn protect_owned<T>(self, source: &AtomicPtr<T>) -> Result<OwnedGuard<T, B>, Self> {
        match NonNull::new(self.publish(source)) {
            Some(object) => Ok(OwnedGuard { object, hazard: self }),
            None => Err(self),
        }
    }

    #[inline(always)]
    fn slot(&self) -> &AtomicPtr<()> {
        // SAFETY: the record lives as long as the domain, which lives as long as `self`.
        &unsafe { self.slot.as_ref() }.value.0
    }

    /// Protects the object that `source` points to, and returns it, or null if there is none:
    ///
    /// 1. The reader (this function) loads the object's address from `source` and writes it into the slot.
    /// 2. The reader executes the light side.
    /// 3. The reader loads `source` again. If the address has changed, it starts again with the new address.
    ///
    /// A writer replaces the object in `source`, and a retirer then executes the heavy side and scans the slots. If the
    /// heavy side comes after the light side, the scan finds the object in the slot. If it comes before, the reader's
    /// second load finds the replacement.
    #[inline(always)]
    fn publish<T>(&self, source: &AtomicPtr<T>) -> *mut T {
        let (slot, barrier) = (self.slot(), self.domain.barrier());
        let object = source.load(Ordering::Relaxed);
        match try_publish(source, object, slot, barrier) {
            Ok(object) => object,
            Err(changed) => publish_again(source, changed, slot, barrier),
        }
    }
}

#[inline(always)]
fn try_publish<T>(
    source: &AtomicPtr<T>,
    object: *mut T,
    slot: &AtomicPtr<()>,
    barrier: &impl Barrier,
) -> Result<*mut T, *mut T> {
    // Release: reads of the previous object come before that object is freed.
    slot.store(object.cast(), Ordering::Release);
    barrier.light();
    let again = source.load(Ordering::Acquire);
    if again == object { Ok(again) } else { Err(again) }
}

/// Calls `try_publish` until `source` stays unchanged during a call, and returns the object that is then protected. The
/// first call uses `object`. This path is rare, so it is not inlined. It takes the parts of the hazard pointer instead
/// of a reference to it, so that the caller can keep the hazard pointer in registers.
#[cold]
#[inline(never)]
fn publish_again<T>(source: &AtomicPtr<T>, mut object: *mut T, slot: &AtomicPtr<()>, barrier: &impl Barrier) -> *mut T {
    loop {
        match try_publish(source, object, slot, barrier) {
            Ok(object) => return object,
            Err(changed) => object = changed,
        }
    }
}

impl<B: Barrier> Drop for Hazard<B> {
    fn drop(&mut self) {
        self.slot().store(std::ptr::null_mut(), Ordering::Release);
        // SAFETY: the record lives as long as the domain.
        unsafe { self.slot.as_ref() }.release();
    }
}

impl<B: Barrier> fmt::Debug for Hazard<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hazard").field("protects", &self.slot().load(Ordering::Relaxed)).finish_non_exhaustive()
    }
}

/// A guard: its object is not freed while the guard lives. It borrows the hazard pointer, which can protect another
/// object afterwards.
#[derive(Debug)]
pub struct Guard<'h, T> {
    object: NonNull<T>,
    slot: &'h AtomicPtr<()>,
}

// SAFETY: this is a shared borrow of the object, and its slot is an atomic.
unsafe impl<T: Sync> Send for Guard<'_, T> {}
// SAFETY: this is a shared borrow of the object, and its slot is an atomic.
unsafe impl<T: Sync> Sync for Guard<'_, T> {}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the slot contains the object, and did so before `source` was found to lead to it.
        unsafe { self.object.as_ref() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.slot.store(std::ptr::null_mut(), Ordering::Release);
    }
}

/// A guard that contains its hazard pointer: its object is not freed while the guard lives.
#[derive(Debug)]
pub struct OwnedGuard<T, B: Barrier> {
    object: NonNull<T>,
    hazard: Hazard<B>,
}

// SAFETY: this is a shared borrow of the object, and the hazard pointer may be sent.
unsafe impl<T: Sync, B: Barrier> Send for OwnedGuard<T, B> {}
// SAFETY: this is a shared borrow of the object, and a shared hazard pointer can only be formatted.
unsafe impl<T: Sync, B: Barrier> Sync for OwnedGuard<T, B> {}

impl<T, B: Barrier> OwnedGuard<T, B> {
    /// Releases the object, and returns the hazard pointer.
    #[must_use]
    pub fn into_hazard(self) -> Hazard<B> {
        self.hazard.slot().store(std::ptr::null_mut(), Ordering::Release);
        self.hazard
    }
}

impl<T, B: Barrier> Deref for OwnedGuard<T, B> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the slot contains the object, and did so before `source` was found to lead to it.
        unsafe { self.object.as_ref() }
    }
}

impl<T: Send + Sync + 'static, B: Barrier> Published<T, B> {
    /// Returns the current object, which is not freed while the guard lives.
    ///
    /// # Panics
    /// If the hazard pointer belongs to another domain.
    #[inline]
    pub fn load<'h>(&self, hazard: &'h mut Hazard<B>) -> Guard<'h, T> {
        let hazard: &'h Hazard<B> = hazard;
        self.check(&hazard.domain);
        // SAFETY: a published pointer is never null, and only this domain's retirers free its object.
        let object = unsafe { NonNull::new_unchecked(hazard.publish(self.object())) };
        Guard { object, slot: hazard.slot() }
    }

    /// Loads the object as [`load`](Self::load) does, with a guard that can be stored and sent.
    ///
    /// # Panics
    /// If the hazard pointer belongs to another domain.
    pub fn load_owned(&self, hazard: Hazard<B>) -> OwnedGuard<T, B> {
        self.check(&hazard.domain);
        // SAFETY: a published pointer is never null, and only this domain's retirers free its object.
        let object = unsafe { NonNull::new_unchecked(hazard.publish(self.object())) };
        OwnedGuard { object, hazard }
    }

    /// Replaces the object. Readers of the old object continue undisturbed.
    ///
    /// # Panics
    /// If the retirer belongs to another domain.
    pub fn replace(&self, object: T, retirer: &mut Retirer<B>) {
        self.check(retirer.domain());
        retirer.add(self.swap(object));
    }

    /// Replaces the object as [`replace`](Self::replace) does, but only if it is still `current`, a reference that
    /// [`load`](Self::load) returned.
    ///
    /// # Errors
    /// Returns `object` if another object has replaced `current`, even an equal one.
    ///
    /// # Panics
    /// If the retirer belongs to another domain.
    pub fn compare_exchange(&self, current: &T, object: T, retirer: &mut Retirer<B>) -> Result<(), T> {
        self.check(retirer.domain());
        self.swap_if(current, object).map(|old| retirer.add(old))
    }

    /// Replaces the object by the result of `change`. If another thread replaces the object meanwhile, `change` is
    /// called again, so no write is lost. If `change` returns `None`, the object stays, and this function returns
    /// `false`.
    ///
    /// # Panics
    /// If the hazard pointer or the retirer belongs to another domain.
    pub fn update(
        &self,
        hazard: &mut Hazard<B>,
        retirer: &mut Retirer<B>,
        mut change: impl FnMut(&T) -> Option<T>,
    ) -> bool {
        self.check(retirer.domain());
        loop {
            let current = self.load(hazard);
            let Some(object) = change(&current) else { return false };
            if let Ok(old) = self.swap_if(&current, object) {
                drop(current);
                retirer.add(old);
                return true;
            }
        }
    }
}
