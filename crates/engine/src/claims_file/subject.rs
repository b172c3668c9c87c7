//! What a claim measures: an experiment of the registry, or commands.

use std::borrow::Cow;

use ascertain_sys::process::{self, SplitError};
use toml::de::DeValue;

use super::error::{Notes, unknown};
use super::fields::{Entry, Fields, entries};
use super::keys::shown;
use super::points::level_of_anything;
use super::rules::{check_subject, is_predicate};
use crate::command::{CommandSet, Input, NamedCommand, OnFailure, Output};
use crate::experiment::{Accepts, Experiment, Factor, Level, Spec};
use crate::plan::Registry;

/// What a claim measures. Commands have a spec too, so that the rest of a claim is read alike.
pub(super) struct Subject<'a> {
    pub(super) spec: Cow<'a, Spec>,
    pub(super) commands: Option<CommandSet>,
}

/// Reads what the claim measures.
pub(super) fn read<'a>(fields: &Fields<'_>, registry: &Registry<'a>, notes: &mut Notes<'_>) -> Option<Subject<'a>> {
    if !check_subject(fields, notes) {
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
            format!("the id {} is an experiment's; choose another for a claim on commands", shown(id.value)),
        );
    }
    let set = command_set(fields, &lines, parameters);
    let mut spec = set.spec();
    // A parameter's levels are whatever `at` says, as it is written.
    spec.factors.iter_mut().for_each(|parameter| parameter.accepts = Accepts::Anything);
    Some(Subject { spec: Cow::Owned(spec), commands: Some(set) })
}

fn find<'a>(id: &str, at: usize, registry: &Registry<'a>, notes: &mut Notes<'_>) -> Option<&'a Spec> {
    let spec_of = |experiment: &&'a dyn Experiment| -> &'a Spec { (*experiment).spec() };
    let found = registry.iter().map(spec_of).find(|spec| spec.id == id);
    if found.is_none() {
        notes.add(at, unknown("experiment", id, registry.iter().map(|experiment| experiment.spec().id.as_str())));
    }
    found
}

/// The command lines, the reference first.
fn command_lines<'t>(fields: &Fields<'t>, notes: &mut Notes<'_>) -> Option<Vec<&'t str>> {
    if fields.has("command") {
        return fields.text("command").map(|line| vec![line]);
    }
    let line = |key: &str| {
        let entry = fields.get(key)?;
        let line = entry.value.as_str().filter(|line| !line.trim().is_empty());
        if line.is_none() {
            notes.add(entry.at, format!("without `experiment`, `{key}` is a command line: a string that is not empty"));
        }
        line
    };
    let present = ["baseline", "candidate"].into_iter().filter(|key| fields.has(key));
    let lines: Vec<&str> = present.map(line).collect::<Option<_>>()?;
    (!lines.is_empty()).then_some(lines)
}

/// Notes command lines that a shell would have to run.
fn check_words(fields: &Fields<'_>, notes: &mut Notes<'_>) {
    let keys = ["command", "candidate", "baseline", "setup", "prepare", "cleanup"];
    for entry in keys.into_iter().filter_map(|key| fields.get(key)) {
        let Some(Err(error)) = entry.value.as_str().map(process::split) else { continue };
        let message = match error {
            SplitError::ShellCharacter { character, column } => {
                format!("column {column} of it: {character:?} is for a shell; quote it, or add shell = true")
            }
            SplitError::ShellWord { word } => format!("\"{word}\" is for a shell; add shell = true"),
            other => other.to_string(),
        };
        notes.add(entry.at, format!("`{}`: {message}", entry.key));
    }
}

/// The levels in `at` are the parameters of the command lines.
fn parameters(fields: &Fields<'_>, lines: &[&str], notes: &mut Notes<'_>) -> Option<Vec<Factor>> {
    let Some(table) = fields.get("at").and_then(|entry| entry.value.as_table()) else {
        return Some(Vec::new());
    };
    let around = ["setup", "prepare", "cleanup"].into_iter().filter_map(|key| fields.text(key));
    let text: Vec<&str> = lines.iter().copied().chain(around).collect();
    let parameter = |entry: Entry<'_>| {
        let placeholder = format!("{{{}}}", entry.key);
        if !text.iter().any(|line| line.contains(&placeholder)) {
            notes.add(entry.key_at, format!("unknown parameter `{}`; no command line has `{placeholder}`", entry.key));
            return None;
        }
        let levels: Vec<Level> = match entry.value {
            DeValue::Array(list) => list.iter().filter_map(|level| level_of_anything(level.get_ref())).collect(),
            level => level_of_anything(level).into_iter().collect(),
        };
        // A level that can't be read is noted when the points are read.
        let default = levels.first().cloned().unwrap_or_else(|| Level::Text(String::new()));
        let accepts = Accepts::OneOf(levels);
        Some(Factor { name: entry.key.to_string(), about: String::new(), default, accepts })
    };
    let read: Vec<Option<Factor>> = entries(table).into_iter().map(parameter).collect();
    read.into_iter().collect()
}

fn command_set(fields: &Fields<'_>, lines: &[&str], parameters: Vec<Factor>) -> CommandSet {
    let around = |key| fields.text(key).map(str::to_string);
    let command = |line: &&str| NamedCommand {
        name: line.to_string(),
        line: line.to_string(),
        setup: around("setup"),
        prepare: around("prepare"),
        cleanup: around("cleanup"),
    };
    CommandSet {
        id: fields.owned_text("id"),
        commands: lines.iter().map(command).collect(),
        parameters,
        shell: fields.flag("shell").then(|| "sh".to_string()),
        input: Input::Null,
        output: Output::Null,
        time_limit: fields.duration("time_limit"),
        on_failure: if is_predicate(fields) { OnFailure::Observe } else { OnFailure::Stop },
        requests: None,
    }
}
