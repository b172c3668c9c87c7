#![doc = include_str!("../README.md")]

// Each folder has the name of its experiment on the command line.
#[path = "git-status/experiment.rs"]
mod git_status;
#[path = "runtimes/experiment.rs"]
mod runtimes;

pub use git_status::GitStatus;
pub use runtimes::Runtimes;
