//! `ascertain calibrate-here`.

use anyhow::bail;
use ascertain::calibrate_here::{self, CalibrateHere};
use ascertain_report::{calibration, sentence, terminal};

use super::commands::command_line;
use crate::exit::Code;
use crate::options::{Common, Format};
use crate::{output, session};

/// How noisy this machine is, and what difference can be seen on it in a minute
///
/// Compares a command with itself, which tells nothing of the command but what two runs of it differ by here. What a
/// minute shows is found by judging minutes that are made up of these pairs and of a difference.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    common: Common,
    /// The command, after `--` [default: true]
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

pub fn execute(args: &Args) -> anyhow::Result<Code> {
    let display = &args.common.display;
    if matches!(display.format, Format::Csv | Format::Markdown) {
        bail!("`calibrate-here` prints sentences or --format json");
    }
    session::carry_out_and(args.request().plan()?, &args.common, |done| {
        let outcome = &done.run.outcome;
        if done.run.target_failed {
            outcome.claims.iter().for_each(|claim| output::note(&sentence::claim(claim)));
        }
        let is_json = display.format == Format::Json;
        if display.quiet && !is_json {
            return Ok(());
        }
        let calibration = calibrate_here::calibration(done)?;
        if is_json {
            return output::print(&calibration::json(&calibration));
        }
        let style = output::style(display);
        output::print(&(calibration::text(&calibration, &style) + &terminal::threats(outcome, &style)))
    })
}

impl Args {
    /// What is asked for.
    fn request(&self) -> CalibrateHere {
        let asked = CalibrateHere { terms: session::terms(&self.common), ..CalibrateHere::default() };
        if self.command.is_empty() { asked } else { CalibrateHere { line: command_line(&self.command), ..asked } }
    }
}
