//! `cargo xtask calibrate`: counts how often a command compared with itself is called faster or slower, on a busy
//! machine.

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::load::{Load, spin};
use crate::tools::{self, Need};
use crate::{bench, hyperfine, statistics};

/// Default number of comparisons per condition. In each comparison, a command is compared with itself, so a verdict is
/// an error. Suppose that a faulty method decides 1 in 20 comparisons, although the permitted error is 0.001. This
/// number of comparisons detects the fault with a probability over 99 %. All conditions together take about 17 minutes
/// on two cores.
const COMPARISONS: u64 = 300;
/// Number of pairs in a comparison under steady load. It is the number of runs that hyperfine makes by default for a
/// command of 20 ms.
const PAIRS: &str = "100";
/// Upper bound of the probability that the calibration fails although the method is correct.
const CHANCE: f64 = 1e-6;
/// Smallest number of pairs after which a comparison can be decided at an error of 0.001.
const SOONEST: u64 = 12;

/// A command that is compared with itself, and the load of the machine during the comparisons.
struct Condition {
    name: &'static str,
    about: &'static str,
    command: fn() -> String,
    load: fn() -> Load,
    /// The permitted error probability of each comparison (`--error`).
    error: f64,
    /// The options that end a comparison if it is still undecided.
    ends: &'static [&'static str],
    /// `true` if hyperfine measures the command too, and Welch's test compares its two samples.
    with_peer: bool,
}

/// The conditions: a longer command under steady load, and a short command under bursts of load. The second condition
/// detects a faulty method that keeps a state for each command between observations.
const CONDITIONS: [Condition; 2] = [
    Condition {
        name: "steady",
        about: "2 ms of work, all cores busy",
        command: || spin(1_000_000),
        load: Load::steady,
        error: 0.05,
        ends: &["--max-trials", PAIRS, "--max-time", "1min"],
        with_peer: true,
    },
    Condition {
        name: "bursts",
        about: "`true`, bursts of load",
        command: || "true".into(),
        load: Load::bursts,
        error: 0.001,
        ends: &["--max-time", "1500ms"],
        with_peer: false,
    },
];

/// Compares a command with itself many times, under each condition that `words` name, or under all conditions.
///
/// # Errors
///
/// Fails if more comparisons are decided than the error allows. A correct method fails with a probability of at most
/// one in a million.
pub fn equals(words: &[String]) -> anyhow::Result<()> {
    let (mut comparisons, mut named) = (COMPARISONS, Vec::new());
    for word in words {
        match (word.parse(), CONDITIONS.iter().find(|condition| condition.name == word)) {
            (Ok(number), _) if number > 0 => comparisons = number,
            (_, Some(condition)) => named.push(condition),
            _ => bail!("invalid argument `{word}`: give a number of comparisons, or a condition (steady, bursts)"),
        }
    }
    let conditions = if named.is_empty() { CONDITIONS.iter().collect() } else { named };
    tools::release_binary()?;
    let counted = conditions.iter().map(|condition| Ok((condition, count(condition, comparisons)?)));
    let counted: Vec<_> = counted.collect::<anyhow::Result<_>>()?;
    let mut failed = Vec::new();
    for (Condition { name, about, error, .. }, decided) in counted {
        let most = statistics::most(comparisons, *error, CHANCE);
        let share = 100.0 * decided as f64 / comparisons as f64;
        println!(
            "{name} ({about}): {decided} of {comparisons} decided ({share:.1} %) at --error {error}; \
             chance explains up to {most}"
        );
        failed.extend(
            (decided > most).then(|| format!("{name}: {decided} of {comparisons}, where chance explains {most}")),
        );
    }
    ensure!(failed.is_empty(), "more comparisons were decided than the error allows: {}", failed.join("; "));
    Ok(())
}

/// Runs the comparisons under one condition, and returns the number of decided ones.
fn count(condition: &Condition, comparisons: u64) -> anyhow::Result<u64> {
    let command = (condition.command)();
    let peer = condition.with_peer.then(|| Need::HYPERFINE.meet());
    let _load = (condition.load)();
    let (mut decided, mut pairs, mut significant) = (0, 0, 0);
    for index in 1..=comparisons {
        let error = condition.error.to_string();
        let json = bench::compare(&[&["--error", &error], condition.ends, &[&command, &command]].concat())?;
        let claim = &json["claims"][0];
        let decision = claim["decision"].as_str().context("ascertain's JSON has no decision")?;
        decided += u64::from(decision != "undecided");
        pairs += claim["trials"].as_u64().unwrap_or(0);
        if let Some(Ok(())) = peer {
            significant += u64::from(hyperfine_differs(&command, condition.error)?);
        }
        if index % 20 == 0 || index == comparisons {
            let peer = match &peer {
                None => String::new(),
                Some(Ok(())) => format!("; Welch's test of hyperfine's samples decided {significant}"),
                Some(Err(reason)) => format!("; hyperfine was skipped: {reason}"),
            };
            let (name, mean) = (condition.name, pairs / index);
            println!("  {name}: {index} comparisons of {mean} pairs at the mean, {decided} decided{peer}");
            if mean < 2 * SOONEST {
                println!("  {name}: too few pairs for a meaningful result; stop other programs on this machine");
            }
        }
    }
    Ok(decided)
}

/// Measures a command twice with hyperfine, and returns whether Welch's test finds a difference at level `alpha`.
fn hyperfine_differs(command: &str, alpha: f64) -> anyhow::Result<bool> {
    let results = hyperfine::results(&["--runs", PAIRS, command, command])?;
    let times = |index: usize| -> Vec<f64> {
        results[index]["times"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    Ok(statistics::p_value(&times(0), &times(1)) < alpha)
}
