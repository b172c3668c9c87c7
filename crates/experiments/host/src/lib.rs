#![doc = include_str!("../README.md")]

// Each folder has the name of its experiment on the command line.
#[path = "git-status/experiment.rs"]
mod git_status;

pub use git_status::GitStatus;
