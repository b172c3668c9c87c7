#![doc = include_str!("README.md")]

mod backoff;
mod contract;
#[cfg(model = "tso")]
mod impatient;
mod multi_producer;
mod one_word;
mod polled;
mod sleep;
mod two_word;
mod unlocked;

pub use backoff::Backoff;
pub use contract::{EventCount, Version};
#[cfg(model = "tso")]
pub use impatient::Impatient;
pub use multi_producer::MultiProducer;
pub use one_word::OneWord;
pub use polled::Polled;
pub use two_word::TwoWord;

/// The cheapest with one producer that can wake sleepers here: one word where the processor adds to memory in one
/// instruction and keeps its stores in order, two words elsewhere.
#[cfg(target_arch = "x86_64")]
pub type SingleProducer = OneWord;
/// The cheapest with one producer that can wake sleepers here: one word where the processor adds to memory in one
/// instruction and keeps its stores in order, two words elsewhere.
#[cfg(not(target_arch = "x86_64"))]
pub type SingleProducer = TwoWord;
