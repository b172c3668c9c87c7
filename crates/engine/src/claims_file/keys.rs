//! The keys of a `[[claim]]`, the form of each, and what it goes with: the one table that reading,
//! messages and the JSON schema follow.

use toml::de::DeValue;

use crate::names::suggestion;
use crate::unit::{Unit, parse_quantity};

/// A key of a `[[claim]]`.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) form: Form,
    pub(super) goes: Goes,
    /// A line for editors, which show it from the JSON schema.
    pub(super) about: &'static str,
}

/// What a value must look like, apart from what depends on the experiment.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// A claim's id.
    Id,
    /// Any string.
    Text,
    /// A command line.
    Line,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// True or false.
    Flag,
    /// A number in (0, 1).
    Share,
    /// A whole number from 1.
    Count,
    /// A time above zero, with its unit.
    Duration,
    /// A number or a quantity.
    Bound,
    /// Two bounds.
    Pair,
    /// Levels by factor.
    Levels,
    /// An arm: a variant, or a table with one; or a command line.
    Side,
}

/// Which claims may have a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Goes {
    /// All.
    Anywhere,
    /// Those that measure commands.
    Commands,
    /// Those that compare.
    Comparison,
    /// Those that are judged by rate.
    Rate,
}

/// The keys that say what must be true; a claim has exactly one.
pub(super) const BOUNDS: [&str; 4] = ["at_least", "at_most", "within", "predicate"];

const fn key(name: &'static str, form: Form, goes: Goes, about: &'static str) -> Key {
    Key { name, form, goes, about }
}

/// Every key of a `[[claim]]`.
pub(super) const KEYS: &[Key] = {
    use Form::*;
    use Goes::*;
    &[
        key("id", Id, Anywhere, "Its name, unique in a run."),
        key("says", Text, Anywhere, "The claim as a sentence; made from the rest unless given."),
        key("source", Text, Anywhere, "Who says so: a document, a URL."),
        key("source_value", Text, Anywhere, "The source's figure, as it is written there."),
        key("analysis", Text, Anywhere, "Why it should hold, and when it will not."),
        key("restated", Text, Anywhere, "How a sentence that is not Bernoulli was put."),
        key("experiment", Text, Anywhere, "The experiment that measures it."),
        key("command", Line, Commands, "The command that a predicate is about, in place of an experiment."),
        key("at", Levels, Anywhere, "Levels by factor; a factor left out takes its default."),
        key("over", OneOf(&["each", "every"]), Anywhere, "For lists in `at`: one claim a point, or one for all."),
        key("metric", Text, Comparison, "What is compared; the experiment's first metric unless given."),
        key("candidate", Side, Anywhere, "What the claim speaks for."),
        key("baseline", Side, Comparison, "What the candidate is held against."),
        key("at_least", Bound, Comparison, "At least so many times better, or better by that."),
        key("at_most", Bound, Comparison, "At most so many times better, or better by that."),
        key("within", Pair, Comparison, "From so many to so many times better, or better by that."),
        key("predicate", Text, Anywhere, "Comparisons `metric op quantity`, joined by `and`."),
        key("difference", Flag, Comparison, "The bound is a difference in the metric's unit, not a ratio."),
        key("kind", OneOf(&["rate", "exact"]), Anywhere, "`exact`: the metric has no chance in it; checked once."),
        key("rate", Share, Rate, "The rate at which it must hold; 0.5 for comparisons."),
        key("margin", Share, Rate, "Rates this close to `rate` need not be told apart."),
        key("error", Share, Rate, "The chance of a wrong verdict; an even share of the run's unless given."),
        key("max_time", Duration, Anywhere, "No new trial after that much measuring."),
        key("max_trials", Count, Anywhere, "No new trial after that many."),
        key(
            "time_limit",
            Duration,
            Commands,
            "An observation that takes longer is stopped: it took more than that, and no more is known of it.",
        ),
        key("shell", Flag, Commands, "Whether `sh -c` runs the command lines."),
        key("setup", Line, Commands, "Run once before the first trial."),
        key("prepare", Line, Commands, "Run before each observation, untimed."),
        key("cleanup", Line, Commands, "Run once after the last trial."),
    ]
};

