//! Checks each crate as a registry would publish it: the crate must build without the rest of the workspace, with and
//! without its features. Also checks how many crates a user's benchmark depends on, and the size of the released
//! binary.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, ensure};

use crate::part::{Input, Part};
use crate::tools::{self, Need};

/// The version that all packages of the workspace have.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Largest accepted number of crates on which a user's benchmark depends.
const MOST_CRATES: usize = 40;

const HACK: Need = Need::Crate("cargo-hack", "0.6.46");

const THIS: Input = Input::Path("xtask/src/packages.rs");

pub const PARTS: &[Part] = &[
    Part::slow("packages, each checked from its own files", &[], &[Input::Workspace, THIS], packages),
    Part::slow("crates with each of their features alone", &[HACK], &[Input::Features, THIS], features),
    Part::slow("a user's own bench", &[], &[Input::Package("ascertain"), THIS], own_bench),
    Part::slow("released binary below 20 MB", &[], &[Input::Package("ascertain-cli"), THIS], size),
];

/// Unpacks each package and checks it with the unpacked packages of the other crates, not with the workspace. Uses the
/// profiles of the workspace, so that cargo need not compile the dependencies again.
fn packages() -> anyhow::Result<()> {
    let folder = tools::new_folder("package")?;
    tools::run("cargo", &["package", "--quiet", "--workspace", "--offline", "--allow-dirty", "--no-verify"])?;
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(&folder)? {
        let file = entry?.file_name().to_string_lossy().into_owned();
        let Some(name) = file.strip_suffix(concat!("-", env!("CARGO_PKG_VERSION"), ".crate")) else { continue };
        // The files get the present time. Their times in the package are older, so cargo would think that the build of
        // an earlier run is up to date.
        tools::run("tar", &["--extract", "--touch", "--directory", &folder, "--file", &format!("{folder}/{file}")])?;
        names.insert(name.to_owned());
    }
    // Counts the members, including those that are not published.
    let metadata = ["metadata", "--offline", "--no-deps", "--format-version", "1"];
    let members = tools::output_of("cargo", &metadata)?.matches("\"publish\":").count();
    ensure!(names.len() == members, "the workspace has {members} packages, but cargo packaged these: {names:?}");
    let root = fs::read_to_string(tools::in_root("Cargo.toml"))?;
    let (_, profiles) = root.split_once("[profile.").context("Cargo.toml has no profiles")?;
    let paths: String = names.iter().map(|name| format!("{name} = {{ path = \"{name}-{VERSION}\" }}\n")).collect();
    let workspace = format!("[workspace]\nresolver = \"3\"\nmembers = [\"*-{VERSION}\"]\n[patch.crates-io]\n{paths}");
    fs::write(format!("{folder}/Cargo.toml"), format!("{workspace}[profile.{profiles}"))?;
    fs::copy(tools::in_root("Cargo.lock"), format!("{folder}/Cargo.lock"))?;
    let (manifest, target) = (format!("{folder}/Cargo.toml"), tools::in_target(""));
    let check = ["check", "--quiet", "--offline", "--manifest-path", &manifest, "--target-dir", &target];
    for name in &names {
        tools::build("cargo", &[&check[..], &["--package", name]].concat())?;
    }
    Ok(fs::remove_dir_all(folder)?)
}

const NUMERIC: &str = "ascertain-numeric";

/// Checks each crate without features, and with each feature alone. All other tests enable all features.
fn features() -> anyhow::Result<()> {
    let hack = HACK.program();
    let options = ["hack", "clippy", "--quiet", "--workspace", "--exclude", "xtask", "--each-feature"];
    // `numeric` needs `std` or `libm`, so it is checked separately.
    let all_but = [&options[..], &["--exclude", NUMERIC, "--", "-D", "warnings"]].concat();
    tools::build(&hack.to_string_lossy(), &all_but)?;
    let options = ["hack", "clippy", "--quiet", "--package", NUMERIC, "--feature-powerset"];
    let numeric = [&options[..], &["--at-least-one-of", "std,libm", "--", "-D", "warnings"]].concat();
    tools::build(&hack.to_string_lossy(), &numeric)?;
    for (package, features, tests) in [
        ("ascertain-engine", "recorded", &["--test", "all"][..]),
        ("ascertain-transfer", "", &["--test", "all"]),
        ("ascertain", "", &["--lib"]),
    ] {
        let options = ["test", "--package", package, "--no-default-features", "--features", features];
        tools::cargo_test(&[], &[&options, tests].concat(), &[])?;
    }
    Ok(())
}

pub fn crates_of_a_bench() -> anyhow::Result<()> {
    let which = ["--package", "ascertain", "--edges", "normal,build"];
    let shown = ["--prefix", "none", "--format", "{p}", "--no-dedupe"];
    let text = tools::output_of("cargo", &[&["tree"], &which[..], &shown[..]].concat())?;
    let crates: BTreeSet<&str> = text.lines().collect();
    println!("{} crates", crates.len());
    ensure!(crates.len() <= MOST_CRATES, "more than {MOST_CRATES} crates: {crates:?}");
    Ok(())
}

/// Creates a package like the one in the guide, with the default profiles. Returns the path of its manifest.
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
";
    let (ascertain, folder) = (tools::in_root("crates/ascertain"), tools::in_target("xtask-own-package"));
    fs::create_dir_all(format!("{folder}/benches"))?;
    fs::copy(format!("{ascertain}/benches/sums.rs"), format!("{folder}/benches/sums.rs"))?;
    fs::copy(tools::in_root("Cargo.lock"), format!("{folder}/Cargo.lock"))?;
    let manifest = format!("{folder}/Cargo.toml");
    fs::write(&manifest, format!("{MANIFEST}path = {ascertain:?}\n"))?;
    Ok(manifest)
}

/// Runs a benchmark in a package like a user's. The build is unoptimised, because this only checks that the benchmark
/// builds, measures and ends.
fn own_bench() -> anyhow::Result<()> {
    let manifest = own_package()?;
    let bench = ["bench", "--quiet", "--profile", "dev", "--manifest-path", &manifest, "--bench", "sums", "--"];
    let target = format!("CARGO_TARGET_DIR={}", tools::in_target(""));
    let command = [&[&*target, "cargo"], &bench[..], &["--max-time", "3s", "--no-evidence"]].concat();
    tools::build("env", &command)
}

/// Checks that the released binary is smaller than 20 MB. Removes the build folder, which is large and not used again.
pub fn size() -> anyhow::Result<()> {
    let folder = tools::new_folder("xtask-dist")?;
    let options = ["build", "--quiet", "--profile", "dist", "--package", "ascertain-cli", "--target-dir", &folder];
    tools::build("cargo", &options)?;
    let bytes = fs::metadata(format!("{folder}/dist/ascertain"))?.len();
    fs::remove_dir_all(&folder)?;
    println!("{:.2} MB", bytes as f64 / 1e6);
    ensure!(bytes < 20_000_000, "the released binary has {bytes} bytes; the limit is 20 MB");
    Ok(())
}
