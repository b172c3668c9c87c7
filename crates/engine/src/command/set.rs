//! Commands to measure, as plain data, and what is observed of them.

use std::path::PathBuf;
use std::time::Duration;

use ascertain_sys::command::Counter;
use serde::{Deserialize, Serialize};

use super::PrintedMetric;
use crate::experiment::{Accepts, Better, Factor, Level, Metric, Plot, Point, Spec, Variant};
use crate::names;
use crate::unit::Unit;

#[doc(inline)]
pub use ascertain_sys::command::Output;

/// Commands that are measured against each other, or one on its own, as plain data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandSet {
    /// The experiment's id: `compare`, `slo`, or the claim's.
    pub id: String,
    /// The commands; the first is the reference.
    pub commands: Vec<NamedCommand>,
    /// Parameters: `{name}` in a command line is replaced by the level.
    pub parameters: Vec<Factor>,
    /// The shell that command lines are given to with `-c`; without one they are split in words.
    pub shell: Option<String>,
    /// Where each command's standard input comes from.
    pub input: Input,
    /// Where its standard output goes (standard error too, unless it is inherited).
    pub output: Output,
    /// An observation that takes longer is stopped: it took more than that, and no more is known of it.
    pub time_limit: Option<Duration>,
    /// What an exit other than 0 means.
    pub on_failure: OnFailure,
    /// Recorded requests: each trial takes one, every one once before any comes again, in a fresh
    /// random order. It replaces `{request}` in the command line; without that it is standard input.
    pub requests: Option<Vec<String>>,
    /// Whether the values of environment variables are recorded. Without this only their names are, because a value
    /// can be a password or a token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub records_env: bool,
    /// Whether [`counters`] are observed besides.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counters: bool,
    /// Figures that each command prints, observed after the others. The output of every command is then kept to be
    /// read, so that [`output`](CommandSet::output) must be left as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub printed: Vec<PrintedMetric>,
}

impl CommandSet {
    /// Returns the set as it is recorded.
    #[must_use]
    pub(crate) fn recorded(&self) -> CommandSet {
        let mut set = self.clone();
        if !set.records_env {
            set.commands.iter_mut().flat_map(|command| &mut command.env).for_each(|(_, value)| *value = None);
        }
        set
    }

    /// Command lines that are called as they are written, with nothing around them.
    pub fn of(id: &str, lines: impl IntoIterator<Item = impl Into<String>>) -> CommandSet {
        let named = lines.into_iter().map(|line| {
            let line: String = line.into();
            NamedCommand { name: line.clone(), line, ..NamedCommand::default() }
        });
        CommandSet { id: id.to_string(), commands: named.collect(), ..CommandSet::default() }
    }

    /// The experiment as plain data: commands are variants, parameters are factors.
    pub fn spec(&self) -> Spec {
        let variant = |command: &NamedCommand| Variant { name: command.name.clone(), about: command.line.clone() };
        let named = self.clone().with_distinct_names();
        Spec {
            id: self.id.clone(),
            title: "commands, measured against each other".into(),
            readme: README.into(),
            emulates: None,
            variants: named.commands.iter().map(variant).collect(),
            factors: self.parameters.clone(),
            metrics: self.metrics(),
            plots: self.sweeps(),
        }
    }

    /// What is observed of its commands.
    pub fn metrics(&self) -> Vec<Metric> {
        let counters = counters().into_iter().filter(|_| self.counters);
        metrics().into_iter().chain(counters).chain(self.printed.iter().map(PrintedMetric::metric)).collect()
    }

    /// The place of the first printed figure among the [metrics](CommandSet::metrics).
    #[cfg(feature = "commands")]
    pub(super) fn first_printed(&self) -> usize {
        EXIT + 1 + if self.counters { Counter::ALL.len() } else { 0 }
    }

    /// Each metric but the exit code over each parameter that has numbers for levels.
    fn sweeps(&self) -> Vec<Plot> {
        let is_number = |level: &Level| match level {
            Level::Integer(_) => true,
            Level::Text(text) => text.parse().is_ok_and(f64::is_finite),
        };
        let is_swept = |parameter: &&Factor| match &parameter.accepts {
            Accepts::OneOf(levels) => levels.len() > 1 && levels.iter().all(is_number),
            _ => false,
        };
        let metrics = self.metrics().into_iter().filter(|metric| metric.name != "exit");
        let of_metric = |metric: Metric| {
            let swept = self.parameters.iter().filter(is_swept);
            swept.map(|parameter| Plot::sweep(&metric.name, &parameter.name)).collect::<Vec<_>>()
        };
        metrics.flat_map(of_metric).collect()
    }

    /// The command with that name.
    pub(super) fn command(&self, name: &str) -> Option<&NamedCommand> {
        self.commands.iter().find(|command| command.name == name)
    }

    /// The command that a variant stands for, at a point.
    pub fn at(&self, variant: &str, point: &Point) -> Option<NamedCommand> {
        Some(self.clone().with_distinct_names().command(variant)?.at(point))
    }

