//! An experiment as plain data: its variants, factors and metrics, and the arms and points that they make.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::TargetError;
use crate::unit::Unit;
use crate::values::{Bounds, Values};

/// An experiment as plain data; what `run.json` keeps of it, so that a report needs no code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The name on the command line, in claims and in evidence: `fill-rate`.
    pub id: String,
    /// A line for lists.
    pub title: String,
    /// What `ascertain explain` prints: question, source, why the claim might be false, design,
    /// threats, units.
    pub readme: String,
    /// What stands in for the real thing, where something does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulates: Option<Emulates>,
    /// The alternatives; the first is what a predicate speaks of unless it names another.
    pub variants: Vec<Variant>,
    /// What is swept.
    pub factors: Vec<Factor>,
    /// What is observed; the first is what tables and comparisons show first.
    pub metrics: Vec<Metric>,
    /// What a report draws besides the pictures that it draws of every experiment.
    #[serde(default)]
    pub plots: Vec<Plot>,
}

impl Spec {
    /// An experiment with this id and README, and nothing else yet; nothing in it is emulated.
    pub fn new(id: &str, readme: &str) -> Spec {
        Spec { id: id.into(), readme: readme.into(), ..Spec::default() }
    }

    /// The metric's index.
    pub fn metric(&self, name: &str) -> Option<usize> {
        self.metrics.iter().position(|metric| metric.name == name)
    }

    /// The point at which every factor has its default level.
    pub fn default_point(&self) -> Point {
        self.factors.iter().fold(Point::default(), |point, factor| point.with(&factor.name, factor.default.clone()))
    }

    /// What stands in for the real thing in this arm.
    pub fn emulated(&self, arm: &Arm) -> Option<&str> {
        let emulates = self.emulates.as_ref()?;
        let is_given = |factor: &Factor| arm.point.get(&factor.name).is_some_and(|level| *level != factor.default);
        let is_apart =
            |one: &Arm| one.variant == arm.variant && one.point.0.iter().all(|(f, l)| arm.point.get(f) == Some(l));
        let is_real = self.factors.iter().any(|factor| emulates.unless.contains(&factor.name) && is_given(factor))
            || emulates.except.iter().any(is_apart);
        (!is_real).then_some(&*emulates.what)
    }

    /// Why an arm is none of this experiment, where a level is none of its factor: a plan that was written by hand, or
    /// by another version, may ask for it.
    pub(crate) fn refusal(&self, arm: &Arm) -> Option<String> {
        self.factors.iter().find_map(|Factor { name, accepts, .. }| {
            let level = arm.point.0.get(name).filter(|level| !accepts.admits(level))?;
            Some(format!("its `{name}` is {level}, and may be {accepts}"))
        })
    }
}

/// What stands in for the real thing: figures of an emulated provider say nothing of anybody's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Emulates {
    /// In a few words: "a link and both servers, in this process".
    pub what: String,
    /// The factors by which a real one is given: at another level than its default, nothing stands in.
    #[serde(default)]
    pub unless: Vec<String>,
    /// Arms that never meet it: of such a variant, with at least these levels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<Arm>,
}

impl Emulates {
    /// In every arm.
    pub fn of(what: &str) -> Emulates {
        Emulates { what: what.into(), unless: Vec::new(), except: Vec::new() }
    }

    /// In those that are given no real one by these factors.
    pub fn unless(self, factors: &[&str]) -> Emulates {
        Emulates { unless: factors.iter().map(ToString::to_string).collect(), ..self }
    }

    /// But not where these variants are measured at this point.
    pub fn except(self, variants: &[&str], point: &Point) -> Emulates {
        let arm = |variant: &&str| Arm { variant: variant.to_string(), point: point.clone() };
        Emulates { except: variants.iter().map(arm).collect(), ..self }
    }
}

/// One of the alternatives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// A line about it.
    pub about: String,
}

impl From<(&str, &str)> for Variant {
    /// Of its name and a line about it.
    fn from((name, about): (&str, &str)) -> Variant {
        Variant { name: name.into(), about: about.into() }
    }
}

