//! Objects that nobody can reach any more, but that some may still read.

use std::fmt;

use super::Leavable;

/// An object that was taken out of the shared structure. Dropping this frees the object.
pub struct Retired {
    object: *mut (),
    free: unsafe fn(*mut ()),
}

// SAFETY: who makes one promises that the object may be freed on any thread.
unsafe impl Send for Retired {}

impl Retired {
    /// # Safety
    /// `free` may be called with the object on any thread, once, when this is dropped; nothing else frees it.
    pub(crate) unsafe fn new(object: *mut (), free: unsafe fn(*mut ())) -> Self {
        Self { object, free }
    }

    /// # Safety
    /// The object comes from [`Box::into_raw`] and may be freed on any thread; nothing else frees it.
    pub(crate) unsafe fn boxed<T>(object: *mut T) -> Self {
        /// # Safety
        /// The object comes from a box of this type.
        unsafe fn free<T>(object: *mut ()) {
            // SAFETY: by the contract.
            drop(unsafe { Box::from_raw(object.cast::<T>()) });
        }
        Self { object: object.cast(), free: free::<T> }
    }

    pub(crate) fn object(&self) -> *mut () {
        self.object
    }
}

impl Leavable for Retired {
    fn objects(&self) -> usize {
        1
    }
}

impl Drop for Retired {
    fn drop(&mut self) {
        // SAFETY: by the contract of `new`; a value is dropped once.
        unsafe { (self.free)(self.object) };
    }
}

impl fmt::Debug for Retired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Retired").field(&self.object).finish()
    }
}
