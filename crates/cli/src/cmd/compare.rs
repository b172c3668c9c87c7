//! `ascertain compare`.

use anyhow::bail;
pub use ascertain::compare::USE_CASE;
use ascertain::compare::{Compare, GATE_MARGIN, points};
use ascertain::{Done, Ending, Request};
use ascertain_engine::command::{self, CommandSet, NamedCommand, OnFailure, PrintedMetric};
use ascertain_engine::experiment::Point;
use ascertain_engine::outcome::{ClaimResult, Gate, Verdict};
use ascertain_engine::plan::{Config, Plan};
use ascertain_report::layout::{Order, TableLayout, TimeUnit};
use ascertain_report::terminal;
use ascertain_sys::perf::Counter;

use super::commands::Starting;
use super::parameters::{self, Parameters};
use super::printed::Printed;
use crate::options::{Color, Common, Display, Word, count, margin, one_of, positive_share, with_default};
use crate::output;
use crate::session;

const EXAMPLES: &str = "\
Examples:
  ascertain compare 'sort big.txt' 'sort --parallel=4 big.txt'
      Compare two commands; the first one is the reference
  ascertain compare --fail-if slower --margin 3% './main input' './branch input'
      Exit with 1 if the second command is more than 3 % slower
  ascertain compare -L threads 1,2,4 'sort --parallel={threads} big.txt'
      Compare the values of a parameter
  ascertain compare --metric 'throughput=([0-9.]+) MB/s' ./main ./branch
      Compare a figure that the commands print";

/// Which command is faster, and by how much
///
/// The first command is the reference. All are measured in every trial, in a fresh random order, until
/// each is decided: faster, slower, or undecided when the time is up.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("max_time", |arg| with_default(arg, "30 s, or up to 5 min if a verdict needs that")))]
pub struct Args {
    /// The commands
    #[arg(required = true, value_name = "COMMAND")]
    commands: Vec<String>,
    /// What the commands are called, in their order, or their combinations with the parameters
    #[arg(short = 'n', long = "command-name", value_name = "NAME", help_heading = "Commands")]
    names: Vec<String>,
    /// The command that the others are held against; without it, the first
    #[arg(long, value_name = "COMMAND", help_heading = "Commands")]
    reference: Option<String>,
    /// What that is called
    #[arg(long, value_name = "NAME", requires = "reference", help_heading = "Commands")]
    reference_name: Option<String>,
    #[command(flatten)]
    parameters: Parameters,
    #[command(flatten)]
    starting: Starting,
    /// Go on when a command fails, or ends with one of these exit codes; it keeps its time
    #[arg(short, long, value_name = "CODES", num_args = 0..=1, require_equals = true, value_parser = ignored,
          default_missing_value = "all-non-zero", help_heading = "Commands")]
    ignore_failure: Option<OnFailure>,
    /// Metric to compare: `wall`, `user`, `system`, `memory_peak`, a counter such as `page_faults`, or a figure that
    /// commands print: `throughput=([0-9.]+) MB/s`, `json:.stats.p99`. Of several, the first is compared; the others
    /// must be printed figures, and are shown in the table
    #[arg(long, value_name = "METRIC", default_value = "wall", help_heading = "Judging")]
    metric: Vec<String>,
    #[command(flatten)]
    printed: Printed,
    /// hyperfine 2.0's word, which is more than one thing here
    #[arg(long, value_name = "LIST", hide = true)]
    metrics: Option<String>,
    /// Take exactly so many trials, whatever is decided
    #[arg(short, long, value_name = "N", value_parser = count, help_heading = "Judging")]
    runs: Option<u64>,
    /// Take at least so many trials, also where it is decided sooner
    #[arg(short, long, value_name = "N", value_parser = count, conflicts_with = "runs",
          help_heading = "Judging")]
    min_runs: Option<u64>,
    /// Smallest difference that matters, such as `5%`: the answer is faster or slower if the whole interval of the ratio
    /// is beyond it, and same if it is inside; 0 for no margin [default: 3% with --fail-if, else 0]
    #[arg(long, value_name = "M", value_parser = margin, help_heading = "Judging")]
    margin: Option<f64>,
    /// Measure until the interval of each ratio is at most this wide: `1%` is ±1 % [default: 10%, but no longer than 3 s]
    #[arg(long, value_name = "P", value_parser = positive_share, help_heading = "Judging")]
    precision: Option<f64>,
    /// Stop at the first answer, even if the interval of the ratio is wide
    #[arg(long, conflicts_with = "precision", help_heading = "Judging")]
    quick: bool,
    /// Exit with 1 if a command is shown to be slower (or faster) than the reference, and with 3 if the run ended
    /// undecided
    #[arg(long, value_parser = one_of(GATES), value_name = "WHAT", help_heading = "Judging")]
    pub fail_if: Option<Gate>,
    /// In which order tables have the commands, also exported ones
    #[arg(long, value_parser = one_of(ORDERS), value_name = "BY", default_value = "command", help_heading = "Output")]
    sort: Order,
    /// The unit of times in tables, also exported ones [default: whichever fits]
    #[arg(short = 'u', long, value_parser = one_of(UNITS), value_name = "UNIT", help_heading = "Output")]
    time_unit: Option<TimeUnit>,
    /// Show the mean and the standard deviation too, as hyperfine does
    #[arg(long, help_heading = "Output")]
    mean: bool,
    /// Count instructions, cycles, cache and branch misses, page faults, context switches and migrations between CPUs
    /// of each command and all that it starts, and compare them too
    #[arg(long, help_heading = "Output")]
    counters: bool,
    /// Draw the medians below the table; over a parameter whose values are numbers, as a line with its 95 % band
    #[arg(long, help_heading = "Output")]
    plot: bool,
    /// hyperfine's word for --color and -q: basic, nocolor, color, full, none
    #[arg(long, value_parser = one_of(STYLES), value_name = "STYLE", hide_possible_values = true,
          help_heading = "Output")]
    style: Option<Restyle>,
    #[command(flatten)]
    common: Common,
}

