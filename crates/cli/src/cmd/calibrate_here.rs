//! `ascertain calibrate-here`.

use anyhow::bail;
use ascertain::Done;
use ascertain::Ending;
pub use ascertain::calibrate_here::USE_CASE;
use ascertain::calibrate_here::{self, CalibrateHere};
use ascertain_report::{calibration, sentence, terminal};

use super::commands::command_line;
use super::compare;
use crate::options::{Common, Display, Format, with_default};
use crate::{output, session};

const EXAMPLES: &str = "\
Examples:
  ascertain calibrate-here
      Measure the noise of starting a process
  ascertain calibrate-here --max-time 1min -- gzip -kc big.txt
      Measure the noise of a command of your own";

/// How noisy this machine is, and what difference can be seen on it in a minute
///
/// Compares a command with itself, which tells nothing of the command but what two runs of it differ by here. What a
/// minute shows is found by judging minutes that are made up of these pairs and of a difference.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("max_time", |arg| with_default(arg, "10 s")))]
pub struct Args {
    #[command(flatten)]
    common: Common,
    /// The command, after `--` [default: true]
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let display = &args.common.display;
    if matches!(display.format, Format::Csv | Format::Markdown) {
        bail!("`calibrate-here` prints sentences or --format json");
    }
    session::carry_out(args.request().plan()?, &args.common)
}

/// What it says of this machine; in CSV and Markdown, which a run that goes on may be asked for, what the comparison
/// says.
pub fn print(done: &Done, display: &Display) -> anyhow::Result<()> {
    let outcome = &done.run.outcome;
    if done.run.target_failed {
        outcome.claims.iter().for_each(|claim| output::note(&sentence::claim(claim)));
    }
    match display.format {
        Format::Csv | Format::Markdown => compare::print(done, display),
        Format::Json => output::print(&calibration::json(&calibrate_here::calibration(done)?)),
        Format::Table if display.quiet => Ok(()),
        Format::Table => {
            let style = output::style(display);
            let said = calibration::text(&calibrate_here::calibration(done)?, &style);
            output::say(&(said + &terminal::threats(outcome, &style)))
        }
    }
}

impl Args {
    /// What is asked for.
    fn request(&self) -> CalibrateHere {
        let asked = CalibrateHere { terms: session::terms(&self.common), ..CalibrateHere::default() };
        if self.command.is_empty() { asked } else { CalibrateHere { line: command_line(&self.command), ..asked } }
    }
}
