//! What is swept, and the levels that it takes.

use std::fmt;

use serde::{Deserialize, Serialize};

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
}

impl Accepts {
    /// Whether it is one of them.
    pub fn admits(&self, level: &Level) -> bool {
        match self {
            Accepts::Integers { min, max } => level.integer().is_some_and(|value| (*min..=*max).contains(&value)),
            Accepts::OneOf(levels) => levels.contains(level),
            Accepts::Anything => true,
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
