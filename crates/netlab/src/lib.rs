#![doc = include_str!("../README.md")]

mod error;
pub mod model;

pub use error::Error;
