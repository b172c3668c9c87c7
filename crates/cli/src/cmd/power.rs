//! `ascertain power`: what a judge will do, before anything is measured.

use std::path::PathBuf;

use anyhow::bail;
use ascertain_engine::claim::Judging;
use ascertain_report::power::{self, PowerAnalysis, PowerAt, SCHEMA};
use ascertain_stats::{Judge, MarginJudge, expected_growth, power_growth};

use crate::exit::Code;
use crate::options::{Display, positive_share, share};
use crate::progress::Line;
use crate::{exports, output};

/// How many trials it will take: the chance of each verdict, by the true rate, exactly
///
/// Nothing is measured. `ascertain power --at-least 98%` asks of a claim, `--compare` of two commands: how many
/// pairs does it take to see that one is faster, when it wins so many of them?
#[derive(clap::Args)]
#[group(id = "question", required = true, multiple = false, args = ["at_least", "compare"])]
pub struct Args {
    /// The claim: the rate of success is at least this
    #[arg(long, value_name = "RATE", value_parser = share)]
    at_least: Option<f64>,
    /// What `compare` asks: which of two wins more often, half of the error for each answer
    #[arg(long, conflicts_with = "margin")]
    compare: bool,
    /// A true rate (with --compare: the share of the pairs that one wins) to answer for; may be given again
    /// [default: rates around the claim]
    #[arg(long = "true", value_name = "RATE", value_parser = true_rate)]
    true_rates: Vec<f64>,
    /// The chance that the verdict is wrong: of several claims in a run, one's share
    #[arg(long, value_name = "E", default_value = "0.001", value_parser = share)]
    error: f64,
    /// Half of the error for each verdict; otherwise each has all of it, as at any true rate only one is wrong
    #[arg(long, conflicts_with = "margin")]
    two_sided: bool,
    /// Rates this close to the claimed one need not be told apart
    #[arg(long, value_name = "D", value_parser = positive_share)]
    margin: Option<f64>,
    /// Trials after which it stays undecided [default: enough where the claim is wrong by a fifth of the odds]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 53))]
    max_trials: Option<u64>,
    /// Write the plot as an SVG; `-` is standard output, which then has nothing else
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    display: Display,
}

/// A true rate strictly between 0 and 1: `99.5%`.
fn true_rate(text: &str) -> Result<f64, String> {
    share(text).map_err(|error| match ascertain_engine::unit::parse_quantity(text, ascertain_engine::unit::Unit::One) {
        Ok(end) if end == 0.0 || end == 1.0 => {
            format!("`{text}` is certainty, which nothing measured is; give a rate close to it, such as 99.99%")
        }
        _ => error,
    })
}

pub fn execute(args: &Args) -> anyhow::Result<Code> {
    let analysis = analyse(args)?;
    if exports::write_svg(args.svg.as_deref(), || analysis.plot())? {
        output::formatted(&analysis, &args.display, [power::json, power::csv, power::markdown], power::table)?;
    }
    Ok(Code::Done)
}

fn analyse(args: &Args) -> anyhow::Result<PowerAnalysis> {
    // `compare` asks whether it wins at least half of the pairs.
    let (judging, rate) = args.at_least.map_or((Judging::Order, 0.5), |rate| (Judging::Rate, rate));
    let error = if args.two_sided || args.compare { args.error / 2.0 } else { args.error };
    let judge = match args.margin {
        Some(margin) => (*MarginJudge::new(rate, margin, error)?).clone(),
        None => Judge::new(rate, error)?,
    };
    let mut rates = args.true_rates.clone();
    if rates.is_empty() {
        rates = if args.compare { SHARES_OF_PAIRS.into() } else { table_rates(rate) };
    }
    let curve = curve_rates(rate, &rates);
    let max_trials = args.max_trials.unwrap_or_else(|| enough_trials(rate, error));
    let seconds = check_cost(ends(rate, args.margin), error, &[&rates[..], &curve].concat(), max_trials)?;
    if seconds > LONG_S && !args.display.quiet {
        output::note(&format!("note: this takes about {seconds:.0} s; fewer trials (--max-trials) take less"));
    }
    let (line, all, mut done) = (Line::new(args.display.quiet), rates.len() + curve.len(), 0);
    let mut at = |rates: &[f64]| -> anyhow::Result<Vec<PowerAt>> {
        let fate_at = |&true_rate: &f64| {
            line.draw(done as f64 / all as f64, || format!("{done} of {all} true rates"));
            done += 1;
            fate(&judge, true_rate, max_trials)
        };
        rates.iter().map(fate_at).collect()
    };
    Ok(PowerAnalysis {
        schema: SCHEMA.into(),
        judging,
        rate_claimed: rate,
        margin: args.margin,
        error_holds: error,
        error_refuted: error,
        max_trials,
        rates: at(&rates)?,
        curve: at(&curve)?,
    })
}

