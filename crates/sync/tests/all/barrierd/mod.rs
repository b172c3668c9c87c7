//! Tests of clients of the daemon, and of the daemon itself if this machine and user can run one.

mod client;
#[cfg(feature = "daemon")]
mod containers;
#[cfg(feature = "daemon")]
mod cpu_offline;
#[cfg(feature = "daemon")]
mod daemon;
mod file;
mod order;
#[cfg(feature = "daemon")]
mod outlived;
mod trust;
