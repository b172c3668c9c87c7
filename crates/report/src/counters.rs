//! What was counted of commands beside what they are compared by, each counter with its answer.

use ascertain_engine::command;
use ascertain_engine::outcome::{ClaimResult, Outcome, PointSummary, Verdict};

use crate::clause::{arm_label, ordered};
use crate::figure::{Figure, brief_odds};
use crate::finding;
use crate::grid::{Cell, ColumnKind, Grid, arms_in_order, comparison_cells, median_cells};
use crate::layout::TableLayout;
use crate::text::{gathered, quoted};

/// For each counter a row for each command: its median, how many times as many as the reference's, and the answer.
pub(crate) fn grid(outcome: &Outcome, layout: &TableLayout) -> Grid {
    let mut grid = Grid::new(&[
        ("Counter", ColumnKind::Prose),
        ("Command", ColumnKind::Prose),
        ("Median", ColumnKind::Number),
        ("95 % interval", ColumnKind::Number),
        ("Times as many", ColumnKind::Number),
        ("Interval", ColumnKind::Number),
        ("Answer", ColumnKind::Word),
    ])
    .stacking(&["95 % interval", "Interval"])
    .stacking_at(2, &["Command"]);
    let keys: Vec<_> = arms_in_order(outcome, layout.order).into_iter().map(|(key, _)| key).collect();
    for metric in command::counters() {
        let of_metric = of_counter(outcome, &metric.name);
        let rows = keys.iter().filter_map(|&key| {
            let is_of_arm = |point: &&PointSummary| (point.variant.as_str(), &point.at) == key;
            let point = of_metric.points.iter().find(is_of_arm)?;
            let Figure { value, range, .. } = median_cells(point, layout);
            let [ratio, interval, answer] = comparison_cells(&of_metric, key);
            Some([arm_label(key.0, key.1), value, range, ratio, interval, answer])
        });
        for (index, [command, cells @ ..]) in rows.enumerate() {
            let name = if index == 0 { metric.name.replace('_', " ") } else { String::new() };
            let mut row = vec![Cell::Text(name), Cell::Code(command)];
            row.extend(cells.map(Cell::from));
            grid.rows.push(row);
        }
    }
    grid.without_empty_columns()
}

/// The outcome with one counter in the place of what commands are compared by; nothing where it is that.
fn of_counter(outcome: &Outcome, metric: &str) -> Outcome {
    let claims = outcome.claims.iter().flat_map(|claim| &claim.counters).filter(|claim| is_by(claim, metric));
    let is_judged = outcome.claims.iter().any(|claim| is_by(claim, metric));
    let is_counted = |point: &&PointSummary| !is_judged && point.metric == metric && point.n > 0;
    Outcome {
        claims: claims.cloned().collect(),
        points: outcome.points.iter().filter(is_counted).cloned().collect(),
        ..outcome.clone()
    }
}

fn is_by(claim: &ClaimResult, metric: &str) -> bool {
    ordered(claim).is_some_and(|(measure, ..)| measure.metric == metric)
}

/// More counters than this that are missing for one reason are a number, not a list.
const FEW: usize = 3;

/// What was not counted, and why; and how sure the answers are. Names are marked.
pub(crate) fn notes(outcome: &Outcome) -> Vec<String> {
    let counters = || outcome.claims.iter().flat_map(|claim| &claim.counters);
    let missing = counters().filter(|counter| counter.verdict == Verdict::Unavailable).filter_map(|counter| {
        let why = counter.reasons.iter().map(finding::reason).collect::<Vec<_>>().join("; ");
        ordered(counter).map(|(measure, ..)| (why, quoted(&measure.metric)))
    });
    let missing = gathered(missing).into_iter().map(|(why, names)| {
        // Each of several comparisons lacks the same.
        let names = gathered(names.into_iter().map(|name| (name, ())));
        let names: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
        let names = if names.len() > FEW { format!("{} counters", names.len()) } else { names.join(", ") };
        format!("Not counted here: {names} ({why}).")
    });
    let beside = counters().find(|counter| counter.trials > 0).map(|counter| {
        format!(
            "Counters are compared in the same trials, outside of the run's error: each answer alone is wrong with a \
             chance of at most {}.",
            brief_odds(counter.error)
        )
    });
    missing.chain(beside).collect()
}
