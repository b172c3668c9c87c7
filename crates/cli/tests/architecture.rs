//! What DESIGN says of the layout, checked: dependencies point one way, and `unsafe` has its places.
#![allow(missing_docs)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Each crate, and what it may depend on of ours.
const MAY_USE: &[(&str, &[&str])] = &[
    ("ascertain-sys", &[]),
    ("ascertain-stats", &[]),
    ("ascertain-numeric", &[]),
    ("ascertain-permute", &["ascertain-stats", "ascertain-numeric"]),
    ("ascertain-plot", &[]),
    ("ascertain-sync", &["ascertain-sys"]),
    ("ascertain-tso", &[]),
    ("ascertain-engine", &["ascertain-stats", "ascertain-sys", "ascertain-numeric"]),
    (
        "ascertain-experiments",
        &["ascertain-engine", "ascertain-numeric", "ascertain-permute", "ascertain-sync", "ascertain-sys"],
    ),
    (
        "ascertain-report",
        &["ascertain-engine", "ascertain-permute", "ascertain-plot", "ascertain-stats", "ascertain-sys"],
    ),
    ("ascertain", &["ascertain-engine", "ascertain-permute", "ascertain-report", "ascertain-stats", "ascertain-sys"]),
    (
        "ascertain-cli",
        &[
            "ascertain",
            "ascertain-engine",
            "ascertain-experiments",
            "ascertain-report",
            "ascertain-stats",
            "ascertain-sync",
            "ascertain-sys",
        ],
    ),
    ("xtask", &[]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn dependencies_point_one_way() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let allowed: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let allowed = allowed.get(name).unwrap_or_else(|| panic!("{name}: say in this test what it may use"));
        let dependencies = package["dependencies"].as_array().unwrap();
        // Tests may use what they like.
        let used = dependencies.iter().filter(|d| d["kind"].is_null()).map(|d| d["name"].as_str().unwrap());
        for used in used.filter(|used| used.starts_with("ascertain")) {
            assert!(allowed.contains(&used), "{name} may not depend on {used}");
        }
    }
}

#[test]
fn unsafe_code_lives_in_sys_and_numeric() {
    for folder in ["stats", "permute", "plot", "engine", "experiments", "report", "cli"] {
        for file in rust_files(&root().join("crates").join(folder).join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            // The keyword, not the word in a name or a text: a brace, a parenthesis or another word follows.
            let keyword = |line: &str| {
                line.split("unsafe").skip(1).any(|rest| rest.starts_with([' ', '{', '(']) || rest.is_empty())
            };
            for line in code {
                assert!(!keyword(line), "{}: {line}", file.display());
            }
        }
    }
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}