    /// A command without a name gets its line for one; a name that is taken gets a number.
    #[must_use]
    pub(super) fn with_distinct_names(mut self) -> Self {
        for index in 0..self.commands.len() {
            let (before, rest) = self.commands.split_at_mut(index);
            let command = &mut rest[0];
            let name = if command.name.trim().is_empty() { &command.line } else { &command.name };
            let is_taken = |name: &str| before.iter().any(|earlier| earlier.name == name);
            command.name = names::unused(name, is_taken);
        }
        self
    }
}

/// A command line with what goes around it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamedCommand {
    /// What it is called in tables; the command line itself unless named.
    pub name: String,
    /// The command line.
    pub line: String,
    /// Run once before the first trial.
    pub setup: Option<String>,
    /// Run before each observation, untimed.
    pub prepare: Option<String>,
    /// Run after each observation, untimed, also after one that failed.
    pub conclude: Option<String>,
    /// Run once after the last trial.
    pub cleanup: Option<String>,
    /// Environment variables of the command and of what goes around it; parameters are replaced in their values. A
    /// recorded run has no value if [`CommandSet::records_env`] was not set.
    pub env: Vec<(String, Option<String>)>,
    /// Where its output goes, if not where that of all commands goes.
    pub output: Option<Output>,
}

impl NamedCommand {
    /// The command with its parameters replaced wherever they stand, also in its name.
    #[must_use]
    pub fn at(&self, point: &Point) -> NamedCommand {
        let fill = |line: &Option<String>| line.as_ref().map(|line| point.fill(line));
        NamedCommand {
            name: point.fill(&self.name),
            line: point.fill(&self.line),
            setup: fill(&self.setup),
            prepare: fill(&self.prepare),
            conclude: fill(&self.conclude),
            cleanup: fill(&self.cleanup),
            env: self.env.iter().map(|(name, value)| (name.clone(), fill(value))).collect(),
            output: self.output.clone(),
        }
    }

    /// Returns the environment variables that have values.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.env.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_deref()?)))
    }
}

/// Where standard input comes from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// Empty.
    #[default]
    Null,
    /// A file.
    File(PathBuf),
}

/// What an exit other than 0 means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// There is nothing to time: the command is set aside with what is asked of it, and the others go on.
    #[default]
    Stop,
    /// It keeps its time, as if nothing had happened.
    Ignore,
    /// The same of these exit codes (128 + n where signal n ended it); others stop.
    IgnoreCodes(Vec<i32>),
    /// It is an observation: predicates are false, unless they speak of the exit themselves.
    Observe,
}

/// What is observed of a command, each less being better: `wall`, `user` and `system` in nanoseconds,
/// `memory_peak` in bytes, and `exit`, its exit code (128 + n where signal n ended it).
pub fn metrics() -> Vec<Metric> {
    let metric = |name, about, unit| Metric::new(name, about, unit, Better::Lower);
    vec![
        metric("wall", "time from its start to its end", Unit::Nanosecond),
        metric("user", "time on processors, in its own code", Unit::Nanosecond),
        metric("system", "time on processors, in the kernel for it", Unit::Nanosecond),
        metric("memory_peak", "the most memory that it held at once", Unit::Byte),
        metric("exit", "exit code; 128 + n when signal n ended it", Unit::One),
    ]
}

/// What is counted of a command where that is asked for, each less being better: a metric for each of [`Counter::ALL`].
pub fn counters() -> Vec<Metric> {
    let metric = |counter| {
        let (name, about) = match counter {
            Counter::Instructions => ("instructions", "instructions of its own code"),
            Counter::Cycles => ("cycles", "the processor's cycles in its own code"),
            Counter::CacheReferences => ("cache_references", "accesses of its own code to the last level of the cache"),
            Counter::CacheMisses => ("cache_misses", "those of them that had to go to memory"),
            Counter::BranchMisses => ("branch_misses", "branches of its own code that were guessed wrong"),
            Counter::PageFaults => ("page_faults", "pages of memory that had to be provided when they were touched"),
            Counter::ContextSwitches => ("context_switches", "how often it gave up a processor or had to"),
            Counter::CpuMigrations => ("cpu_migrations", "how often it went on on another processor"),
        };
        Metric::new(name, about, Unit::One, Better::Lower)
    };
    Counter::ALL.map(metric).into()
}

/// The place of the wall time in [`metrics`].
pub const WALL: usize = 0;
/// That of the exit code; between them are those of the others.
pub(crate) const EXIT: usize = 4;

const README: &str = "\
Command lines, each started anew for every observation; several in a fresh random order in every trial. Wall, \
user and system time, peak memory and the exit code come from the kernel's account of the process. A command that was \
stopped at its time limit took longer than that, and no more is known of it. What is run beforehand (set-up, \
preparation) and afterwards (clean-up) is not timed.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_with_numbers_for_levels_are_swept() {
        let parameter = |name: &str, levels: &[&str]| {
            let levels: Vec<Level> = levels.iter().map(|level| Level::from(*level)).collect();
            Factor::new(name, "", levels[0].clone(), Accepts::OneOf(levels))
        };
        let parameters =
            vec![parameter("n", &["0.5", "1e3"]), parameter("mode", &["1", "fast"]), parameter("one", &["1"])];
        let plots = CommandSet { parameters, ..CommandSet::of("compare", ["true"]) }.spec().plots;
        let swept = ["wall", "user", "system", "memory_peak"].map(|metric| Plot::sweep(metric, "n"));
        assert_eq!(plots, swept);
    }
}
