//! `ascertain compare`.

use anyhow::bail;
use ascertain::compare::Compare;
pub use ascertain::compare::USE_CASE;
use ascertain::{Done, Request};
use ascertain_engine::command::{CommandSet, NamedCommand, OnFailure};
use ascertain_engine::outcome::{ClaimResult, Gate, Verdict};
use ascertain_engine::plan::Plan;
use ascertain_report::layout::{Order, TableLayout, TimeUnit};
use ascertain_report::terminal;
use clap::ValueEnum;

use super::commands::Starting;
use super::parameters::{self, Parameters};
use crate::exit::Code;
use crate::options::{Common, Display, count, positive_share};
use crate::output;
use crate::session::{self, Printed};

/// Which command is faster, and by how much
///
/// The first command is the reference. All are measured in every trial, in a fresh random order, until
/// each is decided: faster, slower, or undecided when the time is up.
#[derive(clap::Args)]
pub struct Args {
    /// The commands
    #[arg(required = true, value_name = "COMMAND")]
    commands: Vec<String>,
    /// What the commands are called, in their order (that of --reference keeps its line)
    #[arg(short = 'n', long = "command-name", value_name = "NAME", help_heading = "Commands")]
    names: Vec<String>,
    /// The command that the others are held against; without it, the first
    #[arg(long, value_name = "COMMAND", help_heading = "Commands")]
    reference: Option<String>,
    #[command(flatten)]
    parameters: Parameters,
    #[command(flatten)]
    starting: Starting,
    /// Go on when a command fails; it keeps its time
    #[arg(short, long, help_heading = "Commands")]
    ignore_failure: bool,
    /// Take exactly so many trials, whatever is decided
    #[arg(short, long, value_name = "N", value_parser = count, help_heading = "Judging")]
    runs: Option<u64>,
    /// Take at least so many trials, also where it is decided sooner
    #[arg(short, long, value_name = "N", value_parser = count, conflicts_with = "runs",
          help_heading = "Judging")]
    min_runs: Option<u64>,
    /// Answer from the ratio's interval: faster or slower beyond this margin, same inside
    #[arg(long, value_name = "M", value_parser = positive_share, help_heading = "Judging")]
    margin: Option<f64>,
    /// Go on until each ratio is known to ± this share of it, which is half of its interval: `1%`
    #[arg(long, value_name = "P", value_parser = positive_share, help_heading = "Judging")]
    precision: Option<f64>,
    /// Exit with 1 when a command is proven to be so, with 3 when that can't be excluded
    #[arg(long, value_enum, value_name = "WHAT", help_heading = "Judging")]
    fail_if: Option<FailIf>,
    /// In which order the table has the commands
    #[arg(long, value_enum, value_name = "BY", default_value_t = Sort::Command, help_heading = "Output")]
    sort: Sort,
    /// The unit of times in the table [default: whichever fits]
    #[arg(
        short = 'u',
        long,
        value_enum,
        value_name = "UNIT",
        hide_possible_values = true,
        help_heading = "Output",
        long_help = "The unit of times in the table: microsecond, millisecond or second [default: whichever fits]"
    )]
    time_unit: Option<Unit>,
    /// Draw the medians below the table
    #[arg(long, help_heading = "Output")]
    plot: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// As they are given.
    #[value(alias = "auto")]
    Command,
    /// By their medians.
    #[value(alias = "mean-time")]
    Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Unit {
    #[value(alias = "us")]
    Microsecond,
    #[value(alias = "ms")]
    Millisecond,
    #[value(alias = "s")]
    Second,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailIf {
    /// Slower than the reference; with --margin, by more than that.
    Slower,
    /// Faster than the reference; with --margin, by more than that.
    Faster,
}

impl From<FailIf> for Gate {
    fn from(fail_if: FailIf) -> Gate {
        match fail_if {
            FailIf::Slower => Gate::Slower,
            FailIf::Faster => Gate::Faster,
        }
    }
}

pub fn execute(args: &Args) -> anyhow::Result<Code> {
    output::note_undrawn(args.plot, &args.common.display);
    session::carry_out(args.request()?, &args.common)
}

/// The table, a sentence for each command, plots, and what threatens the result.
pub fn print(done: &Done, display: &Display) -> anyhow::Result<()> {
    let Done { request, run, .. } = done;
    let outcome = &run.outcome;
    session::print(done, display, &Printed { asks_verdicts: false, has_report: false }, |_, style| {
        // A claim that failed has said why.
        let has_said = |claim: &ClaimResult| !claim.reasons.is_empty() && claim.verdict != Verdict::Undecided;
        let said = outcome.claims.iter().any(has_said);
        let left_out = if said { String::new() } else { terminal::left_out(outcome, style) };
        output::parts(&[
            terminal::compare_table(outcome, &request.layout, style),
            terminal::sentences(outcome, style),
            left_out,
            output::plots(run, request.plot, style),
            terminal::threats(outcome, style),
        ])
    })
}

impl Args {
    /// What is asked for.
    pub fn request(&self) -> anyhow::Result<(Request, Plan)> {
        let commands = command_set(self)?;
        let compare = Compare {
            runs: self.runs,
            min_runs: self.min_runs,
            warmup: self.starting.warmup,
            margin: self.margin,
            precision: self.precision,
            gate: self.gate(),
            layout: self.layout(),
            plot: self.plot,
            terms: session::terms(&self.common),
            ..Compare::new(commands.clone())
        };
        compare.plan().map_err(|error| parameters::explained(error, &commands))
    }

    /// What a run of the first version was asked for beside its plan.
    pub fn without_plan(&self) -> Request {
        Request { layout: self.layout(), plot: self.plot, ..Request::new(USE_CASE) }
    }

    /// What comparisons end for as soon as it is settled.
    pub fn gate(&self) -> Option<Gate> {
        self.fail_if.map(Gate::from)
    }

    fn layout(&self) -> TableLayout {
        TableLayout {
            order: match self.sort {
                Sort::Command => Order::Given,
                Sort::Time => Order::Time,
            },
            time_unit: self.time_unit.map(|unit| match unit {
                Unit::Microsecond => TimeUnit::Microsecond,
                Unit::Millisecond => TimeUnit::Millisecond,
                Unit::Second => TimeUnit::Second,
            }),
        }
    }

    /// The command lines, the reference first.
    fn lines(&self) -> Vec<&String> {
        self.reference.iter().chain(&self.commands).collect()
    }
}

fn command_set(args: &Args) -> anyhow::Result<CommandSet> {
    let lines = args.lines();
    let count = lines.len();
    if args.names.len() > args.commands.len() {
        bail!("{} names for {} commands; give at most one for each", args.names.len(), args.commands.len());
    }
    let starting = &args.starting;
    starting.check_shell(&args.commands[0])?;
    let unnamed = args.reference.iter().count();
    let named = lines.into_iter().enumerate().map(|(index, line)| {
        let name = index.checked_sub(unnamed).and_then(|index| args.names.get(index));
        Ok(NamedCommand {
            name: name.unwrap_or(line).clone(),
            line: line.clone(),
            setup: starting.hook(&starting.setup, "setup", index, count)?,
            prepare: starting.hook(&starting.prepare, "prepare", index, count)?,
            cleanup: starting.hook(&starting.cleanup, "cleanup", index, count)?,
        })
    });
    Ok(CommandSet {
        id: USE_CASE.into(),
        commands: named.collect::<anyhow::Result<_>>()?,
        parameters: args.parameters.factors()?,
        shell: starting.shell(),
        input: starting.input(),
        output: starting.output(),
        time_limit: Some(starting.time_limit()),
        on_failure: if args.ignore_failure { OnFailure::Ignore } else { OnFailure::Stop },
        requests: None,
        counters: false,
    })
}
