//! One object that readers read while writers replace it: reclamation without `unsafe` at the caller.

use std::fmt;
use std::ptr::from_ref;

use super::Retired;
use crate::primitives::{AtomicPtr, Ordering};

/// A domain or a collector.
pub trait Reclaimer: Clone {
    /// Whether it is this one, not one like it.
    fn is(&self, other: &Self) -> bool;

    /// Takes an object that nobody can reach any more, to be freed when nobody can read it either.
    fn adopt(&self, retired: Retired);
}

/// An object that any number of threads read while others replace it.
///
/// One that may be absent is a `Published<Option<T>, _>`. An absence is an object as others are, in a box of its own:
/// `compare_exchange` tells it from the one that was there before.
///
/// It belongs to one domain or collector, whose guards alone may read it: another's are refused by a panic. It keeps
/// that domain alive, also from within an object that waits to be freed there: after the last such structure was
/// dropped, a retirer's or handle's `flush` frees what is in it.
pub struct Published<T: Send + Sync + 'static, R: Reclaimer> {
    /// Never null: a box of the current object.
    object: AtomicPtr<T>,
    reclaimer: R,
}

impl<T: Send + Sync + 'static, R: Reclaimer> Published<T, R> {
    /// Publishes an object.
    pub fn new(object: T, reclaimer: &R) -> Self {
        Self { object: AtomicPtr::new(Box::into_raw(Box::new(object))), reclaimer: reclaimer.clone() }
    }

    /// The object, to somebody who has the pointer to it alone, so that nobody replaces it: a bare load.
    ///
    /// Guards may be reading the object, or an earlier one, hence no `&mut T`.
    #[inline]
    pub fn get(&mut self) -> &T {
        // SAFETY: never null, and the object is freed after it was replaced, which the borrow rules out.
        unsafe { &*self.object.load(Ordering::Relaxed) }
    }

    pub(crate) fn object(&self) -> &AtomicPtr<T> {
        &self.object
    }

    /// # Panics
    /// If it belongs to another.
    #[inline(always)]
    pub(crate) fn check(&self, reclaimer: &R) {
        if !self.reclaimer.is(reclaimer) {
            belongs_to_another();
        }
    }

    /// Publishes another object, and hands out the one that it replaces: no reader finds that any more.
    pub(crate) fn swap(&self, object: T) -> Retired {
        let new = Box::into_raw(Box::new(object));
        let old = self.object.swap(new, Ordering::AcqRel);
        // SAFETY: the pointer came from a box, only here was the only way to it, and `T: Send`.
        unsafe { Retired::boxed(old) }
    }

    /// As [`swap`](Self::swap), if `current` is what is published; gives the object back otherwise.
    ///
    /// That the address is the same says that the object is, wherever the reference comes from: while one can be used,
    /// its object is not freed, and no other is in its place. (Objects of no size are all in one place, and alike.)
    pub(crate) fn swap_if(&self, current: &T, object: T) -> Result<Retired, T> {
        let new = Box::into_raw(Box::new(object));
        // Release: with the new one comes what was written to it. The old one's contents came with the reference.
        match self.object.compare_exchange(from_ref(current).cast_mut(), new, Ordering::Release, Ordering::Relaxed) {
            // SAFETY: as in `swap`. What was found there, as `current` may only be read through.
            Ok(old) => Ok(unsafe { Retired::boxed(old) }),
            // SAFETY: it comes from a box, and nobody else has seen it.
            Err(_) => Err(*unsafe { Box::from_raw(new) }),
        }
    }
}

#[cold]
#[inline(never)]
fn belongs_to_another() -> ! {
    panic!("the object is published under another domain or collector than the guard's");
}

impl<T: Send + Sync + 'static, R: Reclaimer> Drop for Published<T, R> {
    fn drop(&mut self) {
        // SAFETY: as in `swap`; nobody can read the pointer from now on.
        self.reclaimer.adopt(unsafe { Retired::boxed(self.object.load(Ordering::Relaxed)) });
    }
}

impl<T: Send + Sync + 'static, R: Reclaimer> fmt::Debug for Published<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Published").field("object", &self.object).finish_non_exhaustive()
    }
}
