//! `ascertain compare`: finds the faster command, and by how much it is faster.

use anyhow::bail;
use ascertain::compare::{self, Compare, GATE_MARGIN, points};
use ascertain::revision::Side;
use ascertain::{Ending, Request};
use ascertain_engine::command::{self, CommandSet, NamedCommand, OnFailure, PrintedMetric};
use ascertain_engine::experiment::Point;
use ascertain_engine::outcome::Gate;
use ascertain_engine::plan::Config;
use ascertain_report::options::{Order, RenderOptions, TableLayout, TimeUnit};
use ascertain_report::plot::escape_controls;
use ascertain_sys::perf::Counter;

use super::against::{self, Against};
use super::commands::Starting;
use super::parameters::{self, Parameters};
use super::printed::Printed;
use crate::measure::{Start, measure};
use crate::options::{Color, Common, Display, Word, count, margin, one_of, positive_share, with_default};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  ascertain compare 'sort big.txt' 'sort --parallel=4 big.txt'
      Compare two commands; the first one is the reference
  ascertain compare --fail-if slower --margin 3% './main input' './branch input'
      Exit with 1 if the second command is more than 3 % slower
  ascertain compare --against main --build make -- ./app --input data
      Compare your checkout with the branch main
  ascertain compare -L threads 1,2,4 'sort --parallel={threads} big.txt'
      Compare the values of a parameter
  ascertain compare --metric 'throughput=([0-9.]+) MB/s' ./main ./branch
      Compare a figure that the commands print";

/// Compare commands: which one is faster, and by how much
///
/// The first command is the reference. Each trial runs every command once, in random order. The run ends when each
/// command has its answer (faster, slower or, with a margin, same), or when the time is up.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("max_time", |arg| with_default(arg, "30 s, or up to 5 min if the fewest trials take that long")),
    mut_arg("time_limit", |arg| with_default(arg, "10 min")))]
