//! How a claim is judged, and for how long.

use std::time::Duration;

use super::error::Notes;
use super::fields::Fields;
use super::rules;
use crate::claim::Judging;

/// The rate of a comparison unless one is given: the median trial decides.
pub(super) const COMPARISON_RATE: f64 = 0.5;

/// How a claim is judged, and for how long.
pub(super) struct Terms {
    pub(super) judging: Judging,
    pub(super) rate: f64,
    pub(super) margin: Option<f64>,
    pub(super) error: Option<f64>,
    pub(super) max_time: Option<Duration>,
    pub(super) max_trials: Option<u64>,
}

/// Reads the terms.
pub(super) fn read(fields: &Fields<'_>, notes: &mut Notes<'_>) -> Terms {
    let is_exact = rules::is_exact(fields);
    if rules::is_predicate(fields) && !fields.has("rate") && !is_exact {
        let message =
            "`rate` is missing; say how often the predicate must hold, such as rate = 0.99, or add kind = \"exact\"";
        notes.add(fields.at, message);
    }
    let rate = fields.number("rate").unwrap_or(COMPARISON_RATE);
    if let Some(entry) = fields.get("margin")
        && let Some(margin) = fields.number("margin")
        && fields.has("rate") == fields.get("rate").is_some()
        && !(rate - margin > 0.0 && rate + margin < 1.0)
    {
        notes.add(entry.at, format!("`margin` must leave rate ± margin within (0, 1); {rate} ± {margin} is not"));
    }
    Terms {
        judging: if is_exact { Judging::Exact } else { Judging::Rate },
        rate,
        margin: fields.number("margin"),
        error: fields.number("error"),
        max_time: fields.duration("max_time"),
        max_trials: fields.count("max_trials"),
    }
}
