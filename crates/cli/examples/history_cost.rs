//! Measures how long `ascertain history` takes with 2,000 runs, which are copies of one run of `compare` in a separate
//! folder.
//!
//! `cargo build --release && cargo run --release -p ascertain-cli --example history_cost`

#![allow(clippy::print_stdout)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use ascertain_engine::evidence;
use ascertain_sys::clock;

const RUNS: u64 = 2_000;
const ROUNDS: usize = 5;

fn main() -> anyhow::Result<()> {
    let example = std::env::current_exe()?;
    let program =
        example.parent().and_then(Path::parent).context("could not find the folder of this program")?.join("ascertain");
    ensure!(program.is_file(), "there is no {}: build it first", program.display());
    let folder = tempfile::tempdir()?;
    let ascertain = |arguments: &[&str]| -> anyhow::Result<()> {
        let mut command = Command::new(&program);
        command.args(arguments).arg("--evidence").arg(folder.path()).stdout(Stdio::null());
        ensure!(command.status()?.success(), "{arguments:?} failed");
        Ok(())
    };
    ascertain(&["compare", "-q", "-r", "20", "true", "sleep 0"])?;
    let measured = fs::read_dir(folder.path())?.next().context("the run left no folder")??.path();
    let now_ns = clock::unix_ns();
    for index in 1..RUNS {
        let copy = folder.path().join(evidence::new_run_id(now_ns + index * 1_000_000_000, index));
        fs::create_dir(&copy)?;
        for file in fs::read_dir(&measured)? {
            let file = file?;
            fs::copy(file.path(), copy.join(file.file_name()))?;
        }
    }
    let all = RUNS.to_string();
    let cases: [&[&str]; 5] = [
        &["history"],
        &["history", "-n", &all],
        &["history", "trend", "compare"],
        &["history", "trend", "compare", "-n", &all],
        &["history", "changes", "compare", "--ratio", "true/sleep 0"],
    ];
    for arguments in cases {
        let mut times_ms = Vec::new();
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            ascertain(arguments)?;
            times_ms.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        times_ms.sort_by(f64::total_cmp);
        println!("{} of {RUNS} runs: {:.0} ms", arguments.join(" "), times_ms[ROUNDS / 2]);
    }
    Ok(())
}
