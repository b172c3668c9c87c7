//! An object that readers read while writers replace it: reclamation without `unsafe` in the caller's code.

use std::fmt;
use std::ptr::from_ref;

use super::Retired;
use crate::primitives::{AtomicPtr, Ordering};

/// The owner of retired objects: a domain of hazard pointers or a collector of epochs.
pub trait Reclaimer: Clone {
    /// Returns whether both values refer to the same domain or collector.
    fn is_same(&self, other: &Self) -> bool;

    /// Takes an object that no new reader can find. The object is freed once all readers that have found it have ended
    /// their reads.
    fn adopt(&self, retired: Retired);
}

/// An object that any number of threads read while others replace it.
///
/// Use a `Published<Option<T>, _>` for an object that may be absent. A `None` is an object like others, in its own box:
/// `compare_exchange` distinguishes it from an earlier `None`.
///
/// Each `Published` belongs to one domain or collector. Only guards of the same domain or collector may read it: other
/// guards cause a panic. A `Published` keeps its domain or collector alive. If a retired object contains a `Published`
/// of the same domain or collector, the two keep each other alive for ever. So call `flush` of a retirer or handle
/// after the last structure with such objects was dropped.
pub struct Published<T: Send + Sync + 'static, R: Reclaimer> {
    /// A pointer to the box of the current object; never null.
    object: AtomicPtr<T>,
    reclaimer: R,
}

impl<T: Send + Sync + 'static, R: Reclaimer> Published<T, R> {
    /// Publishes an object, which belongs to `reclaimer` from now on.
    pub fn new(object: T, reclaimer: &R) -> Self {
        Self { object: AtomicPtr::new(Box::into_raw(Box::new(object))), reclaimer: reclaimer.clone() }
    }

    /// Returns the current object. No thread can replace the object meanwhile, because the caller has exclusive access.
    /// This costs only a load.
    ///
    /// Guards may be reading the object, or an earlier one, so this cannot return `&mut T`.
    #[inline]
    pub fn get(&mut self) -> &T {
        // SAFETY: the pointer is never null. An object is freed only after another one has replaced it, and no thread
        // can replace it during this exclusive borrow.
        unsafe { &*self.object.load(Ordering::Relaxed) }
    }

    pub(crate) fn object(&self) -> &AtomicPtr<T> {
        &self.object
    }

    /// Checks that the object belongs to this domain or collector.
    ///
    /// # Panics
    /// If the object belongs to another domain or collector.
    #[inline(always)]
    pub(crate) fn check(&self, reclaimer: &R) {
        self.check_owner(|owner| owner.is_same(reclaimer));
    }

    /// Checks the object's domain or collector by `is_right`.
    ///
    /// # Panics
    /// If `is_right` returns `false`.
    #[inline(always)]
    pub(crate) fn check_owner(&self, is_right: impl FnOnce(&R) -> bool) {
        if !is_right(&self.reclaimer) {
            belongs_to_another();
        }
    }

    /// Publishes another object, and returns the object that it replaces. From now on, no reader can find the replaced
    /// object.
    pub(crate) fn swap(&self, object: T) -> Retired {
        let new = Box::into_raw(Box::new(object));
        let old = self.object.swap(new, Ordering::AcqRel);
        // SAFETY: the pointer is from `Box::into_raw`, and `T: Send`. Threads could find the object only by this
        // pointer.
        unsafe { Retired::boxed(old) }
    }

    /// Publishes another object as [`swap`](Self::swap) does, if `current` is still the published object. Otherwise
    /// returns `object` as an error.
    ///
    /// It compares addresses. That is enough, because no other object can have the address of `current`: an object is
    /// not freed while a reference to it can be used. (Objects of size zero all have the same address, and are equal.)
    pub(crate) fn swap_if(&self, current: &T, object: T) -> Result<Retired, T> {
        let new = Box::into_raw(Box::new(object));
        // Release: a thread that sees the new pointer sees what was written to the new object. The contents of the old
        // object were acquired with the reference.
        match self.object.compare_exchange(from_ref(current).cast_mut(), new, Ordering::Release, Ordering::Relaxed) {
            // SAFETY: `old` is from `Box::into_raw`, threads could find the object only by this pointer, and `T: Send`.
            // `old` is used instead of `current`, because a reference permits only reads.
            Ok(old) => Ok(unsafe { Retired::boxed(old) }),
            // SAFETY: `new` is from `Box::into_raw`, and no other thread has seen it.
            Err(_) => Err(*unsafe { Box::from_raw(new) }),
        }
    }
}

#[cold]
#[inline(never)]
fn belongs_to_another() -> ! {
    panic!("the object and the guard or handle belong to different domains or collectors");
}

impl<T: Send + Sync + 'static, R: Reclaimer> Drop for Published<T, R> {
    fn drop(&mut self) {
        // SAFETY: the pointer is from `Box::into_raw`, and `T: Send`. Threads could find the object only by this
        // pointer, and no thread can read the pointer from now on.
        self.reclaimer.adopt(unsafe { Retired::boxed(self.object.load(Ordering::Relaxed)) });
    }
}

impl<T: Send + Sync + 'static, R: Reclaimer> fmt::Debug for Published<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Published").field("object", &self.object).finish_non_exhaustive()
    }
}
