//! Measures whether the program meets the performance goals of GOALS.md. No other program may run during a measurement.

use std::fs;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::load::{Load, spin};
use crate::tools::{self, Need};
use crate::{hyperfine, otava, packages, permutation, rtlola, transfer};

type Bench = (&'static str, &'static str, fn() -> anyhow::Result<()>);

const BENCHES: &[Bench] = &[
    ("power", "pairs until a right decision: simulated and recorded, and of programs 5 % apart", power),
    ("startup", "`ascertain --help` within 5 ms", startup),
    ("start", "time to start `true`, compared with hyperfine -N", start),
    ("loop", "the loop's own time between in-process observations", || example("ascertain-engine", "loop_cost")),
    ("judge", "outcomes judged per second", || example("ascertain-stats", "judge_throughput")),
    ("streams", "observations per second of derived series, also compared with RTLola's interpreter", streams),
    ("series", "observations per second of `series` on a recorded run, and of `slo` from a load generator", series),
    ("evidence", "the cost of a row of evidence", || example("ascertain-engine", "evidence_cost")),
    ("history", "time to list and follow 2,000 runs", || example("ascertain-cli", "history_cost")),
    ("changes", "change points of recorded ratios, compared with Apache Otava", otava::bench),
    ("page", "the report's page: time to write it, until it is seen, and until it is complete", page),
    ("permutation", "reshuffles of two samples of 10,000 values, compared with SciPy", permutation::bench),
    (
        "transfer",
        "`put` and `get` of large, small and mixed files, compared with s5cmd, rclone and awscli (over an hour)",
        || transfer::bench(&options()),
    ),
    ("fsmonitor", "the goals of the file system monitor: memory, start, wake-ups, CPU time, delay", fsmonitor),
    ("size", "the release binary's size", packages::size),
    ("build", "a cold release build, and what each dependency adds; a cold build of a bench", build),
    ("first", "from a clone to the first answer, with nothing downloaded or built before", first),
];

/// Returns the options of a bench: the first argument that begins with `--`, and all later ones.
fn options() -> Vec<String> {
    std::env::args().skip_while(|word| !word.starts_with("--")).collect()
}

