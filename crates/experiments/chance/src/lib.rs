#![doc = include_str!("../README.md")]

// A folder is named as its experiment is on the command line.
#[path = "fill-rate/experiment.rs"]
mod fill_rate;
#[path = "reshuffle/experiment.rs"]
mod reshuffle;

pub use fill_rate::FillRate;
pub use reshuffle::Reshuffle;
