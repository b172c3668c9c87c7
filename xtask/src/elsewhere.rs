//! Other machines, other C libraries, none, and older compilers.

use anyhow::{Error, ensure};
use serde_json::Value;

use crate::checkers;
use crate::test::{LeftOut, Part};
use crate::tools::{self, Need};

pub const PARTS: &[Part] = &[
    ("numeric without the standard library", &[Need::RustTarget(BARE)], without_std),
    ("lints for aarch64", ARM_NEEDS, || {
        let clippy = ["clippy", "--quiet", "--workspace", "--all-targets", "--target", ARM, "--", "-D", "warnings"];
        tools::run("cargo", &clippy)
    }),
];

/// What builds in folders of its own.
pub const BESIDE: &[Part] = &[
    (
        "packages with the oldest compiler that each names",
        &[Need::Rust("1.88"), Need::Rust("1.89"), Need::Rust("1.91")],
        oldest_compilers,
    ),
    ("a static binary, the machine and synchronisation, with musl", MUSL_NEEDS, musl),
    ("NEON and other code for aarch64, emulated", EMULATOR, emulated),
];

/// A target without a standard library, so that nothing of it can come in by way of a dependency.
const BARE: &str = "thumbv7em-none-eabihf";

/// Compiled for that target, and tested here: the same bits come out.
fn without_std() -> anyhow::Result<()> {
    let options =
        ["--quiet", "--package", "ascertain-numeric", "--no-default-features", "--features", "libm,polynomial"];
    tools::run("cargo", &[&["build", "--target", BARE], &options[..]].concat())?;
    tools::run("cargo", &[&["test"], &options[..]].concat())
}

/// The compilers that are older than the workspace's, and the packages that name them as their `rust-version`.
const OLDEST: &[(&str, &[&str])] = &[
    ("1.88", &["ascertain-stats", "ascertain-plot", "ascertain-sys", "ascertain-netlab"]),
    // AVX-512, also in sums of what is moved.
    ("1.89", &["ascertain-numeric", "ascertain-permute", "ascertain-transfer"]),
    // The daemon's files; without that feature 1.88 is enough.
    ("1.91", &["ascertain-sync"]),
];

fn oldest_compilers() -> anyhow::Result<()> {
    let metadata: Value =
        serde_json::from_str(&tools::said("cargo", &["metadata", "--no-deps", "--format-version", "1"])?)?;
    let all = metadata["packages"].as_array().into_iter().flatten();
    let all: Vec<_> = all.map(|package| (package["name"].as_str(), package["rust_version"].as_str())).collect();
    for (version, packages) in OLDEST {
        for package in *packages {
            let is_named = all.contains(&(Some(package), Some(version)));
            ensure!(is_named, "{package} does not name Rust {version} in its Cargo.toml");
        }
        let toolchain = format!("+{version}");
        let check = [&*toolchain, "check", "--quiet", "--locked", "--all-features"];
        let packages = packages.iter().flat_map(|package| ["--package", package]);
        tools::cargo_in("xtask-oldest", &[], &check.into_iter().chain(packages).collect::<Vec<_>>())?;
    }
    Ok(())
}

const MUSL: &str = "x86_64-unknown-linux-musl";
const MUSL_IS_HERE: bool = cfg!(all(target_os = "linux", target_arch = "x86_64"));
/// What encrypts for TLS is partly in C, for each target.
const MUSL_CC: Need = Need::Debian("x86_64-linux-musl-gcc", "musl-tools");
const MUSL_NEEDS: &[Need] = if MUSL_IS_HERE { &[Need::RustTarget(MUSL), MUSL_CC] } else { &[] };

/// A program that is linked statically is what people copy to servers.
fn musl() -> anyhow::Result<()> {
    if !MUSL_IS_HERE {
        return Err(Error::msg(LeftOut(format!("{MUSL} does not run here"))));
    }
    let tests =
        ["test", "--target", MUSL, "--package", "ascertain-sys", "--package", "ascertain-sync", "--", "--quiet"];
    let plain = ["CARGO_PROFILE_DEV_DEBUG=0"];
    tools::cargo_in("xtask-musl", &plain, &tests)?;
    // Unoptimised, for how it is linked does not depend on that: not even what other tests want fast.
    let unoptimised = ["ascertain-stats", "ascertain-transfer", "crc-fast", "hickory-proto", "md-5"]
        .map(|package| format!("--config=profile.dev.package.{package}.opt-level=0"));
    let build = ["build", "--target", MUSL, "--quiet", "--package", "ascertain-cli"];
    let options = unoptimised.iter().map(|option| &**option);
    tools::cargo_in("xtask-musl", &plain, &build.into_iter().chain(options).collect::<Vec<_>>())?;
    let program = tools::in_target(&format!("xtask-musl/{MUSL}/debug/ascertain"));
    let is_dynamic = std::fs::read(&program)?.windows(8).any(|bytes| bytes == b"/lib/ld-");
    ensure!(!is_dynamic, "{program} names a dynamic loader");
    tools::said(program, &["compare", "--no-evidence", "-r", "5", "true", "sleep 0.001"]).map(drop)
}

const ARM: &str = "aarch64-unknown-linux-gnu";
/// What encrypts for TLS is partly in C, and includes headers of the C library's.
const ARM_NEEDS: &[Need] = &[
    Need::RustTarget(ARM),
    Need::Debian("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
    Need::Debian("/usr/aarch64-linux-gnu/lib/libc.so", "libc6-dev-arm64-cross"),
];
const EMULATOR: &[Need] = if cfg!(target_arch = "aarch64") {
    &[]
} else {
    &[ARM_NEEDS[0], Need::Debian("qemu-aarch64", "qemu-user"), ARM_NEEDS[1], ARM_NEEDS[2]]
};

/// What is special to aarch64, run under qemu's emulation. That shows results, not speed.
fn emulated() -> anyhow::Result<()> {
    if cfg!(target_arch = "aarch64") {
        let why = "this machine needs no emulation: the other tests ran the same code";
        return Err(Error::msg(LeftOut(why.into())));
    }
    let test = |arguments: &[&str], options: &[&str]| {
        let variables = [
            // Where Debian's cross compiler has its C library.
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64 -L /usr/aarch64-linux-gnu",
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc",
            // Optimised, for emulation is slow, but with all assertions.
            "CARGO_PROFILE_DEV_OPT_LEVEL=1",
            "CARGO_PROFILE_DEV_DEBUG=0",
        ];
        let all = [&["test", "--target", ARM], arguments, &["--", "--quiet"], options].concat();
        tools::cargo_in("xtask-emulated", &variables, &all)
    };
    test(&["--package", "ascertain-numeric"], &[])?;
    // qemu gives up on a thread of a child made by fork.
    let protocols = [&["--package", "ascertain-sync", "--test", "barrier"], &*checkers::tests()].concat();
    test(&protocols, &["--skip", "child"])?;
    // It does not emulate the programs that a test starts, nor a child that shares its parent's memory.
    test(&["--package", "ascertain-sys", "--lib", "--test", "words"], &["--skip", "process"])
}
