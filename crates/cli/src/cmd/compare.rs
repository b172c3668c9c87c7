//! `ascertain compare`.

use std::time::Duration;

use anyhow::{Context, bail};
use ascertain::claim::Claim;
use ascertain::command::{CommandExperiment, CommandSet, NamedCommand, OnFailure};
use ascertain::experiment::{Accepts, Arm, Experiment, Factor, Level, Point};
use ascertain::outcome::{Decision, Outcome};
use ascertain::plan::{Config, Plan, Table};
use ascertain_report::exports::Purpose;
use clap::ValueEnum;

use super::commands::Starting;
use crate::exit::{self, Code};
use crate::options::{Common, positive_share};
use crate::output::{self, Asks};
use crate::session;

const MAX_TIME: Duration = Duration::from_secs(30);
/// One command alone has nothing to be compared with: this many observations describe it.
const ALONE_TRIALS: u64 = 30;

/// Which command is faster, and by how much
///
/// The first command is the reference. All are measured in every trial, in a fresh random order, until
/// each is decided: faster, slower, or undecided when the time is up.
#[derive(clap::Args)]
pub struct Args {
    /// The commands
    #[arg(required = true, value_name = "COMMAND")]
    commands: Vec<String>,
    /// What the commands are called, in their order
    #[arg(short = 'n', long = "command-name", value_name = "NAME", help_heading = "Commands")]
    names: Vec<String>,
    /// A parameter: `{VAR}` in a command is replaced by each of these, comma-separated
    #[arg(short = 'L', long, num_args = 2, value_names = ["VAR", "VALUES"], help_heading = "Commands")]
    parameter_list: Vec<String>,
    /// A parameter from MIN to MAX
    #[arg(short = 'P', long, num_args = 3, value_names = ["VAR", "MIN", "MAX"], help_heading = "Commands")]
    parameter_scan: Vec<String>,
    /// The step of the last --parameter-scan
    #[arg(short = 'D', long, value_name = "STEP", requires = "parameter_scan", help_heading = "Commands")]
    parameter_step_size: Option<String>,
    #[command(flatten)]
    starting: Starting,
    /// Go on when a command fails; it keeps its time
    #[arg(short, long, help_heading = "Commands")]
    ignore_failure: bool,
    /// Take exactly so many trials, whatever is decided
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Judging")]
    runs: Option<u64>,
    /// Answer from the ratio's interval: faster or slower beyond this margin, same inside
    #[arg(long, value_name = "M", value_parser = positive_share, help_heading = "Judging")]
    margin: Option<f64>,
    /// Go on until each ratio's interval is this narrow: `1%`
    #[arg(long, value_name = "P", value_parser = positive_share, help_heading = "Judging")]
    precision: Option<f64>,
    /// Exit with 1 when a command is proven to be so, with 3 when that can't be excluded
    #[arg(long, value_enum, value_name = "WHAT", help_heading = "Judging")]
    fail_if: Option<FailIf>,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailIf {
    /// Slower than the reference; with --margin, by more than that.
    Slower,
    /// Faster than the reference; with --margin, by more than that.
    Faster,
}

impl FailIf {
    fn decision(self) -> Decision {
        match self {
            FailIf::Slower => Decision::Slower,
            FailIf::Faster => Decision::Faster,
        }
    }
}

pub fn execute(args: &Args) -> anyhow::Result<Code> {
    let plan = plan(args)?;
    let purpose = Purpose { failing: args.fail_if.map(FailIf::decision), ..Purpose::default() };
    let run = session::carry_out(&plan, &args.common, purpose)?;
    output::outcome(&run, &args.common.display, Asks::Metrics, output::compared)?;
    let code = exit::code(&run, &[]);
    Ok(if code == Code::Done { gate(args.fail_if, args.margin, &run.outcome) } else { code })
}

/// `--fail-if slower`: 1 when proven slower, 0 when proven not to be, 3 else.
fn gate(fail_if: Option<FailIf>, margin: Option<f64>, outcome: &Outcome) -> Code {
    let Some(fail_if) = fail_if else { return Code::Done };
    // With a margin it need not be decided between faster and same: one end of the interval tells.
    let excluded = |claim: &ascertain::outcome::ClaimResult| match (fail_if, margin) {
        (FailIf::Slower, Some(margin)) => claim.ratio_low.is_some_and(|low| low >= 1.0 / (1.0 + margin)),
        (FailIf::Faster, Some(margin)) => claim.ratio_high.is_some_and(|high| high <= 1.0 + margin),
        (_, None) => matches!(claim.decision, Some(decision) if decision != Decision::Undecided),
    };
    match () {
        () if outcome.claims.iter().any(|claim| claim.decision == Some(fail_if.decision())) => Code::GateFailed,
        () if outcome.claims.iter().all(excluded) => Code::Done,
        () => Code::Undecided,
    }
}

fn plan(args: &Args) -> anyhow::Result<Plan> {
    let set = command_set(args)?;
    let experiment = CommandExperiment::new(set.clone())?;
    let spec = experiment.spec();
    let points = points(&set.parameters);
    let arm = |variant: &str, point: &Point| Arm { variant: variant.to_string(), point: point.clone() };
    let arms: Vec<Arm> = spec.variants.iter().flat_map(|v| points.iter().map(|point| arm(&v.name, point))).collect();
    if args.fail_if.is_some() && arms.len() < 2 {
        bail!("--fail-if needs a second command to hold against the first");
    }
    let claims = match spec.variants.len() {
        // One command at several points: the first point is the reference.
        1 => arms[1..].iter().map(|candidate| Claim::order(&set.id, candidate, &arms[0])).collect(),
        // Several: at each point, the first command.
        _ => arms[points.len()..]
            .iter()
            .map(|candidate| Claim::order(&set.id, candidate, &arm(&spec.variants[0].name, &candidate.point)))
            .collect::<Vec<_>>(),
    };
    let config = Config {
        margin: args.margin,
        precision: args.precision,
        exact_trials: args.runs,
        warmup_trials: args.starting.warmup,
        table_trials: claims.is_empty().then_some(ALONE_TRIALS),
        // Exactly so many trials take as long as they take.
        ..session::config(&args.common, if args.runs.is_some() { Duration::MAX } else { MAX_TIME })
    };
    let tables = vec![Table { experiment: set.id.clone(), arms }];
    Ok(Plan { claims, tables, commands: vec![set], config })
}

fn command_set(args: &Args) -> anyhow::Result<CommandSet> {
    let count = args.commands.len();
    if args.names.len() > count {
        bail!("{} names for {count} commands; give at most one for each", args.names.len());
    }
    let starting = &args.starting;
    let named = args.commands.iter().enumerate().map(|(index, line)| {
        Ok(NamedCommand {
            name: args.names.get(index).unwrap_or(line).clone(),
            line: line.clone(),
            setup: starting.hook(&starting.setup, "setup", index, count)?,
            prepare: starting.hook(&starting.prepare, "prepare", index, count)?,
            cleanup: starting.hook(&starting.cleanup, "cleanup", index, count)?,
        })
    });
    Ok(CommandSet {
        id: "compare".into(),
        commands: named.collect::<anyhow::Result<_>>()?,
        parameters: parameters(args)?,
        shell: starting.shell.clone(),
        input: starting.input(),
        output: starting.output.clone(),
        time_limit: Some(starting.time_limit()),
        on_failure: if args.ignore_failure { OnFailure::Ignore } else { OnFailure::Stop },
        requests: None,
    })
}

fn parameters(args: &Args) -> anyhow::Result<Vec<Factor>> {
    let lists = args.parameter_list.chunks_exact(2).map(|list| {
        let levels: Vec<Level> = list[1].split(',').map(|level| Level::Text(level.to_string())).collect();
        Ok((list[0].clone(), levels))
    });
    let scans = args.parameter_scan.chunks_exact(3).map(|scan| {
        let step = args.parameter_step_size.as_deref().unwrap_or("1");
        let levels = scan_levels(&scan[1], &scan[2], step).with_context(|| format!("--parameter-scan {}", scan[0]))?;
        Ok((scan[0].clone(), levels))
    });
    let factor = |(name, levels): (String, Vec<Level>)| Factor {
        name,
        about: "parameter of the command line".into(),
        default: levels[0].clone(),
        accepts: Accepts::OneOf(levels),
    };
    let parameters = lists.chain(scans).collect::<anyhow::Result<Vec<_>>>()?;
    for (index, (name, levels)) in parameters.iter().enumerate() {
        if parameters[..index].iter().any(|(other, _)| other == name) {
            bail!("the parameter `{name}` is given twice");
        }
        if let Some(level) = levels.iter().enumerate().find_map(|(at, l)| levels[..at].contains(l).then_some(l)) {
            bail!("the parameter `{name}` has the value `{level}` twice; comparing it with itself says nothing");
        }
    }
    Ok(parameters.into_iter().map(factor).collect())
}

/// The numbers from `min` to `max` by `step`, with as many decimals as these have.
fn scan_levels(min: &str, max: &str, step: &str) -> anyhow::Result<Vec<Level>> {
    let texts = [min, max, step];
    let decimals = texts.map(|text| text.split_once('.').map_or(0, |(_, decimals)| decimals.len())).into_iter().max();
    let decimals = decimals.unwrap_or(0);
    // In units of the last decimal, so that no step is rounded.
    let whole = |text: &str| {
        let number: f64 = text.parse().with_context(|| format!("`{text}` is not a number"))?;
        let scaled = (number * 10_f64.powi(decimals as i32)).round();
        anyhow::ensure!(scaled.abs() < 1e15, "`{text}` is out of range");
        Ok::<i64, anyhow::Error>(scaled as i64)
    };
    let (first, last, by) = (whole(min)?, whole(max)?, whole(step)?);
    if first > last || by <= 0 || (last - first) / by >= 10_000 {
        bail!("{min} to {max} by {step} has no values, or more than 10,000");
    }
    let text = |value: i64| format!("{:.decimals$}", value as f64 / 10_f64.powi(decimals as i32));
    Ok((first..=last).step_by(by as usize).map(|value| Level::Text(text(value))).collect())
}

/// Every combination of the parameters' levels.
fn points(parameters: &[Factor]) -> Vec<Point> {
    parameters.iter().fold(vec![Point::default()], |points, factor| {
        let Accepts::OneOf(levels) = &factor.accepts else { return points };
        let widened =
            points.iter().flat_map(|point| levels.iter().map(|level| point.clone().with(&factor.name, level.clone())));
        widened.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_step_exactly() {
        let texts = |min, max, step| -> Vec<String> {
            scan_levels(min, max, step).unwrap().iter().map(Level::to_string).collect()
        };
        assert_eq!(texts("1", "5", "2"), ["1", "3", "5"]);
        assert_eq!(texts("0.1", "0.4", "0.1"), ["0.1", "0.2", "0.3", "0.4"]);
        assert_eq!(texts("-1", "1", "1"), ["-1", "0", "1"]);
        assert!(scan_levels("2", "1", "1").is_err());
        assert!(scan_levels("1", "2", "0").is_err());
        assert!(scan_levels("x", "2", "1").is_err());
        assert!(scan_levels("NaN", "2", "1").is_err());
    }
}
