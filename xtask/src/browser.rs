//! Reports of all shapes in a real browser.

use anyhow::Context;

use crate::test::Done;
use crate::tools;

/// Writes runs of all shapes and their reports, and opens these in Debian's Chromium: `web/test/report.mjs` says what
/// it looks for.
pub fn reports() -> anyhow::Result<Done> {
    if let Err(reason) = tools::debian("chromium", "chromium") {
        return Ok(Done::LeftOut(reason));
    }
    // What playwright-core asks for.
    let is_new = tools::capture("node", &["-e", "process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)"]);
    if !is_new.is_ok_and(|output| output.status.success()) {
        return Ok(Done::LeftOut("node 20 or newer is not installed".into()));
    }
    let modules = tools::target().join("xtask-web");
    std::fs::create_dir_all(&modules)?;
    for file in ["package.json", "package-lock.json"] {
        std::fs::copy(tools::root().join("web").join(file), modules.join(file))?;
    }
    let prefix = modules.to_string_lossy();
    let install = ["ci", "--prefix", &*prefix, "--no-audit", "--no-fund", "--ignore-scripts"];
    if let Err(error) = tools::run("npm", &install) {
        return Ok(Done::LeftOut(format!("playwright-core can't be installed: {error:#}")));
    }
    tools::run("cargo", &["build", "--quiet", "--release", "--package", "ascertain-report", "--example", "shapes"])?;
    let shapes = tools::target().join("xtask-shapes");
    let _ = std::fs::remove_dir_all(&shapes);
    let folder = shapes.to_string_lossy();
    tools::run(&tools::target().join("release/examples/shapes").to_string_lossy(), &[&*folder])?;
    let path = format!("NODE_PATH={}", modules.join("node_modules").display());
    let script = tools::root().join("web/test/report.mjs");
    let chromium = format!("CHROMIUM={}", tools::place_of("chromium").context("chromium is gone")?);
    tools::run("env", &[&*path, &*chromium, "node", &*script.to_string_lossy(), &*folder])?;
    Ok(Done::Passed)
}
