#![doc = include_str!("../README.md")]

// On the command line, each experiment has the name of its folder.
#[path = "runtimes/experiment.rs"]
mod runtimes;

pub use runtimes::Runtimes;
