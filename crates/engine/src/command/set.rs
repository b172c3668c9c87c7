//! The commands to measure, as plain data, and their metrics.

use std::path::PathBuf;
use std::time::Duration;

use ascertain_sys::command::Counter;
use serde::{Deserialize, Serialize};

use super::PrintedMetric;
use crate::experiment::{Accepts, Arm, Better, Factor, Level, Metric, Plot, Point, Spec, Variant};
use crate::names;
use crate::unit::Unit;

#[doc(inline)]
pub use ascertain_sys::command::Output;

/// One or several commands to measure, as plain data. If there are several, they are compared with each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandSet {
    /// Id of the experiment: `compare`, `slo`, or the id of a claim about commands.
    pub id: String,
    /// The commands, of which the first is the reference.
    pub commands: Vec<NamedCommand>,
    /// The parameters, as factors: `{name}` in a command line is replaced by the level of the factor `name`.
    pub parameters: Vec<Factor>,
    /// The shell that runs command lines with `-c`. If `None`, command lines are split into words, and no shell runs
    /// them.
    pub shell: Option<String>,
    /// Source of the standard input of each command.
    pub input: Input,
    /// Destination of the standard output and the standard error of each command.
    pub output: Output,
    /// Time limit of each execution of a command. A command that reaches the limit is stopped, and its time is only
    /// known to exceed the limit.
    pub time_limit: Option<Duration>,
    /// Treatment of commands that end with an exit code other than 0.
    pub on_failure: OnFailure,
    /// Recorded requests. Each trial uses one request, in random order; all requests are used once before any is
    /// repeated. The request replaces `{request}` in the command line. Without that placeholder, the command reads the
    /// request from standard input.
    pub requests: Option<Vec<String>>,
    /// `true` if the values of environment variables are recorded. By default only their names are recorded, because a
    /// value can be a password or a token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub records_env: bool,
    /// `true` if the optional metrics of [`counters`] are observed too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counters: bool,
    /// Figures that each command prints, which are observed in addition to the other metrics. They are read from the
    /// output of the commands, so [`output`](CommandSet::output) must have its default value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub printed: Vec<PrintedMetric>,
    /// The metric of a command that prints an observation on each line of its standard output. The command then runs once,
    /// in a [long measurement](crate::windows). `None` for a command that runs anew for each observation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineMetric>,
}

/// The metric of a command that prints an observation on each line: a number, and optionally a unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LineMetric {
    /// The unit of the metric.
    pub unit: Unit,
    /// Factor that converts a number without a unit; `None` if each line needs a unit.
    pub factor: Option<f64>,
    /// `true` if a line that is not an observation counts as a failed one. Otherwise it is an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts_bad_lines: bool,
}

/// Name of the metric of a command that prints observations.
pub const VALUE: &str = "value";

impl LineMetric {
    /// Returns the metric. Lower is better for times and sizes, higher for rates.
    fn metric(&self) -> Metric {
        let better = match self.unit {
            Unit::BytePerSecond | Unit::PerSecond => Better::Higher,
            Unit::Nanosecond | Unit::Byte | Unit::One => Better::Lower,
        };
        Metric::new(VALUE, "the number on each line", self.unit, better)
    }
}

impl CommandSet {
    /// Returns the set in the form in which evidence records it. The values of environment variables are left out,
    /// unless [`records_env`](Self::records_env) is set.
    #[must_use]
    pub(crate) fn recorded(&self) -> CommandSet {
        let mut set = self.clone();
        if !set.records_env {
            set.commands.iter_mut().flat_map(|command| &mut command.env).for_each(|(_, value)| *value = None);
        }
        set
    }

    /// Returns a set of these command lines, with default settings and no set-ups. Each line is also the name of its
    /// command.
    pub fn new(id: &str, lines: impl IntoIterator<Item = impl Into<String>>) -> CommandSet {
        let named = lines.into_iter().map(|line| {
            let line: String = line.into();
            NamedCommand { name: line.clone(), line, ..NamedCommand::default() }
        });
        CommandSet { id: id.to_string(), commands: named.collect(), ..CommandSet::default() }
    }

