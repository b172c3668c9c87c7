#![doc = include_str!("../README.md")]

mod store;

pub use store::{Attempt, Block, Failure, Found, Integrity, Kind, Limits, Meta, PutOptions, Store, Upload};
