//! Objects that nobody can reach any more, but that some may still read.

use std::fmt;
use std::mem::{self, MaybeUninit};

use super::Leavable;

/// An object that was taken out of the shared structure, or a closure. Dropping this frees the object or calls the closure.
pub struct Retired {
    /// An address, or a closure that is no larger than one.
    word: MaybeUninit<*mut ()>,
    end: unsafe fn(MaybeUninit<*mut ()>),
}

// SAFETY: who makes one promises that the object may be freed on any thread.
unsafe impl Send for Retired {}

impl Retired {
    /// # Safety
    /// `free` may be called with the object on any thread, once, when this is dropped; nothing else frees it.
    pub(crate) unsafe fn new(object: *mut (), free: unsafe fn(*mut ())) -> Self {
        // SAFETY: a `MaybeUninit` is passed as what may be in it, and is given one that is.
        let end = unsafe { mem::transmute::<unsafe fn(*mut ()), unsafe fn(MaybeUninit<*mut ()>)>(free) };
        Self { word: MaybeUninit::new(object), end }
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
        // SAFETY: by the contract.
        unsafe { Self::new(object.cast(), free::<T>) }
    }

    /// A closure, in a box if it is larger than a word.
    pub(crate) fn closure<F: FnOnce() + Send + 'static>(closure: F) -> Self {
        /// # Safety
        /// The word was made of a closure of this type, and is used once.
        unsafe fn call<F: FnOnce()>(word: MaybeUninit<*mut ()>) {
            let closure = if is_word::<F>() {
                // SAFETY: by the contract, it is in the word.
                unsafe { word.as_ptr().cast::<F>().read() }
            } else {
                // SAFETY: by the contract, it is in a box.
                *unsafe { Box::from_raw(word.assume_init().cast::<F>()) }
            };
            closure();
        }
        let mut word = MaybeUninit::<*mut ()>::uninit();
        if is_word::<F>() {
            // SAFETY: it is neither larger than a pointer nor aligned to more.
            unsafe { word.as_mut_ptr().cast::<F>().write(closure) };
        } else {
            word.write(Box::into_raw(Box::new(closure)).cast());
        }
        Self { word, end: call::<F> }
    }

    /// # Safety
    /// It is not a closure.
    pub(crate) unsafe fn object(&self) -> *mut () {
        // SAFETY: by the contract, it was made of an address.
        unsafe { self.word.assume_init() }
    }
}

const fn is_word<F>() -> bool {
    size_of::<F>() <= size_of::<*mut ()>() && align_of::<F>() <= align_of::<*mut ()>()
}

impl Leavable for Retired {
    fn objects(&self) -> usize {
        1
    }
}

impl Drop for Retired {
    fn drop(&mut self) {
        // SAFETY: by the contract of `new`, or as of `closure`; a value is dropped once.
        unsafe { (self.end)(self.word) };
    }
}

impl fmt::Debug for Retired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retired").finish_non_exhaustive()
    }
}
