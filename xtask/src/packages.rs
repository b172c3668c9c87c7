//! Each crate as a registry would have it: whole by itself, also with its features off, and small enough for a bench.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::ensure;

use crate::test::Part;
use crate::tools;

/// Of these a bench of one's own may have as many built.
const MOST_CRATES: usize = 40;

pub const PARTS: &[Part] = &[
    ("packages, each built from what is in it", &[], packages),
    ("crates without their features", &[], without_features),
    ("crates that a bench of one's own builds", &[], crates_of_a_bench),
    ("a user's own bench", &[], own_bench),
];

/// Each crate and some of its features; all of them are on where the workspace is tested.
const FEATURES: &[(&str, &str)] = &[
    ("ascertain-sys", ""),
    ("ascertain-permute", ""),
    ("ascertain-plot", ""),
    ("ascertain-netlab", ""),
    ("ascertain-netlab", "servers"),
    ("ascertain-netlab", "stores"),
    ("ascertain-sync", ""),
    ("ascertain-engine", ""),
    ("ascertain-engine", "claims"),
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
    ("ascertain-report", "exports"),
    ("ascertain-report", "html"),
    ("ascertain-report", "permute"),
    ("ascertain-report", "plot"),
    ("ascertain-report", "recorded"),
    ("ascertain", ""),
    ("ascertain", "claims"),
    ("ascertain", "exports"),
    ("ascertain", "permute"),
    ("ascertain", "plot"),
    ("ascertain", "recorded"),
    ("ascertain", "storage"),
];

/// The builds share what the tests have built of other people's crates, as long as both are without notes for a
/// debugger: packages know nothing of the workspace's profiles.
fn packages() -> anyhow::Result<()> {
    forget_unpacked()?;
    let before = built_of_ours();
    let profile = ["--config", "profile.dev.debug=false"];
    let package = ["package", "--quiet", "--workspace", "--offline", "--allow-dirty"];
    let packaged = tools::run("cargo", &[&profile[..], &package].concat());
    let _ = fs::remove_dir_all(tools::in_target("package"));
    for built in built_of_ours().difference(&before) {
        fs::remove_dir_all(built)?;
    }
    packaged
}

/// Cargo's notes that a crate of ours is built: of a package it would believe them whatever is in it by then.
fn built_of_ours() -> BTreeSet<PathBuf> {
    let notes = fs::read_dir(tools::in_target("debug/.fingerprint")).into_iter().flatten().flatten();
    notes.filter(|note| note.file_name().to_string_lossy().starts_with("ascertain")).map(|note| note.path()).collect()
}

/// Removes what Cargo unpacked of our packages in an earlier run: it would take that for the same, since the version
/// is.
fn forget_unpacked() -> anyhow::Result<()> {
    const OURS: &str = concat!("ascertain-", env!("CARGO_PKG_VERSION"));
    // A registry on this machine has no host in its name.
    let is_here = |registry: &Path| registry.file_name().is_some_and(|name| name.to_string_lossy().starts_with('-'));
    for registry in tools::unpacked().filter(|registry| is_here(registry) && registry.join(OURS).exists()) {
        fs::remove_dir_all(registry)?;
    }
    Ok(())
}

fn without_features() -> anyhow::Result<()> {
    for (package, features) in FEATURES {
        let which = ["--package", package, "--no-default-features", "--features", features];
        tools::run("cargo", &[&["clippy", "--quiet"], &which[..], &["--", "-D", "warnings"]].concat())?;
    }
    for (package, features, tests) in
        [("ascertain-engine", "recorded", "--test=lines_alone"), ("ascertain", "", "--lib")]
    {
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

fn own_bench() -> anyhow::Result<()> {
    let bench = ["bench", "--quiet", "--manifest-path", &own_package()?, "--bench", "sums", "--"];
    tools::cargo_in("xtask-own-bench", &[], &[&bench[..], &["--max-time", "3s", "--no-evidence"]].concat())
}
