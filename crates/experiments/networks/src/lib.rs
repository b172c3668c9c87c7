#![doc = include_str!("../README.md")]

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
#[cfg(target_os = "linux")]
mod limits;
#[path = "link-throughput/experiment.rs"]
mod link_throughput;
#[path = "link-truth/experiment.rs"]
mod link_truth;
#[doc(hidden)] // Shared with ascertain-experiments-storage; not a stable interface.
pub mod links;
mod name_servers;
#[cfg(all(test, target_os = "linux"))]
mod simulated;
#[cfg(target_os = "linux")]
mod url;

pub use dns_load::DnsLoad;
pub use dns_propagation::{DnsPropagation, clean};
pub use favouritism::Favouritism;
pub use first_flight::FirstFlight;
pub use https_throughput::HttpsThroughput;
pub use link_throughput::LinkThroughput;
pub use link_truth::LinkTruth;
