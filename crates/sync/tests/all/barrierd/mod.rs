//! Clients of the daemon, and the daemon itself where this machine and user can have one.

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
