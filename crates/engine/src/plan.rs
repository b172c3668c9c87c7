//! The plan of a run as plain data. `run.json` stores it, so that the run can be continued. This module also divides
//! the run's error probability among the claims, and finds arms that this machine cannot measure. It puts arms that are
//! measured together into lanes.

use std::time::Duration;

use ascertain_sys::machine::Machine;
use serde::{Deserialize, Serialize};

use crate::block::MAX_ARMS;
use crate::claim::{Claim, Test};
use crate::command::CommandSet;
use crate::error::Error;
use crate::experiment::{Arm, Experiment};
use crate::finding::{Reason, Unavailable};
use crate::judging::{ClaimJudge, ClosedReason, Lane, RunJudge};
use crate::memory;
use crate::observations::Observations;
use crate::outcome::{Absence, Gate, LeftOut};
use crate::result::GatedVerdict;
use crate::windows::WindowPlan;

/// The question that a run answers, which decides how its result is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UseCase {
    /// Asks which command is faster.
    Compare,
    /// Asks whether a command succeeds often enough.
    Slo,
    /// Asks whether the claims hold.
    Check,
    /// Asks how noisy this machine is.
    CalibrateHere,
    /// Asks which of the user's functions is faster.
    Bench,
    /// Asks which variant is better, and whether the claims of the experiments hold. Use cases that this version does
    /// not know are also read as `Run`.
    #[default]
    #[serde(other)]
    Run,
}

/// Everything that a run must do: the claims, the arms and the limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The question that the run answers.
    pub use_case: UseCase,
    /// The claims to judge.
    pub claims: Vec<Claim>,
    /// The tables of results. Their arms are measured even if no claim needs them.
    pub tables: Vec<Table>,
    /// The experiments whose variants are command lines. All other experiments are part of the program.
    pub commands: Vec<CommandSet>,
    /// The limits and options of the run.
    pub config: Config,
    /// The windows of a long measurement of a single command; `None` for any other run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<WindowPlan>,
}

impl Plan {
    /// Returns the plan in the form in which `run.json` stores it, without secrets. Also returns the names of the
    /// environment variables whose values were removed.
    pub(crate) fn recorded(&self) -> (Plan, Vec<&str>) {
        let commands = self.commands.iter().map(CommandSet::recorded).collect();
        let hiding = self.commands.iter().filter(|set| !set.records_env);
        let variables = hiding.flat_map(|set| &set.commands).flat_map(|command| &command.env);
        (Plan { commands, ..self.clone() }, variables.map(|(name, _)| name.as_str()).collect())
    }

    /// Returns the arms of all tables and claims, each with the id of its experiment. Arms that occur several times are
    /// returned several times.
    pub fn arms(&self) -> impl Iterator<Item = (&str, &Arm)> {
        let tables = self.tables.iter().flat_map(|table| table.arms.iter().map(|arm| (table.experiment.as_str(), arm)));
        let claims = self.claims.iter().flat_map(|claim| {
            let arms = claim.arms().into_iter();
            arms.map(|arm| (claim.experiment.as_str(), arm))
        });
        tables.chain(claims)
    }
}

/// A table of results: arms of one experiment that are measured together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Id of the experiment.
    pub experiment: String,
    /// The arms to measure for the table, in display order.
    pub arms: Vec<Arm>,
}

impl Table {
    /// Returns the pairs of arms to compare. The first arm at each point (combination of levels) is the reference. Each
    /// other arm at that point is paired with this reference. The reference is the second element of the pair.
    #[must_use]
    pub fn with_the_first(&self) -> Vec<[&Arm; 2]> {
        let versus = self.arms.iter().filter_map(|arm| {
            let first = self.arms.iter().find(|other| other.point == arm.point).filter(|first| *first != arm);
            Some([arm, first?])
        });
        versus.collect()
    }
}

