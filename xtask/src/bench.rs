//! The goals of the core, measured here and now. Nothing else may run meanwhile.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::calibrate::spin;
use crate::load::Load;
use crate::tools;

type Bench = (&'static str, &'static str, fn(&Path) -> anyhow::Result<()>);

const BENCHES: &[Bench] = &[
    ("power", "pairs until a right decision: simulated and recorded, and of programs 5 % apart", power),
    ("startup", "`ascertain --help` within 5 ms", startup),
    ("start", "starting `true`, beside hyperfine -N", start),
    ("loop", "the loop's own time between in-process observations", |_| example("ascertain-engine", "loop_cost")),
    ("judge", "outcomes judged a second", |_| example("ascertain-stats", "judge_throughput")),
    ("evidence", "the cost of a row of evidence", |_| example("ascertain-engine", "evidence_cost")),
    ("history", "listing and following 2,000 runs", |_| example("ascertain-cli", "history_cost")),
    ("permutation", "reshuffles of two samples of 10,000, beside SciPy", |_| crate::permutation::bench()),
    ("size", "the release binary's size", size),
    ("build", "a cold release build, and what each dependency adds; a cold build of a bench", build),
    ("first", "from a clone to the first answer, with nothing downloaded or built before", first),
];

/// Runs the named benches, or all.
pub fn run(names: &[String]) -> anyhow::Result<()> {
    if let Some(unknown) = names.iter().find(|name| BENCHES.iter().all(|(known, ..)| known != name)) {
        let known: Vec<&str> = BENCHES.iter().map(|(name, ..)| *name).collect();
        bail!("there is no bench `{unknown}`; there are {}", known.join(", "));
    }
    let ascertain = tools::release_binary()?;
    for (name, about, bench) in BENCHES {
        if names.is_empty() || names.iter().any(|wanted| wanted == name) {
            println!("\n{name}: {about}");
            bench(&ascertain)?;
        }
    }
    Ok(())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// First where no machine is needed, with goals; then two programs, the second with 5 % fewer iterations, each comparison
/// its own run, beside hyperfine's time without a decision.
fn power(ascertain: &Path) -> anyhow::Result<()> {
    example("ascertain-stats", "order_power")?;
    let iterations = iterations_of_20_ms(ascertain)?;
    let (slow, fast) = (spin(iterations), spin(iterations * 100 / 105));
    let peer = tools::Need::HYPERFINE.meet();
    for (name, busy) in [("quiet", false), ("both cores busy", true)] {
        let _load = busy.then(Load::steady);
        let (mut pairs, mut seconds, mut right) = (Vec::new(), Vec::new(), 0);
        for _ in 0..40 {
            let begun = Instant::now();
            let json = compare(ascertain, &["--error", "0.001", &slow, &fast])?;
            seconds.push(begun.elapsed().as_secs_f64());
            pairs.push(json["claims"][0]["trials"].as_f64().unwrap_or(f64::INFINITY));
            right += usize::from(json["claims"][0]["decision"] == "faster");
        }
        let (pairs, seconds) = (median(&mut pairs), median(&mut seconds));
        println!("  {name}: right in {right} of 40, after {pairs} pairs and {seconds:.2} s at the median");
        match &peer {
            Ok(()) => {
                let begun = Instant::now();
                tools::capture("hyperfine", &["-N", "--style", "none", &slow, &fast])?;
                let peer_seconds = begun.elapsed().as_secs_f64();
                println!(
                    "  {name}: hyperfine's defaults end after {peer_seconds:.2} s, {:.1} times as long",
                    peer_seconds / seconds
                );
            }
            Err(reason) => println!("  hyperfine left out: {reason}"),
        }
    }
    Ok(())
}

fn iterations_of_20_ms(ascertain: &Path) -> anyhow::Result<u64> {
    let tried = 5_000_000;
    let json = compare(ascertain, &["-r", "20", &spin(tried)])?;
    let wall_ns = point(&json, "wall", "median").context("no wall time")?;
    Ok((tried as f64 * 20e6 / wall_ns) as u64)
}

fn compare(ascertain: &Path, arguments: &[&str]) -> anyhow::Result<Value> {
    let all: Vec<&str> = ["compare", "--no-evidence", "--format", "json"].iter().chain(arguments).copied().collect();
    let output = tools::capture(ascertain, &all)?;
    serde_json::from_slice(&output.stdout).with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

fn point(json: &Value, metric: &str, field: &str) -> Option<f64> {
    let points = json["points"].as_array()?;
    points.iter().find(|point| point["metric"] == metric)?[field].as_f64()
}

fn startup(ascertain: &Path) -> anyhow::Result<()> {
    let program = ascertain.to_string_lossy();
    let arguments = ["slo", "--at-least", "90%", "--within", "5ms", "--no-evidence", "--", &program, "--help"];
    let output = tools::capture(ascertain, &arguments)?;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    Ok(())
}

/// In rounds, each tool once a round in turn: both see the same machine.
fn start(ascertain: &Path) -> anyhow::Result<()> {
    tools::Need::HYPERFINE.meet().map_err(anyhow::Error::msg)?;
    let file = tools::target().join("hyperfine.json");
    let path = file.to_string_lossy().into_owned();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..30 {
        let json = compare(ascertain, &["-w", "5", "-r", "100", "true"])?;
        ours.push(point(&json, "wall", "median").context("no wall time")? / 1e3);
        tools::capture(
            "hyperfine",
            &["-N", "--style", "none", "-w", "5", "-r", "100", "--export-json", &path, "true"],
        )?;
        let json: Value = serde_json::from_slice(&std::fs::read(&file)?)?;
        theirs.push(json["results"][0]["median"].as_f64().context("no median")? * 1e6);
    }
    let wins = ours.iter().zip(&theirs).filter(|(ours, theirs)| ours < theirs).count();
    println!(
        "  median of `true`: ascertain {:.1} µs, hyperfine -N {:.1} µs; less in {wins} of 30 rounds",
        median(&mut ours),
        median(&mut theirs)
    );
    Ok(())
}

fn example(package: &str, name: &str) -> anyhow::Result<()> {
    tools::run("cargo", &["run", "--quiet", "--release", "--package", package, "--example", name])
}

fn size(ascertain: &Path) -> anyhow::Result<()> {
    let bytes = std::fs::metadata(ascertain)?.len();
    println!("  {:.2} MB", bytes as f64 / 1e6);
    anyhow::ensure!(bytes < 16_000_000, "the release binary is to stay below 16 MB");
    Ok(())
}

fn build(_: &Path) -> anyhow::Result<()> {
    let folder = tools::target().join("cold");
    let _ = std::fs::remove_dir_all(&folder);
    tools::run("cargo", &["fetch", "--quiet"])?;
    let begun = Instant::now();
    let path = folder.to_string_lossy().into_owned();
    tools::run("cargo", &["build", "--quiet", "--release", "--timings", "--target-dir", &path])?;
    println!(
        "  {:.0} s; what each dependency adds: {path}/cargo-timings/cargo-timing.html",
        begun.elapsed().as_secs_f64()
    );
    let manifest = crate::alone::own_package()?.to_string_lossy().into_owned();
    for profile in ["dev", "bench"] {
        let _ = std::fs::remove_dir_all(&folder);
        // The shell knows how long the processors were busy with what it has waited for.
        let script = "cargo bench --quiet --manifest-path \"$2\" --no-run --profile \"$0\" \
                      --target-dir \"$1\" && times | tail -n 1";
        let output = tools::capture("sh", &["-c", script, profile, &path, &manifest])?;
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let busy = String::from_utf8_lossy(&output.stdout);
        println!("  a bench of one's own, cold, profile {profile}, in user and in system: {}", busy.trim());
    }
    Ok(())
}

/// What somebody does who has a Rust tool chain and nothing else: clones, and types README's first command.
fn first(_: &Path) -> anyhow::Result<()> {
    let folder = tools::target().join("first");
    let _ = std::fs::remove_dir_all(&folder);
    let readme = std::fs::read_to_string(tools::root().join("README.md"))?;
    let command = readme.lines().find(|line| line.starts_with("cargo run")).context("README begins with no command")?;
    let (command, _) = command.split_once('#').unwrap_or((command, ""));
    let steps = [
        ("clone", "git clone --quiet . \"$0\""),
        ("download", "cd \"$0\" && cargo fetch --quiet"),
        ("build", "cd \"$0\" && cargo build --quiet --release"),
        ("answer", &format!("cd \"$0\" && {command}")),
    ];
    let (place, registry) = (folder.join("ascertain"), folder.join("cargo"));
    for (name, script) in steps {
        let begun = Instant::now();
        let output = Command::new("sh")
            .args(["-c", script])
            .arg(&place)
            .env("CARGO_HOME", &registry)
            .env_remove("CARGO_TARGET_DIR")
            .current_dir(tools::root())
            .output()?;
        anyhow::ensure!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        println!("  {name}: {:.1} s", begun.elapsed().as_secs_f64());
        print!("{}", String::from_utf8_lossy(&output.stdout));
    }
    Ok(std::fs::remove_dir_all(&folder)?)
}
