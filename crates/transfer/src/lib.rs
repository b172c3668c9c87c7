#![doc = include_str!("../README.md")]

mod remote;
mod store;

pub use remote::{Environment, Options, open};
pub use store::{Attempt, Block, Failure, Found, Integrity, Kind, Limits, Meta, PutOptions, Store, Upload};
