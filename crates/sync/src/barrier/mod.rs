#![doc = include_str!("README.md")]

mod choose;
mod contract;
mod interrupts;
mod membarrier;
#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
mod scripted;

pub use choose::{BEST_FIRST, ExpeditedOrFences, Method, Reason, Unavailable, Visitor, choose};
pub use contract::{Barrier, Fences, Ticket};
pub use interrupts::Interrupts;
pub use membarrier::{Expedited, Global};
#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
pub(crate) use scripted::Scripted;
