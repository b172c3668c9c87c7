//! From a plan to lanes: shares the error, says what this machine can't measure, groups arms.

use std::collections::BTreeMap;

use ascertain_sys::machine::Machine;

use crate::claim::{Claim, Test};
use crate::error::Error;
use crate::experiment::{Arm, Experiment, Unavailable};
use crate::judging::{ClaimJudge, Closed, Terms};
use crate::lane::Lane;
use crate::memory;
use crate::observations::Observations;
use crate::outcome::{Absence, LeftOut};
use crate::plan::{Plan, Registry};
use crate::slots::MAX_ARMS;

/// The error of each claim: its own, or an even share of what is left of the run's.
///
/// # Errors
/// When the claims' own errors leave nothing for the others, or add up to more than the run's.
pub fn share_error(claims: &[Claim], total: f64) -> Result<Vec<f64>, Error> {
    if !(total > 0.0 && total < 1.0) {
        return Err(Error::Budget(format!(
            "an error of {total} can't be kept to; give one between 0 and 1, such as 0.001"
        )));
    }
    let own: f64 = claims.iter().filter_map(|claim| claim.error).sum();
    let sharing = claims.iter().filter(|claim| claim.error.is_none()).count();
    // Shares that were written to add up to the whole may do so but for rounding.
    let left = if own <= total * (1.0 + 1e-12) { (total - own).max(0.0) } else { -1.0 };
    if left < 0.0 || (sharing > 0 && left == 0.0) {
        return Err(Error::Budget(format!(
            "the claims' own errors add up to {own}, and the run may only be wrong with {total}; raise --error above it, or lower theirs"
        )));
    }
    Ok(claims.iter().map(|claim| claim.error.unwrap_or(left / sharing as f64)).collect())
}

/// Finds an experiment by its id.
pub(crate) fn find<'a>(registry: &Registry<'a>, id: &str) -> Result<&'a dyn Experiment, Error> {
    let found = registry.iter().find(|experiment| experiment.spec().id == id);
    found.copied().ok_or_else(|| Error::UnknownExperiment(id.to_string()))
}

/// A claim at its start, for each in the plan.
pub(crate) fn judges(plan: &Plan, registry: &Registry) -> Result<Vec<ClaimJudge>, Error> {
    let config = &plan.config;
    let errors = share_error(&plan.claims, config.error)?;
    let judges = plan.claims.iter().zip(errors).map(|(claim, error)| {
        let exact_trials = config.exact_trials.is_some();
        let (margin, precision, gate) = (config.margin, config.precision, config.gate);
        let terms = Terms { error, margin, precision, gate, exact_trials };
        ClaimJudge::new(claim, find(registry, &claim.experiment)?.spec(), &terms)
    });
    judges.collect()
}

/// What is measured together, and what can't be measured.
pub(crate) struct Lanes<'a> {
    pub lanes: Vec<Lane<'a>>,
    pub unavailable: Vec<LeftOut>,
}

/// Groups claims that share arms, and then the tables' arms, in lanes of at most [`MAX_ARMS`].
pub(crate) fn lanes<'a>(
    plan: &Plan,
    registry: &Registry<'a>,
    machine: &Machine,
    judges: &mut [ClaimJudge],
    observations: &mut Observations,
) -> Result<Lanes<'a>, Error> {
    let mut lanes: Vec<Lane<'a>> = Vec::new();
    // Results are shown in the order in which the tables name their arms.
    for table in &plan.tables {
        let spec = find(registry, &table.experiment)?.spec();
        table.arms.iter().for_each(|arm| _ = observations.arm(spec, arm));
    }
    let mut availability = Availability { machine, known: BTreeMap::new() };
    for (index, judge) in judges.iter_mut().enumerate() {
        let experiment = find(registry, &judge.claim.experiment)?;
        let arms: Vec<Arm> = judge.claim.arms().into_iter().cloned().collect();
        if arms.len() > MAX_ARMS {
            return Err(Error::TooManyArms { id: judge.claim.id.clone(), arms: arms.len(), most: MAX_ARMS });
        }
        let missing = arms.iter().find_map(|arm| Some(format!("{arm}: {}", availability.reason(experiment, arm)?)));
        if let Some(reason) = missing {
            judge.close(Closed::Unavailable(reason));
            continue;
        }
        let lane = best_lane(&mut lanes, experiment, &arms);
        for arm in &arms {
            lane.slot(arm, observations);
        }
        lane.claims.push(index);
        let slots = &lane.arms;
        let slot_of = |arm: &Arm| slots.iter().position(|known| known == arm).expect("each arm has just got a slot");
        judge.bind(experiment.spec(), slot_of);
        // It has its lane all the same: the trials of a run fit the lanes that its plan makes wherever it is read.
        if let Some(reason) = not_shown(experiment, &judge.claim, machine) {
            judge.close(Closed::Unavailable(reason));
        }
    }
    for table in &plan.tables {
        let experiment = find(registry, &table.experiment)?;
        for arm in &table.arms {
            if let Some(reason) = availability.reason(experiment, arm) {
                let number = observations.arm(experiment.spec(), arm);
                observations.leave_out(number, Closed::Unavailable(reason));
                continue;
            }
            add_table_arm(&mut lanes, experiment, arm, observations);
        }
    }
    // All lanes are open at once.
    let needed_bytes = lanes.iter().map(|lane| lane.experiment.memory_bytes(&lane.arms));
    memory::has_room(needed_bytes.fold(0, u64::saturating_add), machine).map_err(Error::Memory)?;
    Ok(Lanes { lanes, unavailable: availability.unavailable() })
}

