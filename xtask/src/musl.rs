//! A program that is linked statically, with musl: what people copy to servers.

use crate::test::{Done, Part};
use crate::tools;

pub const PARTS: &[Part] =
    &[("the machine and synchronisation with musl", tests), ("a static binary, with musl", binary)];

const TARGET: &str = "x86_64-unknown-linux-musl";

fn tests() -> anyhow::Result<Done> {
    if let Err(reason) = can_run() {
        return Ok(Done::LeftOut(reason));
    }
    cargo("test", &["--package", "ascertain-sys", "--package", "ascertain-sync"])?;
    Ok(Done::Passed)
}

fn binary() -> anyhow::Result<Done> {
    if let Err(reason) = can_run() {
        return Ok(Done::LeftOut(reason));
    }
    cargo("build", &["--release", "--package", "ascertain-cli"])?;
    let program = tools::target().join("xtask-musl").join(TARGET).join("release/ascertain");
    let is_dynamic = std::fs::read(&program)?.windows(8).any(|bytes| bytes == b"/lib/ld-");
    anyhow::ensure!(!is_dynamic, "{} names a dynamic loader", program.display());
    let output = tools::capture(program, &["compare", "--no-evidence", "-r", "5", "true", "sleep 0.001"])?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(Done::Passed)
}

fn can_run() -> Result<(), String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(format!("{TARGET} does not run here"));
    }
    tools::rust_target(TARGET)
}

/// In a folder of its own, so that `cargo` does not wait for others.
fn cargo(command: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let folder = format!("CARGO_TARGET_DIR={}", tools::target().join("xtask-musl").display());
    tools::run("env", &[&[&*folder, "cargo", command, "--quiet", "--target", TARGET], arguments].concat())
}
