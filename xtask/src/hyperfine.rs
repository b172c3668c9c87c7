//! Compares hyperfine with `ascertain compare`: runs hyperfine's tests on `compare`, and hyperfine's scripts on the
//! exports of `compare`.
//!
//! Cargo fetches hyperfine's sources from crates.io; this repository contains none of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::part::{Input, Part};
use crate::tools::{self, Need};

const OLDER: &str = "1.20.0";
const NEWER: &str = "2.0.0";
const SOURCES: [Need; 2] = [Need::Source("hyperfine", OLDER), Need::Source("hyperfine", NEWER)];

const INPUTS: &[Input] =
    &[Input::Package("ascertain-cli"), Input::Path("xtask/src/hyperfine.rs"), Input::Path("xtask/src/hyperfine")];

pub const PARTS: &[Part] = &[
    Part::slow("hyperfine's exports", &[Need::HYPERFINE], INPUTS, same_fields),
    Part::slow("hyperfine's own tests on compare", &SOURCES, INPUTS, tests),
    Part::slow(
        "hyperfine's own scripts on both forms of its JSON",
        &[SOURCES[0], SOURCES[1], Need::Python("numpy"), Need::Python("scipy"), Need::Python("matplotlib")],
        INPUTS,
        scripts,
    ),
];

const WRAPPER: &str = include_str!("hyperfine/wrapper.rs");
const MANIFEST: &str = "\
[package]
name = \"hyperfine\"
version = \"0.0.0\"
edition = \"2024\"
[dev-dependencies]
assert_cmd = \"2\"
csv = \"1\"
insta = { version = \"1\", features = [\"filters\", \"yaml\"] }
insta-cmd = \"0.7\"
predicates = \"3\"
serde_json = \"1\"
tempfile = \"3\"
[workspace]
";

/// The names of the tests that are expected to fail, with the reasons in lines that begin with `#`.
const DIFFERENT: &str = include_str!("hyperfine/different.txt");

/// Runs the installed hyperfine with these arguments. Returns one result per command.
pub fn results(arguments: &[&str]) -> anyhow::Result<Vec<Value>> {
    let path = tools::in_target("hyperfine.json");
    tools::output_of("hyperfine", &[&["-N", "--style", "none", "--export-json", &path], arguments].concat())?;
    results_in(&path)
}

fn results_in(path: &str) -> anyhow::Result<Vec<Value>> {
    let mut json: Value = serde_json::from_slice(&fs::read(path)?).context("could not parse the export as JSON")?;
    json["results"].as_array_mut().map(std::mem::take).context("no results")
}

/// Checks that our export has every field of hyperfine's export.
fn same_fields() -> anyhow::Result<()> {
    let (path, commands) = (tools::in_target("ours.json"), ["-r", "10", "true", "sleep 0.001"]);
    tools::compare(tools::test_binary()?, &[&["--export-json-1", &path], &commands])?;
    let (ours, theirs) = (results_in(&path)?, results(&commands)?);
    ensure!(ours.len() == 2 && theirs.len() == 2, "two commands");
    let missing: Vec<&String> = theirs[0].as_object().context("a result")?.keys().collect();
    let missing: Vec<_> = missing.into_iter().filter(|field| ours[0].get(field).is_none()).collect();
    ensure!(missing.is_empty(), "fields missing in our export: {missing:?}");
    Ok(())
}

/// Runs the tests of both hyperfine versions on a program that runs `ascertain compare` instead. Checks that exactly
/// the tests in [`DIFFERENT`] fail.
fn tests() -> anyhow::Result<()> {
    let ascertain = tools::test_binary()?;
    let different = DIFFERENT.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let different: BTreeSet<&str> = different.collect();
    let mut unseen = different.clone();
    for version in [OLDER, NEWER] {
        let folder = package(version)?;
        let mut cargo = Command::new("cargo");
        cargo.args(["test", "--no-fail-fast", "--color", "never"]).current_dir(&folder);
        cargo.env("CARGO_TARGET_DIR", tools::target()).env("INSTA_UPDATE", "no");
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "0");
        let output = cargo.env("ASCERTAIN", &ascertain).env("HYPERFINE", version).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let ended = |how: &str| -> BTreeSet<&str> {
            let names = text.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(how));
            names.map(str::trim_end).collect()
        };
        let (passed, failed) = (ended("... ok"), ended("... FAILED"));
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(passed.len() > 5 && failed.len() > 30, "{version}: the tests were not built: {errors}");
        let wrong: Vec<&&str> = failed.difference(&different).chain(passed.intersection(&different)).collect();
        ensure!(
            wrong.is_empty(),
            "{version}: tests that passed or failed contrary to different.txt: {wrong:?}\n{text}"
        );
        unseen.retain(|name| !failed.contains(name));
        println!("{version}: {} tests pass, {} fail as expected", passed.len(), failed.len());
    }
    ensure!(unseen.is_empty(), "different.txt lists tests that do not exist or do not fail: {unseen:?}");
    Ok(())
}

