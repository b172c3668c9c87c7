//! Helpers that several test modules use.
#![allow(dead_code, unused_macros)] // builds without some of the test modules use only some helpers

pub mod busy;
pub mod child;
pub mod cpus;
#[cfg(all(feature = "daemon", target_os = "linux"))]
pub mod daemon;
#[cfg(target_os = "linux")]
pub mod fake_daemon;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod filter;
pub mod machine;
pub mod missing;
pub mod over;
pub mod panics;
#[macro_use]
pub mod reclaimed;
pub mod store_buffers;
