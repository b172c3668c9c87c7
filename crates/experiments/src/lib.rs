#![doc = include_str!("../README.md")]

mod claims;
#[cfg(any(feature = "numeric", feature = "sync"))]
mod compiled;
#[cfg(all(feature = "networks", target_os = "linux"))]
mod limits;
#[cfg(feature = "networks")]
mod links;
#[cfg(feature = "networks")]
mod name_servers;
mod registry;
#[cfg(all(test, feature = "networks", target_os = "linux"))]
mod simulated;
#[cfg(any(feature = "numeric", feature = "sync"))]
mod threads;
#[cfg(all(feature = "networks", target_os = "linux"))]
mod url;

pub use claims::shipped_claims;
#[cfg(feature = "networks")]
pub use registry::dns_propagation::clean;
pub use registry::{families, registry};
