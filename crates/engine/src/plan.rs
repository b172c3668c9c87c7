//! What a run is asked to do, as plain data that `run.json` keeps so that a run can be continued; and from that to
//! lanes: shares the error, says what this machine can't measure, groups arms.

use std::time::Duration;

use ascertain_sys::machine::Machine;
use serde::{Deserialize, Serialize};

use crate::block::MAX_ARMS;
use crate::claim::{Claim, Test};
use crate::command::CommandSet;
use crate::error::Error;
use crate::experiment::{Arm, Experiment};
use crate::finding::{Reason, Unavailable};
use crate::judging::{ClaimJudge, Closed, JudgeTerms, Lane, RunJudge};
use crate::memory;
use crate::observations::Observations;
use crate::outcome::{Absence, Gate, LeftOut};

/// Everything a run is asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What is to be judged.
    pub claims: Vec<Claim>,
    /// What is to be measured whether or not a claim needs it.
    pub tables: Vec<Table>,
    /// The experiments that are commands; all others are in the program.
    pub commands: Vec<CommandSet>,
    /// How.
    pub config: Config,
}

impl Plan {
    /// Returns the plan as it is recorded, and the names of the environment variables whose values are not.
    pub(crate) fn recorded(&self) -> (Plan, Vec<&str>) {
        let commands = self.commands.iter().map(CommandSet::recorded).collect();
        let hiding = self.commands.iter().filter(|set| !set.records_env);
        let variables = hiding.flat_map(|set| &set.commands).flat_map(|command| &command.env);
        (Plan { commands, ..self.clone() }, variables.map(|(name, _)| name.as_str()).collect())
    }

    /// Every arm that a table or a claim asks for, with its experiment; one that several ask for, as often.
    pub fn arms(&self) -> impl Iterator<Item = (&str, &Arm)> {
        let tables = self.tables.iter().flat_map(|table| table.arms.iter().map(|arm| (table.experiment.as_str(), arm)));
        let claims = self.claims.iter().flat_map(|claim| {
            let arms = claim.arms().into_iter();
            arms.map(|arm| (claim.experiment.as_str(), arm))
        });
        tables.chain(claims)
    }
}

/// Arms of one experiment that are measured together for their own sake.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The experiment's id.
    pub experiment: String,
    /// Its arms.
    pub arms: Vec<Arm>,
}

impl Table {
    /// At each point, the arms there behind the first, each with that.
    #[must_use]
    pub fn with_the_first(&self) -> Vec<[&Arm; 2]> {
        let versus = self.arms.iter().filter_map(|arm| {
            let first = self.arms.iter().find(|other| other.point == arm.point).filter(|first| *first != arm);
            Some([arm, first?])
        });
        versus.collect()
    }
}

/// How a run is to go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// The chance that any verdict of the run is wrong, in (0, 1).
    pub error: f64,
    /// No new trial after that.
    pub max_time: Duration,
    /// Where comparisons can't be decided in that time, so much more that they can, up to this.
    #[serde(default)]
    pub longest_time: Option<Duration>,
    /// No new trial of a lane after that many.
    pub max_trials: Option<u64>,
    /// Exactly so many trials of each lane, whatever is decided.
    pub exact_trials: Option<u64>,
    /// Trials of each lane that are thrown away first.
    pub warmup_trials: u64,
    /// Where the plan's random numbers start.
    pub seed: u64,
    /// Go on until each ratio's interval is this narrow: half of its width by its middle.
    pub precision: Option<f64>,
    /// Go on until the interval of the median of each of the tables' arms, by the experiment's first metric, is this
    /// narrow, and until there are enough trials to see whether they are alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_precision: Option<f64>,
    /// Go on for these precisions no longer than this, counted from the start of the run. `None`: until the time is up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision_time: Option<Duration>,
    /// `compare`: answer from the ratio's interval against [1/(1+m), 1+m].
    pub margin: Option<f64>,
    /// What comparisons fail for, where somebody gates on it: with a margin they end as soon as that is settled.
    #[serde(default)]
    pub gate: Option<Gate>,
    /// Start trials at random moments, this far apart on average.
    pub gap: Option<Duration>,
    /// Trials that a table takes, after which its arms are measured no more; `None`: its arms are in
    /// every trial, for as long as a claim is open.
    pub table_trials: Option<u64>,
    /// Go on until the time is up or there are as many trials as there may be, whatever is decided.
    #[serde(default)]
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
            gap: None,
            table_trials: None,
            until_time_is_up: false,
        }
    }
}

