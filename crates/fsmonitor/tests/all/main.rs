//! Tests of the monitor with real repositories and the installed git.
#![cfg(target_os = "linux")]

mod cases;
mod common;
mod faults;
mod model;
