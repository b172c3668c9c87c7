//! An experiment as plain data: its variants, factors and metrics, and the points and arms that they form.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::TargetError;
use crate::unit::Unit;
use crate::values::{Bounds, Values};

/// The description of an experiment as plain data. `run.json` contains it, so that reports do not need the experiment's
/// code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Identifier on the command line, in claims and in evidence, such as `fill-rate`.
    pub id: String,
    /// One-line description of the experiment, shown in lists.
    pub title: String,
    /// The text that `ascertain explain` prints. It covers the question, the source, reasons why the claim might be
    /// false, the design, the threats and the units.
    pub readme: String,
    /// Describes what the experiment emulates in place of a real system; `None` if it always measures a real system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulates: Option<Emulates>,
    /// The variants, which are the alternatives to measure. If a predicate names no variant, it is about the first
    /// variant.
    pub variants: Vec<Variant>,
    /// The factors: quantities and settings that are varied.
    pub factors: Vec<Factor>,
    /// The metrics, which are the quantities that are observed. Tables and comparisons begin with the first metric.
    pub metrics: Vec<Metric>,
    /// Plots for reports, in addition to the plots that every experiment gets.
    pub plots: Vec<Plot>,
}

impl Spec {
    /// Returns an experiment with this id and README, but no variants, factors, metrics or emulation.
    pub fn new(id: &str, readme: &str) -> Spec {
        Spec { id: id.into(), readme: readme.into(), ..Spec::default() }
    }

    /// Returns the index of the metric with this name in [`metrics`](Self::metrics).
    pub fn metric(&self, name: &str) -> Option<usize> {
        self.metrics.iter().position(|metric| metric.name == name)
    }

    /// Returns the point that has the default level of every factor.
    pub fn default_point(&self) -> Point {
        self.factors.iter().fold(Point::default(), |point, factor| point.with(&factor.name, factor.default.clone()))
    }

    /// Returns the description of the emulation in this arm, or `None` if the arm measures a real system.
    pub fn emulated(&self, arm: &Arm) -> Option<&str> {
        let emulates = self.emulates.as_ref()?;
        let is_given = |factor: &Factor| arm.point.get(&factor.name).is_some_and(|level| *level != factor.default);
        let is_apart =
            |one: &Arm| one.variant == arm.variant && one.point.0.iter().all(|(f, l)| arm.point.get(f) == Some(l));
        let is_real = self.factors.iter().any(|factor| emulates.unless.contains(&factor.name) && is_given(factor))
            || emulates.except.iter().any(is_apart);
        (!is_real).then_some(&*emulates.what)
    }

    /// Returns the reason why an arm is invalid, if one of its levels is not valid for its factor; else `None`. Only a
    /// plan that was written by hand or by another version can contain such an arm.
    pub(crate) fn refusal(&self, arm: &Arm) -> Option<String> {
        self.factors.iter().find_map(|Factor { name, accepts, .. }| {
            let level = arm.point.0.get(name).filter(|level| !accepts.admits(level))?;
            Some(format!("`{name}` accepts {accepts}, not {level}"))
        })
    }
}

/// A description of what an experiment emulates in place of a real system. Figures that are measured with an emulation
/// do not apply to any real provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Emulates {
    /// The emulated system, in words: "a link and both servers, in this process".
    pub what: String,
    /// Names of the factors that select a real system. If any of them has a level other than its default, the arm
    /// measures the real system, and nothing is emulated.
    pub unless: Vec<String>,
    /// Arms that never use the emulation. An entry matches every arm that has the same variant and all levels of the
    /// entry's point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<Arm>,
}

impl Emulates {
    /// Returns an emulation that applies to every arm.
    pub fn new(what: &str) -> Emulates {
        Emulates { what: what.into(), unless: Vec::new(), except: Vec::new() }
    }

    /// Sets the factors that select a real system. The emulation does not apply to arms in which any of these factors
    /// has a level other than its default.
    pub fn unless(self, factors: &[&str]) -> Emulates {
        Emulates { unless: factors.iter().map(ToString::to_string).collect(), ..self }
    }