    /// Returns the experiment as plain data: commands are variants, parameters are factors.
    pub fn spec(&self) -> Spec {
        let variant = |command: &NamedCommand| Variant { name: command.name.clone(), about: command.line.clone() };
        let named = self.clone().with_distinct_names();
        Spec {
            id: self.id.clone(),
            title: "commands, compared with each other".into(),
            readme: README.into(),
            emulates: None,
            variants: named.commands.iter().map(variant).collect(),
            factors: self.parameters.clone(),
            metrics: self.metrics(),
            plots: self.sweeps(),
        }
    }

    /// Returns all metrics of the commands: [`metrics`], the [`counters`] if they are observed, and the printed
    /// figures.
    pub fn metrics(&self) -> Vec<Metric> {
        if let Some(lines) = &self.lines {
            return vec![lines.metric()];
        }
        let counters = counters().into_iter().filter(|_| self.counters);
        metrics().into_iter().chain(counters).chain(self.printed.iter().map(PrintedMetric::metric)).collect()
    }

    /// Returns the index of the first printed figure in the list of all [metrics](CommandSet::metrics).
    #[cfg(feature = "commands")]
    pub(super) fn first_printed(&self) -> usize {
        EXIT + 1 + if self.counters { Counter::ALL.len() } else { 0 }
    }

    /// Returns one plot for each metric and each parameter whose levels are numbers. The exit code is not plotted.
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

    /// Returns the command with this name.
    pub(super) fn command(&self, name: &str) -> Option<&NamedCommand> {
        self.commands.iter().find(|command| command.name == name)
    }

    /// Returns the command of an arm, with its parameters replaced by the arm's levels. Returns `None` if the set does
    /// not have this command.
    pub fn at(&self, arm: &Arm) -> Option<NamedCommand> {
        Some(self.clone().with_distinct_names().command(&arm.variant)?.at(&arm.point))
    }

    /// Gives each command a unique name. A command without a name is named after its command line. If a name is taken
    /// already, a number is appended.
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

/// A command line to measure, with the command lines that run before and after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamedCommand {
    /// Name of the command in tables; by default the command line itself.
    pub name: String,
    /// The command line to measure, with `{name}` for the level of each parameter.
    pub line: String,
    /// Command line that is run once before the first trial.
    pub setup: Option<String>,
    /// Command line that is run before each observation, untimed.
    pub prepare: Option<String>,
    /// Command line that is run after each observation, untimed, even if the command failed.
    pub conclude: Option<String>,
    /// Command line that is run once after the last trial.
    pub cleanup: Option<String>,
    /// Environment variables of the command and of the command lines around it. Parameters are replaced in the values.
    /// In a recorded run, a value is `None` if [`CommandSet::records_env`] was not set.
    pub env: Vec<(String, Option<String>)>,
    /// Destination of this command's output. `None` means the destination for all commands, [`CommandSet::output`].
    pub output: Option<Output>,
    /// The revision of a repository to which the measured program belongs; `None` for a program that stays in its
    /// place. The program of a revision is removed after the run, so such a run can't be continued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<ProgramRevision>,
}

/// A program and the revision of a repository from which it was built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramRevision {
    /// The commit, in hexadecimal digits.
    pub commit: String,
    /// Number of tracked files that differ from the commit.
    pub changed_files: u64,
    /// Hash of the program, as `git hash-object --no-filters` prints it.
    pub program_hash: String,
    /// The relation between the paths at which the compared revisions were built.
    pub paths: BuildPaths,
}

/// The relation between the paths at which revisions were built. A path can become a part of a program, and change its
/// speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuildPaths {
    /// All revisions were built at one path.
    Same,
    /// The paths have equal lengths.
    EqualLength,
    /// The paths have different lengths.
    DifferentLengths,
}