pub struct Args {
    /// Commands to compare; the first one is the reference
    #[arg(required = true, value_name = "COMMAND")]
    commands: Vec<String>,
    /// Name of a command in the results; repeat the option for each command, or for each combination with parameter
    /// values, in order
    #[arg(short = 'n', long = "command-name", value_name = "NAME", help_heading = "Commands")]
    names: Vec<String>,
    /// Command with which all others are compared [default: the first command]
    #[arg(long, value_name = "COMMAND", help_heading = "Commands")]
    reference: Option<String>,
    /// Name of the --reference command in the results
    #[arg(long, value_name = "NAME", requires = "reference", help_heading = "Commands")]
    reference_name: Option<String>,
    #[command(flatten)]
    against: Against,
    #[command(flatten)]
    parameters: Parameters,
    #[command(flatten)]
    starting: Starting,
    /// Continue if a command fails (with CODES such as `1,2`: only for these exit codes); its time counts as usual
    #[arg(short, long, value_name = "CODES", num_args = 0..=1, require_equals = true, value_parser = ignored,
          default_missing_value = "all-non-zero", help_heading = "Commands")]
    ignore_failure: Option<OnFailure>,
    /// Metric to compare: `wall`, `user`, `system`, `memory_peak`, a counter such as `page_faults`, or a printed figure
    ///
    /// A printed figure is given by a regular expression, as in `throughput=([0-9.]+) MB/s`, or by a path in JSON
    /// output, as in `json:.stats.p99`. If you repeat the option, the first metric is compared. The others must be
    /// printed figures, which the table shows too.
    #[arg(long, value_name = "METRIC", default_value = "wall", help_heading = "Judging")]
    metric: Vec<String>,
    #[command(flatten)]
    printed: Printed,
    /// An option of hyperfine 2.0. Here it is an error, whose message names the options to use instead.
    #[arg(long, value_name = "LIST", hide = true)]
    metrics: Option<String>,
    /// Exact number of trials, even if the answer is decided earlier
    #[arg(short, long, value_name = "N", value_parser = count, help_heading = "Judging")]
    runs: Option<u64>,
    /// Minimum number of trials, even if the answer is decided earlier
    #[arg(short, long, value_name = "N", value_parser = count, conflicts_with = "runs",
          help_heading = "Judging")]
    min_runs: Option<u64>,
    /// Smallest difference that matters, such as `5%`; 0 for no margin [default: 3% with --fail-if, else 0]
    ///
    /// The answer is faster or slower if the whole interval of the ratio is beyond the margin, and same if it is
    /// inside.
    #[arg(long, value_name = "M", value_parser = margin, help_heading = "Judging")]
    margin: Option<f64>,
    /// Compare the tails too, at these levels: `95,99` asks which command is more often among the slowest 5 % and 1 %
    ///
    /// The threshold of each trial is fixed before the trial, from all earlier values. A level counts after 50 pairs
    /// (95), 250 (99) or 2,500 (99.9). The tails share --error with the comparison. With --fail-if, a worse tail fails
    /// too.
    #[arg(long, value_name = "LEVELS", value_delimiter = ',', value_parser = tail_level, help_heading = "Judging")]
    tail: Vec<f64>,
    /// Precision to reach for each ratio: `1%` means ±1 % [default: 10%, or as far as 3 s allow]
    #[arg(long, value_name = "P", value_parser = positive_share, help_heading = "Judging")]
    precision: Option<f64>,
    /// Stop at the first answer, even if the interval of the ratio is wide
    #[arg(long, conflicts_with = "precision", help_heading = "Judging")]
    quick: bool,
    /// Exit with 1 if a command is shown to be slower (or faster) than the reference, and with 3 if the run ends
    /// undecided
    #[arg(long, value_parser = one_of(GATES), value_name = "WHAT", help_heading = "Judging")]
    fail_if: Option<Gate>,
    /// Order of the commands in tables, including exported tables
    #[arg(long, value_parser = one_of(ORDERS), value_name = "BY", default_value = "command", help_heading = "Output")]
    sort: Order,
    /// Unit of times in tables, including exported tables [default: the unit that fits]
    #[arg(short = 'u', long, value_parser = one_of(UNITS), value_name = "UNIT", help_heading = "Output")]
    time_unit: Option<TimeUnit>,
    /// Show the mean and the standard deviation too, as hyperfine does
    #[arg(long, help_heading = "Output")]
    mean: bool,
    /// Count and compare instructions, cycles, cache and branch misses, page faults, context switches and CPU
    /// migrations (child processes included)
    #[arg(long, help_heading = "Output")]
    counters: bool,
    /// Draw the medians below the table (for a numeric parameter, as a line with a 95 % band)
    #[arg(long, help_heading = "Output")]
    plot: bool,
    /// Output style, with hyperfine's names: basic, nocolor, color, full or none
    #[arg(long, value_parser = one_of(STYLES), value_name = "STYLE", hide_possible_values = true,
          help_heading = "Output")]
    style: Option<Restyle>,
    #[command(flatten)]
    common: Common,
}

/// A function that changes the display options according to one of hyperfine's output styles. It does not affect the
/// progress line, which only depends on the terminal.
type Restyle = fn(&mut Display);

const STYLES: &[Word<Restyle>] = &[
    (&["auto"], "Colours if the terminal has them", |_| {}),
    (&["basic"], "No colours", |display| display.color = Color::Never),
    (&["nocolor"], "No colours", |display| display.color = Color::Never),
    (&["color"], "Colours", |display| display.color = Color::Always),
    (&["full"], "Colours", |display| display.color = Color::Always),
    (&["none"], "No progress, no table and no sentences", |display| display.quiet = true),
];

const ORDERS: &[Word<Order>] = &[
    (&["command", "auto"], "Order of the command line", Order::Given),
    (&["time", "mean-time"], "Order of the medians", Order::Time),
];

const UNITS: &[Word<TimeUnit>] = &[
    (&["microsecond", "us"], "µs", TimeUnit::Microsecond),
    (&["millisecond", "ms"], "ms", TimeUnit::Millisecond),
    (&["second", "s"], "s", TimeUnit::Second),
];

