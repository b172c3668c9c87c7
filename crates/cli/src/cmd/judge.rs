//! The subcommand `judge`: a stateless test, for scripts that count successes themselves.

use ascertain::judge::{Judge, Method, judge};
use ascertain::{Ending, GatedVerdict};
use ascertain_engine::outcome::Verdict;
use ascertain_stats::Tally;

use crate::exit::FAIL_ON;
use crate::options::{Display, Word, one_of, share};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  ascertain judge 3972/4000 --at-least 98%
      Judge a count of 3,972 successes in 4,000 trials";

/// Judge a count of successes, such as 3972/4000
///
/// You can repeat the command while the count grows: the chance that any of its verdicts is wrong stays at most
/// --error. Exit codes: 0 if the claim holds, 1 if it is refuted, 3 if it is undecided and needs more trials.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Number of successes and number of trials
    #[arg(value_name = "S/N", value_parser = tally)]
    tally: Tally,
    /// Claim to judge: the rate of success is at least this, such as `98%`
    #[arg(long, value_name = "RATE", value_parser = share)]
    at_least: f64,
    /// Highest chance that the verdict is wrong
    #[arg(long, value_name = "E", default_value = "0.001", value_parser = share)]
    error: f64,
    /// Sequential test that gives the verdict and the printed interval
    #[arg(long, value_parser = one_of(METHODS), default_value = "mixture")]
    method: Method,
    /// Verdicts that make the command fail, separated by commas
    #[arg(long, value_parser = one_of(FAIL_ON), value_delimiter = ',', default_value = "refuted,undecided")]
    fail_on: Vec<Option<GatedVerdict>>,
    #[command(flatten)]
    display: Display,
}

const METHODS: &[Word<Method>] = &[
    (&["mixture"], "Mixture of beta-binomial e-processes: needs the fewest trials", Method::Mixture),
    (
        &["csm"],
        "Robbins' confidence sequence method. The verdict may use the whole error; the program of the method's authors \
         uses only half of it",
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
    output::report(&judgement, &args.display)?;
    Ok(match judgement.verdict {
        Verdict::Refuted if args.fail_on.contains(&Some(GatedVerdict::Refuted)) => Ending::GateFailed,
        Verdict::Undecided if args.fail_on.contains(&Some(GatedVerdict::Undecided)) => Ending::Undecided,
        _ => Ending::Done,
    })
}
