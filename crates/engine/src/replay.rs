//! Continuing a run: its recorded trials are judged again, in order, before new ones are measured.

use crate::error::Error;
use crate::evidence::{Recorded, Row};
use crate::experiment::{Arm, Sample};
use crate::lane::{Bench, Lane};

/// Feeds recorded trials to the lanes that measured them.
pub(crate) fn replay(lanes: &mut [Lane], recorded: Recorded, bench: &mut Bench) -> Result<(), Error> {
    for trial in recorded.trials {
        let trial = trial?;
        let experiment = &trial[0].experiment;
        bench.observations.skip_to(experiment, trial[0].trial);
        let arm_of = |row: &Row| Arm { variant: row.variant.clone(), point: row.point.clone() };
        let fits = |lane: &&mut Lane| {
            lane.experiment.spec().id == *experiment && trial.iter().all(|row| lane.arms.contains(&arm_of(row)))
        };
        let lane = lanes.iter_mut().find(fits).ok_or_else(|| {
            Error::Replay(format!("trial {} of `{experiment}` has arms that no claim or table asks for", trial[0].trial))
        })?;
        let mut measured: Vec<(usize, Vec<Sample>)> = Vec::new();
        for of_arm in trial.chunk_by(|a, b| a.position == b.position) {
            let arm = arm_of(&of_arm[0]);
            let slot = lane.arms.iter().position(|known| *known == arm).unwrap_or(0);
            let samples = of_arm.iter().map(|row| sample(lane, row)).collect::<Result<_, _>>()?;
            measured.push((slot, samples));
        }
        lane.replay(&measured, 0, bench);
    }
    Ok(())
}

fn sample(lane: &Lane, row: &Row) -> Result<Sample, Error> {
    let metric = lane.experiment.spec().metric(&row.metric);
    let metric = metric.ok_or_else(|| {
        Error::Replay(format!("`{}` has no metric `{}` in this program", row.experiment, row.metric))
    })?;
    let key = row.key.clone().into();
    Ok(Sample { metric, key, offset_ns: row.offset_ns, value: row.value, status: row.status })
}
