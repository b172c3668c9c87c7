//! `ascertain slo`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use ascertain::slo::Slo;
pub use ascertain::slo::USE_CASE;
use ascertain::{Done, Ending, GatedVerdict, Request};
use ascertain_engine::command::{CommandSet, OnFailure, Output};
use ascertain_engine::outcome::Verdict;
use ascertain_engine::plan::Plan;
use ascertain_report::terminal::{self, Style};
use ascertain_sys::process;

use super::commands::{Starting, command_line, is_shell};
use super::printed::Printed;
use crate::exit::{FAIL_ON, fail_on};
use crate::options::{Common, Display, duration, one_of, share, with_default};
use crate::output;
use crate::session;

const EXAMPLES: &str = "\
Examples:
  ascertain slo --at-least 99% --within 50ms -- curl -fsS localhost:8080
      Check that at least 99 % of requests succeed within 50 ms
  ascertain slo --at-least 95% --require 'memory_peak <= 50 MB' -- ./app input
      Set a limit on something other than the time";

/// Does a command succeed, and in time, often enough
///
/// A success is an exit with 0 that keeps to every bound. The verdict is about the share of successes
/// while it was measured: exit code 0: it is at least what is asked; 1: it is not; 3: the time was up.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("max_time", |arg| with_default(arg, "30 s, plus four times --spread")))]
pub struct Args {
    /// The share of observations that must succeed: `99%`
    #[arg(long, value_name = "SHARE", value_parser = share)]
    at_least: f64,
    /// A success takes at most that long: `200ms`. What takes ten times as long is stopped, unless --time-limit says
    /// when
    #[arg(long, value_name = "TIME", value_parser = bound)]
    within: Option<String>,
    /// Further conditions of a success: comparisons of wall, user, system, memory_peak, exit or a --metric, such as
    /// `memory_peak <= 50 MB and exit == 3`
    #[arg(long, value_name = "PREDICATE")]
    require: Vec<String>,
    /// A figure that the command prints, for --require: `throughput=([0-9.]+) MB/s`, `json:.stats.p99`. A trial without
    /// this figure counts as failed
    #[arg(long, value_name = "METRIC")]
    metric: Vec<String>,
    #[command(flatten)]
    printed: Printed,
    /// Spread the fewest trials that can decide over that long: neighbours in time are alike, hours are not. Most
    /// runs need more: --max-time is then 30 s and four times that long, unless it is given
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Judging")]
    spread: Option<Duration>,
    /// Recorded requests, one a line: `{request}` in the command is replaced by one, or it is standard
    /// input. With --shell it is one word there, whatever it holds. Each set of trials takes every request once, in a
    /// fresh order, and is judged at its end
    #[arg(long, value_name = "FILE", help_heading = "Commands")]
    recorded: Option<PathBuf>,
    /// Rates this close to the one asked for need not be told apart, so that it always ends
    #[arg(long, value_name = "D", value_parser = share, help_heading = "Judging")]
    margin: Option<f64>,
    /// Verdicts that fail: refuted (exit code 1), undecided (3), nothing
    #[arg(long, value_parser = one_of(FAIL_ON), value_delimiter = ',', default_value = "refuted,undecided",
          help_heading = "Judging")]
    fail_on: Vec<Option<GatedVerdict>>,
    /// Draw the rate, and the quantiles of what is bounded, below the table
    #[arg(long, help_heading = "Output")]
    plot: bool,
    #[command(flatten)]
    starting: Starting,
    #[command(flatten)]
    common: Common,
    /// The command, after `--`
    #[arg(required = true, last = true, value_name = "CMD")]
    command: Vec<String>,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    output::note_undrawn(args.plot, &args.common.display);
    session::carry_out(args.request()?, &args.common)
}

/// The verdict, plots, and what threatens it.
pub fn print(done: &Done, display: &Display) -> anyhow::Result<()> {
    let Done { request, run, .. } = done;
    session::print(done, display, &session::Printed { asks_verdicts: true, has_report: false }, |_, style| {
        let plots = output::plots(run, request.plot, style);
        let threats = terminal::threats(&run.outcome, style);
        output::parts(&[terminal::slo(&run.outcome, style), plots, advice(done, style), threats])
    })
}

