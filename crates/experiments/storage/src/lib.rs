#![doc = include_str!("../README.md")]

// Each folder has the name of its experiment on the command line.
#[path = "cache-race/experiment.rs"]
mod cache_race;
#[path = "transfer/experiment.rs"]
mod transfer;

pub use cache_race::CacheRace;
pub use transfer::Transfer;
