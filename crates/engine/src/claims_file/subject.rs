//! The subject of a claim, which is an experiment of the registry or a set of commands. Also reads the points at which
//! to measure it, such as `at = { elements = [1024, "64Ki"], type = "f32" }`.

use std::borrow::Cow;

use ascertain_sys::process::{self, SplitError};
use toml::de::DeValue;

use super::error::Notes;
use super::keys::{Entry, Fields, entries, shown, whole_number};
use super::printed::printed_metrics;
use crate::command::{CommandSet, NamedCommand, OnFailure, PrintedMetric};
use crate::experiment::{Accepts, Experiment, Factor, Level, Point, Spec};
use crate::names::{suggestion, unknown};
use crate::plan::Registry;

/// The subject of a claim: an experiment, or a set of commands. Commands get a [`Spec`] too, so that the other keys can
/// be read in the same way for both.
pub(super) struct Subject<'a> {
    pub(super) spec: Cow<'a, Spec>,
    pub(super) commands: Option<CommandSet>,
}

impl<'a> Subject<'a> {
    /// Reads the subject of the claim: an experiment or commands.
    pub(super) fn read(fields: &Fields<'_>, registry: &Registry<'a>, notes: &mut Notes<'_>) -> Option<Subject<'a>> {
        if !fields.check_subject(notes) {
            return None;
        }
        if fields.has("experiment") {
            let entry = fields.get("experiment")?;
            let spec = find(entry.value.as_str()?, entry.at, registry, notes)?;
            return Some(Subject { spec: Cow::Borrowed(spec), commands: None });
        }
        let lines = command_lines(fields, notes)?;
        let parameters = parameters(fields, &lines, notes)?;
        if !fields.flag("shell") {
            check_words(fields, notes);
        }
        let taken = |id: &str| registry.iter().any(|experiment| experiment.spec().id == id);
        if let Some(id) = fields.get("id").filter(|id| id.value.as_str().is_some_and(taken)) {
            notes.add(
                id.at,
                format!(
                    "the id {} belongs to an experiment; choose another id for a claim about commands",
                    shown(id.value)
                ),
            );
        }
        let set = command_set(fields, &lines, parameters, printed_metrics(fields, notes)?);
        let mut spec = set.spec();
        // Accept any level of a parameter here, because levels become part of a command line exactly as written in
        // `at`.
        spec.factors.iter_mut().for_each(|parameter| parameter.accepts = Accepts::Anything);
        Some(Subject { spec: Cow::Owned(spec), commands: Some(set) })
    }
}

fn find<'a>(id: &str, at: usize, registry: &Registry<'a>, notes: &mut Notes<'_>) -> Option<&'a Spec> {
    let spec_of = |experiment: &&'a dyn Experiment| -> &'a Spec { (*experiment).spec() };
    let found = registry.iter().map(spec_of).find(|spec| spec.id == id);
    if found.is_none() {
        notes.add(at, unknown("experiment", id, registry.iter().map(|experiment| experiment.spec().id.as_str())));
    }
    found
}

/// Returns the command lines, with the baseline first.
fn command_lines<'t>(fields: &Fields<'t>, notes: &mut Notes<'_>) -> Option<Vec<&'t str>> {
    if fields.has("command") {
        return fields.text("command").map(|line| vec![line]);
    }
    let line = |key: &str| {
        let entry = fields.get(key)?;
        let line = entry.value.as_str().filter(|line| !line.trim().is_empty());
        if line.is_none() {
            notes.add(
                entry.at,
                format!("without `experiment`, `{key}` must be a command line: a string that is not empty"),
            );
        }
        line
    };
    let present = ["baseline", "candidate"].into_iter().filter(|key| fields.has(key));
    let lines: Vec<&str> = present.map(line).collect::<Option<_>>()?;
    (!lines.is_empty()).then_some(lines)
}

/// Reports command lines that only a shell can run.
fn check_words(fields: &Fields<'_>, notes: &mut Notes<'_>) {
    let keys = ["command", "candidate", "baseline", "setup", "prepare", "cleanup"];
    for entry in keys.into_iter().filter_map(|key| fields.get(key)) {
        let Some(Err(error)) = entry.value.as_str().map(process::split) else { continue };
        let message = match error {
            SplitError::ShellCharacter { character, column } => {
                format!("{character:?} in column {column} needs a shell; quote it, or add shell = true")
            }
            SplitError::ShellWord { word } => format!("\"{word}\" needs a shell; add shell = true"),
            other => other.to_string(),
        };
        notes.add(entry.at, format!("`{}`: {message}", entry.key));
    }
}

/// Reads the parameters of the command lines from `at`. In claims about commands, these parameters are the factors.
fn parameters(fields: &Fields<'_>, lines: &[&str], notes: &mut Notes<'_>) -> Option<Vec<Factor>> {
    let Some(table) = fields.get("at").and_then(|entry| entry.value.as_table()) else {
        return Some(Vec::new());
    };
    let around = ["setup", "prepare", "cleanup"].into_iter().filter_map(|key| fields.text(key));
    let text: Vec<&str> = lines.iter().copied().chain(around).collect();
    let parameter = |entry: Entry<'_>| {
        let placeholder = format!("{{{}}}", entry.key);
        if !text.iter().any(|line| line.contains(&placeholder)) {
            notes.add(entry.key_at, format!(
                "unknown parameter `{}`; no command line has `{placeholder}`; add it to a command line, or leave out \
                 the parameter", entry.key));
            return None;
        }
        let levels: Vec<Level> = match entry.value {
            DeValue::Array(list) => list.iter().filter_map(|level| level_of_anything(level.get_ref())).collect(),
            level => level_of_anything(level).into_iter().collect(),
        };
        // Invalid levels are missing here; they are reported when the points are read.
        let default = levels.first().cloned().unwrap_or_else(|| Level::Text(String::new()));
        let accepts = Accepts::OneOf(levels);
        Some(Factor { name: entry.key.to_string(), about: String::new(), default, accepts })
    };
    let read: Vec<Option<Factor>> = entries(table).into_iter().map(parameter).collect();
    read.into_iter().collect()
}

