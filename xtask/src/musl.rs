//! A program that is linked statically, with musl: what people copy to servers.

use crate::test::{Done, Part};
use crate::tools::{self, Need};

pub const PARTS: &[Part] = &[("a static binary, the machine and synchronisation, with musl", NEEDS, tests_and_binary)];

const TARGET: &str = "x86_64-unknown-linux-musl";
const IS_HERE: bool = cfg!(all(target_os = "linux", target_arch = "x86_64"));
const NEEDS: &[Need] = if IS_HERE { &[Need::RustTarget(TARGET)] } else { &[] };

fn tests_and_binary() -> anyhow::Result<Done> {
    if !IS_HERE {
        return Ok(Done::LeftOut(format!("{TARGET} does not run here")));
    }
    cargo("test", &["--package", "ascertain-sys", "--package", "ascertain-sync", "--", "--quiet"])?;
    // Unoptimised, for how it is linked does not depend on that.
    cargo("build", &["--quiet", "--package", "ascertain-cli"])?;
    let program = tools::target().join("xtask-musl").join(TARGET).join("debug/ascertain");
    let is_dynamic = std::fs::read(&program)?.windows(8).any(|bytes| bytes == b"/lib/ld-");
    anyhow::ensure!(!is_dynamic, "{} names a dynamic loader", program.display());
    let output = tools::capture(program, &["compare", "--no-evidence", "-r", "5", "true", "sleep 0.001"])?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(Done::Passed)
}

/// In a folder of its own, so that `cargo` does not wait for others.
fn cargo(command: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let folder = format!("CARGO_TARGET_DIR={}", tools::target().join("xtask-musl").display());
    tools::run("env", &[&[&*folder, "cargo", command, "--target", TARGET], arguments].concat())
}