    /// Excludes from the emulation every arm that has one of these variants and all levels of `point`.
    pub fn except(self, variants: &[&str], point: &Point) -> Emulates {
        let arm = |variant: &&str| Arm { variant: variant.to_string(), point: point.clone() };
        Emulates { except: variants.iter().map(arm).collect(), ..self }
    }
}

/// One of the alternatives that an experiment measures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// Name of the variant.
    pub name: String,
    /// One-line description of the variant, shown in lists.
    pub about: String,
}

impl From<(&str, &str)> for Variant {
    /// Makes a variant from its name and a one-line description.
    fn from((name, about): (&str, &str)) -> Variant {
        Variant { name: name.into(), about: about.into() }
    }
}

/// A plot of an experiment, as plain data, so that reports do not need the experiment's code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plot {
    /// A plot with one line per variant, and a confidence band around each. The vertical axis is a metric, and the
    /// horizontal axis has the levels of a factor.
    Sweep {
        /// Name of the metric on the vertical axis.
        metric: String,
        /// Name of the factor on the horizontal axis.
        factor: String,
        /// The memory that the data uses at each level, so that the plot can mark the sizes of the CPU caches. The
        /// first footprint whose levels match the point of the plot applies. If none matches, no sizes are marked.
        footprints: Vec<Footprint>,
    },
    /// A mark in the [`Sweep`](Self::Sweep) plot that has the same metric and factor. The mark shows an arm that
    /// chooses its own level of the factor. Its horizontal position is the chosen level, which the metric `chosen`
    /// reports.
    Choice {
        /// Name of the metric on the vertical axis of the sweep.
        metric: String,
        /// Name of the factor on the horizontal axis of the sweep.
        factor: String,
        /// Name of the metric that reports the chosen level.
        chosen: String,
    },
    /// A heat map of a metric that has several keys, such as `0-3` for a pair of cores. Each key has one cell, whose
    /// colour shows the median.
    Matrix {
        /// Name of the metric in the cells.
        metric: String,
    },
    /// A plot of a metric over the time since the measurement began. Each key of the metric's values, such as a server,
    /// gets a line with a confidence band.
    Curve {
        /// Name of the metric on the vertical axis.
        metric: String,
    },
    /// A breakdown of a duration into consecutive phases. Each arm has a row, with a bar for each phase, and each bar
    /// begins at the moment at which its phase began. The phases are the keys of the metric.
    Waterfall {
        /// Name of the metric whose values are the durations of the phases.
        metric: String,
    },
    /// A forest plot of ratios. The keys of the metric are workloads, and the arms differ in the level of `factor`,
    /// such as a runtime. Each arm is compared with the first arm: a row for each workload, and the geometric mean with
    /// its intervals. See [`suite`](crate::suite).
    Forest {
        /// Name of the metric whose keys are the workloads. Its values must be above zero.
        metric: String,
        /// Name of the metric with the geometric mean of a trial, by which claims judge the mean.
        mean: String,
        /// Name of the factor whose levels are compared.
        factor: String,
        /// Name of the metric with the change of each workload within a process: the measured value divided by the
        /// earlier values. This metric has the same keys.
        drift: String,
        /// The key of the negative control: work that should take the same time in all arms. It is not part of the
        /// mean.
        control: String,
    },
}

impl Plot {
    /// Returns a sweep plot without memory footprints.
    pub fn sweep(metric: &str, factor: &str) -> Self {
        Self::Sweep { metric: metric.into(), factor: factor.into(), footprints: Vec::new() }
    }
}

/// The memory that the data needs per unit of a factor, for example per element. The factor is on the horizontal axis
/// of the plot. A footprint applies only to points that have certain levels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Footprint {
    /// The levels that a point must have for this footprint to apply.
    pub at: Point,
    /// Memory in bytes per unit of the factor.
    pub bytes_each: f64,
}

/// A combination of levels, with one level for each factor.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Point(pub BTreeMap<String, Level>);

impl Point {
    /// Returns the level of the named factor.
    pub fn get(&self, factor: &str) -> Option<&Level> {
        self.0.get(factor)
    }

