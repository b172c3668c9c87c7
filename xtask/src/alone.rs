//! What people use without the rest: where there is no standard library, and with older compilers.

use std::fs;
use std::path::PathBuf;

use anyhow::ensure;
use serde_json::Value;

use crate::test::{Done, Part};
use crate::tools::{self, Need};

pub const PARTS: &[Part] = &[
    ("a user's own bench", &[], own_bench),
    ("numeric without the standard library", &[Need::RustTarget(BARE)], without_std),
    (
        "packages with the oldest compiler that each names",
        &[Need::Rust("1.88"), Need::Rust("1.89"), Need::Rust("1.91")],
        oldest_compilers,
    ),
];

/// A package like that of the guide, whose profiles are everybody's: its manifest.
pub fn own_package() -> anyhow::Result<PathBuf> {
    const MANIFEST: &str = "\
[package]
name = \"mine\"
edition = \"2024\"
[[bench]]
name = \"sums\"
harness = false
[workspace]
[dev-dependencies.ascertain]
default-features = false
";
    let (ascertain, folder) = (tools::root().join("crates/ascertain"), tools::target().join("xtask-own-package"));
    fs::create_dir_all(folder.join("benches"))?;
    fs::copy(ascertain.join("benches/sums.rs"), folder.join("benches/sums.rs"))?;
    fs::copy(tools::root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let manifest = folder.join("Cargo.toml");
    fs::write(&manifest, format!("{MANIFEST}path = {ascertain:?}\n"))?;
    Ok(manifest)
}

fn own_bench() -> anyhow::Result<Done> {
    let manifest = own_package()?.to_string_lossy().into_owned();
    let target = tools::target().join("xtask-own-bench").to_string_lossy().into_owned();
    let bench = ["bench", "--quiet", "--manifest-path", &manifest, "--target-dir", &target];
    tools::run("cargo", &[&bench[..], &["--bench", "sums", "--", "--max-time", "3s", "--no-evidence"]].concat())?;
    Ok(Done::Passed)
}

/// A target without a standard library, so that nothing of it can come in by way of a dependency.
const BARE: &str = "thumbv7em-none-eabihf";

/// Compiled for that target, and tested here: the same bits come out.
fn without_std() -> anyhow::Result<Done> {
    let options = ["--quiet", "--package", "ascertain-numeric", "--no-default-features", "--features", "libm"];
    tools::run("cargo", &[&["build", "--target", BARE], &options[..]].concat())?;
    tools::run("cargo", &[&["test"], &options[..]].concat())?;
    Ok(Done::Passed)
}

/// The compilers that are older than the workspace's, and the packages that name them as their `rust-version`.
const OLDEST: &[(&str, &[&str])] = &[
    ("1.88", &["ascertain-stats", "ascertain-plot", "ascertain-sys"]),
    // AVX-512.
    ("1.89", &["ascertain-numeric", "ascertain-permute"]),
    // The daemon's files; without that feature 1.88 is enough.
    ("1.91", &["ascertain-sync"]),
];

fn oldest_compilers() -> anyhow::Result<Done> {
    let output = tools::capture("cargo", &["metadata", "--no-deps", "--format-version", "1"])?;
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let named: Vec<(&str, &str)> =
        packages.filter_map(|package| Some((package["name"].as_str()?, package["rust_version"].as_str()?))).collect();
    // Each compiles in its own way, and so in its own folder.
    let target = format!("CARGO_TARGET_DIR={}", tools::target().join("xtask-oldest").display());
    for (version, packages) in OLDEST {
        for package in *packages {
            ensure!(named.contains(&(package, version)), "{package} does not name Rust {version} in its Cargo.toml");
        }
        let toolchain = format!("+{version}");
        let packages = packages.iter().flat_map(|package| ["--package", package]);
        let check = [&target, "cargo", &toolchain, "check", "--quiet", "--locked", "--all-features"];
        tools::run("env", &check.into_iter().chain(packages).collect::<Vec<_>>())?;
    }
    Ok(Done::Passed)
}
