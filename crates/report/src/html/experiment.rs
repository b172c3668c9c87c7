//! What was measured, experiment by experiment.

use ascertain_engine::claim::Judging;
use ascertain_engine::command::CommandSet;
use ascertain_engine::experiment::{Metric, Spec};
use ascertain_engine::outcome::{ClaimResult, PointSummary};
use ascertain_engine::recorded::RecordedRun;

use super::markup::Html;
use super::picture::{Figure, Room, figures, in_addresses};
use super::readme::{Section, sections};
use super::table::Table;
use crate::figure::{chance, exact_percent};
use crate::grids;
use crate::layout::Layout;
use crate::pictures::{self, Picture, PictureKind, is_constant};
use crate::sentence::left_out;

/// An experiment as the template draws it.
pub(super) struct Experiment {
    pub anchor: String,
    pub id: String,
    pub title: String,
    /// What it asks, in its own words.
    pub question: Vec<Section>,
    pub pictures: Vec<Figure>,
    /// How many pictures are left out for the page's size.
    pub undrawn: usize,
    /// What did not vary, a sentence each.
    pub constants: Vec<Html>,
    /// What the table's rows share, and the table.
    pub table: Option<Table>,
    /// The metrics of the table, and what each is.
    pub metrics: Vec<(String, String)>,
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
    let room = Room::of(run);
    let (pictures, undrawn) = pictures_of(run, spec, room);
    let left_out = left_out::of_outcome_where(&run.outcome, |experiment| experiment == spec.id);
    Experiment {
        anchor: format!("{prefix}experiment-{}", in_addresses(&spec.id)),
        id: spec.id.clone(),
        title: title(run, spec),
        question,
        pictures: figures(pictures, prefix, &format!("e{index}p"), room),
        undrawn,
        constants: pictures::constants(run, &spec.id).iter().map(|sentence| Html::sentence(sentence)).collect(),
        table: table(run, spec),
        metrics: metrics(run, spec),
        left_out: left_out.iter().map(|sentence| Html::sentence(sentence)).collect(),
        threats,
        design,
    }
}

fn title(run: &RecordedRun, spec: &Spec) -> String {
    let is_one = |set: &CommandSet| set.id == spec.id && set.commands.len() == 1;
    if run.header.plan.commands.iter().any(is_one) {
        return "a command, started anew in each trial".into();
    }
    spec.title.clone()
}

/// The experiment's pictures, and how many are left out. Where room is short those are that the table and the claims say as well: what
/// is the same in every trial of an arm, and each trial's values. Where it is shortest only the first metric that has
/// quantiles shows them.
fn pictures_of(run: &RecordedRun, spec: &Spec, room: Room) -> (Vec<Picture>, usize) {
    let mut pictures = pictures::of_experiment(run, &spec.id);
    let all = pictures.len();
    let is_said = |picture: &Picture| picture.kind == PictureKind::Trials || is_constant(&picture.plot);
    pictures.retain(|picture| room == Room::Full || !is_said(picture));
    let mut has_quantiles = false;
    pictures.retain(|picture| {
        let are_quantiles = picture.kind == PictureKind::Quantiles;
        let is_more = are_quantiles && has_quantiles;
        has_quantiles |= are_quantiles;
        room != Room::Least || !is_more
    });
    let undrawn = all - pictures.len();
    (pictures, undrawn)
}

/// What each metric that was observed is, in its experiment's words.
fn metrics(run: &RecordedRun, spec: &Spec) -> Vec<(String, String)> {
    let is_observed = |metric: &&Metric| {
        let of_metric =
            |point: &PointSummary| point.experiment == spec.id && point.metric == metric.name && point.n > 0;
        !metric.about.is_empty() && run.outcome.points.iter().any(of_metric)
    };
    spec.metrics.iter().filter(is_observed).map(|metric| (metric.name.clone(), metric.about.clone())).collect()
}

fn table(run: &RecordedRun, spec: &Spec) -> Option<Table> {
    let outcome = &run.outcome.asked_for(&run.header.plan.tables);
    let is_comparison = |claim: &ClaimResult| claim.experiment == spec.id && claim.asked.judging == Judging::Order;
    if outcome.claims.iter().any(is_comparison) {
        let level = interval_level(&outcome.claims);
        let interval = level.map_or_else(|| "Interval".into(), |level| format!("{level} interval"));
        return Table::of(&spec.title, &grids::compared(outcome, &Layout::default(), &interval));
    }
    let points: Vec<&PointSummary> =
        outcome.points.iter().filter(|point| point.n > 0 && point.experiment == spec.id).collect();
    if points.is_empty() {
        return None;
    }
    let (shared, grid) = grids::experiment_table(&spec.id, &points);
    Table::of(&shared, &grid)
}

/// The level of the claims' intervals, if all have the same.
fn interval_level(claims: &[ClaimResult]) -> Option<String> {
    let (first, rest) = claims.split_first()?;
    // No more digits than the sentences have, and never a higher level than there is.
    let error: f64 = chance(first.error).parse().ok()?;
    rest.iter().all(|claim| claim.error == first.error).then(|| exact_percent(1.0 - error))
}
