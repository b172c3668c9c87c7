//! One object that readers read while writers replace it: reclamation without `unsafe` at the caller.

use std::fmt;

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
/// It belongs to one domain or collector, whose guards alone may read it: another's are refused by a panic.
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

    /// The object, where nobody else can have the pointer to it: a bare load.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: never null, and a box that only this pointer leads to. Nobody reads it: guards are of objects that
        // were read through a shared borrow, and … 
        unsafe { &mut *self.object.load(Ordering::Relaxed) }
    }
}
