//! Reports of all shapes in a real browser.

use anyhow::Context;

use crate::test::Done;
use crate::tools;

/// Writes runs of all shapes and their reports, and opens these in Debian's Chromium: `web/test/report.mjs` says what
/// it looks for.
pub fn reports() -> anyhow::Result<Done> {
    let shapes = tools::target().join("xtask-shapes");
    let _ = std::fs::remove_dir_all(&shapes);
    let folder = shapes.to_string_lossy();
    tools::run(&tools::target().join("release/examples/shapes").to_string_lossy(), &[&*folder])?;
    let path = format!("NODE_PATH={}", tools::npm_folder().join("node_modules").display());
    let script = tools::root().join("web/test/report.mjs");
    let chromium = format!("CHROMIUM={}", tools::place_of("chromium").context("chromium is gone")?);
    tools::run("env", &[&*path, &*chromium, "node", &*script.to_string_lossy(), &*folder])?;
    Ok(Done::Passed)
}