fn command_set(
    fields: &Fields<'_>,
    lines: &[&str],
    parameters: Vec<Factor>,
    printed: Vec<PrintedMetric>,
) -> CommandSet {
    let around = |key| fields.text(key).map(str::to_string);
    let command = |line: &&str| NamedCommand {
        name: line.to_string(),
        line: line.to_string(),
        setup: around("setup"),
        prepare: around("prepare"),
        cleanup: around("cleanup"),
        ..NamedCommand::default()
    };
    CommandSet {
        id: fields.owned_text("id"),
        commands: lines.iter().map(command).collect(),
        parameters,
        shell: fields.flag("shell").then(|| "sh".to_string()),
        time_limit: fields.duration("time_limit"),
        on_failure: if fields.is_predicate() { OnFailure::Observe } else { OnFailure::Stop },
        printed,
        ..CommandSet::default()
    }
}

/// Maximum number of points in a claim. The product of several long lists could otherwise use up the memory.
const MAX_POINTS: usize = 1000;

/// The points at which a claim is measured.
pub(super) struct Points {
    /// Names of the factors in `at`, in file order.
    pub(super) named: Vec<String>,
    /// Names of the factors in `at` that have a list of levels.
    pub(super) swept: Vec<String>,
    /// All combinations of the levels in `at`, sorted so that the last factor varies fastest.
    pub(super) all: Vec<Point>,
    /// `true` if a single claim covers all points (`over = "every"`); `false` if each point gets its own claim.
    pub(super) over_every: bool,
}

impl Points {
    /// Reads the keys `at` and `over`.
    pub(super) fn read(fields: &Fields<'_>, spec: &Spec, notes: &mut Notes<'_>) -> Option<Points> {
        let table = fields.get("at").and_then(|entry| entry.value.as_table());
        let axes = table.map_or_else(Vec::new, |table| entries(table));
        check_over(fields, axes.iter().find(|axis| axis.value.is_array()), notes);
        let levels: Vec<_> = axes.iter().map(|axis| axis_levels(axis, spec, notes)).collect();
        let levels: Vec<Vec<Level>> = levels.into_iter().collect::<Option<_>>()?;

        let count = levels.iter().try_fold(1, |count: usize, levels| count.checked_mul(levels.len()));
        if count.is_none_or(|count| count > MAX_POINTS) {
            notes.add(fields.get("at")?.at, format!("`at` has more than {MAX_POINTS} points; split the claim"));
            return None;
        }
        let mut all = vec![spec.default_point()];
        for (axis, levels) in axes.iter().zip(&levels) {
            let extended = |point: &Point| -> Vec<Point> {
                levels.iter().map(|level| point.clone().with(axis.key, level.clone())).collect()
            };
            all = all.iter().flat_map(extended).collect();
        }
        let names = |axes: &mut dyn Iterator<Item = &Entry<'_>>| axes.map(|axis| axis.key.to_string()).collect();
        Some(Points {
            named: names(&mut axes.iter()),
            swept: names(&mut axes.iter().filter(|axis| axis.value.is_array())),
            all,
            over_every: fields.text("over") == Some("every"),
        })
    }
}

