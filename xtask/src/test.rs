//! Every test, and a list of what was left out.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;

use crate::tools::{self, Need};
use crate::{alone, browser, checkers, emulated, exports, fuzz, hyperfine, musl, packages};

pub const USAGE: &str = "\
cargo xtask test [--no-install] [--lean] [WORD …]

Every test, or the parts with a word in their names. What a part needs and this machine lacks is named, and then
installed where that may be; parts that can't be had are left out, each with its reason, and so is each test that
can't run here. The first part that fails ends it.

--no-install   install nothing: leaves out the parts that lack something
--lean         remove what was built for a part alone as soon as it has passed: less than 6 GB instead of 9";

/// A part of the tests: its name, what it needs, and what it does.
pub type Part = (&'static str, &'static [Need], fn() -> anyhow::Result<Done>);

/// How a part ended, unless it failed.
pub enum Done {
    Passed,
    /// With the reason.
    LeftOut(String),
}

const ACTIONLINT: &str = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12";

const PARTS: &[Part] = &[
    ("formatting", &[], || cargo(&["fmt", "--all", "--check"])),
    ("lints", &[], || cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])),
    ("documentation", &[], documentation),
    ("workflows and action.yml, by actionlint", &[Need::Go(ACTIONLINT)], actionlint),
    ("dependencies, by cargo-deny", &[Need::Crate("cargo-deny", "0.20.2")], deny),
    // Cargo names each file of tests as it runs.
    ("unit, property, calibration and end-to-end tests", &[], || cargo(&["test", "--workspace", "--", "--quiet"])),
    ("release binary below 16 MB", &[], release_binary),
    ("a shell script that counts for itself", &[], until_decided),
    ("evidence read by DuckDB", &[Need::Python("duckdb")], duckdb),
    ("plotted numbers recomputed from the Parquet files", &[Need::Python("duckdb")], plotted),
    ("hyperfine's exports", &[Need::HYPERFINE], same_fields),
    ("reports in a browser", &[Need::Debian("chromium", "chromium"), Need::Npm], browser::reports),
    ("barrierd on this kernel", &[], barrierd),
    // libFuzzer is written in C++.
    ("parsers, fuzzed for a minute each", &[Need::Debian("c++", "g++")], fuzz::all),
];

/// So many parts are named for how long they took.
const LISTED: usize = 8;

/// Runs all parts, or those whose names have one of the words in them; the first that fails ends it.
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    let (options, words): (Vec<&str>, Vec<&str>) = arguments.iter().map(|a| &**a).partition(|a| a.starts_with('-'));
    let unknown = options.iter().find(|option| !["--no-install", "--lean", "--help", "-h"].contains(option));
    if let Some(option) = unknown {
        anyhow::bail!("unknown option {option}\n{USAGE}");
    }
    let has = |option| options.contains(&option);
    if has("--help") || has("-h") {
        println!("{USAGE}");
        return Ok(());
    }
    let all = [
        PARTS,
        alone::PARTS,
        exports::PARTS,
        hyperfine::PARTS,
        checkers::PARTS,
        musl::PARTS,
        emulated::PARTS,
        packages::PARTS,
    ];
    let is_wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word));
    let parts: Vec<&Part> = all.into_iter().flatten().filter(|(name, ..)| is_wanted(name)).collect();
    anyhow::ensure!(!parts.is_empty(), "no part of the tests has `{}` in its name", words.join("` or `"));
    let is_installing = !has("--no-install");
    if is_installing {
        announce(&parts);
    }
    let mut left_out = Vec::new();
    let (mut passed, mut seconds) = (0, Vec::new());
    for (name, needs, part) in &parts {
        println!("\n== {name}");
        let start = Instant::now();
        let lacking = needs.iter().find_map(|need| match is_installing {
            true => need.meet().err(),
            false => (!need.is_met()).then(|| format!("not installed: {need}")),
        });
        let _ = fs::remove_file(tools::left_out_list());
        let done = lacking.map_or_else(part, |reason| Ok(Done::LeftOut(reason)));
        match done.with_context(|| format!("{name}: failed"))? {
            Done::Passed => passed += 1,
            Done::LeftOut(reason) => left_out.push(format!("{name}: {reason}")),
        }
        if has("--lean") {
            remove_built()?;
        }
        seconds.push((start.elapsed().as_secs(), name));
        let tests = fs::read_to_string(tools::left_out_list()).unwrap_or_default();
        let tests: BTreeSet<&str> = tests.lines().collect();
        left_out.extend(tests.iter().map(|test| format!("{name}: {test}")));
    }
    println!();
    seconds.sort_unstable_by(|one, other| other.cmp(one));
    let longest = seconds.iter().take(LISTED).map(|(seconds, name)| format!("{name} {seconds} s"));
    println!("longest: {}", longest.collect::<Vec<_>>().join("; "));
    for line in &left_out {
        println!("left out: {line}");
    }
    for line in ignored(&tools::root().join("crates"))? {
        println!("ignored: {line}");
    }
    println!("{passed} passed, 0 failed, {} skipped", left_out.len());
    Ok(())
}

