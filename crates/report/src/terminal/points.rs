//! The tables of `run`, in whole and on a screen.

use ascertain_engine::experiment::Better;
use ascertain_engine::outcome::{Outcome, PointSummary, TestSpec};

use super::{Style, left_out, sentences};
use crate::grid::{self, ArmKey};
use crate::text::{gathered, parted, sorted};

/// So many rows of an experiment have room on a screen.
const MOST_ROWS: usize = 16;
/// Of more, so many of the best stay beside those that claims are about.
const BEST: usize = 5;

/// The tables of `run`: for each experiment, what all of its arms share, and a row for each arm; then what was
/// asked for and not measured, by reason.
pub fn points_table(outcome: &Outcome, style: &Style) -> String {
    let tables = grid::points(outcome).into_iter().chain(grid::by_key(outcome));
    parted(tables.map(|table| drawn(&table, style)).chain([left_out(outcome, style)]))
}

/// The same where claims are judged on them: of a table of many rows those that the claims are about, and the best, and
/// how many more there are.
pub fn points_screen(outcome: &Outcome, style: &Style) -> String {
    let by_experiment = gathered(grid::in_tables(outcome).map(|point| (point.experiment.as_str(), point)));
    let tables = by_experiment.into_iter().map(|(experiment, points)| {
        let kept = kept(experiment, &points, outcome);
        let of_kept: Vec<&PointSummary> = points.iter().copied().filter(|point| kept.contains(&key(point))).collect();
        let more = gathered(points.iter().map(|point| (key(point), ()))).len() - kept.len();
        drawn(&grid::experiment_table(experiment, &of_kept, &outcome.claims), style) + &and_more(more, style)
    });
    let by_key = grid::by_key(outcome).into_iter().map(|(heading, mut grid)| {
        let more = grid.rows.len().saturating_sub(MOST_ROWS);
        grid.rows.truncate(MOST_ROWS);
        drawn(&(heading, grid), style) + &and_more(more, style)
    });
    parted(tables.chain(by_key).chain([left_out(outcome, style)]))
}

/// What `slo` prints: the verdict as a sentence, and what was measured of the one command that there is, which the
/// sentence names.
pub fn slo(outcome: &Outcome, style: &Style) -> String {
    let tables = grid::points(outcome).into_iter().map(|(_, grid)| style.table(&grid.without_first_column()));
    parted([sentences(outcome, style)].into_iter().chain(tables).chain([left_out(outcome, style)]))
}

fn and_more(rows: usize, style: &Style) -> String {
    match rows {
        0 => String::new(),
        1 => style.paragraph("… and 1 more row; `--all` prints it."),
        more => style.paragraph(&format!("… and {more} more rows; `--all` prints them.")),
    }
}

fn drawn((heading, grid): &(String, grid::Grid), style: &Style) -> String {
    style.paragraph(heading) + &style.table(grid)
}

fn key(point: &PointSummary) -> ArmKey<'_> {
    (&point.variant, &point.at)
}

/// The arms of an experiment that have a row.
fn kept<'a>(experiment: &str, points: &[&'a PointSummary], outcome: &'a Outcome) -> Vec<ArmKey<'a>> {
    let arms: Vec<ArmKey> =
        gathered(points.iter().map(|point| (key(point), ()))).into_iter().map(|(key, _)| key).collect();
    let claims: Vec<_> = outcome.claims.iter().filter(|claim| claim.experiment == experiment).collect();
    if arms.len() <= MOST_ROWS || claims.is_empty() {
        return arms;
    }
    let of_claims = claims.iter().flat_map(|claim| &claim.asked.tests).flat_map(TestSpec::arms);
    let of_claims: Vec<ArmKey> = of_claims.map(|arm| (arm.variant.as_str(), &arm.point)).collect();
    let is_first = |point: &&&PointSummary| point.n > 0 && point.metric == points[0].metric;
    let best: Vec<(ArmKey, f64)> = points
        .iter()
        .filter(is_first)
        .filter_map(|point| {
            let sign = if point.better == Better::Lower { 1.0 } else { -1.0 };
            Some((key(point), sign * point.median?))
        })
        .collect();
    let mut best = sorted(best, |(_, median)| *median);
    best.truncate(BEST);
    let is_kept = |key: &ArmKey| of_claims.contains(key) || best.iter().any(|(of_best, _)| of_best == key);
    arms.into_iter().filter(is_kept).collect()
}