    /// Returns this point with the factor set to this level.
    #[must_use]
    pub fn with(mut self, factor: &str, level: impl Into<Level>) -> Point {
        self.0.insert(factor.to_string(), level.into());
        self
    }

    /// Returns whether the point has no levels.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns this point with only those levels that `is_wanted` accepts.
    #[must_use]
    pub fn only(&self, is_wanted: impl Fn(&String, &Level) -> bool) -> Point {
        // Not generic, so it is compiled only once.
        fn retain(mut point: Point, is_wanted: &dyn Fn(&String, &Level) -> bool) -> Point {
            point.0.retain(|factor, level| is_wanted(factor, level));
            point
        }
        retain(self.clone(), &is_wanted)
    }

    /// Returns the text with each `{factor}` replaced by that factor's level. Other text in braces stays.
    ///
    /// ```
    /// use ascertain_engine::experiment::Point;
    /// assert_eq!(Point::default().with("n", 4).fill("sort -n{n} {file}"), "sort -n4 {file}");
    /// ```
    pub fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let (before, braced) = rest.split_at(at);
            filled.push_str(before);
            let level = braced.find('}').and_then(|end| Some((end, self.get(&braced[1..end])?)));
            match level {
                Some((end, level)) => {
                    filled.push_str(&level.to_string());
                    rest = &braced[end + 1..];
                }
                None => {
                    filled.push('{');
                    rest = &braced[1..];
                }
            }
        }
        filled + rest
    }
}

impl fmt::Display for Point {
    /// Writes the levels as in `elements=187500 type=f32`. Writes nothing for a point without levels.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (factor, level)) in self.0.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{factor}={level}")?;
        }
        Ok(())
    }
}

/// One variant at one point: the smallest unit that is measured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Arm {
    /// Name of the variant.
    pub variant: String,
    /// The point at which the variant is measured.
    pub point: Point,
}

impl Arm {
    /// Returns the address in the level of `factor`. Returns `None` if the level is missing, or equals `none`, the word
    /// that stands for no address.
    ///
    /// # Errors
    /// [`Unset`](super::Unset), if the level refers to an environment variable that is not set.
    pub fn address(&self, factor: &str, none: &str) -> Result<Option<super::Address>, super::Unset> {
        let level = self.point.get(factor).filter(|level| level.to_string() != none);
        level.map(super::Address::from_level).transpose()
    }

    /// Returns the level of a whole-number factor.
    ///
    /// # Errors
    /// If the level is missing or not a whole number.
    pub fn integer(&self, factor: &str) -> Result<u64, TargetError> {
        let level = self.point.get(factor).and_then(Level::integer);
        level.ok_or_else(|| TargetError::Failed(format!("{self}: {factor} must be a whole number")))
    }

    /// Returns whether the arm's variant is a command line that contains the factor's placeholder, such as `{n}` for
    /// the factor `n`.
    pub fn shows(&self, factor: &str) -> bool {
        self.variant.contains(&format!("{{{factor}}}"))
    }
}

impl fmt::Display for Arm {
    /// Writes the variant and its levels, as in `kahan (accumulators=4)`. If the variant is a command line with the
    /// placeholder `{n}`, the level of `n` replaces the placeholder, as in `sort -n4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.point.fill(&self.variant))?;
        let beside = self.point.only(|factor, _| !self.shows(factor));
        if beside.0.is_empty() { Ok(()) } else { write!(f, " ({beside})") }
    }
}

/// A quantity or setting that is varied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Name of the factor. If the factor has a unit, the name ends with this unit.
    pub name: String,
    /// One-line description of the factor, shown in lists.
    pub about: String,
    /// The level of the factor in arms that set no level.
    pub default: Level,
    /// The levels that are valid for the factor.
    pub accepts: Accepts,
}

impl Factor {
    /// Returns a factor with this default level. `accepts` is the rule for its valid levels.
    pub fn new(name: &str, about: &str, default: impl Into<Level>, accepts: Accepts) -> Self {
        Self { name: name.into(), about: about.into(), default: default.into(), accepts }
    }

