//! The readers' side.

use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;

use super::domain::{Domain, Slot};
use super::{Published, Retirer};
use crate::barrier::Barrier;
use crate::primitives::{AtomicPtr, Ordering};
use crate::reclaim::Record;

/// A hazard pointer: a slot of its own, in which it tells the domain's retirers which object it reads.
///
/// Make one a thread and object that the thread reads at the same time, and keep it: it costs a search through the
/// domain's slots. Dropping it gives the slot back.
pub struct Hazard<B: Barrier> {
    slot: NonNull<Record<Slot>>,
    domain: Domain<B>,
}

// SAFETY: the slot belongs to the hazard pointer, not to the thread, and the domain it lives in comes along.
unsafe impl<B: Barrier> Send for Hazard<B> {}
// SAFETY: nothing can be done with a shared one but to look at it.
unsafe impl<B: Barrier> Sync for Hazard<B> {}

impl<B: Barrier> Hazard<B> {
    pub(super) fn new(domain: Domain<B>, slot: NonNull<Record<Slot>>) -> Self {
        Self { slot, domain }
    }

    /// Reads `source` and keeps what it points to from being freed while the guard lives; `None` for null.
    ///
    /// Two loads, a store, and the barrier's light side. It begins anew each time somebody changes `source` meanwhile.
    ///
    /// # Safety
    /// - `source` is null or points to a valid `T` whenever this reads it.
    /// - What it points to is freed only by retirers of this domain, to whom it is given after it was taken out of
    ///   `source` and out of whatever else leads to it.
    #[inline]
    pub unsafe fn protect<'h, T>(&'h mut self, source: &AtomicPtr<T>) -> Option<Guard<'h, T>> {
        let this: &'h Self = self;
        NonNull::new(this.publish(source)).map(|object| Guard { object, slot: this.slot() })
    }

    /// As [`protect`](Self::protect), with a guard that the hazard pointer goes into: it can be kept and sent.
    ///
    /// # Errors
    /// The hazard pointer itself where `source` is null.
    ///
    /// # Safety
    /// As [`protect`](Self::protect).
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

    /// Says which object is about to be read, and looks whether it is still there.
    ///
    /// If the retirer's heavy side comes after this light side, its scan finds the object in the slot. If it comes
    /// before, the second load finds what the writer put in the object's place.
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
    // Release: what was read of the object before this one comes before its being freed.
    slot.store(object.cast(), Ordering::Release);
    barrier.light();
    let again = source.load(Ordering::Acquire);
    if again == object { Ok(again) } else { Err(again) }
}

/// Away from the path that is nearly always taken, and without the hazard pointer, which can then be in registers.
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

/// An object that is not freed while this lives. It borrows the hazard pointer, and leaves it free for another object.
#[derive(Debug)]
pub struct Guard<'h, T> {
    object: NonNull<T>,
    slot: &'h AtomicPtr<()>,
}

// SAFETY: it is a shared borrow of the object, and its slot an atomic.
unsafe impl<T: Sync> Send for Guard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Guard<'_, T> {}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the slot holds the object, and did so before `source` was found to lead to it.
        unsafe { self.object.as_ref() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.slot.store(std::ptr::null_mut(), Ordering::Release);
    }
}

/// An object that is not freed while this lives, with the hazard pointer that says so.
#[derive(Debug)]
pub struct OwnedGuard<T, B: Barrier> {
    object: NonNull<T>,
    hazard: Hazard<B>,
}

// SAFETY: it is a shared borrow of the object, and the hazard pointer may be sent.
unsafe impl<T: Sync, B: Barrier> Send for OwnedGuard<T, B> {}
// SAFETY: as above.
unsafe impl<T: Sync, B: Barrier> Sync for OwnedGuard<T, B> {}

impl<T, B: Barrier> OwnedGuard<T, B> {
    /// Lets go of the object, and gives the hazard pointer back.
    #[must_use]
    pub fn into_hazard(self) -> Hazard<B> {
        self.hazard.slot().store(std::ptr::null_mut(), Ordering::Release);
        self.hazard
    }
}

impl<T, B: Barrier> Deref for OwnedGuard<T, B> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: as of `Guard`.
        unsafe { self.object.as_ref() }
    }
}

impl<T: Send + Sync + 'static, B: Barrier> Published<T, B> {
    /// The object as it is now, which is not freed while the guard lives.
    ///
    /// # Panics
    /// If the hazard pointer is another domain's.
    #[inline]
    pub fn load<'h>(&self, hazard: &'h mut Hazard<B>) -> Guard<'h, T> {
        let hazard: &'h Hazard<B> = hazard;
        self.check(&hazard.domain);
        // SAFETY: what is published is never null, and freed by this domain's retirers alone.
        let object = unsafe { NonNull::new_unchecked(hazard.publish(self.object())) };
        Guard { object, slot: hazard.slot() }
    }

    /// As [`load`](Self::load), with a guard that can be kept and sent.
    ///
    /// # Panics
    /// If the hazard pointer is another domain's.
    pub fn load_owned(&self, hazard: Hazard<B>) -> OwnedGuard<T, B> {
        self.check(&hazard.domain);
        // SAFETY: as in `load`.
        let object = unsafe { NonNull::new_unchecked(hazard.publish(self.object())) };
        OwnedGuard { object, hazard }
    }

    /// Puts another object in its place. Readers of the old one go on undisturbed.
    ///
    /// # Panics
    /// If the retirer is another domain's.
    pub fn replace(&self, object: T, retirer: &mut Retirer<B>) {
        self.check(retirer.domain());
        retirer.add(self.swap(object));
    }

    /// As [`replace`](Self::replace), if `current` is still the object, as a guard found it.
    ///
    /// # Errors
    /// Gives `object` back where another is there by now, even if it is equal to `current`.
    ///
    /// # Panics
    /// If the retirer is another domain's.
    pub fn compare_exchange(&self, current: &T, object: T, retirer: &mut Retirer<B>) -> Result<(), T> {
        self.check(retirer.domain());
        self.swap_if(current, object).map(|old| retirer.add(old))
    }

    /// Replaces the object by what `change` makes of it, which is called again where others replace it meanwhile: no
    /// write is lost. Where it returns `None` the object stays, and this returns false.
    ///
    /// # Panics
    /// If the hazard pointer or the retirer is another domain's.
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
