#![doc = include_str!("../README.md")]

#[cfg(feature = "dns")]
pub mod dns;
#[cfg(target_os = "linux")]
mod emulated;
mod error;
#[cfg(feature = "servers")]
pub mod http;
#[cfg(all(feature = "servers", target_os = "linux"))]
pub mod installed;
pub mod model;
mod phases;
#[cfg(feature = "providers")]
pub mod provider;
#[cfg(feature = "stores")]
pub mod store;
#[cfg(any(feature = "dns", feature = "servers", target_os = "linux"))]
mod threads;
#[cfg(feature = "servers")]
pub mod throughput;
#[cfg(feature = "stores")]
pub mod timer;

pub use ascertain_sys::clock::now_ns;
#[cfg(target_os = "linux")]
pub use ascertain_sys::tcp;
#[cfg(target_os = "linux")]
pub use emulated::{Carrier, Lateness, Link, Report, RunningLink, Side};
pub use error::Error;
pub use phases::{Phase, Phases};
