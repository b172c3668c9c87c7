//! Judging a run's recorded trials again, in order: before new ones are measured, and for a report.

use crate::block::TrialRecord;
use crate::claim::Test;
use crate::error::Error;
use crate::evidence::{Header, Trials};
use crate::experiment::Arm;
use crate::judging::{Lane, RunJudge};
use crate::outcome::{LeftOut, Verdict};
use crate::plan;
use crate::plan::Registry;

/// Whether the experiments still are what they were when the run began, and have what its claims name.
///
/// # Errors
/// When one is not in this program, or has other metrics.
pub(crate) fn check(header: &Header, registry: &Registry) -> Result<(), Error> {
    for then in &header.experiments {
        if plan::find(registry, &then.id)?.spec().metrics != then.metrics {
            return Err(Error::Replay(format!("`{}` has other metrics in this program", then.id)));
        }
    }
    for claim in &header.plan.claims {
        let metrics = plan::find(registry, &claim.experiment)?.spec().metrics.len();
        let knows = |test: &Test| match test {
            Test::Versus { metric, .. } => *metric < metrics,
            Test::Predicate { predicate, .. } => predicate.0.iter().all(|comparison| comparison.metric < metrics),
        };
        if !claim.tests.iter().all(knows) || claim.counters.iter().any(|metric| *metric >= metrics) {
            let (id, experiment) = (&claim.id, &claim.experiment);
            return Err(Error::Replay(format!("claim `{id}` speaks of a metric that `{experiment}` has not")));
        }
    }
    Ok(())
}

/// Feeds recorded trials to the lanes that measured them.
pub(crate) fn replay(judge: &mut RunJudge, header: &Header, trials: &Trials) -> Result<(), Error> {
    let slots: Vec<Vec<Option<usize>>> = judge.lanes.iter().map(|lane| slots_of(lane, trials)).collect();
    let metrics = metrics_of(&judge.lanes, trials);
    let mut record = TrialRecord::default();
    trials.each(|trial| {
        judge.observations.skip_to(trial.experiment, trial.number);
        let fits = |lane: &usize| trial.observed.iter().all(|observed| slots[*lane][observed.arm].is_some());
        let lane = match trial.lane {
            Some(lane) => Some(lane).filter(|lane| *lane < slots.len() && fits(lane)),
            // Rows of the first versions don't say: the one that has most to learn from the arms measured them.
            None => (0..slots.len()).rev().filter(fits).max_by_key(|&lane| {
                let held = trial.observed.iter().filter_map(|observed| slots[lane][observed.arm]);
                judge.learns_from(lane, held.collect())
            }),
        };
        let lane = lane.ok_or_else(|| {
            let (number, experiment) = (trial.number, trial.experiment);
            Error::Replay(format!("trial {number} of `{experiment}` has arms that no claim or table asks for"))
        })?;
        record.clear();
        for observed in trial.observed {
            let series = &trials.series[observed.series];
            let metric = metrics[observed.series].ok_or_else(|| {
                let (experiment, metric) = (trial.experiment, &series.metric);
                Error::Replay(format!("`{experiment}` has no metric `{metric}` in this program"))
            })?;
            record.add(slots[lane][observed.arm].unwrap_or_default(), metric, &series.key, observed.value);
        }
        judge.conclude(lane, trial.number, &record);
        Ok::<_, Error>(())
    })?;
    close_as_before(header, judge);
    Ok(())
}

/// The lane's slot of each recorded arm.
fn slots_of(lane: &Lane, trials: &Trials) -> Vec<Option<usize>> {
    let slot_of = |(experiment, arm): &(String, Arm)| {
        let of_lane = lane.experiment.spec().id == *experiment;
        lane.arms.iter().position(|known| of_lane && known == arm)
    };
    trials.arms.iter().map(slot_of).collect()
}

/// The number of each recorded series' metric.
fn metrics_of(lanes: &[Lane], trials: &Trials) -> Vec<Option<usize>> {
    let metric_of = |(experiment, metric): (&str, &str)| {
        let mut specs = lanes.iter().map(|lane| lane.experiment.spec());
        specs.find(|spec| spec.id == experiment)?.metric(metric)
    };
    trials.series.iter().map(|series| metric_of((&series.experiment, &series.metric))).collect()
}

/// The run ended with a look at everything. What had failed then stays failed: a target is not tried
/// again until it no longer fails.
fn close_as_before(header: &Header, run: &mut RunJudge) {
    let Some(outcome) = &header.outcome else { return };
    for judge in &mut run.claims {
        judge.look();
        let before = outcome.claims.iter().find(|result| result.id == judge.claim.id);
        if let Some(result) = before.filter(|result| result.verdict == Verdict::Failed) {
            result.reasons.first().into_iter().for_each(|reason| judge.disqualify(reason.clone()));
        }
    }
    for LeftOut { experiment, variant, at, reason, .. } in &outcome.left_out {
        let arm = Arm { variant: variant.clone(), point: at.clone() };
        // Its values were taken back, for an answer was wrong.
        if outcome.points.iter().filter(|point| point.is_of(experiment, &arm)).all(|point| point.n == 0) {
            run.observations.take_back(experiment, &arm, reason);
        }
    }
}