fn check_over(fields: &Fields<'_>, list: Option<&Entry<'_>>, notes: &mut Notes<'_>) {
    let over = fields.all().iter().find(|entry| entry.key == "over");
    match (list, over) {
        (Some(list), None) => {
            let message = format!(
                "`{}` has a list; add over = \"each\" (one claim per point) or over = \"every\" (one claim for all points)",
                list.key
            );
            notes.add(list.at, message);
        }
        (None, Some(over)) => {
            notes.add(over.key_at, "`over` needs a list of levels in `at`, but there is none; leave it out")
        }
        _ => {}
    }
}

/// Returns the levels that `at` has for one factor: a single level or a list. `axis` is the factor's entry in `at`.
fn axis_levels(axis: &Entry<'_>, spec: &Spec, notes: &mut Notes<'_>) -> Option<Vec<Level>> {
    let factor = factor(axis, spec, None, notes)?;
    let DeValue::Array(list) = axis.value else {
        return level(factor, axis.value, axis.at, notes).map(|level| vec![level]);
    };
    if list.is_empty() {
        notes.add(axis.at, format!("`{}` has an empty list; give at least one level", axis.key));
        return None;
    }
    let mut levels: Vec<Level> = Vec::new();
    let count_before = notes.count();
    for item in list.iter() {
        let Some(level) = level(factor, item.get_ref(), item.span().start, notes) else { continue };
        let is_repeated = levels.iter().any(|earlier| earlier.to_string() == level.to_string());
        if is_repeated {
            notes.add(item.span().start, format!("`{}` has the level {level} twice; remove one of them", axis.key));
        }
        levels.push(level);
    }
    (notes.count() == count_before).then_some(levels)
}

/// Returns the factor that the entry's key names. If there is no such factor, reports a mistake that lists the allowed
/// keys. These are the factors and the key `beside`, if it is given.
pub(super) fn factor<'s>(
    entry: &Entry<'_>,
    spec: &'s Spec,
    beside: Option<&str>,
    notes: &mut Notes<'_>,
) -> Option<&'s Factor> {
    let found = spec.factors.iter().find(|factor| factor.name == entry.key);
    if found.is_none() {
        let known = spec.factors.iter().map(|factor| factor.name.as_str());
        notes.add(entry.key_at, unknown("factor", entry.key, beside.into_iter().chain(known)));
    }
    found
}

/// Reads one level of a factor; reports a mistake if the factor does not accept it.
pub(super) fn level(factor: &Factor, value: &DeValue<'_>, at: usize, notes: &mut Notes<'_>) -> Option<Level> {
    let level = match (&factor.accepts, value) {
        (Accepts::Anything, value) => level_of_anything(value),
        (_, DeValue::String(text)) => Some(Level::parse(text)),
        (_, value) => whole_number(value).map(Level::Integer),
    };
    let accepted = level.clone().filter(|level| factor.accepts.admits(level));
    if accepted.is_none() {
        let near = match (&factor.accepts, &level) {
            (Accepts::OneOf(levels), Some(Level::Text(text))) => {
                let known: Vec<String> = levels.iter().map(Level::to_string).collect();
                suggestion(text, known.iter().map(String::as_str)).unwrap_or_default()
            }
            _ => String::new(),
        };
        let Factor { name, accepts, .. } = factor;
        notes.add(at, format!("`{name}` accepts {accepts}, not {}{near}", shown(value)));
    }
    accepted
}

/// Returns the level of a command's parameter, exactly as it is written, because it becomes part of the command line.
fn level_of_anything(value: &DeValue<'_>) -> Option<Level> {
    match value {
        DeValue::String(text) => Some(Level::Text(text.to_string())),
        value => whole_number(value).map(Level::Integer),
    }
}
