//! The protocols of `ascertain-sync` under model checkers, Miri and ThreadSanitizer.

use crate::test::{Done, Part};
use crate::tools;

/// Each builds its own copy of the crate, so each has a target folder of its own.
pub const PARTS: &[Part] = &[
    ("synchronisation under loom", || model("loom")),
    ("synchronisation under an exhaustive checker of x86-TSO", || model("tso")),
    ("synchronisation under Miri", miri),
    ("synchronisation under ThreadSanitizer", thread_sanitizer),
];

fn model(name: &str) -> anyhow::Result<Done> {
    let flags = format!("RUSTFLAGS=--cfg model=\"{name}\"");
    let target = format!("CARGO_TARGET_DIR={}", tools::target().join("xtask-model").display());
    let cargo = ["cargo", "test", "--quiet", "--release", "--package", "ascertain-sync", "--test", name];
    tools::run("env", &[&[&*flags, &*target], &cargo[..]].concat())?;
    Ok(Done::Passed)
}

fn miri() -> anyhow::Result<Done> {
    if let Err(reason) = nightly_with("miri") {
        return Ok(Done::LeftOut(reason));
    }
    let target = format!("CARGO_TARGET_DIR={}", tools::target().join("xtask-miri").display());
    // The clock is the machine's, for deadlines.
    let flags = "MIRIFLAGS=-Zmiri-disable-isolation";
    let cargo = ["cargo", "+nightly", "miri", "test", "--quiet", "--package", "ascertain-sync"];
    tools::run("env", &[&[&*target, flags], &cargo[..]].concat())?;
    Ok(Done::Passed)
}

fn thread_sanitizer() -> anyhow::Result<Done> {
    if let Err(reason) = nightly_with("rust-src") {
        return Ok(Done::LeftOut(reason));
    }
    let target = format!("CARGO_TARGET_DIR={}", tools::target().join("xtask-tsan").display());
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let cargo = ["cargo", "+nightly", "test", "--quiet", "-Zbuild-std", "--target", &triple];
    let package = ["--package", "ascertain-sync", "--tests"];
    tools::run("env", &[&[&*target, "RUSTFLAGS=-Zsanitizer=thread"], &cargo[..], &package].concat())?;
    Ok(Done::Passed)
}

/// Makes sure of a component of Rust's nightly tool chain; the reason why it is left out otherwise.
fn nightly_with(component: &str) -> Result<(), String> {
    let add = ["component", "add", "--toolchain", "nightly", component];
    let added = tools::capture("rustup", &add).is_ok_and(|output| output.status.success());
    let reason = || format!("there is no nightly tool chain with {component} (rustup {})", add.join(" "));
    if added { Ok(()) } else { Err(reason()) }
}
