//! Apache Otava: a part of the tests lets it read our CSV. `cargo xtask bench changes` compares its change points with
//! ours.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use crate::part::{Input, Part};
use crate::tools::{self, Need};

const OTAVA: Need = Need::PythonProgram("otava", "apache-otava==0.8.0");

pub const PARTS: &[Part] = &[Part::slow(
    "ratios of runs read by Apache Otava",
    &[OTAVA, Need::Python("numpy")],
    &[Input::Package("ascertain-cli"), Input::Path("xtask/src/otava.rs"), Input::Path("docs/history.md")],
    read,
)];

/// Returns the folder of Otava's modules, for `PYTHONPATH`.
fn modules() -> anyhow::Result<String> {
    let program = OTAVA.program();
    let folder = program.parent().and_then(std::path::Path::parent).context("Otava has no folder")?;
    Ok(folder.to_string_lossy().into_owned())
}

/// Exports the ratios of some runs, and lets Otava analyse them with the configuration in the book.
fn read() -> anyhow::Result<()> {
    const RUNS: usize = 8;
    let (program, folder) = (tools::test_binary()?, tools::new_folder("xtask-otava")?);
    let runs = format!("{folder}/runs");
    for _ in 0..RUNS {
        tools::output_of(&program, &["compare", "-q", "-r", "3", "--evidence", &runs, "true", "sleep 0.001"])?;
    }
    let changes = ["history", "changes", "compare", "--ratio", "sleep 0.001/true", "--evidence", &runs];
    let csv = tools::output_of(&program, &[&changes[..], &["--export", "otava"]].concat())?;
    fs::write(format!("{folder}/runs.csv"), &csv)?;
    let page = fs::read_to_string(tools::in_root("docs/history.md"))?;
    let (_, rest) = page.split_once("```yaml\n").context("the book has no configuration for Otava")?;
    let (configuration, _) = rest.split_once("```").context("the configuration has no end")?;
    let configuration = configuration.replace("runs.csv", &format!("{folder}/runs.csv"));
    let path = format!("{folder}/otava.yaml");
    fs::write(&path, configuration)?;
    let python = tools::python();
    let otava =
        [&*format!("PYTHONPATH={}", modules()?), &*python.to_string_lossy(), "-m", "otava.main"].map(String::from);
    let analyse = ["analyze", "ratio", "--config-file", &path].map(String::from);
    let text = tools::output_of("env", &[otava, analyse].concat())?;
    println!("{text}");
    // A row for each run, with the ratio that we wrote.
    for row in csv.lines().skip(1) {
        let run = row.split(',').nth(1).context("a row has no run")?;
        ensure!(text.contains(run), "Otava did not read run {run}");
    }
    ensure!(csv.lines().count() == RUNS + 1, "{csv}");
    Ok(fs::remove_dir_all(folder)?)
}

/// Number of values before the step, and after it.
const BEFORE: usize = 30;
const AFTER: usize = 20;

/// Runs a program with one series per line on its standard input. Returns the changes of each series: the index of the
/// first value at the new level, and the index of the value after which the change was reported.
fn changes(command: &mut Command, series: &[Vec<f64>]) -> anyhow::Result<Vec<Vec<(usize, usize)>>> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let line = |values: &Vec<f64>| values.iter().map(f64::to_string).collect::<Vec<_>>().join(" ") + "\n";
    let input = series.iter().map(line).collect::<String>();
    let mut stdin = child.stdin.take().context("the program has no standard input")?;
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))??;
    ensure!(output.status.success(), "the program ended with {}", output.status);
    let change = |word: &str| {
        let (first, found) = word.split_once(':').context("a change has no colon")?;
        Ok((first.parse()?, found.parse()?))
    };
    let text = String::from_utf8(output.stdout)?;
    text.lines().map(|line| line.split_whitespace().map(change).collect()).collect()
}

/// Compares false alarms and delays. The series are recorded ratios of a command to itself. In half of them, a step of
/// five standard deviations is added, which is 5 % at a noise of 1 %.
pub fn bench() -> anyhow::Result<()> {
    for need in [Need::Python("numpy"), OTAVA] {
        need.meet().map_err(anyhow::Error::msg)?;
    }
    let data = fs::read_to_string(tools::in_root("crates/stats/tests/data/same-command.csv"))?;
    let ratio = |row: &str| Ok(row.split(',').next().unwrap_or_default().parse::<f64>()?);
    let ratios = data.lines().skip(1).map(ratio).collect::<anyhow::Result<Vec<f64>>>()?;
    let equal: Vec<Vec<f64>> = ratios.chunks_exact(200).map(<[f64]>::to_vec).collect();
    let with_step: Vec<Vec<f64>> = ratios.chunks_exact(BEFORE + AFTER).map(with_step).collect();
    tools::run(
        "cargo",
        &["build", "--quiet", "--release", "--package", "ascertain-stats", "--example", "change_points"],
    )?;
    let otava = |looks: &str| {
        let mut otava = Command::new(tools::python());
        otava.args([&*tools::in_root("xtask/src/otava_changes.py"), looks]);
        otava.env("PYTHONPATH", modules()?);
        Ok::<Command, anyhow::Error>(otava)
    };
    let ours = Command::new(tools::in_target("release/examples/change_points"));
    for (name, mut command) in
        [("ascertain", ours), ("otava, after each value", otava("each")?), ("otava, once at the end", otava("once")?)]
    {
        let alarms: usize = changes(&mut command, &equal)?.iter().map(Vec::len).sum();
        let of_steps = changes(&mut command, &with_step)?;
        let delay = |changes: &Vec<(usize, usize)>| {
            let is_step = |(first, found): &&(usize, usize)| first.abs_diff(BEFORE) <= 5 && *found >= BEFORE;
            changes.iter().find(is_step).map(|(_, found)| found + 1 - BEFORE)
        };
        let delays: Vec<usize> = of_steps.iter().filter_map(delay).collect();
        println!(
            "  {name}: {alarms} false alarms in {} values; found {} of {} steps, {} within ten values; {} other alarms",
            equal.concat().len(),
            delays.len(),
            of_steps.len(),
            delays.iter().filter(|delay| **delay <= 10).count(),
            of_steps.iter().map(Vec::len).sum::<usize>() - delays.len()
        );
    }
    Ok(())
}

/// Adds a step of five standard deviations, estimated from the median deviation, so that outliers do not count.
fn with_step(values: &[f64]) -> Vec<f64> {
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let middle = median(values.to_vec());
    let deviation = 1.4826 * median(values.iter().map(|value| (value - middle).abs()).collect());
    let step = |index: usize| if index < BEFORE { 0.0 } else { 5.0 * deviation };
    values.iter().enumerate().map(|(index, value)| value + step(index)).collect()
}
