use ascertain_engine::claim::Judging;
use ascertain_engine::experiment::Metric;
use ascertain_engine::observations::Observations;
use ascertain_engine::outcome::{AskedTest, Outcome, PointSummary};

use super::bounds::of_predicate;
use super::forest::medians;
use super::measured::Measured;
use super::quantiles::{about, quantiles};
use super::rate::density;
use crate::plot::Plot;

/// What a terminal shows after a run that has just ended: for commands or functions that were compared, their medians;
/// for a rate, where it lies, and the quantiles of the metric that it is about with their bound.
pub fn for_terminal(outcome: &Outcome, observations: &Observations) -> Vec<Plot> {
    let mut plots = Vec::new();
    let order = outcome.claims.iter().find(|claim| claim.asked.judging == Judging::Order);
    if let Some(point) =
        order.and_then(|claim| outcome.points.iter().find(|point| point.experiment == claim.experiment))
    {
        let measured = Measured::observed(point, outcome, observations);
        let about = about("medians", &point.experiment, &measured);
        plots.extend(medians(&measured, "medians".into(), &about).map(|picture| picture.plot));
    }
    for (index, claim) in outcome.claims.iter().filter(|claim| claim.asked.judging == Judging::Rate).enumerate() {
        let [AskedTest::Predicate { arm, predicate, measure }] = claim.asked.tests.as_slice() else { continue };
        plots.extend(density(claim, format!("rate-{}", index + 1)).map(|picture| picture.plot));
        let of_arm: Vec<&PointSummary> = outcome
            .points
            .iter()
            .filter(|point| {
                point.experiment == claim.experiment && point.variant == arm.variant && point.at == arm.point
            })
            .collect();
        let Some(measure) = measure else { continue };
        let Some(point) = of_arm.iter().find(|point| point.metric == measure.metric) else { continue };
        let mut measured = Measured::observed(point, outcome, observations);
        measured.rows.retain(|row| row.arm == arm);
        let about = about("by quantile", &point.experiment, &measured);
        let Some(mut picture) = quantiles(&measured, format!("quantiles-{}", index + 1), &about) else { continue };
        let metrics: Vec<Metric> =
            of_arm.iter().map(|point| Metric::new(&point.metric, "", point.unit, point.better)).collect();
        picture.plot.layers.extend(of_predicate(predicate, measure, &metrics));
        plots.push(picture.plot);
    }
    plots
}
