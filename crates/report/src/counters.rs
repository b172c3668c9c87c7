//! The table of counters, such as cache misses. Commands are compared by each counter, in addition to the main metric.

use ascertain_engine::command;
use ascertain_engine::experiment::Arm;
use ascertain_engine::outcome::{ClaimResult, Outcome, PointSummary, Verdict};

use crate::clause::{ArmComparison, arm_label};
use crate::figure::error_in_words;
use crate::finding;
use crate::grid::{
    Cell, ColumnKind, Grid, VS_REFERENCE, arms_in_order, comparison_cells, interval_heading, time_cells,
};
use crate::options::TableLayout;
use crate::text::{distinct, gathered, quoted};

/// Returns a table with a row for each counter and command: the median, the size of the difference from the reference,
/// and the answer.
pub(crate) fn grid(outcome: &Outcome, layout: &TableLayout) -> Grid {
    let counters: Vec<ClaimResult> = outcome.claims.iter().flat_map(|claim| claim.counters.clone()).collect();
    let interval = &*interval_heading(&counters);
    let numbers = ["Median", "95 % interval", VS_REFERENCE, interval];
    let mut grid = Grid::new(&[&["Counter", "Command"][..], &numbers, &["Answer"]].concat())
        .kind(ColumnKind::Number, &numbers)
        .kind(ColumnKind::Word, &["Answer"])
        .stacking(&["95 % interval", interval])
        .stacking_last(&["Command"]);
    let arms: Vec<&Arm> = arms_in_order(outcome, layout.order).into_iter().map(|(arm, _)| arm).collect();
    for metric in command::counters() {
        let of_metric = of_counter(outcome, &metric.name);
        let rows = arms.iter().filter_map(|&arm| {
            let point = of_metric.points.iter().find(|point| point.arm == *arm)?;
            let [value, range, _] = time_cells(point, layout, false);
            let [ratio, interval, answer] = comparison_cells(&of_metric, arm, false);
            Some([arm_label(arm), value, range, ratio, interval, answer])
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

/// Returns the outcome with this counter as the metric of its comparisons. If this counter is already the main metric
/// of a comparison in the run, the returned outcome has no claims and no summaries of arms. The table then omits the
/// counter.
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
    ArmComparison::new(claim).is_some_and(|comparison| comparison.measure.metric == metric)
}

/// The largest number of counters that are listed by name if they are missing for the same reason.
const FEW: usize = 3;

/// Returns notes: which counters are missing and why, and the error probability of each comparison by a counter. Names
/// are marked as in [`crate::text::quoted`].
pub(crate) fn notes(outcome: &Outcome) -> Vec<String> {
    let counters = || outcome.claims.iter().flat_map(|claim| &claim.counters);
    let missing = counters().filter(|counter| counter.verdict == Verdict::Unavailable).filter_map(|counter| {
        let why = counter.reasons.iter().map(finding::reason).collect::<Vec<_>>().join("; ");
        ArmComparison::new(counter).map(|comparison| (why, quoted(&comparison.measure.metric)))
    });
    let missing = gathered(missing).into_iter().map(|(why, names)| {
        // Several comparisons lack the same counters, so each name is listed once.
        let names = distinct(names);
        let names = if names.len() > FEW { format!("{} counters", names.len()) } else { names.join(", ") };
        format!("Not counted here: {names} ({why}).")
    });
    let beside = counters().find(|counter| counter.trials > 0).map(|counter| {
        format!(
            "Each counter has its own test, on the same trials (error at most {}). The run's error does not \
             include these tests.",
            error_in_words(counter.error)
        )
    });
    missing.chain(beside).collect()
}
