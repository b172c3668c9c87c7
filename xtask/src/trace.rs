//! `cargo xtask trace`: records pairs of run times on a busy machine, which `cargo xtask bench power` replays.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::load::{Load, spin};
use crate::tools;

const PAIRS: &str = "2000";

/// Records 2,000 pairs of times of a program that takes about 2 ms, under each kind of load.
pub fn record() -> anyhow::Result<()> {
    record_under("steady load", Load::steady, "steady-load.txt")?;
    record_under("bursts of load", Load::bursts, "bursts-of-load.txt")
}

fn record_under(about: &str, load: fn() -> Load, file: &str) -> anyhow::Result<()> {
    tools::release_binary()?;
    let (folder, command) = (tools::new_folder("xtask-trace")?, spin(1_000_000));
    let times = format!("{folder}/times.json");
    let options = ["-w", "10", "-r", PAIRS, "--export-json-1", &times, "-n", "a", "-n", "b"];
    let load = load();
    tools::compare(tools::release_binary()?, &[&options, &[&command, &command]])?;
    drop(load);
    let times: Value = serde_json::from_slice(&fs::read(&times)?)?;
    let mut text =
        format!("# {}\n# wall times in ns of two runs of `spin 1000000`: one pair per line\n", origin(about)?);
    for [one, other] in pairs(&times)? {
        writeln!(text, "{one} {other}")?;
    }
    let path = tools::in_root(&format!("crates/stats/tests/data/{file}"));
    fs::write(&path, text)?;
    println!("wrote {path}");
    Ok(())
}

/// Returns a text about the recording: the machine, its load, the date and the command.
fn origin(about: &str) -> anyhow::Result<String> {
    let cpus = fs::read_to_string("/proc/cpuinfo").context("/proc/cpuinfo")?;
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).context("no model")?.1;
    let cores = std::thread::available_parallelism()?;
    let date = tools::output_of("date", &["-u", "+%Y-%m-%d"])?;
    Ok(format!("{model}, {cores} CPUs, kept busy by {about}; {}; cargo xtask trace", date.trim()))
}

/// Returns the two wall times of each pair, in ns. The time of the first command comes first, even if the second
/// command was measured first.
fn pairs(exported: &Value) -> anyhow::Result<Vec<[u64; 2]>> {
    let of_command = |index: usize| -> anyhow::Result<Vec<u64>> {
        let times = exported["results"][index]["times"].as_array().context("no times")?;
        let wall_ns = |time: &Value| Some((time.as_f64()? * 1e9).round() as u64);
        times.iter().map(|time| wall_ns(time).context("no wall time")).collect()
    };
    let (one, other) = (of_command(0)?, of_command(1)?);
    ensure!(
        one.len() == other.len(),
        "the two commands have different numbers of times: {} and {}",
        one.len(),
        other.len()
    );
    Ok(one.into_iter().zip(other).map(|(one, other)| [one, other]).collect())
}
