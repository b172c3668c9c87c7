#![doc = include_str!("README.md")]

#[cfg(target_os = "linux")]
mod client;
#[cfg(not(target_os = "linux"))]
#[path = "client_elsewhere.rs"]
mod client;
#[cfg(all(feature = "daemon", target_os = "linux"))]
mod connections;
#[cfg(all(feature = "daemon", target_os = "linux"))]
mod daemon;
#[cfg(all(feature = "daemon", not(target_os = "linux")))]
#[path = "daemon_elsewhere.rs"]
mod daemon;
mod error;
pub mod file;
mod litmus;
#[cfg(all(feature = "daemon", target_os = "linux"))]
mod programs;
mod status;

pub use client::{Client, Ticket};
#[cfg(feature = "daemon")]
pub use daemon::Daemon;
pub use error::Error;
pub use litmus::missed_rounds;
pub use status::{CpuStatus, Status};

/// The longest time between two heartbeats. New clients are answered between them, and wait for a second.
pub const PERIOD_MAX: std::time::Duration = std::time::Duration::from_millis(500);

/// Where the daemon listens unless it is told otherwise.
pub const DEFAULT_PATH: &str = "/run/ascertain/barrierd";
