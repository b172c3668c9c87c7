//! The replacement for platforms without sequences: there is no area, so a program cannot call a sequence.

use std::convert::Infallible;
use std::ptr::NonNull;

use super::{Count, Outcome, OwnedWords, Stacks, Unavailable};

/// The kernel's data about a thread for restartable sequences. It exists only on Linux on x86-64, so on this platform
/// the type has no values.
#[derive(Clone, Copy, Debug)]
pub struct Area(Infallible);

/// Defines methods that can never be called, because their type has no values.
macro_rules! never {
    ($(fn $name:ident($($argument:ty),*) -> $result:ty;)*) => {
        $(pub fn $name(self $(, _: $argument)*) -> $result {
            match self.0 {}
        })*
    };
}

#[allow(missing_docs, clippy::missing_errors_doc)]
impl Area {
    pub fn find() -> Result<Self, Unavailable> {
        Err(Unavailable::Platform)
    }

    never! {
        fn feature_bytes() -> usize;
        fn cpu() -> Option<usize>;
        fn add(&[Count], u64) -> Outcome;
        fn push(&Stacks, NonNull<()>) -> Outcome;
        fn pop(&Stacks) -> Outcome<NonNull<()>>;
        fn acquire(&[OwnedWords]) -> Outcome<(usize, u64)>;
        fn store(usize, &OwnedWords, u64, usize, u64) -> Outcome;
    }
}
