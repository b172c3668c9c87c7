#![doc = include_str!("README.md")]

mod consumer;
mod producer;
mod shared;

pub use consumer::{Consumer, PopBatch, PopError};
pub use producer::{Producer, PushError};
pub use shared::{ring, ring_starting_at};
