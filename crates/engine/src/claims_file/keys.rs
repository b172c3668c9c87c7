//! The keys of a `[[claim]]`: the form of each key's value, and the kinds of claims that may have the key. The parser,
//! the error messages and the JSON schema all use this table of keys. This module also reads the values of a claim and
//! checks them against the table.

use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::Notes;
use crate::names::{suggestion, unknown};
use crate::unit::{Unit, parse_quantity};

/// A key of a `[[claim]]`.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) form: Form,
    pub(super) scope: Scope,
    /// A one-line description of the key. Editors get it from the JSON schema.
    pub(super) about: &'static str,
}

/// The form that the value of a key must have, apart from requirements that depend on the experiment.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// The id of a claim.
    Id,
    /// Any string value.
    Text,
    /// A command line, which must not be empty.
    Line,
    /// One of the listed words.
    OneOf(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A number above 0 and below 1.
    Share,
    /// A whole number of at least 1.
    Count,
    /// A time above zero, with its unit.
    Duration,
    /// A bound on a ratio or difference, written as a number or a quantity.
    Bound,
    /// A list of two bounds; the lower bound comes first.
    Pair,
    /// A table with a level, or a list of levels, for each factor.
    Levels,
    /// A table with a pattern for each printed metric.
    Metrics,
    /// An arm of an experiment, written as the name of a variant, or as a table with this name and levels. In claims
    /// about commands, it is a command line.
    Side,
}

/// The kinds of claims that may have a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Every claim may have the key.
    Anywhere,
    /// Claims about commands may have the key.
    Commands,
    /// Claims that compare two arms may have the key.
    Comparison,
    /// Claims that are judged by their rate of successes may have the key.
    Rate,
}

/// The keys that state the condition on a trial; a claim has exactly one of them.
pub(super) const BOUNDS: [&str; 4] = ["at_least", "at_most", "within", "predicate"];

const fn key(name: &'static str, form: Form, scope: Scope, about: &'static str) -> Key {
    Key { name, form, scope, about }
}

/// Every key of a `[[claim]]`.
pub(super) const KEYS: &[Key] = {
    use Form::*;
    use Scope::*;
    &[
        key("id", Id, Anywhere, "Name of the claim, unique in a run."),
        key("says", Text, Anywhere, "The claim as a sentence; by default made from the other keys."),
        key("source", Text, Anywhere, "Origin of the claim, such as a document or a URL."),
        key("source_value", Text, Anywhere, "The figure that the claim states, as written in the source."),
        key(
            "analysis",
            Text,
            Anywhere,
            "The reasons why the claim should hold, and the conditions under which it will not.",
        ),
        key("restated", Text, Anywhere, "The claim as a rate of successful trials, if `says` does not state a rate."),
        key("experiment", Text, Anywhere, "Id of the experiment that measures the claim."),
        key("command", Line, Commands, "The command that a predicate is about, instead of an experiment."),
        key(
            "at",
            Levels,
            Anywhere,
            "Level of each factor; a factor that is missing here has its default level, and a factor that no arm of the claim has is an error.",
        ),
        key(
            "over",
            OneOf(&["each", "every"]),
            Anywhere,
            "If `at` has lists: `each` makes one claim per point, `every` a single claim for all points.",
        ),
        key(
            "metric",
            Text,
            Comparison,
            "Metric to compare, or an expression such as `mean(window(wall, 10))`; by default the first of `metrics`, \
             else the experiment's first metric.",
        ),
        key(
            "metrics",
            Metrics,
            Commands,
            "Figures that the commands print, by name: a regular expression with one group, `json:.PATH`, or a table \
             with `pattern`, `unit` and `better`.",
        ),
        key("candidate", Side, Anywhere, "The arm that the claim is about."),
        key("baseline", Side, Comparison, "The arm with which the candidate is compared."),
        key(
            "at_least",
            Bound,
            Comparison,
            "Lower bound on the factor (or difference) by which the candidate is better.",
        ),
        key(
            "at_most",
            Bound,
            Comparison,
            "Upper bound on the factor (or difference) by which the candidate is better.",
        ),
        key("within", Pair, Comparison, "Range of the factor (or difference) by which the candidate is better."),
        key(
            "predicate",
            Text,
            Anywhere,
            "Condition on an arm's metrics: comparisons `metric op quantity`, joined by `and`. The metric may be an \
             expression, such as `quantile(.9, window(wall, 20)) <= 50 ms`.",
        ),
        key("difference", Flag, Comparison, "`true`: bounds are differences in the metric's unit, not factors."),
        key(
            "kind",
            OneOf(&["rate", "exact"]),
            Anywhere,
            "`exact`: check the claim in a single trial, because the metric is deterministic.",
        ),
        key(
            "rate",
            Share,
            Rate,
            "Share of the trials in which the condition must be true; 0.5 by default for comparisons.",
        ),
        key("margin", Share, Rate, "Rates within this distance of `rate` need not be distinguished from it."),
        key(
            "error",
            Share,
            Rate,
            "Highest probability of a wrong verdict; by default an equal share of the run's error.",
        ),
        key("max_time", Duration, Anywhere, "Limit of the measuring time for this claim; no trial starts after it."),
        key("max_trials", Count, Anywhere, "Maximum number of trials."),
        key(
            "time_limit",
            Duration,
            Commands,
            "Time limit of each execution; a command that takes longer is stopped, and its time counts as longer than the limit.",
        ),
        key("shell", Flag, Commands, "`true`: run the command lines with `sh -c`."),
        key("setup", Line, Commands, "Command line that is run once before the first trial."),
        key("prepare", Line, Commands, "Command line that is run before each observation, untimed."),
        key("cleanup", Line, Commands, "Command line that is run once after the last trial."),
    ]
};

