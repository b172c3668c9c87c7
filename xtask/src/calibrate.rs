//! How often is a command called faster or slower than itself, on a busy machine?

use anyhow::Context;
use serde_json::Value;

use crate::load::Load;
use crate::{tools, welch};

/// The nominal error of each comparison.
const ERROR: f64 = 0.05;
/// Pairs of each comparison: as many runs as hyperfine's defaults would take of a 20 ms command.
const PAIRS: usize = 100;

/// Compares a command with itself again and again, and hyperfine's samples of it by Welch's test.
pub fn equals(words: &[String]) -> anyhow::Result<()> {
    let comparisons: usize = words.first().map_or(Ok(300), |n| n.parse()).context("the number of comparisons")?;
    let ascertain = tools::release_binary()?;
    let spin = spin(1_000_000);
    let peer = tools::debian("hyperfine", "hyperfine");
    let _load = Load::start();
    let (mut decided, mut significant) = (0, 0);
    for index in 1..=comparisons {
        decided += usize::from(decision(&ascertain, &spin)? != "undecided");
        if peer.is_ok() {
            significant += usize::from(hyperfine_differs(&spin)?);
        }
        if index % 10 == 0 || index == comparisons {
            let share = |count: usize| 100.0 * count as f64 / index as f64;
            println!(
                "{index} comparisons of a command with itself: ascertain --error {ERROR} decides {decided} ({:.1} %); hyperfine's samples with Welch's test at {ERROR}: {significant} ({:.1} %)",
                share(decided),
                share(significant)
            );
        }
    }
    if let Err(reason) = peer {
        println!("hyperfine left out: {reason}");
    }
    // At a true 5 % this many would be exceeded once in 1,000 calibrations.
    let most = (ERROR + 3.1 * (ERROR * (1.0 - ERROR) / comparisons as f64).sqrt()) * comparisons as f64;
    anyhow::ensure!(decided as f64 <= most, "{decided} of {comparisons} decided: more than {ERROR} allows");
    Ok(())
}

/// The command that is compared: loops for a fixed number of iterations.
pub fn spin(iterations: u64) -> String {
    let program = tools::target().join("release/examples/spin");
    format!("{} {iterations}", program.display())
}

fn decision(ascertain: &std::path::Path, command: &str) -> anyhow::Result<String> {
    let (error, pairs) = (ERROR.to_string(), PAIRS.to_string());
    let arguments = [
        "compare",
        "--error",
        &error,
        "--max-trials",
        &pairs,
        "--max-time",
        "1min",
        "--no-evidence",
        "--format",
        "json",
        command,
        command,
    ];
    let output = tools::capture(ascertain, &arguments)?;
    let json: Value = serde_json::from_slice(&output.stdout).context("ascertain's JSON")?;
    Ok(json["claims"][0]["decision"].as_str().unwrap_or("undecided").to_string())
}

fn hyperfine_differs(command: &str) -> anyhow::Result<bool> {
    let file = tools::target().join("hyperfine.json");
    let (path, runs) = (file.to_string_lossy().into_owned(), PAIRS.to_string());
    tools::capture("hyperfine", &["-N", "--style", "none", "--runs", &runs, "--export-json", &path, command, command])?;
    let json: Value = serde_json::from_slice(&std::fs::read(file)?).context("hyperfine's JSON")?;
    let times = |index: usize| -> Vec<f64> {
        let times = json["results"][index]["times"].as_array().cloned().unwrap_or_default();
        times.iter().filter_map(Value::as_f64).collect()
    };
    Ok(welch::p_value(&times(0), &times(1)) < ERROR)
}