/// Why the machine can't show what the claim speaks of, though it can measure the arms.
fn not_shown(experiment: &dyn Experiment, claim: &Claim, machine: &Machine) -> Option<String> {
    claim.tests.iter().flat_map(Test::observed).find_map(|(arm, metric)| {
        let Unavailable(reason) = experiment.shows(arm, metric, machine).err()?;
        Some(format!("{arm}: {reason}"))
    })
}

/// The lane that shares most arms with these and has room for the rest; a new one when none shares any.
fn best_lane<'a, 'l>(lanes: &'l mut Vec<Lane<'a>>, experiment: &'a dyn Experiment, arms: &[Arm]) -> &'l mut Lane<'a> {
    let shared = |lane: &Lane| arms.iter().filter(|arm| lane.arms.contains(arm)).count();
    let fits = |lane: &Lane| {
        lane.experiment.spec().id == experiment.spec().id
            && shared(lane) > 0
            && lane.arms.len() + arms.len() - shared(lane) <= MAX_ARMS
    };
    // Of several that share as many, the first.
    let best = (0..lanes.len()).rev().filter(|&lane| fits(&lanes[lane])).max_by_key(|&lane| shared(&lanes[lane]));
    let index = best.unwrap_or_else(|| {
        lanes.push(Lane::new(experiment));
        lanes.len() - 1
    });
    &mut lanes[index]
}

/// Marks the arm where it is already, or adds it where there is room.
fn add_table_arm<'a>(
    lanes: &mut Vec<Lane<'a>>,
    experiment: &'a dyn Experiment,
    arm: &Arm,
    observations: &mut Observations,
) {
    let of_experiment = |lane: &Lane| lane.experiment.spec().id == experiment.spec().id;
    let mut found = false;
    for lane in lanes.iter_mut().filter(|lane| of_experiment(lane)) {
        if let Some(slot) = lane.arms.iter().position(|known| known == arm) {
            lane.table = lane.table.with(slot);
            found = true;
        }
    }
    if found {
        return;
    }
    let room = lanes.iter().position(|lane| of_experiment(lane) && lane.arms.len() < MAX_ARMS);
    let index = room.unwrap_or_else(|| {
        lanes.push(Lane::new(experiment));
        lanes.len() - 1
    });
    let slot = lanes[index].slot(arm, observations);
    lanes[index].table = lanes[index].table.with(slot);
}

/// Whether arms are available, each asked once.
struct Availability<'m> {
    machine: &'m Machine,
    known: BTreeMap<(String, Arm), Option<String>>,
}

impl Availability<'_> {
    fn reason(&mut self, experiment: &dyn Experiment, arm: &Arm) -> Option<String> {
        let key = (experiment.spec().id.clone(), arm.clone());
        let ask = || memory::available(experiment, arm, self.machine).err().map(|Unavailable(reason)| reason);
        self.known.entry(key).or_insert_with(ask).clone()
    }

    fn unavailable(self) -> Vec<LeftOut> {
        let missing = self.known.into_iter().filter_map(|((experiment, arm), reason)| {
            let Arm { variant, point: at } = arm;
            Some(LeftOut { experiment, variant, at, absence: Absence::Unavailable, reason: reason? })
        });
        missing.collect()
    }
}