    /// Returns a factor whose levels are whole numbers.
    pub fn integer(name: &str, about: &str, default: u64, range: RangeInclusive<u64>) -> Self {
        let (min, max) = range.into_inner();
        Self::new(name, about, default, Accepts::Integers { min, max })
    }

    /// Returns a factor whose levels are these words; the first is the default.
    pub fn one_of<const N: usize>(name: &str, about: &str, words: [&str; N]) -> Self {
        Self::new(name, about, words[0], Accepts::OneOf(words.map(Level::from).into()))
    }
}

/// A rule for which levels are valid for a factor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accepts {
    /// Accepts whole numbers from `min` to `max`, both included.
    Integers {
        /// The smallest accepted level.
        min: u64,
        /// The largest accepted level.
        max: u64,
    },
    /// Accepts only the listed levels.
    OneOf(Vec<Level>),
    /// Accepts any level. This is the rule for the parameters of a command.
    Anything,
    /// Accepts a list of words, separated by commas. The whole list counts as one level.
    List,
    /// Accepts the word in `none`, or an address that begins with one of `schemes`. Levels are recorded, so an address
    /// with a user name, query or fragment is refused, because these may contain secrets.
    Address {
        /// The word that a user writes to choose no address.
        none: String,
        /// Prefixes of accepted addresses, such as `s3://`.
        schemes: Vec<String>,
        /// `true` if the level may also be `$NAME`, which stands for the address in the environment variable `NAME`.
        /// [`Arm::address`] reads that variable.
        from_variable: bool,
    },
}

impl Accepts {
    /// Returns whether the level is valid for the factor.
    pub fn admits(&self, level: &Level) -> bool {
        match self {
            Accepts::Integers { min, max } => level.integer().is_some_and(|value| (*min..=*max).contains(&value)),
            Accepts::OneOf(levels) => levels.contains(level),
            Accepts::Anything | Accepts::List => true,
            Accepts::Address { none, schemes, from_variable } => {
                let text = level.to_string();
                let is_one = schemes.iter().any(|scheme| text.starts_with(scheme.as_str()));
                let is_variable = *from_variable && super::address::variable(&text).is_some();
                text == *none || is_variable || is_one && !text.contains(['@', '?', '#'])
            }
        }
    }
}

impl fmt::Display for Accepts {
    /// Describes the valid levels: `whole numbers from 1 to 8` or `f32, f64`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Accepts::Integers { min, max } => write!(f, "whole numbers from {min} to {max}"),
            Accepts::OneOf(levels) => f.write_str(&levels.iter().map(Level::to_string).collect::<Vec<_>>().join(", ")),
            Accepts::Anything => f.write_str("whole numbers and strings"),
            Accepts::List => f.write_str("a list of strings, separated by commas"),
            Accepts::Address { none, schemes, from_variable } => {
                let begins = schemes.join(" or ");
                write!(f, "{none}, or an address that begins with {begins} and has no user, query or fragment")?;
                f.write_str(if *from_variable {
                    ", or '$NAME' for the address in the environment variable NAME"
                } else {
                    ""
                })
            }
        }
    }
}

/// One value of a factor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Level {
    /// A whole number, such as a size or a count.
    Integer(u64),
    /// A word or other text.
    Text(String),
}

impl Level {
    /// Parses a level from the command line. `64Ki` and `1M` are numbers. `1K` is not, because it might mean 1000 or
    /// 1024.
    ///
    /// ```
    /// use ascertain_engine::experiment::Level;
    /// assert_eq!(Level::parse("64Ki"), Level::Integer(65_536));
    /// assert_eq!(Level::parse("f32"), Level::Text("f32".into()));
    /// ```
    pub fn parse(text: &str) -> Level {
        const SUFFIXES: [(&str, u64); 7] = [
            ("Ki", 1 << 10),
            ("Mi", 1 << 20),
            ("Gi", 1 << 30),
            ("k", 1_000),
            ("M", 1_000_000),
            ("G", 1_000_000_000),
            ("", 1),
        ];
        let number = SUFFIXES.iter().find_map(|(suffix, scale)| {
            let digits = text.strip_suffix(suffix)?.replace('_', "");
            digits.parse::<u64>().ok()?.checked_mul(*scale)
        });
        number.map_or_else(|| Level::Text(text.to_string()), Level::Integer)
    }

