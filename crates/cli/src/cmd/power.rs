//! `ascertain power`: what a judge will do, before anything is measured.

use std::path::PathBuf;

use ascertain::Ending;
use ascertain::power::{Power, Question, power as analyse};
use ascertain_report::power;
use ascertain_report::progress::Line;

use crate::options::{Display, positive_share, share};
use crate::{exports, output};

const EXAMPLES: &str = "\
Examples:
  ascertain power --at-least 98% --true 99%
      Predict how many trials a claim needs if the true rate is 99 %
  ascertain power --compare --true 75%
      Predict how many pairs `compare` needs if one command wins 75 % of them";

/// How many trials it will take: the chance of each verdict, by the true rate, exactly
///
/// Nothing is measured. `ascertain power --at-least 98%` asks of a claim, `--compare` of two commands: how many
/// pairs does it take to see that one is faster, when it wins so many of them?
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
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

/// Who waits longer than that is told.
const LONG_S: f64 = 5.0;

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let Args { margin, two_sided, error, max_trials, .. } = *args;
    // Clap lets one of the two be asked.
    let at_least = |rate| Question::AtLeast { rate, margin, two_sided };
    let question = args.at_least.map_or(Question::Order, at_least);
    let asked = Power { question, true_rates: args.true_rates.clone(), error, max_trials };
    let seconds = asked.seconds()?;
    if seconds > LONG_S && !args.display.quiet {
        output::note(&format!("note: this takes about {seconds:.0} s; fewer trials (--max-trials) take less"));
    }
    let line = Line::new(!args.display.quiet);
    let analysis = analyse(&asked, &mut |done, all| {
        line.draw(done as f64 / all as f64, || format!("{done} of {all} true rates"));
    })?;
    drop(line);
    if exports::write_svg(args.svg.as_deref(), || analysis.plot())? {
        output::formatted(&analysis, &args.display, [power::json, power::csv, power::markdown], power::table)?;
    }
    Ok(Ending::Done)
}