/// How to hear what a command says that fails, where nobody has heard it.
fn advice(Done { plan, run, .. }: &Done, style: &Style) -> String {
    let is_told = !run.outcome.remarks.is_empty();
    let is_heard = is_told || plan.commands.iter().any(|set| set.output == Output::Inherit);
    let not_kept = run.outcome.claims.iter().filter(|claim| claim.verdict != Verdict::Holds);
    let mut broken = not_kept.flat_map(|claim| &claim.broken);
    match broken.any(|broken| broken.metric == "exit") && !is_heard {
        true => style.paragraph("`--show-output` shows what the command says when it fails."),
        false => String::new(),
    }
}

impl Args {
    /// What a run of the first version was asked for beside its plan.
    pub fn without_plan(&self) -> Request {
        Request { fail_on: fail_on(&self.fail_on), plot: self.plot, ..Request::new(USE_CASE) }
    }

    /// What is asked for.
    pub fn request(&self) -> anyhow::Result<(Request, Plan)> {
        check_request(self)?;
        let within = self.within.as_ref().map(|time| format!("wall <= {time}"));
        let requests = self.recorded.as_ref().map(read_requests).transpose()?;
        let slo = Slo {
            command: command_set(self, command_line(&self.command), requests)?,
            at_least: self.at_least,
            require: within.into_iter().chain(self.require.iter().cloned()).collect(),
            spread: self.spread,
            margin: self.margin,
            warmup: self.starting.warmup,
            fail_on: fail_on(&self.fail_on),
            plot: self.plot,
            terms: session::terms(&self.common),
        };
        Ok(slo.plan()?)
    }
}

fn command_set(args: &Args, line: String, requests: Option<Vec<String>>) -> anyhow::Result<CommandSet> {
    let starting = &args.starting;
    let command = starting.command(&line, &line, (0, 1))?;
    Ok(CommandSet {
        id: USE_CASE.into(),
        commands: vec![command],
        parameters: Vec::new(),
        shell: starting.shell(),
        input: starting.input.clone(),
        output: starting.output(),
        time_limit: Some(time_limit(args)?),
        on_failure: OnFailure::Observe,
        requests,
        records_env: starting.record_env,
        counters: false,
        printed: args.printed.metrics(&args.metric)?,
    })
}

/// What takes longer than is asked for can't succeed any more; ten times that still shows how slow it is.
fn time_limit(args: &Args) -> anyhow::Result<Duration> {
    match (&args.within, args.starting.time_limit) {
        (Some(within), None) => Ok(duration(within).map_err(anyhow::Error::msg)?.saturating_mul(10)),
        _ => Ok(args.starting.time_limit()),
    }
}

fn read_requests(path: &PathBuf) -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("--recorded {}", path.display()))?;
    let requests: Vec<String> = text.lines().filter(|line| !line.trim().is_empty()).map(str::to_string).collect();
    if requests.is_empty() {
        bail!("--recorded {}: there is no request in it; write one a line", path.display());
    }
    Ok(requests)
}

/// A time that something may take; kept as it is written.
fn bound(text: &str) -> Result<String, String> {
    duration(text).map(|_| text.to_string())
}

/// `{request}` stands for something, and not for a part of somebody's script.
fn check_request(args: &Args) -> anyhow::Result<()> {
    let has_request = |word: &String| word.contains("{request}");
    if args.recorded.is_none() && args.command.iter().any(has_request) {
        bail!("`{{request}}` in the command stands for a recorded request; say where they are with --recorded FILE");
    }
    let words = match args.command.as_slice() {
        [line] => process::split(line).unwrap_or_default(),
        words => words.to_vec(),
    };
    let script = words.iter().position(|word| word.starts_with('-') && word.ends_with('c'));
    let script = script.filter(|_| words.first().is_some_and(|word| is_shell(word))).and_then(|at| words.get(at + 1));
    match script {
        Some(script) if args.starting.shell().is_none() && has_request(script) => bail!(
            "`{{request}}` stands in a script, which would run what the request holds; write --shell -- {}",
            process::join(&[script])
        ),
        _ => Ok(()),
    }
}
