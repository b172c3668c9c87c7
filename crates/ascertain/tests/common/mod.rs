//! What several files of tests need.

use std::fs;
use std::path::{Path, PathBuf};

/// The program of an example, beside this test's own.
pub fn example(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let program = own.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name).with_extension("rs");
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    // `cargo test --test bench` builds no example.
    assert!(
        changed(&program) >= changed(&source),
        "{program:?} is missing or stale: `cargo build --examples` makes it"
    );
    program
}
