#![doc = include_str!("../README.md")]

// Each folder has the name of its experiment on the command line.
#[path = "barrier/experiment.rs"]
mod barrier;
#[path = "core-latency/experiment.rs"]
mod core_latency;
#[path = "event-count/experiment.rs"]
mod event_count;
#[path = "per-cpu/experiment.rs"]
mod per_cpu;
#[path = "reclamation/experiment.rs"]
mod reclamation;

pub use barrier::Barrier;
pub use core_latency::CoreLatency;
pub use event_count::EventCount;
pub use per_cpu::PerCpu;
pub use reclamation::Reclamation;
