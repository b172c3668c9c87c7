#![doc = include_str!("../README.md")]

// A folder is named as its experiment is on the command line.
#[path = "cache-race/experiment.rs"]
mod cache_race;
#[path = "transfer/experiment.rs"]
mod transfer;

pub use cache_race::CacheRace;
pub use transfer::Transfer;
