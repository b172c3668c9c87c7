//! `ascertain judge`: the stateless test, for scripts that count for themselves.

use anyhow::{Context, bail};
use ascertain_stats as stats;
use clap::ValueEnum;
use serde_json::json;
use stats::{Tally, Verdict};

use crate::exit::{Code, FailOn};
use crate::options::{Display, Format, share};
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
    #[arg(long, value_name = "RATE", value_parser = share, required_unless_present = "at_most", conflicts_with = "at_most")]
    at_least: Option<f64>,
    /// The claim: the rate of success is at most this
    #[arg(long, value_name = "RATE", value_parser = share)]
    at_most: Option<f64>,
    /// The chance that the verdict is wrong
    #[arg(long, value_name = "E", default_value = "0.001", value_parser = share)]
    error: f64,
    /// The sequential test
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
    let (rate, at_least) = match (args.at_least, args.at_most) {
        (Some(rate), _) => (rate, true),
        (None, Some(rate)) => (rate, false),
        (None, None) => bail!("give --at-least or --at-most"),
    };
    let log_level = stats::log_level(args.tally, rate);
    let above = stats::log_e_holds(args.tally, rate);
    let below = stats::log_e_refuted(args.tally, rate);
    let verdict = match args.method {
        Method::Mixture => stats::verdict(args.tally, rate, args.error)?,
        Method::Csm => stats::csm_verdict(args.tally, rate, args.error)?,
    };
    // "At most" is the same test read the other way round.
    let (holds, log_e_holds, log_e_refuted) = match at_least {
        true => (Verdict::Holds, above, below),
        false => (Verdict::Refuted, below, above),
    };
    let (word, code) = match verdict {
        Some(verdict) if verdict == holds => ("holds", Code::Done),
        Some(_) => ("refuted", Code::GateFailed),
        None => ("undecided", Code::Undecided),
    };
    let interval = stats::rate_interval(args.tally, args.error, args.error)?;
    let credible = stats::credible_interval(args.tally, args.error)?;
    let observed = (args.tally.trials > 0).then(|| args.tally.successes as f64 / args.tally.trials as f64);
    let method = args.method.to_possible_value().context("method")?.get_name().to_string();
    let fields = json!({
        "verdict": word, "trials": args.tally.trials, "successes": args.tally.successes, "method": method,
        "log_level": log_level, "log_e_holds": log_e_holds, "log_e_refuted": log_e_refuted,
        "rate": observed, "rate_low": interval.low, "rate_high": interval.high,
        "credible_low": credible.low, "credible_high": credible.high,
    });
    match args.display.format {
        Format::Json => output::print(&format!("{fields}\n"))?,
        Format::Csv => output::print(&ascertain_report::csv::object(&fields))?,
        Format::Markdown => output::print(&ascertain_report::markdown::object(&fields))?,
        Format::Table if args.display.quiet => {}
        Format::Table => {
            let direction = if at_least { "at least" } else { "at most" };
            let observed = observed.map_or("no trials yet".into(), |rate| format!("{:.4} %", rate * 100.0));
            output::print(&format!(
                "{word}: {}/{} = {observed} (interval {:.4} % to {:.4} %); claimed {direction} {} %, wrong with a chance of at most {}\n",
                args.tally.successes,
                args.tally.trials,
                interval.low * 100.0,
                interval.high * 100.0,
                rate * 100.0,
                args.error,
            ))?;
        }
    }
    Ok(match code {
        Code::GateFailed if !args.fail_on.contains(&FailOn::Refuted) => Code::Done,
        Code::Undecided if !args.fail_on.contains(&FailOn::Undecided) => Code::Done,
        code => code,
    })
}
