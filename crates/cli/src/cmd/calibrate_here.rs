//! `ascertain calibrate-here`: measures the smallest difference that this machine can show.

use anyhow::bail;
use ascertain::calibrate_here::CalibrateHere;
use ascertain::{Ending, Request};

use super::commands::command_line;
use crate::measure::{Start, measure};
use crate::options::{Common, Format, with_default};

const EXAMPLES: &str = "\
Examples:
  ascertain calibrate-here
      Measure the noise of starting a process
  ascertain calibrate-here --max-time 1min -- gzip -kc big.txt
      Measure the noise of your own command";

/// Measure the smallest difference this machine can show
///
/// Reports how noisy this machine is, and the smallest difference that one minute of measurement can show.
///
/// The command is compared with itself, so every measured difference is noise. Then `calibrate-here` simulates minutes
/// of measurement: it draws from the measured pairs, adds a difference, and finds the smallest difference that is
/// detected.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("max_time", |arg| with_default(arg, "10 s")))]
pub struct Args {
    #[command(flatten)]
    common: Common,
    /// Command to measure, after `--` [default: true]
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let options = args.common.render();
    if matches!(options.format, Format::Csv | Format::Markdown) {
        bail!("`calibrate-here` does not support this format; use --format table or --format json");
    }
    let default = CalibrateHere::default();
    let line = if args.command.is_empty() { default.line } else { command_line(&args.command) };
    let request = Request::CalibrateHere(CalibrateHere { line, config: args.common.config(default.config) });
    measure(Start::New(Box::new(request), &args.common), &options, &args.common.exports)
}
