//! The values that a predicate speaks of, in the order measured.

use ascertain_engine::outcome::{AskedTest, ClaimResult};
use ascertain_engine::recorded::{ClaimPath, RecordedRun};
use ascertain_engine::unit::Unit;

use super::bounds::{of_predicate, places};
use super::claim::said;
use super::measured::{Measured, scale_for};
use super::trials::not_drawn;
use super::{Picture, PictureKind, Table, names};
use crate::plot::{Axis, Layer, Plot, Scale};

/// The metric of a claim's predicate in the trials that were judged, with its bound. Nothing where the predicate speaks
/// of several metrics, or nothing can be drawn or differs.
pub(super) fn values(run: &RecordedRun, claim: &ClaimResult, path: &ClaimPath, id: String) -> Option<Picture> {
    let [AskedTest::Predicate { arm, predicate, measure: Some(measure) }] = claim.asked.tests.as_slice() else {
        return None;
    };
    let spec = run.header.experiments.iter().find(|spec| spec.id == claim.experiment)?;
    let metric = &spec.metrics[spec.metric(&measure.metric)?];
    let measured = Measured::recorded(run, spec, metric, Some(arm));
    let row = measured.rows.iter().find(|row| row.key.is_empty())?;
    let judged = path.trials.iter().zip(&path.successes).enumerate();
    let seen =
        judged.filter_map(|(index, (trial, success))| Some((index as f64 + 1.0, row.of_trial(*trial)?, *success)));
    let seen: Vec<(f64, f64, Option<bool>)> = seen.collect();
    let drawn = seen.iter().filter(|(_, value, _)| value.is_finite());
    let rules = of_predicate(predicate, measure, &spec.metrics);
    let scale = scale_for(drawn.clone().map(|(_, value, _)| *value).chain(places(&rules)));
    let not_drawn = not_drawn(seen.len() - drawn.clone().count());
    // Where all are alike, the sentence says it.
    let (_, first, _) = drawn.clone().next()?;
    drawn.clone().find(|(_, value, _)| value != first)?;
    let dots = [true, false].into_iter().enumerate().map(|(series, outcome)| {
        let points = drawn.clone().filter(|(.., success)| *success == Some(outcome)).map(|&(x, y, _)| [x, y]).collect();
        Layer::Dots { series: Some(series), points, hollow: false }
    });
    let failures = claim.trials - claim.ties - claim.successes;
    let name = names::spoken(&measure.metric);
    let plot = Plot {
        id,
        title: format!("{} in the order measured{not_drawn}", names::capitalised(&name)),
        alt: format!(
            "{}: {predicate} was met in {} and missed in {failures}; the median {name} is {}.",
            said(claim),
            names::counted(claim.successes as usize, "trial"),
            row.median.figure(measure.unit)
        ),
        x: Axis::new("trials judged", Scale::Linear, Unit::One),
        y: Axis::new(&name, scale, measure.unit),
        series: ["condition met", "condition missed"].map(String::from).into(),
        layers: dots.chain(rules).collect(),
    };
    let mut table = Table::new(&["", "Trials", "Least", "Median", "Greatest"]);
    for (name, outcome) in [("Condition met", true), ("Condition missed", false)] {
        let of_outcome = seen.iter().filter(|(.., success)| *success == Some(outcome)).map(|(_, value, _)| *value);
        let mut sorted: Vec<f64> = of_outcome.collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |q| ascertain_stats::quantile_sorted(&sorted, q).map_or_else(|| "-".into(), |v| measure.unit.human(v));
        table.rows.push(vec![name.into(), sorted.len().to_string(), at(0.0), at(0.5), at(1.0)]);
    }
    Some(Picture { kind: PictureKind::Values, plot, table })
}
