//! The one way for a test to do without what the machine, or the user, does not have.
#![allow(dead_code)] // each test uses a part

use std::fmt::Display;
use std::io::Write;

/// Says that the test is left out, or a part of it, and why: past the harness, which shows nothing of what passes.
pub fn left_out(why: impl Display) {
    let thread = std::thread::current();
    let line = format!("left out: {}: {why}\n", thread.name().unwrap_or("a thread of a test"));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// What there is; where there is none, that is said.
pub fn or_left_out<T>(tried: Result<T, impl Display>) -> Option<T> {
    tried.map_err(left_out).ok()
}
