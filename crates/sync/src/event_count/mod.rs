#![doc = include_str!("README.md")]

mod awaitable;
mod contract;
mod flagged;
#[cfg(model = "tso")]
mod impatient;
mod polled;
mod sleep;
mod two_word;

pub use awaitable::{Awaitable, Changed};
pub use contract::{EventCount, Version};
pub use flagged::{Flagged, MultiProducer, OneWord};
#[cfg(model = "tso")]
pub use impatient::Impatient;
pub use polled::{Backoff, Polled};
pub use two_word::TwoWord;

/// The cheapest with one producer that can wake sleepers here: one word where the processor adds to memory in one
/// instruction and keeps its stores in order, two words elsewhere.
#[cfg(target_arch = "x86_64")]
pub type SingleProducer = OneWord;
/// The cheapest with one producer that can wake sleepers here: one word where the processor adds to memory in one
/// instruction and keeps its stores in order, two words elsewhere.
#[cfg(not(target_arch = "x86_64"))]
pub type SingleProducer = TwoWord;