impl Form {
    /// Checks the form of the value of `key`. Returns `None` if the value has this form, or else the reason why it does
    /// not, as text for the user.
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
            (Form::Levels | Form::Metrics, DeValue::Table(_)) => true,
            (Form::Side, DeValue::String(_) | DeValue::Table(_)) => true,
            _ => false,
        }
    }

    fn expected(self) -> String {
        let text = match self {
            Form::Id => "a name made of the characters a-z, 0-9, `.`, `_` and `-`",
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
            Form::Metrics => "a table of printed metrics such as { throughput = \"([0-9.]+) MB/s\" }",
            Form::Side => "a name such as \"naive\", or a table such as { variant = \"naive\", elements = 1024 }",
        };
        text.to_string()
    }
}

/// Formats a value for an error message.
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

/// Returns the value if it is a number.
pub(super) fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(number) => number.as_str().parse().ok(),
        DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix()).ok().map(|n| n as f64),
        _ => None,
    }
}

/// Returns the value if it is a whole number of at least 0.
pub(super) fn whole_number(value: &DeValue<'_>) -> Option<u64> {
    match value {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    }
}

/// Parses a time above zero such as `30 s`, and returns it in nanoseconds.
fn nanoseconds(text: &str) -> Option<u64> {
    let duration_ns = parse_quantity(text, Unit::Nanosecond).ok()?;
    (duration_ns >= 1.0).then_some(duration_ns as u64)
}

/// One `key = value` of the file. `key_at` is the position of the key, and `at` is the position of the value, both as
/// byte offsets.
#[derive(Clone, Copy)]
pub(super) struct Entry<'t> {
    pub(super) key: &'t str,
    pub(super) key_at: usize,
    pub(super) value: &'t DeValue<'t>,
    pub(super) at: usize,
}

/// Returns the entries of a table, sorted by their position in the file.
pub(super) fn entries<'t>(table: &'t DeTable<'t>) -> Vec<Entry<'t>> {
    let entry = |(key, value): (&'t Spanned<_>, &'t Spanned<DeValue<'t>>)| {
        let name: &'t std::borrow::Cow<'t, str> = key.get_ref();
        Entry { key: name, key_at: key.span().start, value: value.get_ref(), at: value.span().start }
    };
    let mut entries: Vec<Entry<'t>> = table.iter().map(entry).collect();
    entries.sort_by_key(|entry| entry.key_at);
    entries
}

/// The entries (`key = value`) of one `[[claim]]`. Entries whose values have the right form are also listed separately.
pub(super) struct Fields<'t> {
    /// Byte offset of the claim's `[[claim]]` line. Mistakes about missing keys are reported there.
    pub(super) at: usize,
    all: Vec<Entry<'t>>,
    sound: Vec<Entry<'t>>,
}

