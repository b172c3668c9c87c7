//! The tables of `run`: in full, or shortened to fit on a screen.

use ascertain_engine::claim::Test;
use ascertain_engine::experiment::{Arm, Better};
use ascertain_engine::outcome::{Outcome, PointSummary};

use super::{Style, left_out, sentences};
use crate::grid;
use crate::text::{distinct, gathered, parted, sorted};

/// The largest number of rows in a table for a screen.
const MOST_ROWS: usize = 16;
/// Number of arms with the best medians that a shortened table keeps, in addition to the arms of claims.
const BEST: usize = 5;

/// Returns the tables of `run`, one for each experiment. A heading has the levels that all arms share, and the table
/// has a row for each arm. The reasons for missing measurements are below the tables.
pub fn points_table(outcome: &Outcome, style: &Style) -> String {
    let tables = grid::points(outcome).into_iter().chain(grid::by_key(outcome));
    parted(tables.map(|table| drawn(&table, style)).chain([left_out(outcome, style)]))
}

/// Returns the tables for a run with claims, shortened to fit on a screen. A long table keeps only the rows of the
/// claims' arms and of the best arms. A note gives the number of other rows.
pub fn points_screen(outcome: &Outcome, style: &Style) -> String {
    let by_experiment = gathered(grid::in_tables(outcome).map(|point| (point.experiment.as_str(), point)));
    let tables = by_experiment.into_iter().map(|(experiment, points)| {
        let kept = kept(experiment, &points, outcome);
        let of_kept: Vec<&PointSummary> = points.iter().copied().filter(|point| kept.contains(&&point.arm)).collect();
        let more = distinct(points.iter().map(|point| &point.arm)).len() - kept.len();
        drawn(&grid::experiment_table(experiment, &of_kept, outcome), style) + &and_more(more, style)
    });
    // A suite has its own text and picture.
    let is_suite = |experiment: &str| outcome.suites.iter().any(|suite| suite.experiment == experiment);
    let mut without = outcome.clone();
    without.by_key.retain(|point| !is_suite(&point.experiment));
    let by_key = grid::by_key(&without).into_iter().map(|(heading, mut grid)| {
        let more = grid.rows.len().saturating_sub(MOST_ROWS);
        grid.rows.truncate(MOST_ROWS);
        drawn(&(heading, grid), style) + &and_more(more, style)
    });
    parted(tables.chain(by_key).chain([left_out(outcome, style)]))
}

/// Returns the output of `slo`: the verdict as a sentence, which names the command, and the table of the command's
/// measurements.
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

/// Returns the arms that have a row in the shortened table of an experiment.
fn kept<'a>(experiment: &str, points: &[&'a PointSummary], outcome: &'a Outcome) -> Vec<&'a Arm> {
    let arms = distinct(points.iter().map(|point| &point.arm));
    let claims: Vec<_> = outcome.claims.iter().filter(|claim| claim.experiment == experiment).collect();
    if arms.len() <= MOST_ROWS || claims.is_empty() {
        return arms;
    }
    let of_claims: Vec<&Arm> = claims.iter().flat_map(|claim| &claim.asked.tests).flat_map(Test::arms).collect();
    let is_first = |point: &&&PointSummary| point.n > 0 && point.metric == points[0].metric;
    let medians = points.iter().filter(is_first).filter_map(|point| {
        let sign = if point.better == Better::Lower { 1.0 } else { -1.0 };
        Some((&point.arm, sign * point.median?))
    });
    let mut best = sorted(medians.collect(), |(_, median)| *median);
    best.truncate(BEST);
    let is_kept = |arm: &&Arm| of_claims.contains(arm) || best.iter().any(|(of_best, _)| of_best == arm);
    arms.into_iter().filter(is_kept).collect()
}