/// The limits and options of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Highest probability that any verdict of the run is wrong, in (0, 1).
    pub error: f64,
    /// Time limit of the run. No trial starts after it.
    pub max_time: Duration,
    /// Extended time limit. If comparisons need more time than `max_time`, the run may take up to this time.
    pub longest_time: Option<Duration>,
    /// Maximum number of trials in each lane; `None` for no maximum. A lane is a group of arms that are measured
    /// together.
    pub max_trials: Option<u64>,
    /// Exact number of trials in each lane (group of arms). If it is `None`, a lane ends when its verdicts are decided.
    pub exact_trials: Option<u64>,
    /// Number of warm-up trials at the start of each lane (group of arms). Their values are discarded.
    pub warmup_trials: u64,
    /// Seed of the run's random numbers. The same seed gives the same order of arms and the same inputs.
    pub seed: u64,
    /// Precision that the interval of each ratio must reach: half of the interval's width divided by its middle. With
    /// `None`, the run does not wait for a precision.
    pub precision: Option<f64>,
    /// Precision that the median of each arm in the tables must reach, for the experiment's first metric. The precision
    /// is half of the width of the median's interval, divided by its middle. If this is set, the run also continues
    /// until there are enough trials to check whether they are alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_precision: Option<f64>,
    /// Time limit for reaching `precision` and `median_precision`, from the start of the run. With `None`, only the
    /// run's time limit applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision_time: Option<Duration>,
    /// For `compare`, the largest relative difference that the user ignores, `m`. The answer depends on whether the
    /// interval of the ratio is inside [1/(1+m), 1+m], outside, or neither.
    pub margin: Option<f64>,
    /// The answer that makes a comparison fail; `None` if no answer does. With a margin, a comparison ends as soon as
    /// this answer is reached or ruled out.
    pub gate: Option<Gate>,
    /// The verdicts on claims that make the run fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fail_on: Vec<GatedVerdict>,
    /// Mean pause between two trials. The lengths of the pauses are random. With `None`, each trial starts immediately
    /// after the previous one.
    pub gap: Option<Duration>,
    /// Number of trials that each table needs. Once a table has this many trials, its arms are only measured for
    /// claims. With `None`, the arms are measured in every trial while a claim is open.
    pub table_trials: Option<u64>,
    /// `true` if the run continues after all verdicts, until its time limit or the maximum number of trials.
    pub until_time_is_up: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            error: 0.001,
            max_time: Duration::from_secs(30),
            longest_time: None,
            max_trials: None,
            exact_trials: None,
            warmup_trials: 0,
            seed: 0,
            precision: None,
            median_precision: None,
            precision_time: None,
            margin: None,
            gate: None,
            fail_on: Vec::new(),
            gap: None,
            table_trials: None,
            until_time_is_up: false,
        }
    }
}

impl Config {
    /// Sets the time limit. The run does not extend it for comparisons.
    pub fn limit_time(&mut self, max_time: Duration) {
        (self.max_time, self.longest_time) = (max_time, None);
    }

    /// Returns the maximum number of trials in a lane (group of arms). If the plan sets an exact number of trials,
    /// returns that number.
    pub(crate) fn most_trials(&self) -> Option<u64> {
        self.exact_trials.or(self.max_trials)
    }
}

/// The experiments that a run may use.
pub type Registry<'a> = [&'a dyn Experiment];

/// Returns the error probability of each claim. `total` is the run's error probability. Claims that set no error
/// probability share the rest of `total` equally.
///
/// # Errors
/// If `total` is not a probability, if the claims' own error probabilities exceed it, or if they leave nothing for the
/// other claims.
pub fn share_error(claims: &[Claim], total: f64) -> Result<Vec<f64>, Error> {
    if !(total > 0.0 && total < 1.0) {
        return Err(Error::NotAnError(total));
    }
    let own: f64 = claims.iter().filter_map(|claim| claim.error).sum();
    let sharing = claims.iter().filter(|claim| claim.error.is_none()).count();
    // Error probabilities that are meant to add up to the total may exceed it by rounding.
    let left = if own <= total * (1.0 + 1e-12) { (total - own).max(0.0) } else { -1.0 };
    if left < 0.0 || (sharing > 0 && left == 0.0) {
        return Err(Error::ErrorsTooLarge { own, total });
    }
    Ok(claims.iter().map(|claim| claim.error.unwrap_or(left / sharing as f64)).collect())
}

/// Returns the experiment with this id.
pub(crate) fn find<'a>(registry: &Registry<'a>, id: &str) -> Result<&'a dyn Experiment, Error> {
    let found = registry.iter().find(|experiment| experiment.spec().id == id);
    found.copied().ok_or_else(|| Error::UnknownExperiment(id.to_string()))
}

/// An error probability of 5 %, which is common, and higher than the default. If a run reaches no verdict, it reports
/// how many trials would be enough at this error probability.
const EASIER_ERROR: f64 = 0.05;