    /// Returns the level if it is a whole number.
    pub fn integer(&self) -> Option<u64> {
        match self {
            Level::Integer(value) => Some(*value),
            Level::Text(_) => None,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Level::Integer(value) => write!(f, "{value}"),
            Level::Text(text) => f.write_str(text),
        }
    }
}

impl From<u64> for Level {
    fn from(value: u64) -> Self {
        Level::Integer(value)
    }
}

impl From<&str> for Level {
    fn from(text: &str) -> Self {
        Level::Text(text.to_string())
    }
}

/// A quantity that is observed in each trial of an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Name of the metric, such as `wall`, `time` or `fill_rate`. If the metric is a quantile of the samples of a
    /// trial, the name ends in `_p` and the percentage, as in `latency_p99`. Tables show the quantiles of one quantity
    /// together.
    pub name: String,
    /// One-line description of the metric, shown in lists and reports.
    pub about: String,
    /// Unit in which the values are recorded.
    pub unit: Unit,
    /// The direction that is better: lower or higher values.
    pub better: Better,
    /// The method that reduces the samples of a trial to a single number. Claims use this number.
    pub reduce: Reduce,
    /// `true` if each value is a share, from 0 to 1. Shares are summarised by their mean, because the median is zero
    /// whenever most trials have a share of zero.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_share: bool,
    /// `true` if a trial has several values, each with a key such as the name of a server, and the values of each key
    /// are summarised separately.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_by_key: bool,
}

impl Metric {
    /// Returns whether the values of the two metrics have the same meaning: the metrics may differ only in their
    /// descriptions. Recorded values therefore stay usable after a description is improved.
    pub(crate) fn is_same_as(&self, other: &Metric) -> bool {
        let about = other.about.clone();
        Metric { about, ..self.clone() } == *other
    }

    /// Returns a metric that has one value per trial.
    pub fn new(name: &str, about: &str, unit: Unit, better: Better) -> Metric {
        let (name, about, reduce) = (name.into(), about.into(), Reduce::Value);
        Metric { name, about, unit, better, reduce, is_share: false, is_by_key: false }
    }

    /// Returns a metric whose values are shares, from 0 to 1.
    pub fn share(name: &str, about: &str, better: Better) -> Metric {
        Metric { is_share: true, ..Metric::new(name, about, Unit::One, better) }
    }

    /// Returns a metric that is a time, in nanoseconds; lower is better.
    pub fn time(name: &str, about: &str) -> Metric {
        Metric::new(name, about, Unit::Nanosecond, Better::Lower)
    }

    /// Returns this metric with [`is_by_key`](Self::is_by_key) set: the values of each key are summarised separately.
    pub fn by_key(self) -> Metric {
        Metric { is_by_key: true, ..self }
    }
}

/// The direction in which a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Lower values are better, as for times.
    Lower,
    /// Higher values are better, as for throughputs.
    Higher,
}

/// The method by which a trial's samples of one metric become one number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduce {
    /// Takes the only sample of the trial, or the last of several.
    Value,
    /// Takes this quantile of the samples' values (nearest rank). For example, the samples may be the times at which
    /// servers received a change. The quantile 0.5 is then the time until half of the servers had received the change.
    Quantile(f64),
    /// Adds the samples' values.
    Sum,
}

impl Reduce {
    /// Reduces the samples of a trial to one number, and returns its range; `None` if there are no samples. `scratch`
    /// is a buffer for sorting.
    pub(crate) fn apply(self, samples: impl Iterator<Item = Bounds>, scratch: &mut Values) -> Option<Bounds> {
        match self {
            Reduce::Value => samples.last(),
            Reduce::Sum => samples.reduce(Bounds::plus),
            Reduce::Quantile(q) => {
                scratch.clear();
                scratch.extend(samples);
                scratch.sorted().nearest_rank(q)
            }
        }
    }
}
