//! Finds out which command is faster, and by how much.

use std::time::Duration;

use ascertain_engine::claim::Claim;
use ascertain_engine::command::{self, CommandExperiment, CommandSet, WALL};
use ascertain_engine::experiment::{Accepts, Arm, Experiment, Factor, Point};
use ascertain_engine::plan::{Config, Plan, Table, UseCase};

use crate::error::Error;
use crate::names;

/// Id of the experiment whose variants are the compared commands.
pub const ID: &str = "compare";

/// Time limit for comparisons that can't be decided within the default time. The run is extended up to this limit.
const LONGEST_TIME: Duration = Duration::from_secs(300);
/// Default margin if there is a gate, which makes the run fail on an answer such as "slower". Two builds of the same
/// code differ by less than this, so they pass the gate.
pub const GATE_MARGIN: f64 = 0.03;
/// Default precision. Commands are measured until the interval of each ratio is at most ±10 %.
pub const PRECISION: f64 = 0.1;
/// Time limit for reaching [`PRECISION`], counted from the start of the run.
pub const PRECISION_TIME: Duration = Duration::from_secs(3);
/// Number of trials for a single command at a single combination of parameter levels. Nothing is compared then: the
/// command is only measured.
const ALONE_TRIALS: u64 = 30;

/// A request to compare commands. At each combination of parameter levels, every command is compared with the first
/// command. If there is only one command, its combinations of levels are compared with the first combination instead.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// The commands to compare. The `id` of the set must be [`ID`].
    pub commands: CommandSet,
    /// Name of the metric to compare, usually `wall`. It is one of [`command::metrics`] except the exit code, one of
    /// [`command::counters`], or a [printed](CommandSet::printed) metric. If the metric is a counter, all counters are
    /// observed. The table shows all observed metrics.
    pub metric: String,
    /// Levels of the tails to compare, each from 0.5 to below 1. An example is 0.99, for the slowest hundredth. Empty
    /// if only the commands are compared. The comparison and its tails share the error equally.
    pub tails: Vec<f64>,
    /// Settings for measuring and judging; by default the result of [`config()`]. `exact_trials` sets an exact number
    /// of trials; `table_trials` sets only a minimum. A `margin` of `Some(0.0)` means no margin. A `margin` of `None`
    /// means [`GATE_MARGIN`] if there is a gate, and no margin otherwise.
    pub config: Config,
}

/// Returns the default configuration of a comparison. The run takes at most 30 s, or up to five minutes if the
/// fewest trials of an answer take longer. Once there are answers, the run continues until the interval of each ratio is as narrow as [`PRECISION`]. If
/// all answers are known by then, the run ends [`PRECISION_TIME`] after its start at the latest.
#[must_use]
pub fn config() -> Config {
    Config {
        longest_time: Some(LONGEST_TIME),
        precision: Some(PRECISION),
        precision_time: Some(PRECISION_TIME),
        ..Config::default()
    }
}

/// The settings that only make sense for a comparison. Each is an error for a single command at a single combination of
/// parameter levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NeedsTwo {
    /// The user set a gate: the run fails if the answer is that the candidate is slower, or faster.
    #[error("a gate needs two commands, but only one is given")]
    Gate,
    /// The user set a precision for the ratio of two commands.
    #[error("the precision of a ratio needs two commands, but only one is given")]
    Precision,
    /// The user set a margin for the ratio of two commands.
    #[error("the margin of a ratio needs two commands, but only one is given")]
    Margin,
    /// The user set levels of tails to compare.
    #[error("comparing tails needs two commands, but only one is given")]
    Tail,
    /// The user chose a metric other than the wall time as the metric to compare.
    #[error("a metric other than the time needs two commands, but only one is given")]
    Metric,
}

impl Compare {
    /// Returns a comparison with default settings.
    #[must_use]
    pub fn new(commands: CommandSet) -> Compare {
        Compare { commands, metric: "wall".into(), tails: Vec::new(), config: config() }
    }

