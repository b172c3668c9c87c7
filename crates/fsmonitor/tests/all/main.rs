//! Tests of the monitor with real repositories and the installed git.
#![cfg(target_os = "linux")]

mod common;
mod cases;
mod faults;
mod model;
