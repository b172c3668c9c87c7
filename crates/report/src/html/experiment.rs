//! What was measured, experiment by experiment.

use ascertain::claim::Judging;
use ascertain::experiment::Spec;
use ascertain::outcome::PointSummary;
use ascertain::recorded::RecordedRun;

use super::markup::Html;
use super::picture::{Figure, Room, figures, in_addresses};
use super::readme::{Section, sections};
use super::table::Table;
use crate::grids;
use crate::layout::Layout;
use crate::pictures;
use crate::sentence::marked;

/// An experiment as the template draws it.
pub(super) struct Experiment {
    pub anchor: String,
    pub id: String,
    pub title: String,
    /// What it asks, in its own words.
    pub question: Vec<Section>,
    pub pictures: Vec<Figure>,
    /// What the table's rows share, and the table.
    pub table: Option<Table>,
    pub left_out: Vec<Html>,
    /// What threatens its results, in its own words.
    pub threats: Vec<Section>,
    /// The rest of what it says of itself: source, design, units.
    pub design: Vec<Section>,
}

/// The experiments of a run, in the order of its header.
pub(super) fn experiments(run: &RecordedRun, prefix: &str) -> Vec<Experiment> {
    run.header.experiments.iter().enumerate().map(|(index, spec)| view(run, index, spec, prefix)).collect()
}

fn view(run: &RecordedRun, index: usize, spec: &Spec, prefix: &str) -> Experiment {
    let about = |section: &Section, word: &str| section.title.to_lowercase().starts_with(word);
    let (question, rest): (Vec<Section>, Vec<Section>) =
        sections(&spec.readme).into_iter().partition(|section| about(section, "question") || section.title.is_empty());
    let (threats, design) = rest.into_iter().partition(|section| about(section, "threat"));
    let left_out = run.outcome.left_out.iter().filter(|arm| arm.experiment == spec.id);
    Experiment {
        anchor: format!("{prefix}experiment-{}", in_addresses(&spec.id)),
        id: spec.id.clone(),
        title: spec.title.clone(),
        question,
        pictures: figures(pictures::of_experiment(run, &spec.id), prefix, &format!("e{index}p"), Room::of(run)),
        table: table(run, spec),
        left_out: left_out.map(|arm| Html::sentence(&marked::left_out(arm))).collect(),
        threats,
        design,
    }
}

fn table(run: &RecordedRun, spec: &Spec) -> Option<Table> {
    let outcome = &run.outcome;
    let is_comparison =
        |claim: &ascertain::outcome::ClaimResult| claim.experiment == spec.id && claim.asked.judging == Judging::Order;
    if outcome.claims.iter().any(is_comparison) {
        return Table::of(&spec.title, &grids::compared(outcome, &Layout::default()));
    }
    let points: Vec<&PointSummary> =
        outcome.points.iter().filter(|point| point.n > 0 && point.experiment == spec.id).collect();
    if points.is_empty() {
        return None;
    }
    let (shared, grid) = grids::experiment_table(&spec.id, &points);
    Table::of(&shared, &grid)
}