/// Returns a judge for each claim of the plan.
fn judges(plan: &Plan, registry: &Registry) -> Result<Vec<ClaimJudge>, Error> {
    let config = &plan.config;
    let errors = share_error(&plan.claims, config.error)?;
    // The error probability that each claim would have if the run's error probability were `EASIER_ERROR`. `None` if
    // the claims' own error probabilities exceed `EASIER_ERROR`.
    let easier = if config.error < EASIER_ERROR { share_error(&plan.claims, EASIER_ERROR).ok() } else { None };
    let judges = plan.claims.iter().zip(errors).enumerate().map(|(index, (claim, error))| {
        let easier = easier.as_ref().map(|errors| (EASIER_ERROR, errors[index]));
        let spec = find(registry, &claim.experiment)?.spec();
        ClaimJudge::new(claim, spec, &Config { error, ..config.clone() }, easier)
    });
    judges.collect()
}

/// Puts the arms of claims into lanes: groups of at most [`MAX_ARMS`] arms that are measured together. Claims that
/// share arms get the same lane. Then adds the arms of the tables.
///
/// `lack` is called once per arm, and returns the reason if the arm cannot be measured. The returned list contains the
/// arms that cannot be measured. They are still put into lanes, so that a plan has the same lanes on every machine.
pub(crate) fn lanes<'a>(
    plan: &Plan,
    registry: &Registry<'a>,
    machine: &Machine,
    lack: &Lack,
) -> Result<(RunJudge<'a>, Vec<LeftOut>), Error> {
    let (mut lanes, mut claims): (Vec<Lane<'a>>, _) = (Vec::new(), judges(plan, registry)?);
    let mut observations = Observations::default();
    // The tables are added first, because results are shown in the order in which arms are added here.
    for table in &plan.tables {
        let spec = find(registry, &table.experiment)?.spec();
        table.arms.iter().for_each(|arm| _ = observations.arm(spec, arm));
    }
    let mut availability = Availability { ask: lack, known: Vec::new() };
    for (index, judge) in claims.iter_mut().enumerate() {
        let experiment = find(registry, &judge.claim.experiment)?;
        let arms: Vec<Arm> = judge.claim.arms().into_iter().cloned().collect();
        if arms.len() > MAX_ARMS {
            return Err(Error::TooManyArms { id: judge.claim.id.clone(), arms: arms.len(), most: MAX_ARMS });
        }
        let missing = arms.iter().find_map(|arm| Some(unavailable(Some(arm), availability.lack(experiment, arm)?)));
        let lane = best_lane(&mut lanes, experiment, &arms);
        for arm in &arms {
            let slot = lane.slot(arm);
            if missing.is_none() {
                lane.observations[slot] = Some(observations.arm(experiment.spec(), arm));
            }
        }
        lane.claims.push(index);
        let places = &lane.arms;
        let slot_of = |arm: &Arm| places.iter().position(|known| known == arm).expect("each arm was just given a slot");
        judge.bind(experiment.spec(), slot_of);
        judge.close_counters(|counter| not_shown(experiment, counter, machine));
        if let Some(reason) = missing.or_else(|| not_shown(experiment, &judge.claim, machine)) {
            judge.close(ClosedReason::NotJudged(reason));
        }
    }
    for table in &plan.tables {
        let experiment = find(registry, &table.experiment)?;
        for arm in &table.arms {
            let missing = availability.lack(experiment, arm);
            add_to_table(experiment, arm, missing.is_none(), &mut lanes, &mut observations);
            if let Some(lack) = missing {
                let place = observations.arm(experiment.spec(), arm);
                observations.leave_out(place, unavailable(None, lack));
            }
        }
    }
    // All lanes are open at the same time, so their memory adds up.
    let needed_bytes = lanes.iter().map(|lane| {
        let arms: Vec<Arm> = lane.measurable().into_iter().map(|(_, arm)| arm).collect();
        if arms.is_empty() { 0 } else { lane.experiment.memory_bytes(&arms) }
    });
    memory::has_room(needed_bytes.fold(0, u64::saturating_add), machine).map_err(Error::Memory)?;
    Ok((RunJudge::new(lanes, claims, observations, &plan.config), availability.unavailable()))
}

/// Returns the reason why this machine cannot observe a metric of the claim, if there is one.
fn not_shown(experiment: &dyn Experiment, claim: &Claim, machine: &Machine) -> Option<Reason> {
    claim.asked.tests.iter().flat_map(Test::observed).find_map(|(arm, metric)| {
        let lack = experiment.shows(arm, experiment.spec().metric(metric)?, machine).err()?;
        Some(unavailable(Some(arm), lack))
    })
}

fn unavailable(arm: Option<&Arm>, lack: Unavailable) -> Reason {
    Reason::Unavailable { arm: arm.cloned(), lack }
}

/// Returns a lane (group of arms that are measured together) for these `arms`. Chooses the lane that already has the
/// most of these arms and has room for the rest. If there is no such lane, adds a new one.
fn best_lane<'a, 'l>(lanes: &'l mut Vec<Lane<'a>>, experiment: &'a dyn Experiment, arms: &[Arm]) -> &'l mut Lane<'a> {
    let shared = |lane: &Lane| arms.iter().filter(|arm| lane.arms.contains(arm)).count();
    let fits = |lane: &Lane| {
        lane.experiment.spec().id == experiment.spec().id
            && shared(lane) > 0
            && lane.arms.len() + arms.len() - shared(lane) <= MAX_ARMS
    };
    // Among lanes that share equally many arms, use the first.
    let best = (0..lanes.len()).rev().filter(|&lane| fits(&lanes[lane])).max_by_key(|&lane| shared(&lanes[lane]));
    lane_or_new(lanes, best, experiment)
}

/// Marks an arm as part of a table, in each lane (group of arms) that has the arm. If no lane has it, adds it to a lane
/// without claims. Lanes with claims get no additional arms, so that their claims are decided as soon as possible.
fn add_to_table<'a>(
    experiment: &'a dyn Experiment,
    arm: &Arm,
    is_available: bool,
    lanes: &mut Vec<Lane<'a>>,
    observations: &mut Observations,
) {
    let spec = experiment.spec();
    let of_experiment = |lane: &Lane| lane.experiment.spec().id == spec.id;
    let is_in = |lane: &Lane| of_experiment(lane) && lane.arms.contains(arm);
    let has_room = |lane: &Lane| of_experiment(lane) && lane.claims.is_empty() && lane.arms.len() < MAX_ARMS;
    if !lanes.iter().any(is_in) {
        let room = lanes.iter().position(has_room);
        lane_or_new(lanes, room, experiment).slot(arm);
    }
    for lane in lanes.iter_mut().filter(|lane| is_available && is_in(lane)) {
        let slot = lane.slot(arm);
        lane.table = lane.table.with(slot);
        lane.observations[slot] = Some(observations.arm(spec, arm));
    }
}