/// What hyperfine's style does here; whether there is progress is for the terminal to say.
type Restyle = fn(&mut Display);

const STYLES: &[Word<Restyle>] = &[
    (&["auto"], "As the terminal can", |_| {}),
    (&["basic"], "No colours", |display| display.color = Color::Never),
    (&["nocolor"], "No colours", |display| display.color = Color::Never),
    (&["color"], "Colours", |display| display.color = Color::Always),
    (&["full"], "Colours", |display| display.color = Color::Always),
    (&["none"], "No table and no progress", |display| display.quiet = true),
];

const ORDERS: &[Word<Order>] = &[
    (&["command", "auto"], "As they are given", Order::Given),
    (&["time", "mean-time"], "By their medians", Order::Time),
];

const UNITS: &[Word<TimeUnit>] = &[
    (&["microsecond", "us"], "µs", TimeUnit::Microsecond),
    (&["millisecond", "ms"], "ms", TimeUnit::Millisecond),
    (&["second", "s"], "s", TimeUnit::Second),
];

const GATES: &[Word<Gate>] = &[
    (&["slower"], "Slower than the reference; with --margin, by more than that", Gate::Slower),
    (&["faster"], "Faster than the reference; with --margin, by more than that", Gate::Faster),
];

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let mut common = args.common.clone();
    let display = &mut common.display;
    if let Some(restyle) = args.style {
        restyle(display);
    }
    output::note_undrawn(args.plot, display);
    let asked = args.request()?;
    note_uncounted(&asked.1);
    if args.fail_if.is_some() && args.margin.is_none() && !display.quiet {
        let margin = GATE_MARGIN * 100.0;
        output::note(&format!(
            "--fail-if without --margin: differences of up to {margin} % pass; --margin 0 allows none"
        ));
    }
    session::carry_out(asked, &common)
}

/// Where nothing is compared no answer says what can't be counted.
fn note_uncounted(plan: &Plan) {
    let are_counted = plan.claims.is_empty() && plan.commands.iter().any(|set| set.counters);
    for (metric, counter) in command::counters().iter().zip(Counter::ALL).filter(|_| are_counted) {
        if let Err(reason) = counter.available() {
            output::note(&format!("{} are not counted: {reason}", metric.name.replace('_', " ")));
        }
    }
}

