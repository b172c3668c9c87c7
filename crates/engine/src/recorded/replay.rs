//! Judges the recorded trials of a run again, in their order. A continued run does this before new trials, and a report
//! does it to get the results.

use crate::block::TrialRecord;
use crate::claim::Test;
use crate::error::Error;
use crate::evidence::{Header, Trials};
use crate::experiment::Arm;
use crate::judging::{Lane, RunJudge};
use crate::outcome::{LeftOut, Verdict};
use crate::plan;
use crate::plan::Registry;

/// Checks the metrics of this program's experiments. Each experiment must have the same metrics as when the run began.
/// These must include all metrics that the run's claims name.
///
/// # Errors
/// If an experiment does not exist in this program, or has other metrics.
pub(crate) fn check(header: &Header, registry: &Registry) -> Result<(), Error> {
    for then in &header.experiments {
        let now = &plan::find(registry, &then.id)?.spec().metrics;
        if now.len() != then.metrics.len() || now.iter().zip(&then.metrics).any(|(now, then)| !now.is_same_as(then)) {
            return Err(Error::Replay(format!(
                "the experiment `{}` has other metrics in this program than in the run",
                then.id
            )));
        }
    }
    for claim in &header.plan.claims {
        let spec = plan::find(registry, &claim.experiment)?.spec();
        let knows = |test: &Test| test.observed().iter().all(|(_, metric)| spec.metric(metric).is_some());
        let has_counters = claim.counters.iter().all(|metric| *metric < spec.metrics.len());
        if !claim.asked.tests.iter().all(knows) || !has_counters {
            let (id, experiment) = (&claim.id, &claim.experiment);
            return Err(Error::Replay(format!("claim `{id}` needs a metric that `{experiment}` does not have")));
        }
    }
    Ok(())
}

/// Passes each recorded trial to the lane (group of arms) in which it was measured, so that the lane's claims are
/// judged. Leaves out the trials whose number is not a multiple of `every`.
pub(crate) fn replay(judge: &mut RunJudge, header: &Header, trials: &Trials, every: u64) -> Result<(), Error> {
    let slots: Vec<Vec<Option<usize>>> = judge.lanes.iter().map(|lane| slots_of(lane, trials)).collect();
    let metrics = metrics_of(&judge.lanes, trials);
    let mut record = TrialRecord::default();
    trials.for_each(|trial| {
        if !trial.number.is_multiple_of(every) {
            return Ok(());
        }
        judge.observations.skip_to(trial.experiment, trial.number);
        let fits = |lane: &usize| trial.observations.iter().all(|observed| slots[*lane][observed.arm].is_some());
        let lane = Some(trial.lane).filter(|lane| *lane < slots.len() && fits(lane)).ok_or_else(|| {
            let (number, experiment) = (trial.number, trial.experiment);
            Error::Replay(format!("trial {number} of `{experiment}` has arms that no claim or table needs"))
        })?;
        record.clear();
        for observed in trial.observations {
            let series = &trials.series[observed.series];
            let metric = metrics[observed.series].ok_or_else(|| {
                let (experiment, metric) = (trial.experiment, &series.metric);
                Error::Replay(format!("the experiment `{experiment}` has no metric `{metric}` in this program"))
            })?;
            record.add(slots[lane][observed.arm].unwrap_or_default(), metric, &series.key, observed.value);
        }
        judge.conclude(lane, trial.number, &record);
        Ok::<_, Error>(())
    })?;
    close_as_before(header, judge);
    Ok(())
}

/// Returns, for each recorded arm, its slot in the lane (its index there); `None` if the lane does not have the arm.
fn slots_of(lane: &Lane, trials: &Trials) -> Vec<Option<usize>> {
    let slot_of = |(experiment, arm): &(String, Arm)| {
        let of_lane = lane.experiment.spec().id == *experiment;
        lane.arms.iter().position(|known| of_lane && known == arm)
    };
    trials.arms.iter().map(slot_of).collect()
}

/// Returns, for each recorded series of values, the index of its metric in its experiment; `None` if no lane has the
/// metric.
fn metrics_of(lanes: &[Lane], trials: &Trials) -> Vec<Option<usize>> {
    let metric_of = |(experiment, metric): (&str, &str)| {
        let mut specs = lanes.iter().map(|lane| lane.experiment.spec());
        specs.find(|spec| spec.id == experiment)?.metric(metric)
    };
    trials.series.iter().map(|series| metric_of((&series.experiment, &series.metric))).collect()
}

/// Brings the claims into the state that they had when the recorded run ended. Their intervals are updated, as at the
/// end of the run. Claims that had failed stay failed, because a failed arm is not measured again.
fn close_as_before(header: &Header, run: &mut RunJudge) {
    let Some(outcome) = &header.outcome else { return };
    for judge in &mut run.claims {
        judge.look();
        let before = outcome.claims.iter().find(|result| result.id == judge.claim.id);
        if let Some(result) = before.filter(|result| result.verdict == Verdict::Failed) {
            result.reasons.first().into_iter().for_each(|reason| judge.disqualify(reason.clone()));
        }
    }
    for LeftOut { experiment, arm, reason, .. } in &outcome.left_out {
        // If the arm has no values in the outcome, the run removed them because an answer of the arm was wrong.
        if outcome.points.iter().filter(|point| point.is_of(experiment, arm)).all(|point| point.n == 0) {
            run.observations.take_back(experiment, arm, reason);
        }
    }
}
