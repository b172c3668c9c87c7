//! Each crate as a registry would have it: whole by itself, also with its features off, and small enough for a bench.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, ensure};

use crate::test::Part;
use crate::tools;

/// The workspace's, and that of all packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Of these a bench of one's own may have as many built.
const MOST_CRATES: usize = 40;

pub const PARTS: &[Part] = &[
    ("packages, each checked from what is in it", &[], packages),
    ("crates without their features", &[], without_features),
    ("crates that a bench of one's own builds", &[], crates_of_a_bench),
    ("a user's own bench", &[], own_bench),
];

/// Each crate and some of its features; all of them are on where the workspace is tested.
const FEATURES: &[(&str, &str)] = &[
    ("ascertain-sys", ""),
    ("ascertain-sys", "commands"),
    ("ascertain-sys", "measuring"),
    ("ascertain-sys", "sharing"),
    ("ascertain-numeric", "std"),
    ("ascertain-permute", ""),
    ("ascertain-plot", ""),
    ("ascertain-netlab", ""),
    ("ascertain-netlab", "servers"),
    ("ascertain-netlab", "stores"),
    ("ascertain-sync", ""),
    ("ascertain-transfer", ""),
    ("ascertain-engine", ""),
    ("ascertain-engine", "claims"),
    ("ascertain-engine", "commands"),
    ("ascertain-engine", "parquet"),
    ("ascertain-engine", "recorded"),
    ("ascertain-engine", "samples"),
    ("ascertain-experiments", ""),
    ("ascertain-experiments", "chance"),
    ("ascertain-experiments", "networks"),
    ("ascertain-experiments", "numeric"),
    ("ascertain-experiments", "storage"),
    ("ascertain-experiments", "sync"),
    ("ascertain-report", ""),
    ("ascertain-report", "claims"),
    ("ascertain-report", "commands"),
    ("ascertain-report", "exports"),
    ("ascertain-report", "html"),
    ("ascertain-report", "permute"),
    ("ascertain-report", "plot"),
    ("ascertain-report", "recorded"),
    ("ascertain-report", "storage"),
    ("ascertain", ""),
    ("ascertain", "claims"),
    ("ascertain", "commands"),
    ("ascertain", "exports"),
    ("ascertain", "permute"),
    ("ascertain", "plot"),
    ("ascertain", "recorded"),
    ("ascertain", "storage"),
];

/// Each package is unpacked and checked there, alone: what others it needs come from their packages, and what is other
/// people's has been checked for the lints, by the same profiles.
fn packages() -> anyhow::Result<()> {
    let folder = tools::new_folder("package")?;
    tools::run("cargo", &["package", "--quiet", "--workspace", "--offline", "--allow-dirty", "--no-verify"])?;
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(&folder)? {
        let file = entry?.file_name().to_string_lossy().into_owned();
        let Some(name) = file.strip_suffix(concat!("-", env!("CARGO_PKG_VERSION"), ".crate")) else { continue };
        // Of now: by the times in packages Cargo would take another run's for the same.
        tools::run("tar", &["--extract", "--touch", "--directory", &folder, "--file", &format!("{folder}/{file}")])?;
        names.insert(name.to_owned());
    }
    // Also those that are not to be published.
    let metadata = ["metadata", "--offline", "--no-deps", "--format-version", "1"];
    let members = tools::said("cargo", &metadata)?.matches("\"publish\":").count();
    ensure!(names.len() == members, "the workspace has {members} packages, and these are there: {names:?}");
    let root = fs::read_to_string(tools::in_root("Cargo.toml"))?;
    let (_, profiles) = root.split_once("[profile.").context("Cargo.toml has no profiles")?;
    let paths: String = names.iter().map(|name| format!("{name} = {{ path = \"{name}-{VERSION}\" }}\n")).collect();
    let workspace = format!("[workspace]\nresolver = \"3\"\nmembers = [\"*-{VERSION}\"]\n[patch.crates-io]\n{paths}");
    fs::write(format!("{folder}/Cargo.toml"), format!("{workspace}[profile.{profiles}"))?;
    fs::copy(tools::in_root("Cargo.lock"), format!("{folder}/Cargo.lock"))?;
    let (manifest, target) = (format!("{folder}/Cargo.toml"), tools::in_target(""));
    let check = ["check", "--quiet", "--offline", "--manifest-path", &manifest, "--target-dir", &target];
    for name in &names {
        tools::run("cargo", &[&check[..], &["--package", name]].concat())?;
    }
    Ok(fs::remove_dir_all(folder)?)
}

fn without_features() -> anyhow::Result<()> {
    for (package, features) in FEATURES {
        let which = ["--package", package, "--no-default-features", "--features", features];
        tools::run("cargo", &[&["clippy", "--quiet"], &which[..], &["--", "-D", "warnings"]].concat())?;
    }
    for (package, features, tests) in [
        ("ascertain-engine", "recorded", "--test=lines_alone"),
        ("ascertain-transfer", "", "--test=race"),
        ("ascertain", "", "--lib"),
    ] {
        let which = ["--package", package, "--no-default-features", "--features", features, tests];
        tools::run("cargo", &[&["test", "--quiet"], &which[..]].concat())?;
    }
    Ok(())
}

fn crates_of_a_bench() -> anyhow::Result<()> {
    let which = ["--package", "ascertain", "--no-default-features", "--edges", "normal,build"];
    let shown = ["--prefix", "none", "--format", "{p}", "--no-dedupe"];
    let text = tools::said("cargo", &[&["tree"], &which[..], &shown[..]].concat())?;
    let crates: BTreeSet<&str> = text.lines().collect();
    println!("{} crates", crates.len());
    ensure!(crates.len() <= MOST_CRATES, "more than {MOST_CRATES} crates: {crates:?}");
    Ok(())
}

/// A package like that of the guide, whose profiles are everybody's: its manifest.
pub fn own_package() -> anyhow::Result<String> {
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
    let (ascertain, folder) = (tools::in_root("crates/ascertain"), tools::in_target("xtask-own-package"));
    fs::create_dir_all(format!("{folder}/benches"))?;
    fs::copy(format!("{ascertain}/benches/sums.rs"), format!("{folder}/benches/sums.rs"))?;
    fs::copy(tools::in_root("Cargo.lock"), format!("{folder}/Cargo.lock"))?;
    let manifest = format!("{folder}/Cargo.toml");
    fs::write(&manifest, format!("{MANIFEST}path = {ascertain:?}\n"))?;
    Ok(manifest)
}

/// Unoptimised, for whether it builds, measures and ends does not depend on that.
fn own_bench() -> anyhow::Result<()> {
    let manifest = own_package()?;
    let bench = ["bench", "--quiet", "--profile", "dev", "--manifest-path", &manifest, "--bench", "sums", "--"];
    tools::cargo_in("xtask-own-bench", &[], &[&bench[..], &["--max-time", "3s", "--no-evidence"]].concat())
}
