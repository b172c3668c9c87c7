//! Continuing a run: its recorded trials are judged again, in order, before new ones are measured.

use crate::error::Error;
use crate::evidence::{Header, Row, Trials};
use crate::experiment::{Arm, Sample};
use crate::lane::{Bench, Lane};
use crate::outcome::{LeftOut, PointSummary, Verdict};
use crate::plan::Registry;
use crate::planning;

/// Whether the experiments still are what they were when the run began.
///
/// # Errors
/// When one is not in this program, or has other metrics.
pub(crate) fn check(header: &Header, registry: &Registry) -> Result<(), Error> {
    for then in &header.experiments {
        if planning::find(registry, &then.id)?.spec().metrics != then.metrics {
            return Err(Error::Replay(format!("`{}` has other metrics in this program; run it anew", then.id)));
        }
    }
    Ok(())
}

/// Feeds recorded trials to the lanes that measured them.
pub(crate) fn replay(lanes: &mut [Lane], header: &Header, trials: Trials, bench: &mut Bench) -> Result<(), Error> {
    for trial in trials {
        let trial = trial?;
        let (experiment, number) = (&trial[0].experiment, trial[0].trial);
        bench.observations.skip_to(experiment, number);
        let arms: Vec<&[Row]> = trial.chunk_by(|a, b| a.position == b.position).collect();
        let of = |lane: &Lane| -> Option<Vec<usize>> {
            let slot_of = |rows: &&[Row]| lane.arms.iter().position(|arm| is_of(&rows[0], arm));
            if lane.experiment.spec().id == *experiment { arms.iter().map(slot_of).collect() } else { None }
        };
        // Where several lanes have the arms, the one that has most to learn from them measured them.
        let fitting = lanes.iter_mut().rev().filter_map(|lane| of(lane).map(|slots| (lane, slots)));
        let (lane, slots) = fitting.max_by_key(|(lane, slots)| lane.learns_from(slots, bench)).ok_or_else(|| {
            Error::Replay(format!("trial {number} of `{experiment}` has arms that no claim or table asks for"))
        })?;
        let samples = arms.iter().map(|rows| rows.iter().map(|row| sample(lane, row)).collect());
        let samples: Vec<Vec<Sample>> = samples.collect::<Result<_, _>>()?;
        lane.replay(slots.into_iter().zip(samples), bench);
    }
    close_as_before(header, bench);
    Ok(())
}

/// The run ended with a look at everything. What had failed then stays failed: a target is not tried
/// again until it no longer fails.
fn close_as_before(header: &Header, bench: &mut Bench) {
    let Some(outcome) = &header.outcome else { return };
    for judge in &mut *bench.claims {
        judge.look();
        let before = outcome.claims.iter().find(|result| result.id == judge.claim.id);
        if let Some(result) = before.filter(|result| result.verdict == Verdict::Failed) {
            judge.discredit(result.reason.clone().unwrap_or_default());
        }
    }
    for LeftOut { experiment, variant, at, reason } in &outcome.left_out {
        let of_arm =
            |point: &&PointSummary| point.experiment == *experiment && point.variant == *variant && point.at == *at;
        // Its values were taken back, for an answer was wrong.
        if outcome.points.iter().filter(of_arm).all(|point| point.n == 0) {
            let arm = Arm { variant: variant.clone(), point: at.clone() };
            bench.observations.take_back(experiment, &arm, reason);
        }
    }
}

fn is_of(row: &Row, arm: &Arm) -> bool {
    row.variant == arm.variant && row.point == arm.point
}

fn sample(lane: &Lane, row: &Row) -> Result<Sample, Error> {
    let metric = lane.experiment.spec().metric(&row.metric);
    let metric = metric
        .ok_or_else(|| Error::Replay(format!("`{}` has no metric `{}` in this program", row.experiment, row.metric)))?;
    let key = row.key.clone().into();
    Ok(Sample { metric, key, offset_ns: row.offset_ns, value: row.value, status: row.status })
}