impl Config {
    /// The most trials of a lane.
    pub(crate) fn most_trials(&self) -> Option<u64> {
        self.exact_trials.or(self.max_trials)
    }
}

/// The experiments that a run may name.
pub type Registry<'a> = [&'a dyn Experiment];

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

/// Wrong once in twenty runs: what many are content with.
const EASIER_ERROR: f64 = 0.05;

/// A claim at its start, for each in the plan.
fn judges(plan: &Plan, registry: &Registry) -> Result<Vec<ClaimJudge>, Error> {
    let config = &plan.config;
    let errors = share_error(&plan.claims, config.error)?;
    // What people take who want it sooner, where their claims' own errors leave room for it.
    let easier = if config.error < EASIER_ERROR { share_error(&plan.claims, EASIER_ERROR).ok() } else { None };
    let judges = plan.claims.iter().zip(errors).enumerate().map(|(index, (claim, error))| {
        let to_the_end = config.exact_trials.is_some() || config.until_time_is_up;
        let (margin, precision, gate) = (config.margin, config.precision, config.gate);
        let counts_all = config.precision_time.is_some() || config.median_precision.is_some();
        let (easier, most_trials) = (easier.as_ref().map(|errors| (EASIER_ERROR, errors[index])), config.most_trials());
        let terms = JudgeTerms { error, easier, most_trials, margin, precision, counts_all, gate, to_the_end };
        ClaimJudge::new(claim, find(registry, &claim.experiment)?.spec(), &terms)
    });
    judges.collect()
}

/// Which arms lanes have places for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grouping {
    /// All that the plan names: the lanes of a plan are the same on every machine.
    ByPlan,
    /// Those that the machine could measure then, as before rows had their lanes.
    ByMachine,
}

/// Groups claims that share arms, and then the tables' arms, in lanes of at most [`MAX_ARMS`]. Also says what can't be
/// measured, by `lack`, which is asked once for each arm.
pub(crate) fn lanes<'a>(
    plan: &Plan,
    registry: &Registry<'a>,
    machine: &Machine,
    grouping: Grouping,
    lack: &Lack,
) -> Result<(RunJudge<'a>, Vec<LeftOut>), Error> {
    let (mut lanes, mut claims): (Vec<Lane<'a>>, _) = (Vec::new(), judges(plan, registry)?);
    let mut observations = Observations::default();
    // Results are shown in the order in which the tables name their arms.
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
        if let Some(reason) = missing.clone().filter(|_| grouping == Grouping::ByMachine) {
            judge.close(Closed::For(reason));
            continue;
        }
        let lane = best_lane(&mut lanes, experiment, &arms);
        for arm in &arms {
            let slot = lane.slot(arm);
            if missing.is_none() {
                lane.observations[slot] = Some(observations.arm(experiment.spec(), arm));
            }
        }
        lane.claims.push(index);
        let places = &lane.arms;
        let slot_of = |arm: &Arm| places.iter().position(|known| known == arm).expect("each arm has just got a slot");
        judge.bind(experiment.spec(), slot_of);
        judge.close_counters(|counter| not_shown(experiment, counter, machine));
        if let Some(reason) = missing.or_else(|| not_shown(experiment, &judge.claim, machine)) {
            judge.close(Closed::For(reason));
        }
    }
    for table in &plan.tables {
        let experiment = find(registry, &table.experiment)?;
        for arm in &table.arms {
            let missing = availability.lack(experiment, arm);
            if missing.is_none() || grouping == Grouping::ByPlan {
                let place = TableArm { experiment, arm, is_available: missing.is_none(), grouping };
                place.add_to(&mut lanes, &mut observations);
            }
            if let Some(lack) = missing {
                let place = observations.arm(experiment.spec(), arm);
                observations.leave_out(place, unavailable(None, lack));
            }
        }
    }
    // All lanes are open at once.
    let needed_bytes = lanes.iter().map(|lane| {
        let arms: Vec<Arm> = lane.measurable().into_iter().map(|(_, arm)| arm).collect();
        if arms.is_empty() { 0 } else { lane.experiment.memory_bytes(&arms) }
    });
    memory::has_room(needed_bytes.fold(0, u64::saturating_add), machine).map_err(Error::Memory)?;
    Ok((RunJudge::new(lanes, claims, observations, &plan.config), availability.unavailable()))
}