/// A picture of an experiment, as data, so that a report needs no code of the experiment's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plot {
    /// A metric over a factor's levels: a line a variant, with its band.
    Sweep {
        /// The metric's name.
        metric: String,
        /// The factor's name.
        factor: String,
        /// The memory that a level touches, so that the picture can mark where the caches end; the first
        /// that fits counts, and where none does nothing is marked.
        footprints: Vec<Footprint>,
    },
    /// In the sweep of a metric over a factor: at which level an arm that has no levels of it was, by a metric of its
    /// own.
    Choice {
        /// The swept metric's name.
        metric: String,
        /// The factor's name.
        factor: String,
        /// The name of the metric that says the level.
        chosen: String,
    },
    /// A metric with keys such as `0-3`: a cell each, coloured by the median.
    Matrix {
        /// The metric's name.
        metric: String,
    },
    /// A metric over the time since the measurement began: a line a key, with its band.
    Curve {
        /// The metric's name.
        metric: String,
    },
    /// A time in parts, one after the other: a row an arm, a stretch a key, from its offset on.
    Waterfall {
        /// The metric's name.
        metric: String,
    },
}

impl Plot {
    /// A sweep in which the memory that a level touches is no matter.
    pub fn sweep(metric: &str, factor: &str) -> Self {
        Self::Sweep { metric: metric.into(), factor: factor.into(), footprints: Vec::new() }
    }
}

/// How much memory one of a factor's units touches at some points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Footprint {
    /// The levels that a point must have for this to be true of it.
    pub at: Point,
    /// Bytes for each unit of the swept factor.
    pub bytes_each: f64,
}

/// One combination of levels, by factor.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Point(pub BTreeMap<String, Level>);

impl Point {
    /// The level of a factor.
    pub fn get(&self, factor: &str) -> Option<&Level> {
        self.0.get(factor)
    }

    /// This point with one level changed.
    #[must_use]
    pub fn with(mut self, factor: &str, level: impl Into<Level>) -> Point {
        self.0.insert(factor.to_string(), level.into());
        self
    }

    /// This point with only those of its levels.
    #[must_use]
    pub fn only(&self, is_wanted: impl Fn(&String, &Level) -> bool) -> Point {
        // Compiled once, for whatever is wanted.
        fn retain(mut point: Point, is_wanted: &dyn Fn(&String, &Level) -> bool) -> Point {
            point.0.retain(|factor, level| is_wanted(factor, level));
            point
        }
        retain(self.clone(), &is_wanted)
    }

    /// The text with each `{factor}` replaced by its level. What else stands in braces stays.
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
    /// `elements=187500 type=f32`; nothing for an experiment without factors.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (factor, level)) in self.0.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{factor}={level}")?;
        }
        Ok(())
    }
}

/// One variant at one point.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Arm {
    /// The variant's name.
    pub variant: String,
    /// Where.
    pub point: Point,
}

impl Arm {
    /// Returns the address in a factor's level; none if the level is `none` or missing.
    ///
    /// # Errors
    /// [`Unset`](super::Unset), if it names an environment variable that is not set.
    pub fn address(&self, factor: &str, none: &str) -> Result<Option<super::Address>, super::Unset> {
        let level = self.point.get(factor).filter(|level| level.to_string() != none);
        level.map(super::Address::of).transpose()
    }

    /// The level of a factor that has whole numbers.
    ///
    /// # Errors
    /// Where it is none.
    pub fn integer(&self, factor: &str) -> Result<u64, TargetError> {
        let level = self.point.get(factor).and_then(Level::integer);
        level.ok_or_else(|| TargetError::Failed(format!("{self}: {factor} is a whole number")))
    }

    /// Whether the variant is a command line in which this factor's level stands.
    pub fn shows(&self, factor: &str) -> bool {
        self.variant.contains(&format!("{{{factor}}}"))
    }
}

impl fmt::Display for Arm {
    /// `kahan (accumulators=4)`; what stands in a command line as `{n}` is filled in: `sort -n4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.point.fill(&self.variant))?;
        let beside = self.point.only(|factor, _| !self.shows(factor));
        if beside.0.is_empty() { Ok(()) } else { write!(f, " ({beside})") }
    }
}

/// Something that is swept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Its name, unit last where it has one.
    pub name: String,
    /// A line about it.
    pub about: String,
    /// The level taken where none is named.
    pub default: Level,
    /// Which levels there are.
    pub accepts: Accepts,
}

impl Factor {
    /// A factor, with words and a level of any kind.
    pub fn new(name: &str, about: &str, default: impl Into<Level>, accepts: Accepts) -> Self {
        Self { name: name.into(), about: about.into(), default: default.into(), accepts }
    }

