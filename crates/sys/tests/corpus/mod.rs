//! Inputs that a fuzzer starts from, or has found, given to its target again.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Gives the target each file of the folder, and names those that it fails with.
pub fn replay(folder: &str, target: impl Fn(&[u8])) {
    let files: Vec<_> = fs::read_dir(Path::new(folder)).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(!files.is_empty(), "{folder} is empty");
    let fails = |path: &&_| catch_unwind(AssertUnwindSafe(|| target(&fs::read(path).unwrap()))).is_err();
    let failing: Vec<_> = files.iter().filter(fails).collect();
    assert!(failing.is_empty(), "{failing:?}");
}
