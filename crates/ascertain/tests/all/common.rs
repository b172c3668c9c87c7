//! Helpers for programs that are built next to the tests.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the path of an example's program, in the folder `examples` next to the folder of this test program.
pub fn example(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let program = own.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name).with_extension("rs");
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    // `cargo test --test all` does not build examples.
    assert!(
        changed(&program) >= changed(&source),
        "{program:?} is missing or stale: `cargo build --examples` makes it"
    );
    program
}