/// Runs the benches that `words` name, or all of them. Only the bench `transfer` accepts options after its name.
pub fn run(words: &[String]) -> anyhow::Result<()> {
    let end = words.iter().position(|word| word.starts_with("--")).unwrap_or(words.len());
    let names: Vec<&String> = words[..end].iter().collect();
    ensure!(end == words.len() || names == ["transfer"], "only `cargo xtask bench transfer` accepts options");
    if let Some(unknown) = names.iter().find(|name| BENCHES.iter().all(|(known, ..)| known != **name)) {
        let known: Vec<&str> = BENCHES.iter().map(|(name, ..)| *name).collect();
        bail!("unknown bench `{unknown}`; known are {}", known.join(", "));
    }
    tools::release_binary()?;
    for (name, about, bench) in BENCHES {
        if names.is_empty() || names.iter().any(|wanted| wanted == name) {
            println!("\n{name}: {about}");
            bench()?;
        }
    }
    Ok(())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Measures how many pairs a verdict needs: first with recorded pairs, for which GOALS.md sets goals, and then with two
/// programs. One program has 5 % fewer iterations than the other. For comparison, prints how long hyperfine's default
/// run takes, although hyperfine gives no verdict.
fn power() -> anyhow::Result<()> {
    example("ascertain-stats", "order_power")?;
    let tried = 5_000_000;
    let of_tried = compare(&["-r", "20", &spin(tried)])?;
    let iterations = (tried as f64 * 20e6 / median_wall_ns(&of_tried)?) as u64;
    let (slow, fast) = (spin(iterations), spin(iterations * 100 / 105));
    let peer = Need::HYPERFINE.meet();
    for (name, busy) in [("quiet", false), ("both cores busy", true)] {
        let _load = busy.then(Load::steady);
        let (mut pairs, mut seconds, mut right) = (Vec::new(), Vec::new(), 0);
        for _ in 0..40 {
            let begun = Instant::now();
            let json = compare(&["--error", "0.001", &slow, &fast])?;
            seconds.push(begun.elapsed().as_secs_f64());
            pairs.push(json["claims"][0]["trials"].as_f64().unwrap_or(f64::INFINITY));
            right += usize::from(json["claims"][0]["decision"] == "faster");
        }
        let (pairs, seconds) = (median(&mut pairs), median(&mut seconds));
        println!("  {name}: right in {right} of 40, after {pairs} pairs and {seconds:.2} s at the median");
        match &peer {
            Ok(()) => {
                let begun = Instant::now();
                hyperfine::results(&[&slow, &fast])?;
                let peer_seconds = begun.elapsed().as_secs_f64();
                println!(
                    "  {name}: hyperfine's defaults end after {peer_seconds:.2} s, {:.1} times as long",
                    peer_seconds / seconds
                );
            }
            Err(reason) => println!("  hyperfine was skipped: {reason}"),
        }
    }
    Ok(())
}

/// Runs `ascertain compare` with these arguments, and returns its JSON output.
pub fn compare(arguments: &[&str]) -> anyhow::Result<Value> {
    let output = tools::compare(tools::release_binary()?, &[&["--format", "json"], arguments])?;
    serde_json::from_str(&output).context("ascertain's JSON")
}

/// Returns the median wall time of the first command in ns.
fn median_wall_ns(json: &Value) -> anyhow::Result<f64> {
    let wall = json["points"].as_array().and_then(|points| points.iter().find(|point| point["metric"] == "wall"));
    wall.and_then(|wall| wall["median"].as_f64()).context("ascertain's JSON has no wall time")
}

/// Runs the example that measures the file system monitor, with the hook of the release profile.
fn fsmonitor() -> anyhow::Result<()> {
    let options = ["build", "--quiet", "--release", "--package", "ascertain-fsmonitor", "--bins", "--example", "goals"];
    tools::build("cargo", &options)?;
    tools::run(&tools::in_target("release/examples/goals"), &[tools::in_target("release/ascertain-fsmonitor-hook")])
}

fn startup() -> anyhow::Result<()> {
    let program = tools::release_binary()?;
    let arguments = ["slo", "--at-least", "90%", "--within", "5ms", "--no-evidence", "--"];
    let output = tools::capture(&program, &[&arguments[..], &[&program.to_string_lossy(), "--help"]].concat())?;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    Ok(())
}

/// Compares the run time of `true` according to Ascertain with the run time of `true` according to hyperfine. The tools
/// alternate, so that the machine's state affects both.
fn start() -> anyhow::Result<()> {
    Need::HYPERFINE.meet().map_err(anyhow::Error::msg)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..30 {
        ours.push(median_wall_ns(&compare(&["-w", "5", "-r", "100", "true"])?)? / 1e3);
        let results = hyperfine::results(&["-w", "5", "-r", "100", "true"])?;
        theirs.push(results[0]["median"].as_f64().context("no median")? * 1e6);
    }
    let wins = ours.iter().zip(&theirs).filter(|(ours, theirs)| ours < theirs).count();
    println!(
        "  median of `true`: ascertain {:.1} µs, hyperfine -N {:.1} µs; ascertain was faster in {wins} of 30 rounds",
        median(&mut ours),
        median(&mut theirs)
    );
    Ok(())
}

/// Measures how fast a report is written and opened, for a run with many claims and for a run with a million rows of
/// evidence. The experiment `sum` with few elements produces the rows of evidence, because each of its trials takes
/// little time.
fn page() -> anyhow::Result<()> {
    for need in [Need::Debian("chromium", "chromium"), Need::Npm] {
        need.meet().map_err(anyhow::Error::msg)?;
    }
    let folder = tools::new_folder("bench-page")?;
    let sums = "run sum --variants naive,pairwise --at elements=1000 --trials 84000 --max-time 5min";
    let sums: Vec<&str> = sums.split(' ').collect();
    for (name, arguments, least_rows) in [("claims", vec!["check"], 1), ("rows", sums, 1_000_000)] {
        let (runs, page) = (format!("{folder}/{name}"), format!("{folder}/{name}.html"));
        tools::output_of(tools::release_binary()?, &[&arguments[..], &["-q", "--evidence", &runs]].concat())?;
        let run = fs::read_dir(&runs)?.next().context("the run recorded no evidence")??.path();
        let text = fs::read(run.join("run.json"))?;
        let header: serde_json::Value = serde_json::from_slice(&text)?;
        let points = header["outcome"]["points"].as_array().context("the run has no points")?;
        let rows: u64 = points.iter().filter_map(|point| point["n"].as_u64()).sum();
        ensure!(rows >= least_rows, "{rows} rows are too few: `ascertain {}`", arguments.join(" "));
        let begun = Instant::now();
        tools::output_of(tools::release_binary()?, &["report", &run.to_string_lossy(), "-o", &page])?;
        let (seconds, megabytes) = (begun.elapsed().as_secs_f64(), fs::metadata(&page)?.len() as f64 / 1e6);
        println!("  {rows} rows: a page of {megabytes:.2} MB, read and written in {seconds:.2} s");
        tools::node("web/test/paint.mjs", &page)?;
    }
    Ok(fs::remove_dir_all(&folder)?)
}

fn example(package: &str, name: &str) -> anyhow::Result<()> {
    tools::run("cargo", &["run", "--quiet", "--release", "--package", package, "--example", name])
}

fn streams() -> anyhow::Result<()> {
    example("ascertain-streams", "stream_throughput")?;
    rtlola::bench()
}

/// Measures the commands that read observations: `slo --lines` reads ten million numbers from a load generator, and
/// `series` reads the run in which all of them were recorded. The fastest of three rounds counts.
fn series() -> anyhow::Result<()> {
    const OBSERVATIONS: u64 = 10_000_000;
    let folder = tools::new_folder("bench-series")?;
    let (numbers, sampled, runs) = (format!("{folder}/numbers"), format!("{folder}/sampled"), format!("{folder}/runs"));
    let text: String =
        (0..OBSERVATIONS).map(|index| format!("{:.2}\n", (index * 7919 % 1_000_003) as f64 / 100.0)).collect();
    fs::write(&numbers, text)?;
    let program = tools::release_binary()?;
    let fastest = |rounds: u32, arguments: &[&str]| -> anyhow::Result<()> {
        let mut best_s = f64::INFINITY;
        for _ in 0..rounds {
            let begun = Instant::now();
            tools::output_of(&program, arguments)?;
            best_s = best_s.min(begun.elapsed().as_secs_f64());
        }
        let millions_per_s = OBSERVATIONS as f64 / best_s / 1e6;
        println!("  {millions_per_s:5.1} million observations per second: ascertain {}", arguments.join(" "));
        Ok(())
    };
    let reading = ["slo", "--for", "1h", "--lines", "--unit", "us", "-q", "--evidence"];
    let generator = ["--", "cat", &numbers];
    fastest(3, &[&reading[..], &[&sampled], &generator].concat())?;
    fastest(3, &[&reading[..], &[&sampled, "--series", "ewma(value, .01)"], &generator].concat())?;
    fastest(1, &[&reading[..], &[&runs, "--record-every", "1"], &generator].concat())?;
    for expression in
        ["value", "mean(window(value, 1000))", "quantile(.99, window(value, 1000))", "value - lag(value, 1)"]
    {
        fastest(3, &["series", "latest", expression, "-q", "--evidence", &runs])?;
    }
    Ok(fs::remove_dir_all(&folder)?)
}

fn build() -> anyhow::Result<()> {
    let path = tools::new_folder("cold")?;
    tools::run("cargo", &["fetch", "--quiet"])?;
    let begun = Instant::now();
    tools::run("cargo", &["build", "--quiet", "--release", "--timings", "--target-dir", &path])?;
    println!(
        "  {:.0} s; what each dependency adds: {path}/cargo-timings/cargo-timing.html",
        begun.elapsed().as_secs_f64()
    );
    let manifest = packages::own_package()?;
    for profile in ["dev", "bench"] {
        tools::new_folder("cold")?;
        // The shell's `times` prints the CPU time of its child processes.
        let script = "cargo bench --quiet --manifest-path \"$2\" --no-run --profile \"$0\" \
                      --target-dir \"$1\" && times";
        let busy = tools::output_of("sh", &["-c", script, profile, &path, &manifest])?;
        println!(
            "  cold build of a user's bench, profile {profile}, CPU time in user and in system mode: {}",
            busy.lines().last().unwrap_or_default()
        );
    }
    Ok(())
}

/// Measures how long the first command of the README takes for a user who has only a Rust tool chain: clone, build and
/// run.
fn first() -> anyhow::Result<()> {
    let folder = tools::new_folder("first")?;
    let readme = fs::read_to_string(tools::in_root("README.md"))?;
    let command = readme
        .lines()
        .find(|line| line.starts_with("cargo run"))
        .context("README.md has no line that begins with `cargo run`")?;
    let (command, _) = command.split_once('#').unwrap_or((command, ""));
    let steps = [
        ("clone", "git clone --quiet . \"$0\""),
        ("download", "cd \"$0\" && cargo fetch --quiet"),
        ("build", "cd \"$0\" && cargo build --quiet --release"),
        ("answer", &format!("cd \"$0\" && {command}")),
    ];
    let mut parts = Vec::new();
    let first_begun = Instant::now();
    for (name, script) in steps {
        let begun = Instant::now();
        let output = Command::new("sh")
            .args(["-c", script])
            .arg(format!("{folder}/ascertain"))
            .env("CARGO_HOME", format!("{folder}/cargo"))
            .env_remove("CARGO_TARGET_DIR")
            .current_dir(tools::root())
            .output()?;
        ensure!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        parts.push(format!("{name} {:.1} s", begun.elapsed().as_secs_f64()));
        print!("{}", String::from_utf8_lossy(&output.stdout));
    }
    let all_s = first_begun.elapsed().as_secs_f64();
    println!("  from a clone to the first answer: {all_s:.0} s ({})", parts.join(", "));
    Ok(fs::remove_dir_all(&folder)?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::tools;

    /// Fails if a bench runs an example that does not exist. Otherwise only a run of that bench would fail.
    #[test]
    fn each_example_that_is_run_is_there() {
        let code = include_str!("bench.rs").split("#[cfg(test)]").next().unwrap_or_default();
        let named: Vec<_> =
            code.split("example(\"ascertain-").skip(1).filter_map(|rest| rest.split_once('"')).collect();
        assert!(named.len() >= 5, "{named:?}");
        for (package, rest) in named {
            let example = rest.split('"').nth(1).unwrap_or_default();
            let path = tools::in_root(&format!("crates/{package}/examples/{example}.rs"));
            assert!(Path::new(&path).exists(), "there is no {path}");
        }
    }
}
