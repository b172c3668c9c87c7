//! Which keys of a `[[claim]]` go together.

use super::error::Notes;
use super::fields::Fields;
use super::keys::{BOUNDS, Goes, KEYS};

/// Notes the keys that do not go together, and the bound when there is not exactly one.
pub(super) fn check(fields: &Fields<'_>, notes: &mut Notes<'_>) {
    check_bounds(fields, notes);
    check_commands(fields, notes);
    for entry in fields.all() {
        let Some(key) = KEYS.iter().find(|key| key.name == entry.key) else { continue };
        let name = key.name;
        let clash = match key.goes {
            Goes::Commands if fields.has("experiment") && name != "command" => {
                format!("`{name}` goes with commands; an experiment runs in this program")
            }
            Goes::Comparison if is_predicate(fields) => {
                format!("`{name}` goes with `at_least`, `at_most` or `within`, not with `predicate`")
            }
            Goes::Rate if is_exact(fields) => {
                format!("`{name}` goes with claims that are judged by rate, not with kind = \"exact\"")
            }
            _ => continue,
        };
        notes.add(entry.key_at, clash);
    }
}

/// Whether the claim is a predicate on one arm.
pub(super) fn is_predicate(fields: &Fields<'_>) -> bool {
    bound(fields) == Some("predicate")
}

/// Whether the claim is checked once.
pub(super) fn is_exact(fields: &Fields<'_>) -> bool {
    fields.text("kind") == Some("exact")
}

/// The key of the bound, when there is exactly one.
pub(super) fn bound(fields: &Fields<'_>) -> Option<&'static str> {
    let mut given = BOUNDS.into_iter().filter(|key| fields.has(key));
    given.next().filter(|_| given.next().is_none())
}

fn check_bounds(fields: &Fields<'_>, notes: &mut Notes<'_>) {
    let given: Vec<_> = fields.all().iter().filter(|entry| BOUNDS.contains(&entry.key)).collect();
    match given[..] {
        [] => notes.add(fields.at, "the bound is missing; give one of `at_least`, `at_most`, `within`, `predicate`"),
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

fn check_commands(fields: &Fields<'_>, notes: &mut Notes<'_>) {
    let entry = |key| fields.all().iter().find(|entry| entry.key == key);
    match (entry("experiment"), entry("command"), entry("candidate")) {
        (Some(_), Some(command), _) => notes.add(command.key_at, "`command` beside `experiment`; give one of them"),
        (None, Some(command), candidate) => {
            let compares = bound(fields).is_some_and(|key| key != "predicate") || candidate.is_some();
            if compares {
                let message = "`command` goes with `predicate`; to compare, give the command lines as `candidate` and `baseline`";
                notes.add(command.key_at, message);
            }
        }
        (None, None, Some(candidate)) if is_predicate(fields) => {
            notes.add(candidate.key_at, "a predicate on a command names it as `command`, not as `candidate`");
        }
        (None, None, None) if !fields.has("baseline") => {
            let message = "nothing to measure; give `experiment`, `command`, or `candidate` and `baseline` command lines";
            notes.add(fields.at, message);
        }
        _ => {}
    }
}
