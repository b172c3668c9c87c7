//! How often is a command called faster or slower than itself, on a busy machine?

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::load::{Load, spin};
use crate::tools::{self, Need};
use crate::{bench, hyperfine, statistics};

/// Comparisons in each condition, where nobody says: some 17 minutes in all on two cores. Enough that 1 decided in
/// 20, as it was seen of a version with a fault, is found out with a chance of over 99 % at an error of 0.001.
const COMPARISONS: u64 = 300;
/// Pairs of a comparison under steady load: as many runs as hyperfine's defaults would take of a 20 ms command.
const PAIRS: &str = "100";
/// A count that an honest method would reach with a smaller chance than this fails.
const CHANCE: f64 = 1e-6;
/// With fewer pairs nothing can be decided at an error of 0.001.
const SOONEST: u64 = 12;

/// A command, compared with itself on a machine that is kept busy in some way.
struct Condition {
    name: &'static str,
    about: &'static str,
    command: fn() -> String,
    load: fn() -> Load,
    /// The nominal error of each comparison.
    error: f64,
    /// When a comparison ends that decides nothing.
    ends: &'static [&'static str],
    /// Whether hyperfine's samples are judged too, for the record.
    with_peer: bool,
}

/// The second is where a version failed that kept something of each command between its observations: short
/// commands, and load that comes and goes.
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

/// Compares a command with itself again and again: so often in each condition that is named, or in all.
///
/// # Errors
/// When more are decided than the error allows, but for a chance of one in a million.
pub fn equals(words: &[String]) -> anyhow::Result<()> {
    let (mut comparisons, mut named) = (COMPARISONS, Vec::new());
    for word in words {
        match (word.parse(), CONDITIONS.iter().find(|condition| condition.name == word)) {
            (Ok(number), _) if number > 0 => comparisons = number,
            (_, Some(condition)) => named.push(condition),
            _ => bail!("calibrate {word}: give a number of comparisons, or a condition: steady, bursts"),
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
             up to {most} may be by chance"
        );
        failed.extend((decided > most).then(|| format!("{name}: {decided} of {comparisons} decided, not {most}")));
    }
    ensure!(failed.is_empty(), "more than the error allows: {}", failed.join("; "));
    Ok(())
}

/// How many comparisons are decided.
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
                Some(Ok(())) => format!("; by Welch's test of hyperfine's samples {significant}"),
                Some(Err(reason)) => format!("; hyperfine was skipped: {reason}"),
            };
            let (name, mean) = (condition.name, pairs / index);
            println!("  {name}: {index} comparisons of {mean} pairs at the mean, {decided} decided{peer}");
            if mean < 2 * SOONEST {
                println!("  {name}: so few that this says little; is the machine busy with something else?");
            }
        }
    }
    Ok(decided)
}

/// Whether hyperfine's samples of a command and of the same again differ.
fn hyperfine_differs(command: &str, alpha: f64) -> anyhow::Result<bool> {
    let results = hyperfine::results(&["--runs", PAIRS, command, command])?;
    let times = |index: usize| -> Vec<f64> {
        results[index]["times"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    Ok(statistics::p_value(&times(0), &times(1)) < alpha)
}