const GATES: &[Word<Gate>] = &[
    (&["slower"], "A command is slower than the reference, by more than the margin", Gate::Slower),
    (&["faster"], "A command is faster than the reference, by more than the margin", Gate::Faster),
];

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let display = args.display();
    let Some(mut sides) = args.against.prepare(&args.commands, display.quiet)? else { return compare(args, &[]) };
    if !args.against.measure_identical
        && let Some(identical) = sides.take_identical()
    {
        if sides.sides.len() == 1 {
            output::report(&identical, &display)?;
            return Ok(against::finish(sides));
        }
        output::note(&escape_controls(&identical.plain_sentence()));
    }
    let ending = compare(args, &sides.sides);
    match against::finish(sides) {
        Ending::Done => ending,
        finished => ending.map(|_| finished),
    }
}

/// Measures the commands, or one command at several revisions.
fn compare(args: &Args, sides: &[Side]) -> anyhow::Result<Ending> {
    let options = args.render();
    output::note_undrawn(args.plot, options.format);
    let compare = args.request(sides)?;
    note_uncounted(&compare.commands);
    if args.fail_if.is_some() && args.margin.is_none() && !options.quiet {
        let margin = GATE_MARGIN * 100.0;
        output::note(&format!(
            "--fail-if without --margin: differences of up to {margin} % pass; use --margin 0 to allow none"
        ));
    }
    let commands = compare.commands.clone();
    measure(Start::New(Box::new(Request::Compare(compare)), &args.common), &options, &args.common.exports)
        .map_err(|error| parameters::with_placeholders(error, &commands))
}

/// If there is a single command, prints a note for each counter that this machine lacks. If there are several commands,
/// the result of the comparison already names these counters.
fn note_uncounted(set: &CommandSet) {
    let is_alone = set.commands.len() * points(&set.parameters).len() == 1;
    for (metric, counter) in command::counters().iter().zip(Counter::ALL).filter(|_| set.counters && is_alone) {
        if let Err(reason) = counter.available() {
            output::note(&format!("{} are not counted: {reason}", metric.name.replace('_', " ")));
        }
    }
}

impl Args {
    /// Returns the request that the options describe. `sides` has the revisions of --against, or is empty.
    fn request(&self, sides: &[Side]) -> anyhow::Result<Compare> {
        if let Some(metrics) = &self.metrics {
            bail!(
                "--metrics {metrics} is not supported; use --metric METRIC to compare another metric, and --counters \
                 to count instructions, cycles and other events"
            );
        }
        let commands = command_set(self, sides)?;
        if let (Some(fewest), Some(most)) = (self.min_runs, self.common.max_trials)
            && fewest > most
        {
            bail!("--min-runs {fewest} is more than --max-trials {most}; lower --min-runs, or raise --max-trials");
        }
        let default = compare::config();
        let (precision, precision_time) = match self.precision {
            Some(precision) => (Some(precision), None),
            None => (default.precision.filter(|_| !self.quick), default.precision_time),
        };
        let config = Config {
            exact_trials: self.runs,
            table_trials: self.min_runs,
            warmup_trials: self.starting.warmup,
            margin: self.margin,
            precision,
            precision_time,
            gate: self.fail_if,
            ..self.common.config(default)
        };
        Ok(Compare { commands, metric: self.metric()?, tails: self.tails(), config })
    }

    /// Returns the levels of the tails to compare, each once and in ascending order.
    fn tails(&self) -> Vec<f64> {
        let mut tails = self.tail.clone();
        tails.sort_unstable_by(f64::total_cmp);
        tails.dedup();
        tails
    }

    /// Returns the display options, changed by the output style.
    fn display(&self) -> Display {
        let mut display = self.common.display.clone();
        if let Some(restyle) = self.style {
            restyle(&mut display);
        }
        display
    }

    /// Returns the options for printing the result.
    fn render(&self) -> RenderOptions {
        let layout = TableLayout { order: self.sort, time_unit: self.time_unit, mean: self.mean };
        RenderOptions { layout, plot: self.plot, explain: self.common.explain, ..self.display().render() }
    }

    /// Returns the name of the metric to compare: the first one that `--metric` gives.
    fn metric(&self) -> anyhow::Result<String> {
        let [first, others @ ..] = self.metric.as_slice() else {
            bail!("--metric is missing; give the name of a metric")
        };
        if let Some(other) = others.iter().find(|other| !PrintedMetric::describes(other)) {
            bail!(
                "can't add --metric {other}: commands are compared by {first}, and every further --metric must be a \
                 figure that the commands print; leave out --metric {other}"
            );
        }
        Ok(match PrintedMetric::describes(first) {
            true => PrintedMetric::parse(first)?.name,
            false => first.clone(),
        })
    }
}