/// Creates a package that contains the tests of a hyperfine version, and our program in place of hyperfine. Returns the
/// package's folder.
fn package(version: &str) -> anyhow::Result<String> {
    let folder = tools::new_folder(&format!("xtask-hyperfine-tests/{version}"))?;
    let tests = tools::source("hyperfine", version).context("the source")?.join("tests");
    tools::output_of("cp", &["-r", &*tests.to_string_lossy(), &folder])?;
    fs::create_dir(format!("{folder}/src"))?;
    fs::write(format!("{folder}/src/main.rs"), WRAPPER)?;
    // Each package needs its own version. Otherwise cargo would take the programs of one package for the programs of
    // the other.
    fs::write(format!("{folder}/Cargo.toml"), MANIFEST.replace("0.0.0", version))?;
    Ok(folder)
}

/// Each script of hyperfine, with the run whose export it reads: `compared` or `swept`.
const SCRIPTS: [(&str, &str); 7] = [
    ("advanced_statistics.py", "compared"),
    ("welch_ttest.py", "compared"),
    ("plot_benchmark_comparison.py", "compared"),
    ("plot_histogram.py", "compared"),
    ("plot_progression.py", "compared"),
    ("plot_whisker.py", "compared"),
    ("plot_parametrized.py", "swept"),
];

/// Runs the scripts of each hyperfine version on exports in the format of that version.
fn scripts() -> anyhow::Result<()> {
    let folder = tools::new_folder("xtask-exports/hyperfine")?;
    let path = |name: &str| format!("{folder}/{name}");
    let runs: [(&str, &[&str]); 2] = [
        ("compared", &["-n", "one", "sleep 0.001", "sleep 0.002"]),
        ("swept", &["-P", "n", "1", "3", "sleep 0.00{n}"]),
    ];
    for (name, commands) in runs {
        let [newer, older] = [NEWER, OLDER].map(|version| path(&format!("{name}-{version}.json")));
        let exports = ["--export-json", &newer, "--export-json-1", &older];
        tools::compare(tools::test_binary()?, &[&["-q", "-r", "8"], &exports, commands])?;
    }
    for version in [OLDER, NEWER] {
        let scripts = tools::source("hyperfine", version).context("the source")?.join("scripts");
        for (script, name) in SCRIPTS {
            let (file, picture) = (path(&format!("{name}-{version}.json")), path("picture.png"));
            let script = scripts.join(script).to_string_lossy().into_owned();
            let python = tools::python().to_string_lossy().into_owned();
            let draws = script.contains("/plot_");
            let drawn: &[&str] = if draws { &["-o", &picture] } else { &[] };
            let _ = fs::remove_file(&picture);
            let words = ["MPLBACKEND=Agg", &*python, "-B", "-W", "ignore", &script, &file];
            let output = tools::output_of("env", &[&words, drawn].concat()).with_context(|| script.clone())?;
            let is_read = if draws { Path::new(&picture).exists() } else { output.contains("one") };
            ensure!(is_read, "{script}: the script produced no result: {output}");
        }
        println!("{version}: {} scripts", SCRIPTS.len());
    }
    Ok(())
}
