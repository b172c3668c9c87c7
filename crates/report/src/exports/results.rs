//! A run as exports see it.

// Without them it is still what a run is for.
#![cfg_attr(not(feature = "exports"), allow(dead_code))]

use std::collections::{BTreeMap, HashMap};

use ascertain_engine::claim::Place;
use ascertain_engine::command::CommandSet;
use ascertain_engine::experiment::{Arm, Point};
use ascertain_engine::observations::Observations;
use ascertain_engine::outcome::{ClaimResult, Decision, Outcome, PointSummary, Verdict};
use ascertain_engine::plan::Table;
use ascertain_engine::unit::Unit;

use crate::layout::TableLayout;

/// What a run is for, which its outcome does not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Purpose {
    /// `compare --fail-if`: the decision that counts as a failure.
    pub failing: Option<Decision>,
    /// By claim: where it stands in its file.
    pub places: BTreeMap<String, Place>,
    /// The arms that were asked for, of which tables for people are; none where only claims were.
    pub tables: Vec<Table>,
    /// The commands among what was measured.
    pub commands: Vec<CommandSet>,
    /// How tables are laid out.
    pub layout: TableLayout,
}

/// A run as exports see it.
#[derive(Clone, Debug)]
pub struct Results<'a> {
    /// What came of it.
    pub outcome: &'a Outcome,
    /// The values behind each of the outcome's points, in the order measured. One that was cut
    /// off is infinite.
    pub values: Vec<&'a [f64]>,
    /// What it is for.
    pub purpose: &'a Purpose,
    /// Whether it has come to its end: results that are written meanwhile say that they are not final.
    pub is_final: bool,
}

/// How a claim counts where tests pass or fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It holds; of a comparison: it was decided, and not to what counts as a failure.
    Passed,
    /// It is refuted; of a comparison: it was decided to what counts as a failure.
    Failed,
    /// The target failed or gave a wrong answer.
    Broken,
    /// It is undecided, unavailable or deferred.
    Skipped,
}

/// Everything that was measured of one arm.
#[derive(Clone, Debug)]
pub struct ArmResults<'a> {
    /// The experiment.
    pub experiment: &'a str,
    /// The arm's variant.
    pub variant: &'a str,
    /// The arm's point.
    pub at: &'a Point,
    /// Each metric with its values, in the experiment's order.
    pub metrics: Vec<(&'a PointSummary, &'a [f64])>,
}

impl<'a> Results<'a> {
    /// The results of an outcome and the observations that it is of.
    pub fn new(outcome: &'a Outcome, observations: &'a Observations, purpose: &'a Purpose, is_final: bool) -> Self {
        // The outcome has a point for each metric of each arm, in this order.
        let values = observations.arms().iter().flat_map(|arm| arm.of_points().map(|values| &**values));
        Results { outcome, values: values.collect(), purpose, is_final }
    }

    /// How a claim counts.
    pub fn mark(&self, claim: &ClaimResult) -> Mark {
        match (claim.verdict, claim.decision) {
            (Verdict::Failed, _) => Mark::Broken,
            (Verdict::Undecided | Verdict::Unavailable | Verdict::Deferred, _) => Mark::Skipped,
            (_, Some(decision)) if self.purpose.failing == Some(decision) => Mark::Failed,
            (_, Some(_)) | (Verdict::Holds, None) => Mark::Passed,
            (Verdict::Refuted, None) => Mark::Failed,
        }
    }

    /// The arms that were measured, in the order of the outcome's points.
    pub fn arms(&self) -> Vec<ArmResults<'a>> {
        let mut arms: Vec<ArmResults> = Vec::new();
        let mut known: HashMap<(&str, &str, &Point), usize> = HashMap::new();
        for (point, values) in self.outcome.points.iter().zip(&self.values).filter(|(_, values)| !values.is_empty()) {
            let PointSummary { experiment, variant, at, .. } = point;
            let index = *known.entry((experiment, variant, at)).or_insert_with(|| {
                arms.push(ArmResults { experiment, variant, at, metrics: Vec::new() });
                arms.len() - 1
            });
            arms[index].metrics.push((point, values));
        }
        arms
    }
}

impl<'a> ArmResults<'a> {
    /// `kahan (accumulators=4 elements=187500)`.
    pub fn label(&self) -> String {
        Arm { variant: self.variant.to_string(), point: self.at.clone() }.to_string()
    }

    /// A metric and its values.
    pub fn metric(&self, name: &str) -> Option<(&'a PointSummary, &'a [f64])> {
        self.metrics.iter().copied().find(|(point, _)| point.metric == name)
    }

    /// The time that the arm is about: the first metric that is one.
    pub fn time(&self) -> Option<(&'a PointSummary, &'a [f64])> {
        self.metrics.iter().copied().find(|(point, _)| point.unit == Unit::Nanosecond)
    }
}

/// A file of every value of a long run serves nobody: at most this many of each metric are written.
const MOST_VALUES: usize = 1000;

/// Which of so many values are written: all, or enough of them, evenly spaced in the order measured.
pub(super) fn thinned(count: usize) -> impl Iterator<Item = usize> {
    let kept = count.min(MOST_VALUES);
    (0..kept).map(move |index| index * count / kept)
}

/// Names that nobody has taken: one that comes again gets a number, as `go test` does it.
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