    /// One whose levels are whole numbers.
    pub fn integer(name: &str, about: &str, default: u64, range: RangeInclusive<u64>) -> Self {
        let (min, max) = range.into_inner();
        Self::new(name, about, default, Accepts::Integers { min, max })
    }

    /// One whose levels are these words, of which the first is the default.
    pub fn one_of<const N: usize>(name: &str, about: &str, words: [&str; N]) -> Self {
        Self::new(name, about, words[0], Accepts::OneOf(words.map(Level::from).into()))
    }
}

/// Which levels a factor accepts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accepts {
    /// Whole numbers from `min` to `max`.
    Integers {
        /// The least.
        min: u64,
        /// The greatest.
        max: u64,
    },
    /// One of these.
    OneOf(Vec<Level>),
    /// Anything: parameters of a command.
    Anything,
    /// A list of words, with commas between them: all of it is one level.
    List,
    /// This word, or an address that begins like one of these. Levels are written down: an address in which a user or a
    /// signature could stand is refused.
    Address {
        /// What stands for none.
        none: String,
        /// As `s3://`.
        schemes: Vec<String>,
        /// `true` if the level may also be the name of an environment variable that has the address: `$NAME`, read by
        /// [`Arm::address`].
        #[serde(default)]
        from_variable: bool,
    },
}

impl Accepts {
    /// Whether it is one of them.
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
    /// `whole numbers from 1 to 8`; `f32, f64`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Accepts::Integers { min, max } => write!(f, "whole numbers from {min} to {max}"),
            Accepts::OneOf(levels) => f.write_str(&levels.iter().map(Level::to_string).collect::<Vec<_>>().join(", ")),
            Accepts::Anything => f.write_str("whole numbers and strings"),
            Accepts::List => f.write_str("a list of strings, with commas between them"),
            Accepts::Address { none, schemes, from_variable } => {
                let begins = schemes.join(" or ");
                write!(f, "{none}, or an address that begins with {begins} and has no user, query or fragment")?;
                f.write_str(if *from_variable {
                    ", or '$NAME', the name of an environment variable that has it"
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
    /// A whole number: a size, a count.
    Integer(u64),
    /// A word.
    Text(String),
}

impl Level {
    /// Reads a level as people write it on the command line: `64Ki` and `1M` are numbers. `1K` is not, since it might
    /// mean either thousand.
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

    /// The number, when it is one.
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

/// Something that is observed of an arm in a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name: `wall`, `time`, `fill_rate`. That of a quantile within the trial ends in `_p` and its percent, as
    /// `latency_p99` does: tables have those of the same thing beside each other.
    pub name: String,
    /// A line about it.
    pub about: String,
    /// The unit of its values.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// How a trial's samples become the one number that claims judge.
    pub reduce: Reduce,
    /// Whether it is a share of each trial, which over the trials is summed up by its mean: where most have none, the
    /// median is none too, whatever the others have.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_share: bool,
    /// Whether what is told of it over the trials is told of each key by itself: a trial has one value of each server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_by_key: bool,
}

impl Metric {
    /// A metric whose trial has one value.
    pub fn new(name: &str, about: &str, unit: Unit, better: Better) -> Metric {
        let (name, about, reduce) = (name.into(), about.into(), Reduce::Value);
        Metric { name, about, unit, better, reduce, is_share: false, is_by_key: false }
    }

    /// A share of a trial, from 0 to 1.
    pub fn share(name: &str, about: &str, better: Better) -> Metric {
        Metric { is_share: true, ..Metric::new(name, about, Unit::One, better) }
    }

    /// A time, of which less is better.
    pub fn time(name: &str, about: &str) -> Metric {
        Metric::new(name, about, Unit::Nanosecond, Better::Lower)
    }

    /// The same, told of each key by itself.
    pub fn by_key(self) -> Metric {
        Metric { is_by_key: true, ..self }
    }
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Less is better: a time.
    Lower,
    /// More is better: a throughput.
    Higher,
}

/// How a trial's samples of one metric become one number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduce {
    /// There is one sample; it is the number. Of several, the last.
    Value,
    /// The quantile of the samples' values (nearest rank). Of the times at which each of several had something, it is
    /// the time until that share of them had.
    Quantile(f64),
    /// The samples are parts: their sum.
    Sum,
}

impl Reduce {
    /// What is known of the number that a trial's samples come to; none where there are no samples.
    pub(crate) fn of(self, samples: impl Iterator<Item = Bounds>, scratch: &mut Values) -> Option<Bounds> {
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