fn fate(judge: &Judge, true_rate: f64, max_trials: u64) -> anyhow::Result<PowerAt> {
    let mut at = PowerAt {
        true_rate,
        holds: 0.0,
        refuted: 0.0,
        undecided: 1.0,
        expected_trials: 0.0,
        trials_80: None,
        trials_95: None,
    };
    for (trials, power) in (1..=max_trials).zip(power_growth(judge, true_rate)?) {
        (at.holds, at.refuted) = (power.holds, power.refuted);
        (at.undecided, at.expected_trials) = (power.undecided, power.expected_trials);
        for (by, share) in [(&mut at.trials_80, 0.8), (&mut at.trials_95, 0.95)] {
            if power.holds + power.refuted >= share {
                by.get_or_insert(trials);
            }
        }
    }
    Ok(at)
}

/// What a command may win of the pairs; who wins less loses as much.
const SHARES_OF_PAIRS: [f64; 11] = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99];

/// The claimed rate and some around it, by how many times the odds of a failure are the claimed ones.
fn table_rates(rate: f64) -> Vec<f64> {
    const TIMES: [f64; 11] = [10.0, 5.0, 2.0, 1.25, 1.1, 1.0, 1.0 / 1.1, 0.8, 0.5, 0.2, 0.1];
    let around = |&times: &f64| if times == 1.0 { rate } else { rounded(with_odds(rate, times)) };
    TIMES.iter().map(around).filter(is_inside).collect()
}

/// More rates, closer to one another near the claimed one, where the verdict turns; as far as the table's.
fn curve_rates(rate: f64, table: &[f64]) -> Vec<f64> {
    const STEPS: i32 = 24;
    let log_odds = |rate: f64| (rate / (1.0 - rate)).ln();
    let distance = |other: &f64| (log_odds(*other) - log_odds(rate)).abs();
    let farthest = table.iter().map(distance).fold(0.5, f64::max);
    let step = |step: i32| {
        let share = f64::from(step) / f64::from(STEPS);
        with_odds(rate, (-share * share.abs() * farthest).exp())
    };
    (-STEPS..=STEPS).map(|index| if index == 0 { rate } else { step(index) }).filter(is_inside).collect()
}

/// Next to 0 or 1 the rates around a claim are rounded to them.
fn is_inside(rate: &f64) -> bool {
    *rate > 0.0 && *rate < 1.0
}

/// The rate at which a failure's odds are so many times those at this one.
fn with_odds(rate: f64, times: f64) -> f64 {
    rate / (rate + (1.0 - rate) * times)
}

/// The rate in two digits of what is missing to 0 or 1.
fn rounded(rate: f64) -> f64 {
    let missing = rate.min(1.0 - rate);
    let short: f64 = format!("{missing:.1e}").parse().unwrap_or(missing);
    // 1 - 0.0041 is 0.9959 only when its last digits are dropped.
    if rate < 0.5 { short } else { format!("{:.15}", 1.0 - short).parse().unwrap_or(rate) }
}

/// Three times as many trials as it takes, expectedly, where the odds of a failure are four fifths of those
/// claimed, as a round number; a million at most.
fn enough_trials(rate: f64, error: f64) -> u64 {
    let needed = 3.0 * (1.0 / error).ln() / expected_growth(rate, with_odds(rate, 0.8));
    let mut round = (0..6).flat_map(|exponent| [1, 2, 5].map(|digit| digit * 10_u64.pow(exponent)));
    round.find(|&trials| trials as f64 >= needed).unwrap_or(1_000_000)
}

