//! Compares the speed of `ascertain-streams` with RTLola's interpreter.
//!
//! The program has a package of its own in the target folder, so the workspace does not depend on RTLola. Cargo fetches
//! RTLola from crates.io.

use std::fs;

use crate::tools;

/// Rounds in which both are measured.
const ROUNDS: &str = "15";

const PROGRAM: &str = include_str!("rtlola/main.rs");

/// The fastest build of both: fully optimised, and as one unit.
const MANIFEST: &str = "\
[package]
name = \"rtlola\"
version = \"0.0.0\"
edition = \"2024\"
[dependencies]
rtlola-frontend = \"=0.8.0\"
rtlola-interpreter = { version = \"=0.11.0\", default-features = false }
[dependencies.ascertain-streams]
path = \"STREAMS\"
[profile.release]
codegen-units = 1
lto = \"fat\"
panic = \"abort\"
[workspace]
";

/// Builds and runs the comparison.
pub fn bench() -> anyhow::Result<()> {
    let folder = tools::in_target("xtask-rtlola");
    fs::create_dir_all(format!("{folder}/src"))?;
    fs::write(format!("{folder}/src/main.rs"), PROGRAM)?;
    let manifest = format!("{folder}/Cargo.toml");
    fs::write(&manifest, MANIFEST.replace("STREAMS", &tools::in_root("crates/streams")))?;
    let target = format!("CARGO_TARGET_DIR={folder}/target");
    let build = ["cargo", "build", "--quiet", "--release", "--manifest-path", &manifest];
    tools::build("env", &[&[&*target], &build[..]].concat())?;
    tools::run(&format!("{folder}/target/release/rtlola"), &[ROUNDS])
}
