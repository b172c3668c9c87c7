#![doc = include_str!("../README.md")]

// On the command line, the experiment has the name of its folder.
#[path = "storage/experiment.rs"]
mod storage;

pub use storage::{Storage, clean};
