//! The monitor on Linux.

mod asker;
mod client;
mod connections;
mod daemon;
mod git;
mod hook;
mod inspect;
mod links;
mod log;
mod monitor;
mod mounts;
mod place;
mod protocol;
mod settings;
mod token;
mod tree;
mod walk;

pub use client::since;
pub use hook::hook_main;
pub use inspect::status;
pub use log::log;
pub use settings::{disable, enable};
