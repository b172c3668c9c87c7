//! Each crate as a registry would have it: whole by itself, also with its features off, and small enough for a bench.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, ensure};

use crate::test::{Done, Part};
use crate::tools;

/// Of these a bench of one's own may have as many built.
const MOST_CRATES: usize = 40;

pub const PARTS: &[Part] = &[
    ("packages, each built from what is in it", &[], packages),
    ("crates without their features", &[], without_features),
    ("crates that a bench of one's own builds", &[], crates_of_a_bench),
];

/// Each crate and some of its features; all of them are on where the workspace is tested.
const FEATURES: &[(&str, &str)] = &[
    ("ascertain-sys", ""),
    ("ascertain-permute", ""),
    ("ascertain-plot", ""),
    ("ascertain-sync", ""),
    ("ascertain-engine", ""),
    ("ascertain-engine", "claims"),
    ("ascertain-engine", "parquet"),
    ("ascertain-engine", "recorded"),
    ("ascertain-engine", "samples"),
    ("ascertain-experiments", ""),
    ("ascertain-experiments", "chance"),
    ("ascertain-experiments", "numeric"),
    ("ascertain-experiments", "sync"),
    ("ascertain-report", ""),
    ("ascertain-report", "html"),
    ("ascertain-report", "permute"),
    ("ascertain-report", "plot"),
    ("ascertain-report", "recorded"),
    ("ascertain", ""),
    ("ascertain", "claims"),
    ("ascertain", "permute"),
    ("ascertain", "plot"),
    ("ascertain", "recorded"),
];

/// The builds share what the tests have built of other people's crates, as long as both are without notes for a debugger:
/// packages know nothing of the workspace's profiles.
fn packages() -> anyhow::Result<Done> {
    forget_unpacked()?;
    let before = built_of_ours();
    let profile = ["--config", "profile.dev.debug=false"];
    let package = ["package", "--quiet", "--workspace", "--offline", "--allow-dirty"];
    let packaged = tools::run("cargo", &[&profile[..], &package].concat());
    let _ = std::fs::remove_dir_all(tools::target().join("package"));
    for built in built_of_ours().difference(&before) {
        std::fs::remove_dir_all(built)?;
    }
    packaged.map(|()| Done::Passed)
}

/// Cargo's notes that a crate of ours is built: of a package it would believe them whatever is in it by then.
fn built_of_ours() -> BTreeSet<PathBuf> {
    let notes = std::fs::read_dir(tools::target().join("debug/.fingerprint")).into_iter().flatten().flatten();
    notes.filter(|note| note.file_name().to_string_lossy().starts_with("ascertain")).map(|note| note.path()).collect()
}

/// Removes what Cargo unpacked of our packages in an earlier run: it would take that for the same, since the version is.
fn forget_unpacked() -> anyhow::Result<()> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).context("there is no home folder")?;
    for registry in std::fs::read_dir(home.join("registry/src")).into_iter().flatten().flatten() {
        // A registry on this machine has no host in its name.
        if registry.file_name().to_string_lossy().starts_with('-') && registry.path().join("ascertain-0.1.0").exists() {
            std::fs::remove_dir_all(registry.path())?;
        }
    }
    Ok(())
}

fn without_features() -> anyhow::Result<Done> {
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
    Ok(Done::Passed)
}

fn crates_of_a_bench() -> anyhow::Result<Done> {
    let which = ["--package", "ascertain", "--no-default-features", "--edges", "normal,build"];
    let shown = ["--prefix", "none", "--format", "{p}", "--no-dedupe"];
    let output = tools::capture("cargo", &[&["tree"], &which[..], &shown[..]].concat())?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    let mut crates: Vec<&str> = text.lines().collect();
    crates.sort_unstable();
    crates.dedup();
    println!("{} crates", crates.len());
    ensure!(crates.len() <= MOST_CRATES, "more than {MOST_CRATES} crates: {}", crates.join(", "));
    Ok(Done::Passed)
}
