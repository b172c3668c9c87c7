//! Tests that crates depend only on the crates in a table, and that only the crates in another table have `unsafe`
//! code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Each crate, with the crates of this workspace that may be its dependencies.
const MAY_USE: &[(&str, &[&str])] = &[
    ("ascertain-sys", &[]),
    ("ascertain-stats", &[]),
    ("ascertain-numeric", &[]),
    ("ascertain-permute", &["ascertain-stats", "ascertain-numeric"]),
    ("ascertain-plot", &[]),
    ("ascertain-streams", &[]),
    ("ascertain-netlab", &["ascertain-sys"]),
    ("ascertain-fsmonitor", &["ascertain-sys"]),
    ("ascertain-sync", &["ascertain-sys"]),
    ("ascertain-transfer", &["ascertain-sys"]),
    ("ascertain-tso", &[]),
    ("ascertain-engine", &["ascertain-stats", "ascertain-streams", "ascertain-sys"]),
    ("ascertain-experiments-chance", &["ascertain-engine", "ascertain-permute", "ascertain-sys"]),
    ("ascertain-experiments-host", &["ascertain-engine", "ascertain-fsmonitor", "ascertain-stats", "ascertain-sys"]),
    (
        "ascertain-experiments-networks",
        &["ascertain-engine", "ascertain-netlab", "ascertain-stats", "ascertain-sys", "ascertain-transfer"],
    ),
    ("ascertain-experiments-numeric", &["ascertain-engine", "ascertain-numeric", "ascertain-sys"]),
    (
        "ascertain-experiments-storage",
        &[
            "ascertain-engine",
            "ascertain-experiments-networks",
            "ascertain-netlab",
            "ascertain-stats",
            "ascertain-sys",
            "ascertain-transfer",
        ],
    ),
    (
        "ascertain-experiments-transfer",
        &[
            "ascertain-engine",
            "ascertain-experiments-networks",
            "ascertain-netlab",
            "ascertain-sys",
            "ascertain-transfer",
        ],
    ),
    ("ascertain-experiments-sync", &["ascertain-engine", "ascertain-sync", "ascertain-sys"]),
    (
        "ascertain-experiments",
        &[
            "ascertain-engine",
            "ascertain-experiments-chance",
            "ascertain-experiments-host",
            "ascertain-experiments-networks",
            "ascertain-experiments-numeric",
            "ascertain-experiments-storage",
            "ascertain-experiments-transfer",
            "ascertain-experiments-sync",
        ],
    ),
    (
        "ascertain-report",
        &[
            "ascertain-engine",
            "ascertain-permute",
            "ascertain-plot",
            "ascertain-stats",
            "ascertain-sys",
            "ascertain-transfer",
        ],
    ),
    (
        "ascertain",
        &[
            "ascertain-engine",
            "ascertain-permute",
            "ascertain-report",
            "ascertain-stats",
            "ascertain-streams",
            "ascertain-sys",
            "ascertain-transfer",
        ],
    ),
    (
        "ascertain-cli",
        &[
            "ascertain",
            "ascertain-engine",
            "ascertain-experiments",
            "ascertain-fsmonitor",
            "ascertain-netlab",
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

/// Returns the packages of the workspace, as `cargo metadata` lists them.
fn packages() -> Vec<Value> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    let mut metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    serde_json::from_value(metadata["packages"].take()).unwrap()
}

#[test]
fn dependencies_point_one_way() {
    let allowed: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        let allowed = allowed.get(name).unwrap_or_else(|| panic!("{name}: say in this test what it may use"));
        let dependencies = package["dependencies"].as_array().unwrap();
        // Tests may depend on anything.
        let used = dependencies.iter().filter(|d| d["kind"].is_null()).map(|d| d["name"].as_str().unwrap());
        for used in used.filter(|used| used.starts_with("ascertain")) {
            assert!(allowed.contains(&used), "{name} may not depend on {used}");
        }
    }
}

/// Returns the Rust files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    entries.flat_map(of).filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// Counts three uses of `unsafe`: blocks, functions and traits that are marked unsafe, and implementations of unsafe
/// traits. Ignores comments, but counts words inside string literals too.
fn unsafe_code(folder: &Path) -> [usize; 3] {
    let mut counts = [0; 3];
    for path in sources(folder) {
        let code = std::fs::read_to_string(path).unwrap();
        let words = code.lines().flat_map(|line| line.split("//").next().unwrap_or("").split_whitespace());
        for pair in words.collect::<Vec<_>>().windows(2) {
            if pair[0].trim_start_matches(|c: char| !c.is_alphanumeric()) == "unsafe" {
                counts[match pair[1] {
                    text if text.starts_with('{') => 0,
                    text if text.starts_with("impl") => 2,
                    _ => 1,
                }] += 1;
            }
        }
    }
    counts
}

/// Compares the numbers in the table with the code; `BLESS=1` rewrites the table.
#[test]
fn unsafe_code_has_its_places_and_is_counted() {
    const ENDS: [&str; 2] = ["<!-- unsafe code: counted -->\n", "<!-- to here -->"];
    let crates_folder = root().join("crates").canonicalize().unwrap();
    let manifests = packages().into_iter().map(|package| PathBuf::from(package["manifest_path"].as_str().unwrap()));
    let folders = manifests.map(|manifest| manifest.parent().unwrap().canonicalize().unwrap());
    let mut crates: Vec<_> =
        folders.filter_map(|folder| Some(folder.strip_prefix(&crates_folder).ok()?.to_path_buf())).collect();
    crates.sort();
    assert!(crates.contains(&"experiments/sync".into()), "nested packages must be counted too");
    let mut places = Vec::new();
    let mut table = String::from("| crate | blocks | functions and traits | implementations |\n|---|---|---|---|\n");
    for folder in crates {
        let counts = unsafe_code(&crates_folder.join(&folder).join("src"));
        if counts != [0; 3] {
            let [blocks, functions, impls] = counts;
            let name = folder.display();
            table += &format!("| {name} | {blocks} | {functions} | {impls} |\n");
            places.push(name.to_string());
        }
    }
    assert_eq!(places, ["numeric", "sync", "sys", "tso"]);
    let text = std::fs::read_to_string(root().join("GOALS.md")).unwrap();
    let (before, rest) = text.split_once(ENDS[0]).unwrap();
    let (found, after) = rest.split_once(ENDS[1]).unwrap();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(root().join("GOALS.md"), [before, ENDS[0], &table, ENDS[1], after].concat()).unwrap();
    } else {
        assert_eq!(found, table, "GOALS.md: BLESS=1 writes the table anew");
    }
}
