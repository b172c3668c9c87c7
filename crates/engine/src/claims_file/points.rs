//! Levels and points: `at = { elements = [1024, "64Ki"], type = "f32" }`.

use toml::de::DeValue;

use super::error::{Notes, unknown};
use super::fields::{Entry, Fields, entries};
use super::keys::{shown, whole_number};
use crate::experiment::{Accepts, Factor, Level, Point, Spec};
use crate::names::suggestion;

/// More points than that in one claim are a mistake, and would take all memory when several long lists
/// are multiplied.
const MAX_POINTS: usize = 1000;

/// Where a claim is to hold.
pub(super) struct Points {
    /// The factors that `at` names, in its order.
    pub(super) named: Vec<String>,
    /// Those of them that have a list.
    pub(super) swept: Vec<String>,
    /// Every combination of levels; the last list moves fastest.
    pub(super) all: Vec<Point>,
    /// Whether one claim speaks for all of them.
    pub(super) over_every: bool,
}

/// Reads `at` and `over`.
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

fn check_over(fields: &Fields<'_>, list: Option<&Entry<'_>>, notes: &mut Notes<'_>) {
    let over = fields.all().iter().find(|entry| entry.key == "over");
    match (list, over) {
        (Some(list), None) => {
            let message = format!(
                "`{}` has a list; add over = \"each\" (one claim a point) or over = \"every\" (one claim for all points)",
                list.key
            );
            notes.add(list.at, message);
        }
        (None, Some(over)) => notes.add(over.key_at, "`over` goes with a list in `at`; there is none"),
        _ => {}
    }
}

/// The levels of one factor in `at`: one, or those of a list.
fn axis_levels(axis: &Entry<'_>, spec: &Spec, notes: &mut Notes<'_>) -> Option<Vec<Level>> {
    let factor = factor(axis, spec, None, notes)?;
    let DeValue::Array(list) = axis.value else {
        return level(factor, axis.value, axis.at, notes).map(|level| vec![level]);
    };
    if list.is_empty() {
        notes.add(axis.at, format!("`{}` has an empty list", axis.key));
        return None;
    }
    let mut levels: Vec<Level> = Vec::new();
    let count_before = notes.count();
    for item in list.iter() {
        let Some(level) = level(factor, item.get_ref(), item.span().start, notes) else { continue };
        let is_repeated = levels.iter().any(|earlier| earlier.to_string() == level.to_string());
        if is_repeated {
            notes.add(item.span().start, format!("`{}` has the level {level} twice", axis.key));
        }
        levels.push(level);
    }
    (notes.count() == count_before).then_some(levels)
}

/// The factor that an entry's key names. `beside` is a key that could stand there too.
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

/// Reads one level of a factor.
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

/// A level of a parameter: as it is written, since it becomes part of a command line.
pub(super) fn level_of_anything(value: &DeValue<'_>) -> Option<Level> {
    match value {
        DeValue::String(text) => Some(Level::Text(text.to_string())),
        value => whole_number(value).map(Level::Integer),
    }
}
