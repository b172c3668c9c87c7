//! JSON: one object, with `null` for what is not known.
//!
//! JSON has no infinity: an infinite time (an observation that met its time limit) is `null` too, and
//! the counts say that it was there.

use ascertain::outcome::Outcome;

use crate::judgement::Judgement;

/// A run in the schema [`ascertain::outcome::SCHEMA`], indented, with a newline at its end.
pub fn outcome(outcome: &Outcome) -> String {
    object(outcome)
}

/// What `ascertain judge --format json` prints.
pub fn judgement(judgement: &Judgement) -> String {
    object(judgement)
}

pub(crate) fn object(value: &impl serde::Serialize) -> String {
    let text = serde_json::to_string_pretty(value);
    text.expect("plain data with text as keys is always JSON") + "\n"
}