/// A sentence for each command, the table, plots, and what threatens the result.
pub fn print(done: &Done, display: &Display) -> anyhow::Result<()> {
    let Done { request, plan, run, .. } = done;
    let outcome = &run.outcome;
    // hyperfine goes on until it has as many.
    let fewest = outcome.points.iter().map(|point| point.n).min().unwrap_or(0);
    let Config { table_trials, exact_trials, max_trials, .. } = plan.config;
    let wanted = table_trials.filter(|wanted| fewest < *wanted && exact_trials.is_none());
    let is_short = max_trials.is_none_or(|most| most > fewest) && !outcome.interrupted && !run.target_failed;
    if let (true, Some(wanted)) = (is_short && !display.quiet, wanted) {
        output::note(&format!("{wanted} trials were wanted and {fewest} taken: --max-time allows more"));
    }
    session::print(done, display, &session::Printed { asks_verdicts: false, has_report: false }, |_, style| {
        // A claim that failed has said why.
        let has_said = |claim: &ClaimResult| !claim.reasons.is_empty() && claim.verdict != Verdict::Undecided;
        let said = outcome.claims.iter().any(has_said);
        let left_out = if said { String::new() } else { terminal::left_out(outcome, style) };
        let sentences = terminal::sentences(outcome, style);
        if outcome.points.iter().all(|point| point.n == 0) {
            return output::parts(&[sentences, left_out]);
        }
        output::parts(&[
            terminal::best_levels(outcome, &request.layout, style),
            sentences,
            terminal::compare_table(outcome, &request.layout, style),
            left_out,
            terminal::counters_table(outcome, &request.layout, style),
            output::plots(run, request.plot, style),
            terminal::threats(outcome, style),
        ])
    })
}

impl Args {
    /// What is asked for.
    pub fn request(&self) -> anyhow::Result<(Request, Plan)> {
        if let Some(metrics) = &self.metrics {
            bail!(
                "--metrics {metrics}: write --metric METRIC for what is compared; wall, user, system and memory_peak \
                 are in the table and in every export anyway, and --counters counts instructions, cycles and the like"
            );
        }
        let commands = command_set(self)?;
        if let (Some(fewest), Some(most)) = (self.min_runs, self.common.max_trials)
            && fewest > most
        {
            bail!("--min-runs {fewest} is more than --max-trials {most}");
        }
        let compare = Compare {
            metric: self.metric()?,
            runs: self.runs,
            min_runs: self.min_runs,
            warmup: self.starting.warmup,
            margin: self.margin,
            precision: self.precision,
            is_quick: self.quick,
            gate: self.fail_if,
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

    /// The name of what is compared.
    fn metric(&self) -> anyhow::Result<String> {
        let [first, others @ ..] = self.metric.as_slice() else { bail!("give --metric a metric") };
        if let Some(other) = others.iter().find(|other| !PrintedMetric::describes(other)) {
            bail!("--metric {other}: commands are compared by {first}, and the table has {other} anyway; leave it out");
        }
        Ok(match PrintedMetric::describes(first) {
            true => PrintedMetric::parse(first)?.name,
            false => first.clone(),
        })
    }

    fn layout(&self) -> TableLayout {
        TableLayout { order: self.sort, time_unit: self.time_unit, mean: self.mean }
    }
}

/// The commands, the reference first. Where an option is given for each combination with the parameters, each
/// combination is a command of its own.
fn command_set(args: &Args) -> anyhow::Result<CommandSet> {
    let Args { starting, names, .. } = args;
    let (shell, commands) = starting.shell_and_commands(&args.commands)?;
    let parameters = args.parameters.factors()?;
    let referred = args.reference.iter().count();
    let given_for = starting.given_for().max(referred + names.len());
    let is_combined = !parameters.is_empty() && given_for > referred + commands.len();
    // The first parameter moves fastest, as hyperfine has it.
    let points = if is_combined { points(parameters.iter().rev()) } else { vec![Point::default()] };
    let lines: Vec<(&Point, &String)> =
        points.iter().flat_map(|point| commands.iter().map(move |c| (point, c))).collect();
    if names.len() > lines.len() {
        bail!("{} names for {} commands; give at most one for each", names.len(), lines.len());
    }
    let count = referred + lines.len();
    let mut named = Vec::new();
    if let Some(line) = &args.reference {
        named.push(starting.command(args.reference_name.as_ref().unwrap_or(line), line, (0, count))?);
    }
    for (index, (point, line)) in lines.into_iter().enumerate() {
        let name = names.get(index).unwrap_or(line);
        named.push(starting.command(name, line, (referred + index, count))?.at(point));
    }
    if let (true, Some(twice)) = (is_combined, named.iter().enumerate().find_map(|(at, c)| is_among(c, &named[..at]))) {
        bail!("`{twice}` would be compared with itself: not every parameter is in a command line");
    }
    Ok(CommandSet {
        id: USE_CASE.into(),
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
    })
}

/// The command's line where it is among these under another name.
fn is_among(command: &NamedCommand, others: &[NamedCommand]) -> Option<String> {
    let is_same = |other: &NamedCommand| *command == NamedCommand { name: command.name.clone(), ..other.clone() };
    others.iter().any(is_same).then(|| command.line.clone())
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
