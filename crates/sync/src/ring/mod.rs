#![doc = include_str!("README.md")]

mod consumer;
mod error;
mod producer;
mod shared;

pub use consumer::{Consumer, Popped};
pub use error::{PopError, PushError};
pub use producer::Producer;
pub use shared::{ring, ring_starting_at};
