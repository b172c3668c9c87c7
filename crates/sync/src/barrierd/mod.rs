#![doc = include_str!("README.md")]

#[cfg(target_os = "linux")]
mod client;
#[cfg(all(feature = "daemon", target_os = "linux"))]
mod connections;
#[cfg(all(feature = "daemon", target_os = "linux"))]
mod daemon;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod error;
pub mod file;
mod litmus;
#[cfg(all(feature = "daemon", target_os = "linux"))]
mod programs;

#[cfg(target_os = "linux")]
pub use client::{Client, Timestamp};
#[cfg(all(feature = "daemon", target_os = "linux"))]
pub use daemon::Daemon;
#[cfg(all(feature = "daemon", not(target_os = "linux")))]
pub use elsewhere::Daemon;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Client, Timestamp};
pub use error::Error;
pub use file::{CpuStatus, Status};
pub use litmus::missed_rounds;

/// Maximum of the period, the minimum time between two heartbeats (interruptions of all CPUs). The daemon answers a new
/// client only between heartbeats, and the client waits at most one second for that.
pub const PERIOD_MAX: std::time::Duration = std::time::Duration::from_millis(500);

/// The default path of the daemon's socket.
pub const DEFAULT_PATH: &str = "/run/ascertain/barrierd";
