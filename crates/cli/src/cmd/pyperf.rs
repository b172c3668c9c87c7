//! The subcommand `pyperf`: compares files of pyperf, and writes them from recorded runs.

use std::path::PathBuf;

use ascertain::Ending;
use ascertain::pyperf::{Pyperf, pyperf};
use ascertain_engine::evidence;

use crate::options::Display;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  ascertain pyperf a.json b.json
      Compare two files of pyperf: how many times as fast is the second?
  ascertain pyperf latest --export results
      Write the times of the latest run of `runtimes` as files that pyperf reads";

/// Compare files of pyperf, or write them from a run
///
/// The answer has a ratio for each benchmark, and their geometric mean with an interval for these benchmarks and one
/// for benchmarks like these. The intervals are those of process means. The samples are not paired: one file was
/// measured after the other, so everything that changed in between is part of the ratios.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files of pyperf, and runs of `runtimes`; the first file, or the first runtime of the run, is the baseline
    #[arg(value_name = "FILE|RUN", required = true)]
    inputs: Vec<PathBuf>,
    /// Folder in which to write a file for each runtime
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
    #[command(flatten)]
    display: Display,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let Args { inputs, export, display } = args;
    let request = Pyperf { inputs: inputs.clone(), export: export.clone(), runs: evidence::runs_folder() };
    output::report(&pyperf(&request)?, display)?;
    Ok(Ending::Done)
}
