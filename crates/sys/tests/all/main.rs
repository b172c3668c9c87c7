//! The tests of this crate in one program. Tests that need a process of their own start the program again with
//! `testing::alone`.
#![allow(missing_docs)]

#[cfg(feature = "commands")]
mod command_lines;
#[cfg(feature = "commands")]
mod common;
#[cfg(feature = "commands")]
mod compiled;
#[cfg(target_os = "linux")]
mod fork;
#[cfg(feature = "commands")]
mod interrupt;
#[cfg(all(feature = "commands", target_os = "linux"))]
mod memory;
#[cfg(all(feature = "network", target_os = "linux"))]
mod network;
#[cfg(feature = "commands")]
mod process;
#[cfg(feature = "commands")]
mod words;
