//! Where no sequences are written: there is no area, and so nobody who could call one.

use std::convert::Infallible;
use std::ptr::NonNull;

use super::{Count, Outcome, Owned, Stacks, Unavailable, Yielded};

/// See the same on Linux and x86-64; here there is none.
#[derive(Clone, Copy, Debug)]
pub struct Area(Infallible);

#[allow(missing_docs, clippy::missing_errors_doc)]
impl Area {
    pub fn find() -> Result<Self, Unavailable> {
        Err(Unavailable::Platform)
    }

    pub fn feature_bytes(self) -> usize {
        match self.0 {}
    }

    pub fn cpu(self) -> Option<usize> {
        match self.0 {}
    }

    pub fn add(self, _counts: &[Count], _delta: u64) -> Outcome {
        match self.0 {}
    }

    pub fn push(self, _stacks: &Stacks, _item: NonNull<()>) -> Outcome {
        match self.0 {}
    }

    pub fn pop(self, _stacks: &Stacks) -> Yielded<NonNull<()>> {
        match self.0 {}
    }

    pub fn acquire(self, _owned: &[Owned]) -> Yielded<(usize, u64)> {
        match self.0 {}
    }

    pub fn store(self, _cpu: usize, _owned: &Owned, _owner: u64, _word: usize, _value: u64) -> Outcome {
        match self.0 {}
    }
}
