//! The one way for a test to do without what the machine, or the user, does not have.
#![allow(dead_code)] // each test uses a part

use std::fmt::Display;
use std::fs::File;
use std::io::Write;

/// Says that the test is left out, or a part of it, and why: past the harness, which shows nothing of what passes, and
/// to `cargo xtask test`, which ends with a list of them.
pub fn left_out(why: impl Display) {
    let thread = std::thread::current();
    let why = why.to_string().replace('\n', " ");
    let line = format!("{}: {why}\n", thread.name().unwrap_or("a thread of a test"));
    let _ = std::io::stderr().write_all(format!("left out: {line}").as_bytes());
    if let Some(list) = std::env::var_os("ASCERTAIN_LEFT_OUT") {
        let list_it = || File::options().append(true).create(true).open(&list)?.write_all(line.as_bytes());
        list_it().unwrap_or_else(|error| panic!("{list:?}, where it would say {line:?}: {error}"));
    }
}

/// What there is; where there is none, that is said.
pub fn or_left_out<T>(tried: Result<T, impl Display>) -> Option<T> {
    tried.map_err(left_out).ok()
}
