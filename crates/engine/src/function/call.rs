//! Calls of a user's function, with or without a fresh input.

use std::cell::RefCell;

#[cfg(feature = "allocations")]
use ascertain_sys::allocations::{self, Allocations};
use ascertain_sys::clock;

use crate::batch;

/// A user's function, with the closure that makes its inputs if it needs any. Implementations keep both in a `RefCell`,
/// so that several sessions can call them one after the other through a shared reference.
pub(super) trait Call {
    /// Calls the function `iterations` times, and returns the total time in nanoseconds.
    fn time(&self, iterations: u64) -> u64;

    /// Calls the function once, and returns how much it allocated.
    #[cfg(feature = "allocations")]
    fn count(&self) -> Allocations;
}

pub(super) struct Plain<F>(pub RefCell<F>);

impl<T, F: FnMut() -> T> Call for Plain<F> {
    fn time(&self, iterations: u64) -> u64 {
        batch::time_calls(&mut *self.0.borrow_mut(), iterations)
    }

    #[cfg(feature = "allocations")]
    fn count(&self) -> Allocations {
        allocations::count(&mut *self.0.borrow_mut())
    }
}

pub(super) struct WithSetup<S, F>(pub RefCell<(S, F)>);

impl<I, T, S: FnMut() -> I, F: FnMut(I) -> T> Call for WithSetup<S, F> {
    fn time(&self, iterations: u64) -> u64 {
        let (setup, f) = &mut *self.0.borrow_mut();
        batch::time_calls_with_setup(&clock::now_ns, setup, f, iterations)
    }

    #[cfg(feature = "allocations")]
    fn count(&self) -> Allocations {
        let (setup, f) = &mut *self.0.borrow_mut();
        let input = setup();
        allocations::count(|| f(crate::black_box(input)))
    }
}

pub(super) struct WithSetupRef<S, F>(pub RefCell<(S, F)>);

impl<I, T, S: FnMut() -> I, F: FnMut(&mut I) -> T> Call for WithSetupRef<S, F> {
    fn time(&self, iterations: u64) -> u64 {
        let (setup, f) = &mut *self.0.borrow_mut();
        batch::time_calls_with_setup_ref(&clock::now_ns, setup, f, iterations)
    }

    #[cfg(feature = "allocations")]
    fn count(&self) -> Allocations {
        let (setup, f) = &mut *self.0.borrow_mut();
        let mut input = setup();
        allocations::count(|| f(crate::black_box(&mut input)))
    }
}
