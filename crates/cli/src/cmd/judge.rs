//! `ascertain judge`: the stateless test, for scripts that count for themselves.

use ascertain::judge::{Judge, Method, judge};
use ascertain::{Ending, GatedVerdict};
use ascertain_engine::outcome::Verdict;
use ascertain_report::{csv, json, markdown, terminal};
use ascertain_stats::Tally;

use crate::exit::FAIL_ON;
use crate::options::{Display, Word, one_of, share};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  ascertain judge 3972/4000 --at-least 98%
      Judge a count of 3,972 successes in 4,000 trials";

/// Judge a count of successes that exists: `ascertain judge 3972/4000 --at-least 98%`
///
/// Call it as often as you like while a count grows: a verdict is wrong with at most the stated error,
/// however often one looks. Exit code 0: holds; 1: refuted; 3: undecided, go on counting.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
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
    #[arg(long, value_parser = one_of(METHODS), default_value = "mixture")]
    method: Method,
    /// Verdicts that fail: refuted (exit code 1), undecided (3), nothing
    #[arg(long, value_parser = one_of(FAIL_ON), value_delimiter = ',', default_value = "refuted,undecided")]
    fail_on: Vec<Option<GatedVerdict>>,
    #[command(flatten)]
    display: Display,
}

const METHODS: &[Word<Method>] = &[
    (&["mixture"], "Mixture of beta-binomial e-processes: needs the fewest trials", Method::Mixture),
    (
        &["csm"],
        "Robbins' confidence sequence method. It has all of the error; the source's driver gives it half",
        Method::Csm,
    ),
];

fn tally(text: &str) -> Result<Tally, String> {
    let (successes, trials) = text.split_once('/').ok_or("write S/N, such as 3972/4000")?;
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| format!("`{text}` is not a whole number"));
    Tally::new(number(trials)?, number(successes)?).map_err(|error| error.to_string())
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let Args { tally, at_least, error, method, .. } = *args;
    let judgement = judge(&Judge { tally, at_least, error, method })?;
    let formats = [json::judgement, csv::judgement, markdown::judgement];
    output::formatted(&judgement, &args.display, formats, terminal::judgement)?;
    Ok(match judgement.verdict {
        Verdict::Refuted if args.fail_on.contains(&Some(GatedVerdict::Refuted)) => Ending::GateFailed,
        Verdict::Undecided if args.fail_on.contains(&Some(GatedVerdict::Undecided)) => Ending::Undecided,
        _ => Ending::Done,
    })
}
