//! The data of a run that export formats use.

// Without the feature `exports`, nothing uses these types, but the interface of a run still has them.
#![cfg_attr(not(feature = "exports"), allow(dead_code))]

use std::collections::HashMap;

use ascertain_engine::claim::Place;
use ascertain_engine::experiment::Arm;
use ascertain_engine::observations::Observations;
use ascertain_engine::outcome::{ClaimResult, Outcome, PointSummary, Verdict};
use ascertain_engine::plan::Plan;
use ascertain_engine::unit::Unit;

use crate::options::TableLayout;

/// The data of a run that export formats use.
#[derive(Clone, Debug)]
pub struct Results<'a> {
    /// The plan: the experiments, commands and claims of the run.
    pub plan: &'a Plan,
    /// The outcome: summaries of the measured values, verdicts and findings.
    pub outcome: &'a Outcome,
    /// For each point of the outcome, its values in the order of their measurement. A value that was stopped at the
    /// time limit is infinite.
    pub values: Vec<&'a [f64]>,
    /// The layout of tables, for formats that have tables.
    pub layout: TableLayout,
    /// `true` if the run has ended. Results that are written during the run are marked as not final.
    pub is_final: bool,
}

/// The result of a claim in the terms of test tools, for example of tools that read JUnit files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The claim holds. A comparison passes if it has an answer, unless this answer counts as a failure (`--fail-if`).
    Passed,
    /// The claim is refuted. A comparison fails if its answer counts as a failure (`--fail-if`).
    Failed,
    /// The measured target failed or computed a wrong answer.
    Broken,
    /// The claim is undecided, unavailable or deferred.
    Skipped,
}

/// All measurements of one arm.
#[derive(Clone, Debug)]
pub struct ArmResults<'a> {
    /// The id of the arm's experiment.
    pub experiment: &'a str,
    /// The arm: a variant at a point.
    pub arm: &'a Arm,
    /// Each metric with its values. The order is that of the metrics in the experiment.
    pub metrics: Vec<(&'a PointSummary, &'a [f64])>,
}

impl<'a> Results<'a> {
    /// Creates the results from an outcome and the observations of the same run.
    pub fn new(
        plan: &'a Plan,
        outcome: &'a Outcome,
        observations: &'a Observations,
        layout: TableLayout,
        is_final: bool,
    ) -> Self {
        // The points of the outcome are in the order of the observations: arm by arm, and for each arm metric by
        // metric.
        let values = observations.arms().iter().flat_map(|arm| arm.of_points().map(|values| &**values));
        Results { plan, outcome, values: values.collect(), layout, is_final }
    }

    /// Returns the result of a claim in the terms of test tools: passed, failed, broken (because the target failed), or
    /// skipped.
    pub fn mark(&self, claim: &ClaimResult) -> Mark {
        let gate = self.plan.config.gate;
        match (claim.verdict, claim.decision) {
            (Verdict::Failed, _) => Mark::Broken,
            _ if gate.is_some_and(|gate| claim.tails.iter().any(|tail| tail.fails(gate))) => Mark::Failed,
            (Verdict::Undecided | Verdict::Unavailable | Verdict::Deferred, _) => Mark::Skipped,
            (_, Some(decision)) if gate.is_some_and(|gate| gate.decision() == decision) => Mark::Failed,
            (_, Some(_)) | (Verdict::Holds, None) => Mark::Passed,
            (Verdict::Refuted, None) => Mark::Failed,
        }
    }

    /// Returns the file and the line of a claim; `None` if the claim is not from a file.
    pub fn place(&self, claim: &ClaimResult) -> Option<&'a Place> {
        self.plan.claims.iter().find(|of_plan| of_plan.id == claim.id)?.place.as_ref()
    }

    /// Returns the measured arms, in the order of the outcome.
    pub fn arms(&self) -> Vec<ArmResults<'a>> {
        let mut arms: Vec<ArmResults> = Vec::new();
        let mut known: HashMap<(&str, &Arm), usize> = HashMap::new();
        for (point, values) in self.outcome.points.iter().zip(&self.values).filter(|(_, values)| !values.is_empty()) {
            let PointSummary { experiment, arm, .. } = point;
            let index = *known.entry((experiment, arm)).or_insert_with(|| {
                arms.push(ArmResults { experiment, arm, metrics: Vec::new() });
                arms.len() - 1
            });
            arms[index].metrics.push((point, values));
        }
        arms
    }
}

impl<'a> ArmResults<'a> {
    /// Returns the metric of this name with its values.
    pub fn metric(&self, name: &str) -> Option<(&'a PointSummary, &'a [f64])> {
        self.metrics.iter().copied().find(|(point, _)| point.metric == name)
    }

    /// Returns the main time of the arm with its values. It is the first metric whose unit is nanoseconds; `None` if
    /// there is none.
    pub fn time(&self) -> Option<(&'a PointSummary, &'a [f64])> {
        self.metrics.iter().copied().find(|(point, _)| point.unit == Unit::Nanosecond)
    }
}

/// The largest number of values that are written for each metric. It keeps the files of long runs small.
const MOST_VALUES: usize = 1000;

/// Returns the indices of the values that are written: all, or [`MOST_VALUES`] evenly spaced ones.
pub(super) fn thinned(count: usize) -> impl Iterator<Item = usize> {
    let kept = count.min(MOST_VALUES);
    (0..kept).map(move |index| index * count / kept)
}

/// Makes names unique: a repeated name gets a suffix, such as `#01`, as in `go test`.
#[derive(Default)]
pub(super) struct UniqueNames(HashMap<String, u32>);

impl UniqueNames {
    pub fn distinct(&mut self, name: String) -> String {
        let mut distinct = name.clone();
        while self.0.contains_key(&distinct) {
            let number = self.0.entry(name.clone()).and_modify(|number| *number += 1).or_insert(1);
            distinct = format!("{name}#{number:02}");
        }
        self.0.insert(distinct.clone(), 0);
        distinct
    }
}