impl BuildPaths {
    /// Returns the relation in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            BuildPaths::Same => "the same path",
            BuildPaths::EqualLength => "paths of equal length",
            BuildPaths::DifferentLengths => "paths of different lengths",
        }
    }
}

impl ProgramRevision {
    /// Returns the revision as facts about an arm.
    #[cfg(feature = "commands")]
    pub(super) fn facts(&self) -> Point {
        Point::default()
            .with("commit", self.commit.as_str())
            .with("changed_files", self.changed_files)
            .with("program_hash", self.program_hash.as_str())
            .with("built_at", self.paths.words())
    }
}

impl NamedCommand {
    /// Returns the command with its parameters replaced everywhere, including its name.
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
            revision: self.revision.clone(),
        }
    }

    /// Returns the environment variables that have values, as pairs of name and value.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.env.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_deref()?)))
    }
}

/// The source of a command's standard input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// An empty input.
    #[default]
    Null,
    /// The contents of the file at this path.
    File(PathBuf),
}

/// The treatment of commands that end with an exit code other than 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Ends the measurement of the command and of the claims about it. Other commands are still measured.
    #[default]
    Stop,
    /// Ignores the exit code. The times count as usual.
    Ignore,
    /// Ignores these exit codes (128 + n if signal n ended the command). Any other failure ends the measurement of the
    /// command.
    IgnoreCodes(Vec<i32>),
    /// Records the failure as an observation. It makes a predicate false, unless the predicate mentions the exit code
    /// itself.
    Observe,
}

/// Returns the metrics of a command; lower is better for all of them. `wall`, `user` and `system` are in nanoseconds,
/// and `memory_peak` is in bytes. `exit` is the exit code (128 + n if signal n ended the command).
pub fn metrics() -> Vec<Metric> {
    let metric = |name, about, unit| Metric::new(name, about, unit, Better::Lower);
    vec![
        metric("wall", "time from the start of the command to its end", Unit::Nanosecond),
        metric("user", "CPU time in user mode", Unit::Nanosecond),
        metric("system", "CPU time in the kernel", Unit::Nanosecond),
        metric("memory_peak", "the largest amount of memory in use at once", Unit::Byte),
        metric("exit", "exit code; 128 + n if signal n ended the command", Unit::One),
    ]
}

/// Returns the optional metrics of a command, one for each counter in [`Counter::ALL`]. Lower is better for all of
/// them.
pub fn counters() -> Vec<Metric> {
    let metric = |counter| {
        let (name, about) = match counter {
            Counter::Instructions => ("instructions", "instructions in user mode"),
            Counter::Cycles => ("cycles", "CPU cycles in user mode"),
            Counter::CacheReferences => ("cache_references", "accesses to the last-level cache in user mode"),
            Counter::CacheMisses => ("cache_misses", "misses of the last-level cache in user mode"),
            Counter::BranchMisses => ("branch_misses", "mispredicted branches in user mode"),
            Counter::PageFaults => ("page_faults", "page faults: memory that the kernel provides on access"),
            Counter::ContextSwitches => ("context_switches", "context switches, voluntary and forced"),
            Counter::CpuMigrations => ("cpu_migrations", "moves to another CPU"),
        };
        Metric::new(name, about, Unit::One, Better::Lower)
    };
    Counter::ALL.map(metric).into()
}

/// Index of the wall time in [`metrics`].
pub const WALL: usize = 0;
/// Index of the exit code, the last of the [`metrics`].
pub(crate) const EXIT: usize = 4;

const README: &str = "\
Command lines, each started anew for every observation. Several commands run in a new random order in every trial. \
Wall, user and system time, peak memory and the exit code come from the kernel's accounting of the process. A command \
that was stopped at its time limit is only known to take longer. Set-ups, preparations and clean-ups are not timed.";

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
        let plots = CommandSet { parameters, ..CommandSet::new("compare", ["true"]) }.spec().plots;
        let swept = ["wall", "user", "system", "memory_peak"].map(|metric| Plot::sweep(metric, "n"));
        assert_eq!(plots, swept);
    }
}
