//! `cargo xtask bench permutation`: measures the speed of a permutation test on two samples of 10,000 values. Compares
//! the time per reshuffle with that of SciPy and of NumPy, each in its fastest configuration.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::tools;

const ROUNDS: u64 = 7;
const SIZE: u64 = 10_000;

/// Measures our program and its peers in alternating rounds, so that the machine's state affects all of them. Then
/// checks that all found the same p-value.
pub fn bench() -> anyhow::Result<()> {
    tools::Need::Python("scipy").meet().map_err(anyhow::Error::msg)?;
    let python = tools::python();
    let build = ["build", "--quiet", "--release", "--package", "ascertain-permute", "--example", "shuffle_throughput"];
    tools::run("cargo", &build)?;
    let ours = tools::in_target("release/examples/shuffle_throughput");
    let script = tools::in_root("xtask/src/permutation.py");
    let mut microseconds: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let (mut our_tally, mut their_tally) = (Tally::default(), Tally::default());
    for round in 0..ROUNDS {
        let words = |shuffles: u64| [SIZE, shuffles, round].map(|number| number.to_string()).to_vec();
        let output: Value = serde_json::from_str(&tools::output_of(&ours, &words(100_000))?)?;
        our_tally.add(&output)?;
        let each = output["elapsed_ns"].as_f64().context("no time")? / shuffles_of(&output)?;
        microseconds.entry("ascertain".into()).or_default().push(each / 1e3);
        let theirs = tools::output_of(&python, &[vec![script.clone()], words(1000)].concat())?;
        let theirs: Value = serde_json::from_str(&theirs)?;
        their_tally.add(&theirs)?;
        for (name, seconds) in theirs["seconds"].as_object().context("no times")? {
            microseconds.entry(name.clone()).or_default().push(seconds.as_f64().context("no number")? * 1e6);
        }
        if round == 0 {
            println!("  {}", theirs["versions"].as_str().unwrap_or_default());
            let difference =
                output["observed"].as_f64().context("no value")? - theirs["observed"].as_f64().unwrap_or(0.0);
            ensure!(difference.abs() < 1e-6, "the samples differ: {output} {theirs}");
        }
    }
    print_speeds(&mut microseconds)?;
    same_answer(our_tally, their_tally)
}

fn shuffles_of(output: &Value) -> anyhow::Result<f64> {
    output["shuffles"].as_f64().context("the output has no number of shuffles")
}

fn print_speeds(microseconds: &mut BTreeMap<String, Vec<f64>>) -> anyhow::Result<()> {
    let mut medians = Vec::new();
    for (name, times) in microseconds {
        times.sort_by(f64::total_cmp);
        let (median, least, most) = (times[times.len() / 2], times[0], times[times.len() - 1]);
        println!("  {name}: {median:.2} µs per reshuffle ({least:.2} to {most:.2}), {:.0} per second", 1e6 / median);
        medians.push((name.clone(), median));
    }
    let ours = medians.iter().find(|(name, _)| name == "ascertain").context("ascertain was not measured")?.1;
    for peer in ["scipy", "numpy"] {
        let best = medians.iter().filter(|(name, _)| name.starts_with(peer)).min_by(|a, b| a.1.total_cmp(&b.1));
        let (name, median) = best.context("no peer was measured")?;
        println!("  ascertain makes {:.0} times as many reshuffles as {name}", median / ours);
    }
    Ok(())
}

/// Number of reshuffles, and number of reshuffles whose statistic exceeded the observed one.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    shuffles: f64,
    exceedances: f64,
}

impl Tally {
    fn add(&mut self, output: &Value) -> anyhow::Result<()> {
        self.shuffles += shuffles_of(output)?;
        self.exceedances += output["exceedances"].as_f64().context("the output has no number of exceedances")?;
        Ok(())
    }
}

fn same_answer(ours: Tally, theirs: Tally) -> anyhow::Result<()> {
    let [p, peer_p] = [ours, theirs].map(|tally| tally.exceedances / tally.shuffles);
    println!("  p-value: {p:.5} of {} reshuffles, peer {peer_p:.5} of {}", ours.shuffles, theirs.shuffles);
    let pooled = (ours.exceedances + theirs.exceedances) / (ours.shuffles + theirs.shuffles);
    let deviation = (pooled * (1.0 - pooled) * (1.0 / ours.shuffles + 1.0 / theirs.shuffles)).sqrt();
    ensure!((p - peer_p).abs() <= 5.0 * deviation, "the p-values differ by more than chance");
    Ok(())
}
