//! The standard library's, and the kernel's futex.

#![allow(unused_imports)] // one list for all protocols: what one of them stops using stays

use std::ops::Deref;
use std::time::Duration;

use ascertain_sys::futex::{self, Scope};

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::Mutex;
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence,
};
pub(crate) use std::thread;
pub(crate) use std::time::Instant;

pub(crate) use super::cell::UnsafeCell;

/// A word of this process that threads can sleep on.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct Futex(AtomicU32);

impl Futex {
    pub(crate) const fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }

    /// Sleeps while the word is `expected`, until woken, for `timeout` at most. May return for no reason.
    pub(crate) fn wait(&self, expected: u32, timeout: Option<Duration>) {
        futex::wait(&self.0, expected, timeout, Scope::Process);
    }

    /// Wakes all that sleep.
    pub(crate) fn wake_all(&self) {
        futex::wake_all(&self.0, Scope::Process);
    }
}

impl Deref for Futex {
    type Target = AtomicU32;

    fn deref(&self) -> &AtomicU32 {
        &self.0
    }
}
