//! Which keys of a `[[claim]]` go together.

use super::error::Notes;
use super::fields::Fields;
use super::keys::{BOUNDS, Goes, KEYS};

/// Notes the keys that do not go together, and the bound when there is not exactly one.
pub(super) fn check(fields: &Fields<'_>, notes: &mut Notes<'_>) {
    check_bounds(fields, notes);
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

/// Notes when it is not clear what is measured; whether it is.
pub(super) fn check_subject(fields: &Fields<'_>, notes: &mut Notes<'_>) -> bool {
    let place = |key: &str| fields.all().iter().find(|entry| entry.key == key).map(|entry| entry.key_at);
    let compares = fields.has("candidate") || bound(fields).is_some_and(|key| key != "predicate");
    let (at, message) = match (place("experiment"), place("command"), place("candidate")) {
        (Some(_), Some(at), _) => (at, "`command` beside `experiment`; give one of them"),
        (None, Some(at), _) if compares => {
            (at, "`command` goes with `predicate`; to compare, give the command lines as `candidate` and `baseline`")
        }
        (None, None, Some(at)) if is_predicate(fields) => {
            (at, "a predicate on a command names it as `command`, not as `candidate`")
        }
        (None, None, None) if !fields.has("baseline") => {
            (fields.at, "nothing to measure; give `experiment`, `command`, or `candidate` and `baseline` command lines")
        }
        _ => return true,
    };
    notes.add(at, message);
    false
}