impl Form {
    /// What is wrong with the value of `key`; `None` when nothing is.
    pub(super) fn fault(self, key: &str, value: &DeValue<'_>) -> Option<String> {
        if self.admits(value) {
            return None;
        }
        let because = match (self, value) {
            (Form::Duration, DeValue::String(text)) => match parse_quantity(text, Unit::Nanosecond) {
                Ok(_) => String::new(),
                Err(error) => return Some(format!("`{key}`: {error}")),
            },
            (Form::OneOf(words), DeValue::String(text)) => suggestion(text, words.iter().copied()).unwrap_or_default(),
            _ => String::new(),
        };
        Some(format!("`{key}` must be {}, not {}{because}", self.expected(), shown(value)))
    }

    fn admits(self, value: &DeValue<'_>) -> bool {
        match (self, value) {
            (Form::Id, DeValue::String(text)) => {
                !text.is_empty() && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-'))
            }
            (Form::Text, DeValue::String(_)) => true,
            (Form::Line, DeValue::String(text)) => !text.trim().is_empty(),
            (Form::OneOf(words), DeValue::String(text)) => words.contains(&text.as_ref()),
            (Form::Flag, DeValue::Boolean(_)) => true,
            (Form::Share, value) => number(value).is_some_and(|share| share > 0.0 && share < 1.0),
            (Form::Count, value) => whole_number(value).is_some_and(|count| count >= 1),
            (Form::Duration, DeValue::String(text)) => nanoseconds(text).is_some(),
            (Form::Bound, value) => matches!(value, DeValue::String(_)) || number(value).is_some(),
            (Form::Pair, DeValue::Array(both)) => {
                both.len() == 2 && both.iter().all(|bound| Form::Bound.admits(bound.get_ref()))
            }
            (Form::Levels, DeValue::Table(_)) => true,
            (Form::Side, DeValue::String(_) | DeValue::Table(_)) => true,
            _ => false,
        }
    }

    fn expected(self) -> String {
        let text = match self {
            Form::Id => "a name of the characters a-z, 0-9, `.`, `_` and `-`",
            Form::Text => "a string",
            Form::Line => "a command line: a string that is not empty",
            Form::OneOf(words) => return words.iter().map(|w| format!("\"{w}\"")).collect::<Vec<_>>().join(" or "),
            Form::Flag => "true or false",
            Form::Share => "a number above 0 and below 1",
            Form::Count => "a whole number from 1",
            Form::Duration => "a time above zero such as \"30 s\"",
            Form::Bound => "a number such as 8.0, or with `difference = true` a quantity such as \"5 ms\"",
            Form::Pair => "two bounds, [low, high]",
            Form::Levels => "a table of levels such as { elements = 1024 }",
            Form::Side => "a name such as \"naive\", or a table such as { variant = \"naive\", elements = 1024 }",
        };
        text.to_string()
    }
}

/// The value as messages show it.
pub(super) fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("\"{text}\""),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) => "a date".into(),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
    }
}

/// The number, when the value is one.
pub(super) fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(number) => number.as_str().parse().ok(),
        DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix()).ok().map(|n| n as f64),
        _ => None,
    }
}

/// The number, when the value is a whole one that is not negative.
pub(super) fn whole_number(value: &DeValue<'_>) -> Option<u64> {
    match value {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    }
}

/// A time above zero in nanoseconds.
pub(super) fn nanoseconds(text: &str) -> Option<u64> {
    let duration_ns = parse_quantity(text, Unit::Nanosecond).ok()?;
    (duration_ns >= 1.0).then_some(duration_ns as u64)
}
