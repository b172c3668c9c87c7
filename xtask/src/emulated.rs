//! What is special to aarch64: checked by the compiler, and run under qemu's emulation. That shows results, not speed.

use crate::checkers;
use crate::test::{Done, Part};
use crate::tools::{self, Need};

pub const PARTS: &[Part] = &[
    ("lints for aarch64", &[Need::RustTarget(TARGET)], lints),
    ("NEON and other code for aarch64, emulated", EMULATOR, tests),
];

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Where Debian's cross compiler has its C library.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";

const EMULATOR: &[Need] = if cfg!(target_arch = "aarch64") {
    &[]
} else {
    &[
        Need::RustTarget(TARGET),
        Need::Debian("qemu-aarch64", "qemu-user"),
        Need::Debian("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
        Need::Debian("/usr/aarch64-linux-gnu/lib/libc.so", "libc6-dev-arm64-cross"),
    ]
};

fn lints() -> anyhow::Result<Done> {
    let command = ["clippy", "--quiet", "--workspace", "--all-targets", "--target", TARGET, "--", "-D", "warnings"];
    tools::run("cargo", &command)?;
    Ok(Done::Passed)
}

fn tests() -> anyhow::Result<Done> {
    if cfg!(target_arch = "aarch64") {
        return Ok(Done::LeftOut("this machine needs no emulation: the other tests ran the same code".into()));
    }
    cargo(&["--package", "ascertain-numeric"], &[])?;
    // qemu gives up on a thread of a child made by fork.
    let protocols: Vec<&str> = checkers::TESTS.iter().chain(&["barrier"]).flat_map(|test| ["--test", test]).collect();
    cargo(&[&["--package", "ascertain-sync"], &*protocols].concat(), &["--skip", "child"])?;
    // It does not emulate the programs that a test starts, nor a child that shares its parent's memory.
    cargo(&["--package", "ascertain-sys", "--lib", "--test", "words"], &["--skip", "process"])?;
    Ok(Done::Passed)
}

/// Optimised, for emulation is slow, but with all assertions; in a folder of its own.
fn cargo(arguments: &[&str], options: &[&str]) -> anyhow::Result<()> {
    let folder = format!("CARGO_TARGET_DIR={}", tools::target().join("xtask-emulated").display());
    let runner = format!("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64 -L {LIBRARIES}");
    let linker = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc";
    let profile = ["CARGO_PROFILE_DEV_OPT_LEVEL=1", "CARGO_PROFILE_DEV_DEBUG=0"];
    let command = ["cargo", "test", "--target", TARGET];
    tools::run(
        "env",
        &[&[&*folder, &*runner, linker], &profile[..], &command, arguments, &["--", "--quiet"], options].concat(),
    )
}
