#![doc = include_str!("../README.md")]

/// Defines constants with the values 0, 1, 2 and so on: the indices of metrics.
macro_rules! indices {
    ($first:ident $(, $rest:ident)*) => { indices! { 0, $first $(, $rest)* } };
    ($index:expr, $first:ident $(, $rest:ident)*) => {
        const $first: usize = $index;
        indices! { $index + 1 $(, $rest)* }
    };
    ($index:expr) => {};
}

// Each folder has the name of its experiment on the command line.
#[path = "dns-load/experiment.rs"]
mod dns_load;
#[path = "dns-propagation/experiment.rs"]
mod dns_propagation;
#[path = "favouritism/experiment.rs"]
mod favouritism;
#[path = "first-flight/experiment.rs"]
mod first_flight;
#[path = "https-throughput/experiment.rs"]
mod https_throughput;
mod levels;
#[path = "link-throughput/experiment.rs"]
mod link_throughput;
#[path = "link-truth/experiment.rs"]
mod link_truth;
#[doc(hidden)] // Shared with ascertain-experiments-transfer; not a stable interface.
pub mod links;
mod name_servers;
mod overload;
#[cfg(all(test, target_os = "linux"))]
mod simulated;
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod url;

pub use dns_load::DnsLoad;
pub use dns_propagation::{DnsPropagation, clean};
pub use favouritism::Favouritism;
pub use first_flight::FirstFlight;
pub use https_throughput::HttpsThroughput;
pub use link_throughput::LinkThroughput;
pub use link_truth::LinkTruth;
