//! The subcommand `power`: predicts verdicts and numbers of trials, before anything is measured.

use std::path::PathBuf;

use ascertain::Ending;
use ascertain::power::{Power, Question, power as analyse};
use ascertain_report::progress::Line;

use crate::options::{Display, positive_share, share};
use crate::{exports, output};

const EXAMPLES: &str = "\
Examples:
  ascertain power --at-least 98% --true 99%
      Predict how many trials a claim needs if the true rate is 99 %
  ascertain power --compare --true 75%
      Predict how many pairs `compare` needs if one command wins 75 % of them";

/// Compute how many trials a verdict will need
///
/// Prints the exact chance of each verdict for several true rates. Nothing is measured.
///
/// With --at-least, the verdict is about a claimed rate of success. With --compare, it is about two commands, and the
/// true rate is the share of the pairs that one of them wins.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[group(id = "question", required = true, multiple = false, args = ["at_least", "compare"])]
pub struct Args {
    /// Claim to predict: the rate of success is at least this, such as `98%`
    #[arg(long, value_name = "RATE", value_parser = share)]
    at_least: Option<f64>,
    /// Predict how many pairs `compare` needs to find the faster command; each of its two answers gets half of the
    /// error
    #[arg(long, conflicts_with = "margin")]
    compare: bool,
    /// True rate for which to predict the verdict; repeat the option for more rates [default: rates around the claim]
    #[arg(long = "true", value_name = "RATE", value_parser = true_rate)]
    true_rates: Vec<f64>,
    /// Highest chance that the verdict is wrong; if a run has several claims, give the part of the run's error that one
    /// claim gets
    #[arg(long, value_name = "E", default_value = "0.001", value_parser = share)]
    error: f64,
    /// Give each verdict half of the error (by default each has all of it, because only one can be wrong)
    #[arg(long, conflicts_with = "margin")]
    two_sided: bool,
    /// Tolerance around the claimed rate: inside it, either verdict is acceptable
    #[arg(long, value_name = "D", value_parser = positive_share)]
    margin: Option<f64>,
    /// Maximum number of trials, after which the verdict stays undecided [default: usually enough for a verdict if the
    /// true odds of failure are a fifth lower than claimed]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 53))]
    max_trials: Option<u64>,
    /// File for the plot, as an SVG; with `-`, only the SVG is printed, to standard output
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    display: Display,
}

/// Parses a true rate between 0 and 1, both excluded, such as `99.5%`.
fn true_rate(text: &str) -> Result<f64, String> {
    share(text).map_err(|error| match ascertain_engine::unit::parse_quantity(text, ascertain_engine::unit::Unit::One) {
        Ok(end) if end == 0.0 || end == 1.0 => {
            format!(
                "`{text}` is not strictly between 0 and 1; give a rate above 0 and below 1, such as 0.01% or 99.99%"
            )
        }
        _ => error,
    })
}

/// Duration in seconds above which a note announces how long the computation takes.
const LONG_S: f64 = 5.0;

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let Args { margin, two_sided, error, max_trials, .. } = *args;
    // Clap ensures that exactly one of `--at-least` and `--compare` is given.
    let at_least = |rate| Question::AtLeast { rate, margin, two_sided };
    let question = args.at_least.map_or(Question::Order, at_least);
    let asked = Power { question, true_rates: args.true_rates.clone(), error, max_trials };
    let seconds = asked.seconds()?;
    if seconds > LONG_S && !args.display.quiet {
        output::note(&format!("note: the computation takes about {seconds:.0} s; lower --max-trials to shorten it"));
    }
    let line = Line::new(!args.display.quiet);
    let analysis = analyse(&asked, &mut |done, all| {
        line.draw(done as f64 / all as f64, || format!("{done} of {all} true rates"));
    })?;
    drop(line);
    if exports::write_svg(args.svg.as_deref(), || analysis.plot())? {
        output::report(&analysis, &args.display)?;
    }
    Ok(Ending::Done)
}
