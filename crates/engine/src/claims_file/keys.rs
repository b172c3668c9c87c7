//! The keys of a `[[claim]]`, the form of each, and what it goes with: the one table that reading, messages and the
//! JSON schema follow. And a claim's values by key, checked against it.

use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Notes, unknown};
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
    /// Printed metrics by name.
    Metrics,
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
        key(
            "at",
            Levels,
            Anywhere,
            "Levels by factor; a factor left out takes its default, and one that no arm of the claim has is a mistake.",
        ),
        key("over", OneOf(&["each", "every"]), Anywhere, "For lists in `at`: one claim a point, or one for all."),
        key(
            "metric",
            Text,
            Comparison,
            "Metric to compare; by default the first of `metrics`, else the experiment's first metric.",
        ),
        key(
            "metrics",
            Metrics,
            Commands,
            "Figures that the commands print, by name: a regular expression with one group, `json:.PATH`, or a table \
             with `pattern`, `unit` and `better`.",
        ),
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
            (Form::Levels | Form::Metrics, DeValue::Table(_)) => true,
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
            Form::Metrics => "a table of printed metrics such as { throughput = \"([0-9.]+) MB/s\" }",
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
fn nanoseconds(text: &str) -> Option<u64> {
    let duration_ns = parse_quantity(text, Unit::Nanosecond).ok()?;
    (duration_ns >= 1.0).then_some(duration_ns as u64)
}

/// One `key = value`. Offsets are in bytes of the file.
#[derive(Clone, Copy)]
pub(super) struct Entry<'t> {
    pub(super) key: &'t str,
    pub(super) key_at: usize,
    pub(super) value: &'t DeValue<'t>,
    pub(super) at: usize,
}

/// A table's entries in the order of the file.
pub(super) fn entries<'t>(table: &'t DeTable<'t>) -> Vec<Entry<'t>> {
    let entry = |(key, value): (&'t Spanned<_>, &'t Spanned<DeValue<'t>>)| {
        let name: &'t std::borrow::Cow<'t, str> = key.get_ref();
        Entry { key: name, key_at: key.span().start, value: value.get_ref(), at: value.span().start }
    };
    let mut entries: Vec<Entry<'t>> = table.iter().map(entry).collect();
    entries.sort_by_key(|entry| entry.key_at);
    entries
}

/// The values of one `[[claim]]`.
pub(super) struct Fields<'t> {
    /// Where its header stands: the place of what is missing.
    pub(super) at: usize,
    all: Vec<Entry<'t>>,
    sound: Vec<Entry<'t>>,
}

impl<'t> Fields<'t> {
    /// Reads a claim's table; notes unknown keys and values of the wrong form.
    pub(super) fn read(table: &'t DeTable<'t>, at: usize, notes: &mut Notes<'_>) -> Self {
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

    /// Every entry, in the order of the file.
    pub(super) fn all(&self) -> &[Entry<'t>] {
        &self.all
    }

    /// Whether the key is there, be its value right or wrong.
    pub(super) fn has(&self, key: &str) -> bool {
        self.all.iter().any(|entry| entry.key == key)
    }

    /// The entry, when it is there and of the right form.
    pub(super) fn get(&self, key: &str) -> Option<Entry<'t>> {
        self.sound.iter().copied().find(|entry| entry.key == key)
    }

    /// The string of a key.
    pub(super) fn text(&self, key: &str) -> Option<&'t str> {
        self.get(key)?.value.as_str()
    }

    /// The string of a key to keep; empty when there is none.
    pub(super) fn owned_text(&self, key: &str) -> String {
        self.text(key).unwrap_or_default().to_string()
    }

    /// Whether a flag is set.
    pub(super) fn flag(&self, key: &str) -> bool {
        self.get(key).and_then(|entry| entry.value.as_bool()).unwrap_or(false)
    }

    /// The number of a key.
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        number(self.get(key)?.value)
    }

    /// The whole number of a key.
    pub(super) fn count(&self, key: &str) -> Option<u64> {
        whole_number(self.get(key)?.value)
    }

    /// The duration of a key.
    pub(super) fn duration(&self, key: &str) -> Option<Duration> {
        nanoseconds(self.text(key)?).map(Duration::from_nanos)
    }

    /// Notes the keys that do not go together, and the bound when there is not exactly one.
    pub(super) fn check(&self, notes: &mut Notes<'_>) {
        self.check_bounds(notes);
        for entry in self.all() {
            let Some(key) = KEYS.iter().find(|key| key.name == entry.key) else { continue };
            let name = key.name;
            let clash = match key.goes {
                Goes::Commands if self.has("experiment") && name != "command" => {
                    format!("`{name}` goes with commands; an experiment runs in this program")
                }
                Goes::Comparison if self.is_predicate() => {
                    format!("`{name}` goes with `at_least`, `at_most` or `within`, not with `predicate`")
                }
                Goes::Rate if self.is_exact() => {
                    format!("`{name}` goes with claims that are judged by rate, not with kind = \"exact\"")
                }
                _ => continue,
            };
            notes.add(entry.key_at, clash);
        }
    }

    /// Whether the claim is a predicate on one arm.
    pub(super) fn is_predicate(&self) -> bool {
        self.bound() == Some("predicate")
    }

    /// Whether the claim is checked once.
    pub(super) fn is_exact(&self) -> bool {
        self.text("kind") == Some("exact")
    }

    /// The key of the bound, when there is exactly one.
    pub(super) fn bound(&self) -> Option<&'static str> {
        let mut given = BOUNDS.into_iter().filter(|key| self.has(key));
        given.next().filter(|_| given.next().is_none())
    }

    fn check_bounds(&self, notes: &mut Notes<'_>) {
        let given: Vec<_> = self.all().iter().filter(|entry| BOUNDS.contains(&entry.key)).collect();
        match given[..] {
            [] => notes.add(self.at, "the bound is missing; give one of `at_least`, `at_most`, `within`, `predicate`"),
            [first, ref more @ ..] => {
                for other in more {
                    let (other_key, first_key) = (other.key, first.key);
                    let message = format!(
                        "`{other_key}` beside `{first_key}`; give exactly one of `at_least`, `at_most`, `within`, `predicate`"
                    );
                    notes.add(other.key_at, message);
                }
            }
        }
    }

    /// Notes when it is not clear what is measured; whether it is.
    pub(super) fn check_subject(&self, notes: &mut Notes<'_>) -> bool {
        let place = |key: &str| self.all().iter().find(|entry| entry.key == key).map(|entry| entry.key_at);
        let compares = self.has("candidate") || self.bound().is_some_and(|key| key != "predicate");
        let (at, message) = match (place("experiment"), place("command"), place("candidate")) {
            (Some(_), Some(at), _) => (at, "`command` beside `experiment`; give one of them"),
            (None, Some(at), _) if compares => (
                at,
                "`command` goes with `predicate`; to compare, give the command lines as `candidate` and `baseline`",
            ),
            (None, None, Some(at)) if self.is_predicate() => {
                (at, "a predicate on a command names it as `command`, not as `candidate`")
            }
            (None, None, None) if !self.has("baseline") => (
                self.at,
                "nothing to measure; give `experiment`, `command`, or `candidate` and `baseline` command lines",
            ),
            _ => return true,
        };
        notes.add(at, message);
        false
    }
}
