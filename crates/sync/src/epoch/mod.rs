#![doc = include_str!("README.md")]

mod collector;
mod handle;

pub use collector::Collector;
pub use handle::{Guard, Handle, OwnedGuard};

/// An object that readers read while they are pinned, and writers replace.
pub type Published<T, B> = crate::reclaim::Published<T, Collector<B>>;
