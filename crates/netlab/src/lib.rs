#![doc = include_str!("../README.md")]

mod error;
#[cfg(feature = "servers")]
pub mod http;
pub mod model;
mod phases;

#[cfg(target_os = "linux")]
pub use ascertain_sys::tcp;
pub use error::Error;
pub use phases::{Phase, Phases};
