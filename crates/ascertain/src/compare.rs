//! Which command is faster, and by how much.

use std::time::Duration;

use ascertain_engine::claim::Claim;
use ascertain_engine::command::{self, CommandExperiment, CommandSet, WALL};
use ascertain_engine::experiment::{Accepts, Arm, Experiment, Factor, Point};
use ascertain_engine::outcome::Gate;
use ascertain_engine::plan::{Config, Plan, Table};
use ascertain_report::layout::TableLayout;

use crate::error::{Error, refused};
use crate::names;
use crate::request::{Request, Terms};

/// Its name in `run.json`, which is that of its subcommand; the `id` of its commands too.
pub const USE_CASE: &str = "compare";

const MAX_TIME: Duration = Duration::from_secs(30);
/// As long as that where no answer is possible sooner, and nobody said how long it may take.
const LONGEST_TIME: Duration = Duration::from_secs(300);
/// The margin of a gate, unless another one is given: a build that changed nothing passes.
pub const GATE_MARGIN: f64 = 0.03;
/// Half width of a ratio's interval, relative to its middle, that a comparison aims at after its answer.
pub const PRECISION: f64 = 0.1;
/// Longest time, from the start of the run, that a comparison spends on a narrower interval.
pub const PRECISION_TIME: Duration = Duration::from_secs(3);
/// One command alone has nothing to be compared with: this many observations describe it.
const ALONE_TRIALS: u64 = 30;

/// Commands to be compared: at each point of their parameters the others with the first, or, of one command, the other
/// points with the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// The commands; its `id` is [`USE_CASE`].
    pub commands: CommandSet,
    /// The metric to compare: one of [`command::metrics`] except the exit code, `wall` as a rule, or one of
    /// [`command::counters`], which are then observed, or the name of a [printed](CommandSet::printed) one. The table
    /// also shows the other observed metrics.
    pub metric: String,
    /// Take exactly so many trials, whatever is decided.
    pub runs: Option<u64>,
    /// Take at least so many.
    pub min_runs: Option<u64>,
    /// Trials that are thrown away first.
    pub warmup: u64,
    /// Answer from the ratio's interval: faster or slower beyond this margin, same inside. `Some(0.0)` is no margin.
    /// `None`: [`GATE_MARGIN`] with a gate, and no margin without one.
    pub margin: Option<f64>,
    /// Go on until half of each ratio's interval is at most this share of the ratio. `None`: until [`PRECISION`], but
    /// for no longer than [`PRECISION_TIME`].
    pub precision: Option<f64>,
    /// End with the first answer, however wide the ratio's interval is.
    pub is_quick: bool,
    /// What it fails for.
    pub gate: Option<Gate>,
    /// How its table is laid out.
    pub layout: TableLayout,
    /// Whether the medians are drawn below it.
    pub plot: bool,
    /// Error, time, trials, seed.
    pub terms: Terms,
}

impl Compare {
    /// Without options.
    #[must_use]
    pub fn new(commands: CommandSet) -> Compare {
        Compare {
            commands,
            metric: "wall".into(),
            runs: None,
            min_runs: None,
            warmup: 0,
            margin: None,
            precision: None,
            is_quick: false,
            gate: None,
            layout: TableLayout::default(),
            plot: false,
            terms: Terms::default(),
        }
    }

    /// What to measure and judge.
    ///
    /// # Errors
    /// When a command line is none, a parameter is in none of them, commands can't be compared by the metric, or a
    /// gate, a ratio or another metric than the time is asked for and there is one command.
    pub fn plan(self) -> Result<(Request, Plan), Error> {
        let counters = command::counters();
        let is_counter = counters.iter().any(|counter| counter.name == self.metric);
        let set = CommandSet { counters: self.commands.counters || is_counter, ..self.commands };
        let experiment = CommandExperiment::new(set.clone())?;
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
            return refused(format!(
                "`{}` has no direction; give --better higher or --better lower, or a --unit that implies it",
                self.metric
            ));
        }
        let needs_another = [
            (self.gate.is_some(), "--fail-if needs a second command to hold against the first"),
            (
                self.precision.is_some(),
                "--precision is that of a ratio, which needs a second command; --min-runs 100 narrows a median",
            ),
            (
                self.margin.is_some_and(|margin| margin > 0.0),
                "--margin limits a ratio: give a second command, or leave out --margin",
            ),
            (
                metric != WALL && printed.is_none(),
                "--metric compares commands: give a second command, or leave out --metric",
            ),
        ];
        if let Some((_, reason)) = needs_another.iter().find(|(is_asked, _)| *is_asked && table.arms.len() < 2) {
            return refused(reason.to_string());
        }
        let is_counted = |other: &usize| {
            *other != metric && counters.iter().any(|counter| counter.name == spec.metrics[*other].name)
        };
        let counted: Vec<usize> = (0..spec.metrics.len()).filter(is_counted).collect();
        let order = |[candidate, reference]: [&Arm; 2]| {
            let claim = Claim::order(&set.id, candidate, reference);
            let claim = if metric == WALL { claim } else { claim.by(spec, metric) };
            Claim { counters: counted.clone(), ..claim }
        };
        let claims: Vec<Claim> = match spec.variants.len() {
            // One command at several points: the first point is the reference.
            1 => table.arms[1..].iter().map(|candidate| order([candidate, &table.arms[0]])).collect(),
            _ => table.with_the_first().into_iter().map(order).collect(),
        };
        let config = Config {
            margin: self.margin.or(self.gate.map(|_| GATE_MARGIN)).filter(|margin| *margin > 0.0),
            precision: self.precision.or((!self.is_quick).then_some(PRECISION)),
            precision_time: self.precision.is_none().then_some(PRECISION_TIME),
            gate: self.gate,
            exact_trials: self.runs,
            warmup_trials: self.warmup,
            table_trials: self.min_runs.or(claims.is_empty().then_some(ALONE_TRIALS)),
            longest_time: self.terms.max_time.is_none().then_some(LONGEST_TIME),
            // Exactly so many trials take as long as they take.
            ..self.terms.config(if self.runs.is_some() { Duration::MAX } else { MAX_TIME })
        };
        let request = Request { layout: self.layout, plot: self.plot, ..Request::new(USE_CASE) };
        Ok((request, Plan { claims, tables: vec![table], commands: vec![set], config }))
    }
}

/// Every combination of the parameters' levels; the last parameter moves fastest.
#[must_use]
pub fn points<'f>(parameters: impl IntoIterator<Item = &'f Factor>) -> Vec<Point> {
    parameters.into_iter().fold(vec![Point::default()], |points, factor| {
        let Accepts::OneOf(levels) = &factor.accepts else { return points };
        let wider = |point: Point| levels.iter().map(move |level| point.clone().with(&factor.name, level.clone()));
        points.into_iter().flat_map(wider).collect()
    })
}
