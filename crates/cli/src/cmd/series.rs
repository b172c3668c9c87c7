//! The subcommand `series`: computes derived series of a recorded run in constant memory.

use std::path::PathBuf;

use ascertain::series::{self, Memory, Series};
use ascertain::{Ending, runs};
use ascertain_engine::evidence;
use ascertain_report::options::Format;
use ascertain_report::series::{SeriesHeader, SeriesMemory, SeriesWriter};
use ascertain_sys::interrupt::{self, Stop};
use ascertain_sys::machine;

use anyhow::Context;

use crate::options::{Display, memory_limit};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  ascertain series latest 'quantile(.99, window(wall, 1000))'
      Compute the 99th percentile of each 1,000 trials
  ascertain series latest 'wall / hold(mean(window(wall, 100)))' --format csv
      Compare each time with the mean of the latest complete 100";

/// Compute a derived series of a run, in memory known beforehand
///
/// Prints the plan of the expression and its memory to the byte, and then the results. An expression that needs memory
/// in proportion to the length of the series is refused; the error prints the whole expression for each way out. The
/// evidence is read in blocks, so the memory does not depend on the length of the run.
///
/// A series is a metric such as `wall`, or an arm and a metric such as `kahan.time`. Put a name with other characters
/// than letters, digits and `_` between double quotation marks: `"sleep 0.010".wall`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Run: its folder, its name, a unique beginning or end of its name, its label, or `latest`
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Expression over the series of the run
    #[arg(value_name = "EXPR", allow_hyphen_values = true)]
    expression: String,
    /// Print the plan and its memory, and compute nothing
    #[arg(long)]
    plan: bool,
    /// Memory limit for the computation [default: the memory of the machine, or of the control group]
    #[arg(long, value_name = "SIZE", value_parser = memory_limit)]
    memory: Option<u64>,
    /// Folder in which to find the run [default: ~/.local/state/ascertain/runs]
    #[arg(long, value_name = "DIR")]
    evidence: Option<PathBuf>,
    #[command(flatten)]
    display: Display,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let Args { run, expression, display, .. } = args;
    let below = args.evidence.clone().unwrap_or_else(evidence::runs_folder);
    let folder = runs::find(Some(run), &below)?;
    let planned = series::plan(&folder, expression)?;
    if !display.quiet {
        planned.cut_off().iter().for_each(|trial| output::note(&format!("note: {trial}")));
    }
    if !args.plan {
        planned.check_memory(args.memory.unwrap_or_else(machine::usable_memory_bytes))?;
    }
    let header = header_of(&planned, expression);
    let is_for_people = matches!(display.format, Format::Table | Format::Markdown);
    if !is_for_people && !display.quiet {
        output::note(&header.plan);
        header.sampled().iter().for_each(|sentence| output::note(sentence));
    }
    let mut writer = SeriesWriter::new(header, display.format, display.style());
    let print = |text: &str| match display.format {
        Format::Table if display.quiet => Ok(()),
        Format::Table => output::print_for_people(text),
        _ => output::print(text),
    };
    print(&writer.start())?;
    if args.plan {
        return match display.format {
            Format::Json => print(&writer.end(0)).map(|()| Ending::Done),
            _ => Ok(Ending::Done),
        };
    }
    interrupt::install().context("can't handle Ctrl-C")?;
    let mut failed = None;
    let mut text = String::new();
    let end = planned.compute(&Stop::default(), |results| {
        text.clear();
        writer.add(results.lows, results.highs, &mut text);
        failed = print(&text).err();
        failed.is_none()
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    print(&writer.end(end.undecided))?;
    Ok(if end.was_stopped { Ending::Interrupted } else { Ending::Done })
}

/// Returns the description of a derived series.
pub fn header_of(planned: &Series, expression: &str) -> SeriesHeader {
    let Memory { states, in_flight, steps } = planned.plan().memory();
    let memory = SeriesMemory {
        states_bytes: states,
        in_flight_bytes: in_flight,
        steps_bytes: steps,
        reading_bytes: planned.reading_bytes(),
        total_bytes: planned.total_bytes(),
    };
    SeriesHeader {
        expression: expression.to_string(),
        unit: planned.unit(),
        plan: planned.plan().with_reading(planned.reading_bytes()),
        memory,
        has_ranges: planned.plan().options().has_ranges,
        recorded_every: planned.recorded_every(),
    }
}