    /// Returns the plan: the arms to measure, and the claims that compare them.
    ///
    /// # Errors
    /// If a command line is invalid, if a parameter occurs in no command line, or if commands can't be compared by the
    /// metric. Also for any setting in [`NeedsTwo`], if there is a single command at a single combination of levels.
    pub fn plan(self) -> Result<Plan, Error> {
        let counters = command::counters();
        let is_counter = counters.iter().any(|counter| counter.name == self.metric);
        let set = CommandSet { counters: self.commands.counters || is_counter, ..self.commands };
        let experiment = CommandExperiment::new(set.clone()).map_err(ascertain_engine::Error::from)?;
        let spec = experiment.spec();
        let metric = spec.metric(&self.metric).filter(|_| self.metric != "exit").ok_or_else(|| {
            let known = spec.metrics.iter().map(|metric| metric.name.as_str()).filter(|name| *name != "exit");
            let names: Vec<&str> = known.chain(counters.iter().map(|counter| counter.name.as_str())).collect();
            Error::Request(format!(
                "commands can't be compared by `{}`{}",
                self.metric,
                names::among(&self.metric, names)
            ))
        })?;
        let points = points(&set.parameters);
        let of_variant = |variant: &str| {
            let arm = |point: &Point| Arm { variant: variant.to_string(), point: point.clone() };
            points.iter().map(arm).collect::<Vec<_>>()
        };
        let arms = spec.variants.iter().flat_map(|variant| of_variant(&variant.name)).collect();
        let table = Table { experiment: set.id.clone(), arms };
        let printed = set.printed.iter().find(|printed| printed.name == self.metric);
        if table.arms.len() > 1 && printed.is_some_and(|printed| printed.better.is_none()) {
            return Err(Error::NoDirection { metric: self.metric });
        }
        let config = self.config;
        let needs_two = [
            (config.gate.is_some(), NeedsTwo::Gate),
            // If the precision has no time limit, the user requested the precision.
            (config.precision.is_some() && config.precision_time.is_none(), NeedsTwo::Precision),
            (config.margin.is_some_and(|margin| margin > 0.0), NeedsTwo::Margin),
            (!self.tails.is_empty(), NeedsTwo::Tail),
            (metric != WALL && printed.is_none(), NeedsTwo::Metric),
        ];
        if let Some((_, what)) = needs_two.into_iter().find(|(is_set, _)| *is_set && table.arms.len() < 2) {
            return Err(Error::NeedsTwo(what));
        }
        if let Some(level) = self.tails.iter().find(|level| !(0.5..1.0).contains(*level)) {
            return Err(Error::Request(format!("{level} is not a level of a tail; use a level from 0.5 to below 1")));
        }
        let is_counted = |other: &usize| {
            *other != metric && counters.iter().any(|counter| counter.name == spec.metrics[*other].name)
        };
        let counted: Vec<usize> = (0..spec.metrics.len()).filter(is_counted).collect();
        let order = |[candidate, reference]: [&Arm; 2]| {
            let claim = Claim::order(&set.id, &spec.metrics[WALL], candidate, reference);
            let claim = if metric == WALL { claim } else { claim.by(&spec.metrics[metric]) };
            Claim { counters: counted.clone(), tails: self.tails.clone(), ..claim }
        };
        let claims: Vec<Claim> = match spec.variants.len() {
            // A single command is compared between combinations of levels, with the first combination as the reference.
            1 => table.arms[1..].iter().map(|candidate| order([candidate, &table.arms[0]])).collect(),
            _ => table.with_the_first().into_iter().map(order).collect(),
        };
        // An exact number of trials disables the default time limit, but not one that the user sets.
        let is_endless = config.exact_trials.is_some() && config.longest_time.is_some();
        let config = Config {
            margin: config.margin.or(config.gate.map(|_| GATE_MARGIN)).filter(|margin| *margin > 0.0),
            table_trials: config.table_trials.or(claims.is_empty().then_some(ALONE_TRIALS)),
            max_time: if is_endless { Duration::MAX } else { config.max_time },
            ..config
        };
        Ok(Plan { use_case: UseCase::Compare, claims, tables: vec![table], commands: vec![set], config, windows: None })
    }
}

/// Returns every combination of the parameters' levels. The last parameter varies fastest.
#[must_use]
pub fn points<'f>(parameters: impl IntoIterator<Item = &'f Factor>) -> Vec<Point> {
    parameters.into_iter().fold(vec![Point::default()], |points, factor| {
        let Accepts::OneOf(levels) = &factor.accepts else { return points };
        let wider = |point: Point| levels.iter().map(move |level| point.clone().with(&factor.name, level.clone()));
        points.into_iter().flat_map(wider).collect()
    })
}