/// Returns the set of commands, with the reference first. If an option is given for every combination of commands and
/// parameter values, each combination becomes a separate command. If there are `sides`, they are the commands.
fn command_set(args: &Args, sides: &[Side]) -> anyhow::Result<CommandSet> {
    let Args { starting, .. } = args;
    let side_lines: Vec<String> = sides.iter().map(|side| side.line.clone()).collect();
    let (shell, commands) = match sides {
        [] => starting.shell_and_commands(&args.commands)?,
        _ => (starting.shell(), &side_lines[..]),
    };
    let names = &args.names;
    let parameters = args.parameters.factors()?;
    let referred = args.reference.iter().count();
    let given_for = starting.given_for().max(referred + names.len());
    let is_combined = !parameters.is_empty() && given_for > referred + commands.len();
    // As in hyperfine, the first parameter varies fastest.
    let points = if is_combined { points(parameters.iter().rev()) } else { vec![Point::default()] };
    let lines: Vec<(&Point, &String)> =
        points.iter().flat_map(|point| commands.iter().map(move |c| (point, c))).collect();
    if names.len() > lines.len() {
        bail!("{} names are given for {} commands; give at most one for each", names.len(), lines.len());
    }
    let count = referred + lines.len();
    let mut named = Vec::new();
    if let Some(line) = &args.reference {
        named.push(starting.command(args.reference_name.as_ref().unwrap_or(line), line, (0, count))?);
    }
    for (index, (point, line)) in lines.into_iter().enumerate() {
        let side = sides.get(index % commands.len());
        let name = side.map(|side| &side.name).or(names.get(index)).unwrap_or(line);
        let command = starting.command(name, line, (referred + index, count))?;
        let revision = side.map(|side| side.revision.clone());
        named.push(NamedCommand { revision, ..command.at(point) });
    }
    if let (true, Some(twice)) = (is_combined, named.iter().enumerate().find_map(|(at, c)| is_among(c, &named[..at]))) {
        bail!(
            "`{twice}` would be compared with itself, because it does not use every parameter; use every parameter in \
             each command line"
        );
    }
    Ok(CommandSet {
        id: compare::ID.into(),
        commands: named,
        parameters: if is_combined { Vec::new() } else { parameters },
        shell,
        input: starting.input.clone(),
        output: starting.output(),
        time_limit: Some(starting.time_limit()),
        on_failure: args.ignore_failure.clone().unwrap_or_default(),
        requests: None,
        records_env: starting.record_env,
        counters: args.counters,
        printed: args.printed.metrics(&args.metric)?,
        lines: None,
    })
}

/// If another command is the same except for its name, returns the command line, for an error message. Otherwise
/// returns `None`.
fn is_among(command: &NamedCommand, others: &[NamedCommand]) -> Option<String> {
    let is_same = |other: &NamedCommand| *command == NamedCommand { name: command.name.clone(), ..other.clone() };
    others.iter().any(is_same).then(|| command.line.clone())
}

/// Parses the level of a tail, such as `95`, `99.9` or `99%`, into a share.
fn tail_level(text: &str) -> Result<f64, String> {
    let digits = text.trim().trim_end_matches('%').trim_end();
    // Dividing the decimal digits by 100 gives the double that is nearest to the level.
    let level = digits.parse::<f64>().ok().map(|percent| percent / 100.0).filter(|level| (0.5..1.0).contains(level));
    level.ok_or_else(|| format!("`{text}` is not a level; give percentages from 50 to below 100, such as 95,99"))
}

fn ignored(text: &str) -> Result<OnFailure, String> {
    if text == "all-non-zero" {
        return Ok(OnFailure::Ignore);
    }
    let code = |code: &str| code.trim().parse().ok().filter(|code| (1..=255).contains(code));
    let codes: Option<Vec<i32>> = text.split(',').map(code).collect();
    codes
        .map(OnFailure::IgnoreCodes)
        .ok_or_else(|| format!("`{text}` is not a list of exit codes; give numbers from 1 to 255, such as 1,2"))
}