/// The tests that are ignored unless somebody asks for them, each with its file and reason.
fn ignored(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for path in entries.iter().map(fs::DirEntry::path) {
        if path.is_dir() {
            found.extend(ignored(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let code = fs::read_to_string(&path)?;
            let of_file = code.split("#[ignore").skip(1).filter_map(|rest| {
                let (reason, rest) = rest.strip_prefix(" = \"")?.split_once("\"]")?;
                let name = rest.split_once("fn ")?.1.split(['(', '<']).next()?;
                Some(format!("{name}, of {}: {reason}", path.strip_prefix(tools::root()).unwrap_or(&path).display()))
            });
            found.extend(of_file);
        }
    }
    Ok(found)
}

/// Removes the programs of tests and examples, which no later part runs, and the folders of builds of another kind.
fn remove_built() -> anyhow::Result<()> {
    let is_program = |path: &Path| path.is_file() && path.extension().is_none();
    let deps = tools::target().join("debug/deps");
    for entry in fs::read_dir(deps).into_iter().flatten() {
        let path = entry?.path();
        if is_program(&path) {
            fs::remove_file(path)?;
        }
    }
    for entry in fs::read_dir(tools::target())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Cargo's mark of a folder that it builds in.
        if name.starts_with("xtask-") && path.join("CACHEDIR.TAG").is_file() {
            fs::remove_dir_all(path)?;
        }
    }
    let _ = fs::remove_dir_all(tools::target().join("debug/examples"));
    Ok(())
}

/// Says what is about to be installed, and for which parts.
fn announce(parts: &[&Part]) {
    let mut missing: Vec<Need> = Vec::new();
    for need in parts.iter().flat_map(|(_, needs, _)| *needs) {
        if !missing.contains(need) && !need.is_met() {
            missing.push(*need);
        }
    }
    for need in missing {
        let whose = parts.iter().filter(|(_, needs, _)| needs.contains(&need)).map(|(name, ..)| *name);
        println!("to be installed: {need}\n    for: {}", whose.collect::<Vec<_>>().join("; "));
    }
}

fn cargo(arguments: &[&str]) -> anyhow::Result<Done> {
    tools::run("cargo", arguments)?;
    Ok(Done::Passed)
}

fn documentation() -> anyhow::Result<Done> {
    tools::run("env", &["RUSTDOCFLAGS=-D warnings", "cargo", "doc", "--quiet", "--workspace", "--no-deps"])?;
    Ok(Done::Passed)
}

/// The workflows, and action.yml through one that uses it, in a folder that looks like a repository.
fn actionlint() -> anyhow::Result<Done> {
    const USES_THE_ACTION: &str = "\
on: pull_request
jobs:
  gate:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
      - uses: ./
        with: { build: make, program: program, arguments: input, margin: 3%, max-time: 5min, undecided: pass }
";
    let folder = tools::target().join("xtask-actionlint");
    let _ = fs::remove_dir_all(&folder);
    let workflows = folder.join(".github/workflows");
    fs::create_dir_all(&workflows)?;
    fs::create_dir(folder.join(".git"))?;
    for file in fs::read_dir(tools::root().join(".github/workflows"))? {
        let file = file?;
        fs::copy(file.path(), workflows.join(file.file_name()))?;
    }
    fs::copy(tools::root().join("action.yml"), folder.join("action.yml"))?;
    fs::write(workflows.join("uses-the-action.yml"), USES_THE_ACTION)?;
    let mut command = std::process::Command::new(tools::program("actionlint"));
    anyhow::ensure!(command.current_dir(&folder).status()?.success(), "actionlint found something");
    Ok(Done::Passed)
}

fn deny() -> anyhow::Result<Done> {
    let check = ["--log-level", "error", "check", "licenses", "bans", "sources"];
    tools::run(&tools::program("cargo-deny").to_string_lossy(), &check)?;
    Ok(Done::Passed)
}

fn release_binary() -> anyhow::Result<Done> {
    let bytes = std::fs::metadata(tools::release_binary()?)?.len();
    println!("{:.2} MB", bytes as f64 / 1e6);
    anyhow::ensure!(bytes < 16_000_000, "the release binary has {bytes} bytes");
    Ok(Done::Passed)
}

fn until_decided() -> anyhow::Result<Done> {
    let ascertain = tools::target().join("release/ascertain");
    let script = tools::root().join("examples/until-decided.sh");
    for (command, expected) in [("true", 0), ("false", 1)] {
        let assignment = format!("ASCERTAIN={}", ascertain.display());
        let output = tools::capture("env", &[&assignment, &*script.to_string_lossy(), command])?;
        print!("{}", String::from_utf8_lossy(&output.stdout));
        anyhow::ensure!(output.status.code() == Some(expected), "{command}: exit code {:?}", output.status.code());
    }
    Ok(Done::Passed)
}

fn duckdb() -> anyhow::Result<Done> {
    let runs = tools::target().join("xtask-runs");
    let _ = std::fs::remove_dir_all(&runs);
    let ascertain = tools::target().join("release/ascertain");
    let folder = runs.to_string_lossy().into_owned();
    let measured: [&[&str]; 2] =
        [&["compare", "-r", "10", "true", "sleep 0.001"], &["run", "fill-rate", "--trials", "20", "--max-time", "5s"]];
    for arguments in measured {
        let arguments: Vec<&str> = arguments.iter().chain(&["--evidence", &folder]).copied().collect();
        let output = tools::capture(&ascertain, &arguments)?;
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let script = tools::root().join("crates/engine/tests/evidence_duckdb.py");
    let arguments = [script.to_string_lossy().into_owned(), folder];
    tools::run(&tools::python().to_string_lossy(), &arguments)?;
    Ok(Done::Passed)
}

/// Every run that [`duckdb`] left, and one with a sweep: what the report plots is computed again by another route.
fn plotted() -> anyhow::Result<Done> {
    let runs = tools::target().join("xtask-runs");
    let folder = runs.to_string_lossy().into_owned();
    let sweep = "run sum --variants naive,kahan --at elements=1Ki,64Ki --at type=f32,f64 --trials 15 --max-time 8s";
    let arguments: Vec<&str> = sweep.split(' ').chain(["--evidence", &folder]).collect();
    let output = tools::capture(tools::target().join("release/ascertain"), &arguments)?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let script = tools::root().join("crates/report/tests/plotted.py").to_string_lossy().into_owned();
    for run in std::fs::read_dir(&runs)? {
        let run = run?.path().to_string_lossy().into_owned();
        let output = tools::capture(tools::target().join("release/examples/plots_json"), &[&run])?;
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let plots = tools::target().join("xtask-plots.json").to_string_lossy().into_owned();
        std::fs::write(&plots, output.stdout)?;
        tools::run(&tools::python().to_string_lossy(), &[&script, &run, &plots])?;
    }
    Ok(Done::Passed)
}

/// Needs root, and a kernel that loads its programs.
fn barrierd() -> anyhow::Result<Done> {
    let output = tools::capture(tools::target().join("release/ascertain"), &["barrierd", "--once"])?;
    match output.status.code() {
        Some(0) => Ok(Done::Passed),
        Some(4) => Ok(Done::LeftOut(String::from_utf8_lossy(&output.stderr).trim().into())),
        code => anyhow::bail!("barrierd --once: exit code {code:?}"),
    }
}

/// The same export by both tools has the same fields.
fn same_fields() -> anyhow::Result<Done> {
    let ascertain = tools::release_binary()?;
    let fields = |program: &Path, arguments: &[&str], option: &str, file: &str| -> anyhow::Result<Vec<String>> {
        let path = tools::target().join(file);
        let text = path.to_string_lossy().into_owned();
        let arguments: Vec<&str> = arguments.iter().chain(&[option, &text]).copied().collect();
        let output = tools::capture(program, &arguments)?;
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(path)?)?;
        let results = json["results"].as_array().context("results")?;
        anyhow::ensure!(results.len() == 2, "two commands");
        Ok(results[0].as_object().context("a result")?.keys().cloned().collect())
    };
    let ours = fields(
        &ascertain,
        &["compare", "--no-evidence", "-r", "10", "true", "sleep 0.001"],
        "--export-json-1",
        "ours.json",
    )?;
    let theirs = fields(
        Path::new("hyperfine"),
        &["-N", "--style", "none", "-r", "10", "true", "sleep 0.001"],
        "--export-json",
        "theirs.json",
    )?;
    let missing: Vec<&String> = theirs.iter().filter(|field| !ours.contains(field)).collect();
    anyhow::ensure!(missing.is_empty(), "missing in ours: {missing:?}");
    Ok(Done::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ignored_test_is_named_with_its_reason() {
        let listed = ignored(&tools::root().join("crates")).unwrap();
        let cube_roots = "takes ten seconds in a release build";
        assert!(
            listed.iter().any(|line| line.contains("crates/numeric/tests/cbrt.rs: ") && line.ends_with(cube_roots))
        );
        let attributes = fs::read_to_string(tools::root().join("crates/numeric/tests/exact.rs")).unwrap();
        let of_exact = listed.iter().filter(|line| line.contains("numeric/tests/exact.rs"));
        assert_eq!(of_exact.count(), attributes.matches("#[ignore").count());
    }
}
