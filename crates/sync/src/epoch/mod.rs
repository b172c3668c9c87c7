#![doc = include_str!("README.md")]

mod collector;
mod handle;
mod local;

pub use collector::Collector;
pub use handle::{Guard, Handle, OwnedGuard};
pub use local::{default_collector, pin};

/// An object that readers read while they are pinned, and that writers replace.
pub type Published<T, B = crate::barrier::ExpeditedOrFences> = crate::reclaim::Published<T, Collector<B>>;
