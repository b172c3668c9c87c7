//! Every test, and a list of what was left out.

use std::path::Path;

use anyhow::Context;

use crate::{browser, checkers, emulated, exports, musl, tools};

/// A part of the tests: its name, and what it says when it can't run here.
pub type Part = (&'static str, fn() -> anyhow::Result<Done>);

/// How a part ended, unless it failed.
pub enum Done {
    Passed,
    /// With the reason.
    LeftOut(String),
}

const PARTS: &[Part] = &[
    ("formatting", || cargo(&["fmt", "--all", "--check"])),
    ("lints", || cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])),
    ("documentation", documentation),
    ("unit, property, calibration and end-to-end tests", || cargo(&["test", "--quiet", "--workspace"])),
    ("release binary below 10 MB", release_binary),
    ("a user's own bench", own_bench),
    ("a shell script that counts for itself", until_decided),
    ("evidence read by DuckDB", duckdb),
    ("plotted numbers recomputed from the Parquet files", plotted),
    ("hyperfine's exports", hyperfine),
    ("reports in a browser", browser::reports),
    ("barrierd on this kernel", barrierd),
];

/// Runs all parts, or those whose names have one of the words in them; the first that fails ends it.
pub fn run(words: &[String]) -> anyhow::Result<()> {
    let mut left_out = Vec::new();
    let all = [PARTS, exports::PARTS, checkers::PARTS, musl::PARTS, emulated::PARTS];
    let is_wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let parts: Vec<&Part> = all.into_iter().flatten().filter(|(name, _)| is_wanted(name)).collect();
    anyhow::ensure!(!parts.is_empty(), "no part of the tests has `{}` in its name", words.join("` or `"));
    for (name, part) in &parts {
        println!("\n== {name}");
        match part().with_context(|| format!("{name}: failed"))? {
            Done::Passed => {}
            Done::LeftOut(reason) => left_out.push(format!("{name}: {reason}")),
        }
    }
    println!();
    for line in &left_out {
        println!("left out: {line}");
    }
    println!("{} passed, 0 failed, {} skipped", parts.len() - left_out.len(), left_out.len());
    Ok(())
}

fn cargo(arguments: &[&str]) -> anyhow::Result<Done> {
    tools::run("cargo", arguments)?;
    Ok(Done::Passed)
}

fn documentation() -> anyhow::Result<Done> {
    tools::run("env", &["RUSTDOCFLAGS=-D warnings", "cargo", "doc", "--quiet", "--workspace", "--no-deps"])?;
    Ok(Done::Passed)
}

fn release_binary() -> anyhow::Result<Done> {
    let bytes = std::fs::metadata(tools::release_binary()?)?.len();
    println!("{:.2} MB", bytes as f64 / 1e6);
    anyhow::ensure!(bytes < 10_000_000, "the release binary has {bytes} bytes");
    Ok(Done::Passed)
}

fn own_bench() -> anyhow::Result<Done> {
    let bench =
        ["bench", "--quiet", "--package", "ascertain", "--bench", "sums", "--", "--max-time", "3s", "--no-evidence"];
    cargo(&bench)
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
    let python = match tools::python_with("duckdb") {
        Ok(python) => python,
        Err(reason) => return Ok(Done::LeftOut(reason)),
    };
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
    tools::run(&python.to_string_lossy(), &arguments)?;
    Ok(Done::Passed)
}

/// Every run that [`duckdb`] left, and one with a sweep: what the report plots is computed again by another route.
fn plotted() -> anyhow::Result<Done> {
    let python = match tools::python_with("duckdb") {
        Ok(python) => python,
        Err(reason) => return Ok(Done::LeftOut(reason)),
    };
    let runs = tools::target().join("xtask-runs");
    let folder = runs.to_string_lossy().into_owned();
    let sweep = "run sum --variants naive,kahan --at elements=1Ki,64Ki --at type=f32,f64 --trials 15 --max-time 8s";
    let arguments: Vec<&str> = sweep.split(' ').chain(["--evidence", &folder]).collect();
    let output = tools::capture(tools::target().join("release/ascertain"), &arguments)?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    tools::run(
        "cargo",
        &["build", "--quiet", "--release", "--package", "ascertain-report", "--example", "plots_json"],
    )?;
    let script = tools::root().join("crates/report/tests/plotted.py").to_string_lossy().into_owned();
    for run in std::fs::read_dir(&runs)? {
        let run = run?.path().to_string_lossy().into_owned();
        let output = tools::capture(tools::target().join("release/examples/plots_json"), &[&run])?;
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let plots = tools::target().join("xtask-plots.json").to_string_lossy().into_owned();
        std::fs::write(&plots, output.stdout)?;
        tools::run(&python.to_string_lossy(), &[&script, &run, &plots])?;
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
fn hyperfine() -> anyhow::Result<Done> {
    if let Err(reason) = tools::debian("hyperfine", "hyperfine") {
        return Ok(Done::LeftOut(reason));
    }
    let ascertain = tools::target().join("release/ascertain");
    let fields = |program: &Path, arguments: &[&str], file: &str| -> anyhow::Result<Vec<String>> {
        let path = tools::target().join(file);
        let text = path.to_string_lossy().into_owned();
        let arguments: Vec<&str> = arguments.iter().chain(&["--export-json", &text]).copied().collect();
        let output = tools::capture(program, &arguments)?;
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(path)?)?;
        let results = json["results"].as_array().context("results")?;
        anyhow::ensure!(results.len() == 2, "two commands");
        Ok(results[0].as_object().context("a result")?.keys().cloned().collect())
    };
    let ours = fields(&ascertain, &["compare", "--no-evidence", "-r", "10", "true", "sleep 0.001"], "ours.json")?;
    let theirs =
        fields(Path::new("hyperfine"), &["-N", "--style", "none", "-r", "10", "true", "sleep 0.001"], "theirs.json")?;
    let missing: Vec<&String> = theirs.iter().filter(|field| !ours.contains(field)).collect();
    anyhow::ensure!(missing.is_empty(), "missing in ours: {missing:?}");
    Ok(Done::Passed)
}