/// Returns the lane at the index `place`. If `place` is `None`, adds a new lane and returns it.
fn lane_or_new<'a, 'l>(
    lanes: &'l mut Vec<Lane<'a>>,
    place: Option<usize>,
    experiment: &'a dyn Experiment,
) -> &'l mut Lane<'a> {
    let index = place.unwrap_or_else(|| {
        lanes.push(Lane::new(experiment));
        lanes.len() - 1
    });
    &mut lanes[index]
}

/// A function that returns the reason why an arm cannot be measured. It returns `None` if the arm can be measured.
pub(crate) type Lack<'l> = dyn Fn(&dyn Experiment, &Arm) -> Option<Unavailable> + 'l;

/// Returns the reason why this machine cannot measure an arm, or `None` if it can.
pub(crate) fn lack_here(experiment: &dyn Experiment, arm: &Arm, machine: &Machine) -> Option<Unavailable> {
    let refused = experiment.spec().refusal(arm).map(Unavailable::other);
    refused.or_else(|| memory::available(experiment, arm, machine).err())
}

/// Finds out which arms this machine cannot measure. Keeps the results of the check `ask`, so that each arm is checked
/// only once.
struct Availability<'l> {
    ask: &'l Lack<'l>,
    /// The arms that were checked, sorted by experiment and arm, each with the reason if it is unavailable.
    known: Vec<((String, Arm), Option<Unavailable>)>,
}

impl Availability<'_> {
    fn lack(&mut self, experiment: &dyn Experiment, arm: &Arm) -> Option<Unavailable> {
        let key = (experiment.spec().id.clone(), arm.clone());
        let place = self.known.binary_search_by(|(known, _)| known.cmp(&key)).unwrap_or_else(|place| {
            let lack = (self.ask)(experiment, arm);
            self.known.insert(place, (key, lack));
            place
        });
        self.known[place].1.clone()
    }

    fn unavailable(self) -> Vec<LeftOut> {
        let missing = self.known.into_iter().filter_map(|((experiment, arm), lack)| {
            Some(LeftOut { experiment, arm, absence: Absence::Unavailable, reason: unavailable(None, lack?) })
        });
        missing.collect()
    }
}
