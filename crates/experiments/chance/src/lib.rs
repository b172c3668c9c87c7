#![doc = include_str!("../README.md")]

// Each folder has the name of its experiment on the command line.
#[path = "fill-rate/experiment.rs"]
mod fill_rate;
#[path = "reshuffle/experiment.rs"]
mod reshuffle;

pub use fill_rate::FillRate;
pub use reshuffle::Reshuffle;