/// Longer than that nobody waits for a plan.
const LONGEST_S: f64 = 60.0;
/// Who waits longer than that is told.
const LONG_S: f64 = 5.0;

/// The rates of which one is rejected in the end: the claimed one, or those that the margin leads to.
fn ends(rate: f64, margin: Option<f64>) -> [f64; 2] {
    let margin = margin.unwrap_or(0.0);
    [rate - margin, rate + margin]
}

/// About how many seconds it takes, by the number of tallies that are followed; refuses what would take too long.
fn check_cost(ends: [f64; 2], error: f64, true_rates: &[f64], max_trials: u64) -> anyhow::Result<f64> {
    let cost_s = |trials: u64| true_rates.iter().map(|&at| cost_s(ends, error, at, trials)).sum::<f64>();
    let (seconds, mut fitting) = (cost_s(max_trials), max_trials);
    if seconds <= LONGEST_S {
        return Ok(seconds);
    }
    while cost_s(fitting) > LONGEST_S {
        fitting /= 2;
    }
    let scale = 10_u64.pow(fitting.ilog10());
    bail!(
        "{max_trials} trials at {} true rates would take about {} min to compute; allow fewer (--max-trials {}), or ask \
         for true rates that are farther from the claim",
        true_rates.len(),
        (seconds / 60.0).ceil(),
        fitting / scale * scale
    )
}

/// About how long a rate takes, in seconds.
fn cost_s(ends: [f64; 2], error: f64, true_rate: f64, max_trials: u64) -> f64 {
    // So much evidence leaves no tally undecided that is worth following.
    const MOST_EVIDENCE: f64 = 300.0;
    // Of a program that is optimised: each trial, and each tally that is undecided after it.
    const TRIAL_S: f64 = 0.7e-6;
    const TALLY_S: f64 = 0.5e-9;
    let growth = ends.map(|end| expected_growth(end, true_rate)).into_iter().fold(0.0, f64::max);
    let trials = (max_trials as f64).min(MOST_EVIDENCE / growth);
    let variance = ends.map(|end| end * (1.0 - end)).into_iter().fold(0.0, f64::max);
    let distance = 2.0 * (2.0 * trials * variance * ((1.0 / error).ln() + 4.0)).sqrt();
    trials * (TRIAL_S + TALLY_S * distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_around_a_claim() {
        let rates = table_rates(0.98);
        assert_eq!(rates, [0.83, 0.907, 0.961, 0.975, 0.978, 0.98, 0.982, 0.984, 0.99, 0.9959, 0.998]);
        for rate in [1e-9, 0.02, 0.5, 0.9, 0.999_999] {
            let (rates, curve) = (table_rates(rate), curve_rates(rate, &table_rates(rate)));
            assert!(rates.is_sorted_by(|a, b| a < b) && rates.contains(&rate), "{rates:?}");
            assert!(curve.is_sorted_by(|a, b| a < b) && curve.contains(&rate), "{curve:?}");
            assert!(curve[0] <= rates[1] && *curve.last().unwrap() >= rates[9]);
        }
        let close = 1.0 - 1e-15;
        assert!(table_rates(close).iter().chain(&curve_rates(close, &[])).all(is_inside), "a double has no room");
    }

    #[test]
    fn enough_is_enough_and_not_too_much() {
        for (rate, error, enough) in [(0.5, 0.001, 5000), (0.98, 0.001, 50_000), (0.999_999, 0.001, 1_000_000)] {
            assert_eq!(enough_trials(rate, error), enough);
            assert!(check_cost(ends(rate, None), error, &table_rates(rate), enough).is_ok());
            let all = [table_rates(rate), curve_rates(rate, &table_rates(rate))].concat();
            let seconds = check_cost(ends(rate, None), error, &all, enough).unwrap();
            assert_eq!(seconds > LONG_S, rate > 0.99, "who waits is told: {seconds}");
        }
        let message = check_cost(ends(0.5, None), 0.001, &table_rates(0.5), u64::MAX).unwrap_err().to_string();
        assert!(message.contains("--max-trials") && message.contains("farther"), "{message}");
        let with_margin = check_cost(ends(0.5, Some(0.01)), 0.001, &table_rates(0.5), u64::MAX);
        assert!(with_margin.is_ok(), "it ends by itself: {with_margin:?}");
    }
}
