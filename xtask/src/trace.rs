//! The recorded pairs of times of a busy machine that `bench power` replays.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::calibrate::spin;
use crate::load::Load;
use crate::tools;

const PAIRS: &str = "2000";

/// Records pairs of a program of some 2 ms with itself under each kind of load.
pub fn record() -> anyhow::Result<()> {
    let ascertain = tools::release_binary()?;
    record_under(&ascertain, "steady load", Load::steady, "steady-load.txt")?;
    record_under(&ascertain, "bursts of load", Load::bursts, "bursts-of-load.txt")
}

fn record_under(ascertain: &Path, about: &str, load: fn() -> Load, file: &str) -> anyhow::Result<()> {
    let folder = tools::target().join("xtask-trace");
    let _ = std::fs::remove_dir_all(&folder);
    let (path, command) = (folder.to_string_lossy().into_owned(), spin(1_000_000));
    let arguments = ["compare", "-w", "10", "-r", PAIRS, "--evidence", &path, "-n", "a", "-n", "b", &command, &command];
    let load = load();
    let output = tools::capture(ascertain, &arguments)?;
    drop(load);
    ensure!(output.status.success(), "ascertain: {}", String::from_utf8_lossy(&output.stderr));
    let run = std::fs::read_dir(&folder)?.next().context("no run was recorded")??;
    let rows = std::fs::read_to_string(run.path().join("trials.jsonl"))?;
    let mut text =
        format!("# {}\n# wall time in ns of `spin 1000000` and of the same again: a pair a line\n", origin(about)?);
    for [one, other] in pairs(&rows)? {
        writeln!(text, "{one} {other}")?;
    }
    let path = tools::root().join("crates/stats/tests/data").join(file);
    std::fs::write(&path, text)?;
    println!("{} is written anew", path.display());
    Ok(())
}

/// On which machine, when, and how it was recorded.
fn origin(about: &str) -> anyhow::Result<String> {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").context("/proc/cpuinfo")?;
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).context("no model")?.1;
    let cores = std::thread::available_parallelism()?;
    let date = tools::capture("date", &["-u", "+%Y-%m-%d"])?.stdout;
    let date = String::from_utf8(date)?;
    Ok(format!("{model}, {cores} CPUs, kept busy by {about}; {}; cargo xtask trace", date.trim()))
}

/// The wall times of each trial in the order of the commands, whatever the order in which they were measured.
fn pairs(rows: &str) -> anyhow::Result<Vec<[u64; 2]>> {
    let mut trials: BTreeMap<u64, [Option<u64>; 2]> = BTreeMap::new();
    for line in rows.lines() {
        let row: Value = serde_json::from_str(line)?;
        if row["metric"] != "wall" {
            continue;
        }
        let trial = row["trial"].as_u64().context("no trial")?;
        let wall_ns = row["value"].as_f64().context("no wall time")? as u64;
        trials.entry(trial).or_default()[usize::from(row["variant"] == "b")] = Some(wall_ns);
    }
    let whole = trials.into_values().filter_map(|[one, other]| Some([one?, other?]));
    Ok(whole.collect())
}
