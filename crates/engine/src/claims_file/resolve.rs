//! From the keys of one `[[claim]]` to claims.

use super::error::Notes;
use super::fields::Fields;
use super::points::{self, Points};
use super::question::{self, Question};
use super::sentence;
use super::terms::{self, Terms};
use super::{rules, subject};
use crate::block::MAX_ARMS;
use crate::claim::{Claim, Test};
use crate::command::CommandSet;
use crate::experiment::{Point, Spec};
use crate::plan::Registry;

/// What one `[[claim]]` becomes.
pub(super) struct Resolved {
    pub(super) claims: Vec<Claim>,
    pub(super) commands: Option<CommandSet>,
}

/// Resolves one `[[claim]]`; `None` when it has mistakes, which are noted.
pub(super) fn resolve(fields: &Fields<'_>, registry: &Registry<'_>, notes: &mut Notes<'_>) -> Option<Resolved> {
    // Every part is read whatever became of the others, so that all mistakes are found at once.
    let count_before = notes.count();
    if !fields.has("id") {
        notes.add(fields.at, "`id` is missing");
    }
    rules::check(fields, notes);
    let terms = terms::read(fields, notes);
    let subject = subject::read(fields, registry, notes)?;
    let points = points::read(fields, &subject.spec, notes);
    let question = question::read(fields, &subject.spec, notes);
    let parts = Parts { fields, spec: &subject.spec, terms, question: question?, points: points? };
    let claims = parts.claims();
    check_arms(&claims, fields, notes);
    (notes.count() == count_before).then_some(Resolved { claims, commands: subject.commands })
}

/// The parts of a claim, each read without a mistake.
struct Parts<'p, 't> {
    fields: &'p Fields<'t>,
    spec: &'p Spec,
    terms: Terms,
    question: Question,
    points: Points,
}

impl Parts<'_, '_> {
    /// One claim, or one a point.
    fn claims(&self) -> Vec<Claim> {
        match self.points.over_every {
            true => vec![self.claim(&self.points.all)],
            false => self.points.all.chunks(1).map(|point| self.claim(point)).collect(),
        }
    }

    /// The claim at these points.
    fn claim(&self, at: &[Point]) -> Claim {
        let Parts { fields, spec, terms, question, points } = self;
        let mut id = fields.owned_text("id");
        let mut says = fields.owned_text("says");
        let is_one_of_several = !points.over_every && !points.swept.is_empty();
        if is_one_of_several {
            id += &format!("[{}]", sentence::levels(&points.swept, &at[0], ","));
        }
        if says.trim().is_empty() {
            says = sentence::says(question, terms, points, at, spec);
        } else if is_one_of_several {
            says += &format!(" ({})", sentence::levels(&points.swept, &at[0], ", "));
        }
        Claim {
            id,
            says,
            source: fields.owned_text("source"),
            source_value: fields.owned_text("source_value"),
            analysis: fields.owned_text("analysis"),
            restated: fields.owned_text("restated"),
            experiment: spec.id.clone(),
            tests: at.iter().map(|point| question.at(point)).collect(),
            judging: terms.judging,
            rate: terms.rate,
            margin: terms.margin,
            error: terms.error,
            look_every: 1,
            max_time: terms.max_time,
            max_trials: terms.max_trials,
        }
    }
}

/// A trial measures each arm once: an arm can't be held against itself, and there is room for so many.
fn check_arms(claims: &[Claim], fields: &Fields<'_>, notes: &mut Notes<'_>) {
    let is_against_itself =
        |test: &Test| matches!(test, Test::Versus { candidate, baseline, .. } if candidate == baseline);
    if claims.iter().flat_map(|claim| &claim.tests).any(is_against_itself)
        && let Some(baseline) = fields.get("baseline")
    {
        notes.add(baseline.at, "`candidate` and `baseline` are the same; nothing is compared");
    }
    let arms = claims.iter().map(|claim| claim.arms().len()).max().unwrap_or(0);
    if arms > MAX_ARMS
        && let Some(over) = fields.get("over")
    {
        let message = format!(
            "a trial of this claim has {arms} arms, and at most {MAX_ARMS} fit; use over = \"each\", or fewer levels"
        );
        notes.add(over.at, message);
    }
}
