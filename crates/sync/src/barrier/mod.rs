#![doc = include_str!("README.md")]

mod choose;
mod contract;
mod expedited;
mod expedited_or_fences;
mod fences;
mod global;
mod interrupts;
#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
mod scripted;
mod ticket;
mod unavailable;

pub use choose::{BEST_FIRST, Visitor, choose};
pub use contract::Barrier;
pub use expedited::Expedited;
pub use expedited_or_fences::ExpeditedOrFences;
pub use fences::Fences;
pub use global::Global;
pub use interrupts::Interrupts;
#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
pub(crate) use scripted::Scripted;
pub use ticket::Ticket;
pub use unavailable::{Method, Reason, Unavailable};
