//! `ascertain judge`: the stateless test, for scripts that count for themselves.

use ascertain_engine::outcome::Verdict;
use ascertain_report::judgement::Judgement;
use ascertain_report::{csv, json, markdown, terminal};
use ascertain_stats::{self as stats, Tally};
use clap::ValueEnum;

use crate::exit::{Code, FailOn};
use crate::options::{Display, share};
use crate::output;

/// Judge a count of successes that exists: `ascertain judge 3972/4000 --at-least 98%`
///
/// Call it as often as you like while a count grows: a verdict is wrong with at most the stated error,
/// however often one looks. Exit code 0: holds; 1: refuted; 3: undecided, go on counting.
#[derive(clap::Args)]
pub struct Args {
    /// Successes and trials, S/N
    #[arg(value_name = "S/N", value_parser = tally)]
    tally: Tally,
    /// The claim: the rate of success is at least this
    #[arg(long, value_name = "RATE", value_parser = share)]
    at_least: f64,
    /// The chance that the verdict is wrong
    #[arg(long, value_name = "E", default_value = "0.001", value_parser = share)]
    error: f64,
    /// The sequential test, whose interval is shown
    #[arg(long, value_enum, default_value_t = Method::Mixture)]
    method: Method,
    /// Verdicts that fail: refuted (exit code 1), undecided (3), nothing
    #[arg(long, value_enum, value_delimiter = ',', default_value = "refuted,undecided")]
    fail_on: Vec<FailOn>,
    #[command(flatten)]
    display: Display,
}

/// The sequential test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Method {
    /// Mixture of beta-binomial e-processes: needs the fewest trials.
    Mixture,
    /// Robbins' confidence sequence method.
    Csm,
}

fn tally(text: &str) -> Result<Tally, String> {
    let (successes, trials) = text.split_once('/').ok_or("write S/N, such as 3972/4000")?;
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| format!("`{text}` is not a whole number"));
    Tally::new(number(trials)?, number(successes)?).map_err(|error| error.to_string())
}

pub fn execute(args: &Args) -> anyhow::Result<Code> {
    let judgement = judge(args)?;
    let formats = [json::judgement, csv::judgement, markdown::judgement];
    output::formatted(&judgement, &args.display, formats, terminal::judgement)?;
    Ok(match judgement.verdict {
        Verdict::Refuted if args.fail_on.contains(&FailOn::Refuted) => Code::GateFailed,
        Verdict::Undecided if args.fail_on.contains(&FailOn::Undecided) => Code::Undecided,
        _ => Code::Done,
    })
}

fn judge(args: &Args) -> anyhow::Result<Judgement> {
    let Args { tally, at_least: rate, error, .. } = *args;
    let (method, verdict, interval) = match args.method {
        Method::Mixture => ("mixture", stats::verdict(tally, rate, error)?, stats::rate_interval(tally, error, error)?),
        Method::Csm => ("csm", stats::csm_verdict(tally, rate, error)?, stats::csm_interval(tally, error)?),
    };
    let credible = stats::credible_interval(tally, error)?;
    Ok(Judgement {
        verdict: match verdict {
            Some(stats::Verdict::Holds) => Verdict::Holds,
            Some(stats::Verdict::Refuted) => Verdict::Refuted,
            None => Verdict::Undecided,
        },
        trials: tally.trials,
        successes: tally.successes,
        method: method.into(),
        rate_claimed: rate,
        error,
        log_level: Some(stats::log_level(tally, rate)),
        log_e_holds: Some(stats::log_e_holds(tally, rate)),
        log_e_refuted: Some(stats::log_e_refuted(tally, rate)),
        rate: (tally.trials > 0).then(|| tally.successes as f64 / tally.trials as f64),
        rate_low: Some(interval.low),
        rate_high: Some(interval.high),
        credible_low: Some(credible.low),
        credible_high: Some(credible.high),
    })
}
