//! What tests of these crates share: the one way to do without what the machine, or the user, does not have, and inputs
//! that a fuzzer has found, given to its target again. It is here so that a package's tests need nothing but packages.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// The environment variable with the path of the list that [`left_out`] adds to. A test that runs tests as another user
/// removes it, since that one may not write there, and says what they left out itself.
pub const LIST: &str = "ASCERTAIN_LEFT_OUT";

/// Says that the test is left out, or a part of it, and why: past the harness, which shows nothing of what passes, and
/// to `cargo xtask test`, which ends with a list of them.
///
/// # Panics
/// When that list can't be written to.
pub fn left_out(why: impl Display) {
    let thread = std::thread::current();
    let why = why.to_string().replace('\n', " ");
    let line = format!("{}: {why}\n", thread.name().unwrap_or("a thread of a test"));
    let _ = std::io::stderr().write_all(format!("left out: {line}").as_bytes());
    if let Some(list) = std::env::var_os(LIST) {
        let list_it = || File::options().append(true).create(true).open(&list)?.write_all(line.as_bytes());
        list_it().unwrap_or_else(|error| panic!("{list:?}, where it would say {line:?}: {error}"));
    }
}

/// What there is; where there is none, that is said.
pub fn or_left_out<T>(tried: Result<T, impl Display>) -> Option<T> {
    tried.map_err(left_out).ok()
}

/// Gives the target each file of the folder.
///
/// # Panics
/// When it fails with one, which is named, or there is none.
pub fn replay(folder: &str, target: impl Fn(&[u8])) {
    let files: Vec<_> = fs::read_dir(Path::new(folder)).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(!files.is_empty(), "{folder} is empty");
    let fails = |path: &&_| catch_unwind(AssertUnwindSafe(|| target(&fs::read(path).unwrap()))).is_err();
    let failing: Vec<_> = files.iter().filter(fails).collect();
    assert!(failing.is_empty(), "{failing:?}");
}