impl<'t> Fields<'t> {
    /// Reads the table of a claim. Reports unknown keys, and values of the wrong form.
    pub(super) fn read(table: &'t DeTable<'t>, at: usize, notes: &mut Notes<'_>) -> Self {
        notes.begin_table(at);
        let all = entries(table);
        let is_sound = |entry: &Entry<'t>| {
            let Some(key) = KEYS.iter().find(|key| key.name == entry.key) else {
                notes.add(entry.key_at, unknown("key", entry.key, KEYS.iter().map(|key| key.name)));
                return false;
            };
            let fault = key.form.fault(key.name, entry.value);
            let is_sound = fault.is_none();
            fault.into_iter().for_each(|fault| notes.add(entry.at, fault));
            is_sound
        };
        let sound = all.iter().copied().filter(is_sound).collect();
        Fields { at, all, sound }
    }

    /// Returns all entries, sorted by their position in the file.
    pub(super) fn all(&self) -> &[Entry<'t>] {
        &self.all
    }

    /// Returns whether the claim has the key, even if its value has the wrong form.
    pub(super) fn has(&self, key: &str) -> bool {
        self.all.iter().any(|entry| entry.key == key)
    }

    /// Returns the entry of a key whose value has the right form.
    pub(super) fn get(&self, key: &str) -> Option<Entry<'t>> {
        self.sound.iter().copied().find(|entry| entry.key == key)
    }

    /// Returns the value of a key as a string.
    pub(super) fn text(&self, key: &str) -> Option<&'t str> {
        self.get(key)?.value.as_str()
    }

    /// Returns a copy of the string under a key; empty if the claim does not have the key.
    pub(super) fn owned_text(&self, key: &str) -> String {
        self.text(key).unwrap_or_default().to_string()
    }

    /// Returns whether the value of a key is `true`.
    pub(super) fn flag(&self, key: &str) -> bool {
        self.get(key).and_then(|entry| entry.value.as_bool()).unwrap_or(false)
    }

    /// Returns the value of a key as a number.
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        number(self.get(key)?.value)
    }

    /// Returns the value of a key as a whole number.
    pub(super) fn count(&self, key: &str) -> Option<u64> {
        whole_number(self.get(key)?.value)
    }

    /// Returns the value of a key as a duration.
    pub(super) fn duration(&self, key: &str) -> Option<Duration> {
        nanoseconds(self.text(key)?).map(Duration::from_nanos)
    }

    /// Reports keys that cannot be combined. Also reports a claim that states several conditions, or none.
    pub(super) fn check(&self, notes: &mut Notes<'_>) {
        self.check_bounds(notes);
        for entry in self.all() {
            let Some(key) = KEYS.iter().find(|key| key.name == entry.key) else { continue };
            let name = key.name;
            let clash = match key.scope {
                Scope::Commands if self.has("experiment") && name != "command" => {
                    format!("`{name}` is only allowed for commands; leave it out for an experiment")
                }
                Scope::Comparison if self.is_predicate() => {
                    format!("`{name}` is only allowed with `at_least`, `at_most` or `within`, not with `predicate`")
                }
                Scope::Rate if self.is_exact() => {
                    format!("`{name}` is only allowed for claims that are judged by rate, not with kind = \"exact\"")
                }
                _ => continue,
            };
            notes.add(entry.key_at, clash);
        }
    }

    /// Returns whether the condition of the claim is a predicate on one arm.
    pub(super) fn is_predicate(&self) -> bool {
        self.bound() == Some("predicate")
    }

    /// Returns whether the claim has the kind `exact`: a single trial decides it.
    pub(super) fn is_exact(&self) -> bool {
        self.text("kind") == Some("exact")
    }

    /// Returns the key that states the condition, if the claim has exactly one.
    pub(super) fn bound(&self) -> Option<&'static str> {
        let mut given = BOUNDS.into_iter().filter(|key| self.has(key));
        given.next().filter(|_| given.next().is_none())
    }

    fn check_bounds(&self, notes: &mut Notes<'_>) {
        let known = BOUNDS.map(|key| format!("`{key}`")).join(", ");
        let mut given = self.all().iter().filter(|entry| BOUNDS.contains(&entry.key));
        let Some(first) = given.next() else {
            return notes.add(self.at, format!("the bound is missing; give one of {known}"));
        };
        for other in given {
            notes.add(
                other.key_at,
                format!("`{}` and `{}` cannot be combined; give exactly one of {known}", other.key, first.key),
            );
        }
    }

    /// Checks that the keys of the claim state what to measure, and that these keys can be combined. Otherwise reports
    /// a mistake and returns `false`.
    pub(super) fn check_subject(&self, notes: &mut Notes<'_>) -> bool {
        let place = |key: &str| self.all().iter().find(|entry| entry.key == key).map(|entry| entry.key_at);
        let compares = self.has("candidate") || self.bound().is_some_and(|key| key != "predicate");
        let (at, message) = match (place("experiment"), place("command"), place("candidate")) {
            (Some(_), Some(at), _) => (at, "`command` and `experiment` cannot be combined; give one of them"),
            (None, Some(at), _) if compares => (
                at,
                "`command` is only for a `predicate`; to compare commands, give them as `candidate` and `baseline`",
            ),
            (None, None, Some(at)) if self.is_predicate() => {
                (at, "a predicate on a command needs `command` instead of `candidate`")
            }
            (None, None, None) if !self.has("baseline") => {
                (self.at, "nothing to measure; give `experiment`, `command`, or both `candidate` and `baseline`")
            }
            _ => return true,
        };
        notes.add(at, message);
        false
    }
}
