//! What the tests share. Each test binary compiles all of it, and uses a part.
#![allow(dead_code, unused_macros)]

pub mod busy;
pub mod child;
pub mod cpus;
#[cfg(all(feature = "daemon", target_os = "linux"))]
pub mod daemon;
#[cfg(target_os = "linux")]
pub mod fake_daemon;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod filter;
pub mod missing;
pub mod panics;
#[macro_use]
pub mod reclaimed;
pub mod store_buffers;