/// Why the machine can't show what the claim speaks of, though it can measure the arms.
fn not_shown(experiment: &dyn Experiment, claim: &Claim, machine: &Machine) -> Option<Reason> {
    claim.tests.iter().flat_map(Test::observed).find_map(|(arm, metric)| {
        let lack = experiment.shows(arm, metric, machine).err()?;
        Some(unavailable(Some(arm), lack))
    })
}

fn unavailable(arm: Option<&Arm>, lack: Unavailable) -> Reason {
    Reason::Unavailable { arm: arm.cloned(), lack }
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

/// An arm that a table asks for.
struct TableArm<'a, 'p> {
    experiment: &'a dyn Experiment,
    arm: &'p Arm,
    is_available: bool,
    grouping: Grouping,
}

impl<'a> TableArm<'a, '_> {
    /// Marks the arm in the lanes that have it, or adds it to a lane of the table's own: trials of claims hold nothing
    /// else, so that claims are decided as soon as they can be. Grouping by machine used shared lanes.
    fn add_to(&self, lanes: &mut Vec<Lane<'a>>, observations: &mut Observations) {
        let spec = self.experiment.spec();
        let mut add = |lane: &mut Lane| {
            let slot = lane.slot(self.arm);
            if self.is_available {
                lane.table = lane.table.with(slot);
                lane.observations[slot] = Some(observations.arm(spec, self.arm));
            }
        };
        let of_experiment = |lane: &Lane| lane.experiment.spec().id == spec.id;
        let mut found = false;
        for lane in lanes.iter_mut().filter(|lane| of_experiment(lane) && lane.arms.contains(self.arm)) {
            add(lane);
            found = true;
        }
        if found {
            return;
        }
        let may_share = |lane: &Lane| lane.claims.is_empty() || self.grouping == Grouping::ByMachine;
        let has_room = |lane: &Lane| of_experiment(lane) && may_share(lane) && lane.arms.len() < MAX_ARMS;
        let room = lanes.iter().position(has_room);
        let index = room.unwrap_or_else(|| {
            lanes.push(Lane::new(self.experiment));
            lanes.len() - 1
        });
        add(&mut lanes[index]);
    }
}

/// Why an arm can't be measured, where it can't.
pub(crate) type Lack<'l> = dyn Fn(&dyn Experiment, &Arm) -> Option<Unavailable> + 'l;

/// What this machine lacks for an arm.
pub(crate) fn lack_here(experiment: &dyn Experiment, arm: &Arm, machine: &Machine) -> Option<Unavailable> {
    let refused = experiment.spec().refusal(arm).map(Unavailable::other);
    refused.or_else(|| memory::available(experiment, arm, machine).err())
}

/// Whether arms are available, each asked once.
struct Availability<'l> {
    ask: &'l Lack<'l>,
    /// In the order of their experiments and arms.
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
            let (reason, Arm { variant, point: at }) = (unavailable(None, lack?), arm);
            Some(LeftOut { experiment, variant, at, absence: Absence::Unavailable, reason })
        });
        missing.collect()
    }
}
