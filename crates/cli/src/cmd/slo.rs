//! `ascertain slo`: tests whether a command succeeds often enough and in time.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use ascertain::slo::{self, Slo};
use ascertain::{Ending, GatedVerdict, Request};
use ascertain_engine::command::{CommandSet, OnFailure, VALUE};
use ascertain_engine::plan::Config;
use ascertain_report::options::RenderOptions;
use ascertain_sys::process;

use super::commands::{Starting, command_line, is_shell};
use super::printed::Printed;
use super::windows::Windows;
use crate::exit::{FAIL_ON, fail_on};
use crate::measure::{Start, measure};
use crate::options::{Common, duration, one_of, share, with_default};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  ascertain slo --at-least 99% --within 50ms -- curl -fsS localhost:8080
      Check that at least 99 % of requests succeed within 50 ms
  ascertain slo --at-least 95% --require 'memory_peak <= 50 MB' -- ./app input
      Set a limit on something other than the time
  ascertain slo --for 10m --at-least 99% --within 20ms -- curl -fsS localhost:80
      Show percentiles by window for ten minutes, and judge all observations
  ascertain slo --for 1h --lines --within 20ms -- ./generator --print-times
      Take the observations from the lines that a load generator prints";

/// Test whether a command succeeds often enough and in time
///
/// A success is an exit with code 0 that meets every condition. The verdict is about the share of successes during the
/// run. Exit codes: 0 if the share is high enough, 1 if it is too low, 3 if the time was up before the verdict.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("max_time", |arg| with_default(arg, "30 s, plus four times --spread")),
    mut_arg("time_limit", |arg| with_default(arg, "ten times --within, or 10 min without it")))]
pub struct Args {
    /// Share of observations that must succeed, such as `99%`
    #[arg(long, value_name = "SHARE", value_parser = share, required_unless_present = "lasts")]
    at_least: Option<f64>,
    /// Longest time that a success may take, such as `200ms`
    #[arg(long, value_name = "TIME", value_parser = bound)]
    within: Option<String>,
    /// Further condition of a success, such as `memory_peak <= 50 MB and exit == 3`
    ///
    /// A condition compares wall, user, system, memory_peak, exit or a printed --metric.
    #[arg(long, value_name = "PREDICATE")]
    require: Vec<String>,
    /// Figure that the command prints, for use in --require: `throughput=([0-9.]+) MB/s` or `json:.stats.p99`
    ///
    /// A trial without this figure counts as failed.
    #[arg(long, value_name = "METRIC")]
    metric: Vec<String>,
    #[command(flatten)]
    printed: Printed,
    /// Time over which to spread the trials, since conditions change over hours but hardly within seconds
    ///
    /// The fewest trials that can give a verdict are spread over this time. Most verdicts need more trials, so the
    /// default of --max-time allows for four times as many.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Judging")]
    spread: Option<Duration>,
    /// File of recorded requests, one per line
    ///
    /// In each trial, a request replaces `{request}` in the command; without `{request}`, it is the standard input.
    /// With
    /// --shell, a request is always a single word. Each set of trials uses every request once, in random order, and is
    /// judged at its end.
    #[arg(long, value_name = "FILE", help_heading = "Commands")]
    recorded: Option<PathBuf>,
    /// Tolerance around the required share: inside it, either verdict is acceptable, so a verdict is always possible
    #[arg(long, value_name = "D", value_parser = share, help_heading = "Judging")]
    margin: Option<f64>,
    /// Verdicts that make the command fail, separated by commas
    #[arg(long, value_parser = one_of(FAIL_ON), value_delimiter = ',', default_value = "refuted,undecided",
          help_heading = "Judging")]
    fail_on: Vec<Option<GatedVerdict>>,
    /// Draw the share of successes, and the quantiles of the metrics in its conditions, below the table
    #[arg(long, help_heading = "Output")]
    plot: bool,
    #[command(flatten)]
    windows: Windows,
    #[command(flatten)]
    starting: Starting,
    #[command(flatten)]
    common: Common,
    /// Command to test, after `--`
    #[arg(required = true, last = true, value_name = "CMD")]
    command: Vec<String>,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let options = RenderOptions { plot: args.plot, ..args.common.render() };
    output::note_undrawn(args.plot, options.format);
    measure(Start::New(Box::new(Request::Slo(args.request()?)), &args.common), &options, &args.common.exports)
}

impl Args {
    /// Returns the request that the options describe.
    fn request(&self) -> anyhow::Result<Slo> {
        check_request(self)?;
        if let (Some(option), true) = (self.common.exports.of_observations(), self.windows.long().is_some()) {
            bail!("--{option} needs every observation, and --for keeps only a part of them; use --format json or csv");
        }
        let lines = self.windows.lines(self.printed.units())?;
        let metric = if lines.is_some() { VALUE } else { "wall" };
        let within = self.within.as_ref().map(|time| format!("{metric} <= {time}"));
        let requests = self.recorded.as_ref().map(read_requests).transpose()?;
        Ok(Slo {
            command: CommandSet { lines, ..command_set(self, command_line(&self.command), requests)? },
            at_least: self.at_least,
            require: within.into_iter().chain(self.require.iter().cloned()).collect(),
            spread: self.spread,
            margin: self.margin,
            max_time: self.common.max_time,
            long: self.windows.long(),
            config: Config {
                gap: self.windows.gap(),
                warmup_trials: self.starting.warmup,
                fail_on: fail_on(&self.fail_on),
                ..self.common.config(Config::default())
            },
        })
    }
}

fn command_set(args: &Args, line: String, requests: Option<Vec<String>>) -> anyhow::Result<CommandSet> {
    let starting = &args.starting;
    let command = starting.command(&line, &line, (0, 1))?;
    Ok(CommandSet {
        id: slo::ID.into(),
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
        printed: if args.windows.has_lines() { Vec::new() } else { args.printed.metrics(&args.metric)? },
        lines: None,
    })
}

/// Returns the time limit of each execution. The default is ten times `--within`: long enough to find out how slow most
/// failures are.
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
        bail!("--recorded {}: the file has no requests; write one request per line", path.display());
    }
    Ok(requests)
}

/// Checks that the text is a duration, and returns it unchanged.
fn bound(text: &str) -> Result<String, String> {
    duration(text).map(|_| text.to_string())
}

/// Returns an error if the command contains `{request}` although there are no recorded requests, or contains it inside
/// a shell script, which would execute the request.
fn check_request(args: &Args) -> anyhow::Result<()> {
    let has_request = |word: &String| word.contains("{request}");
    if args.recorded.is_none() && args.command.iter().any(has_request) {
        bail!("`{{request}}` in the command needs recorded requests; name their file with --recorded FILE");
    }
    let words = match args.command.as_slice() {
        [line] => process::split(line).unwrap_or_default(),
        words => words.to_vec(),
    };
    let script = words.iter().position(|word| word.starts_with('-') && word.ends_with('c'));
    let script = script.filter(|_| words.first().is_some_and(|word| is_shell(word))).and_then(|at| words.get(at + 1));
    match script {
        Some(script) if args.starting.shell().is_none() && has_request(script) => bail!(
            "`{{request}}` is inside a script, which would execute the content of the request; write --shell -- {}",
            process::join(&[script])
        ),
        _ => Ok(()),
    }
}
