//! A run from its plan to its outcome.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use ascertain_sys::{clock, interrupt, machine};

use crate::claim::Judging;
use crate::error::Error;
use crate::evidence::{self, Header, Recorded, Writer};
use crate::experiment::{Arm, Experiment};
use crate::finding::{Least, Remark};
use crate::judging::Lane;
use crate::measure::Local;
pub use crate::now::{Doing, Now};
use crate::observations::Observations;
use crate::outcome::{ArmRemark, LeftOut, Outcome, Verdict};
use crate::plan::{self, Grouping, Plan, Registry};
use crate::recorded;
use crate::schedule::Schedule;
use crate::summary::{self, RunFacts};
pub use crate::time::{Clock, SystemClock};
use crate::unit::Unit;

/// What came of a run.
#[derive(Debug)]
pub struct Run {
    /// In a form that front ends print.
    pub outcome: Outcome,
    /// Every value.
    pub observations: Observations,
    /// Where the evidence is, when it was kept.
    pub folder: Option<PathBuf>,
    /// Why evidence could not be kept, or not to the end: the disk is full, for example. The outcome is of everything
    /// that was measured; what was recorded before stays readable.
    pub unkept: Option<evidence::Error>,
    /// Whether a target failed or gave a wrong answer, also one that no claim speaks of, or whose claims
    /// had been decided before.
    pub target_failed: bool,
}

/// Where a run's evidence goes.
pub enum Recording {
    /// Nowhere.
    None,
    /// To a new folder below this one; the run notes the command line that asked for it.
    New {
        /// The folder of runs.
        runs: PathBuf,
        /// The command line.
        command_line: Vec<String>,
        /// What was asked for beside the plan, for whoever goes on with it.
        request: serde_json::Value,
        /// The label that the user gave it.
        label: Option<String>,
        /// The git revision of the folder in which it is started.
        revision: Option<evidence::Revision>,
        /// The folder of what this user's state knows of runs, if it is to know of this one.
        known: Option<PathBuf>,
    },
    /// After what is there already.
    #[cfg(feature = "recorded")]
    Continue(Box<(Writer, Recorded)>),
}

/// Hears of a run while it goes on, between trials.
pub trait Observer {
    /// Whether an arm of the experiment can be measured here is found out, which takes long where something is built for
    /// it. Called of each arm, before anything else is.
    fn preparing(&mut self, _experiment: &str) {}

    /// Evidence can't be kept, or from now on not any more; the run goes on without. Called once at most.
    fn unkept(&mut self, _error: &evidence::Error) {}

    /// What it takes, as soon as it is known what a trial costs; not called where the time that was given is enough.
    fn outlook(&mut self, _outlook: &Outlook) {}

    /// How far it is; at most ten times a second, and before whatever may take long.
    fn progress(&mut self, progress: &Progress);

    /// Whether the outcome so far is wanted now. It is asked after `progress`, once something was measured;
    /// `now_ns` is the clock's time.
    fn outcome_due(&mut self, _now_ns: u64) -> bool {
        false
    }

    /// The outcome so far, because it was wanted. Making it takes time, which no trial is charged with, and
    /// changes nothing of what the run does.
    fn outcome(&mut self, _outcome: &Outcome, _observations: &Observations) {}
}

/// How far a run is.
#[derive(Clone, Debug)]
pub struct Progress {
    /// When that was, by the clock.
    pub at_ns: u64,
    /// Time since its start.
    pub elapsed: Duration,
    /// Time that it may take.
    pub max_time: Duration,
    /// Claims that are decided, or can't be, by verdict, in the order of [`Verdict::ALL`].
    pub closed: [usize; Verdict::ALL.len()],
    /// All claims.
    pub claims: usize,
    /// What is measured at the moment: the first open claim that needs it, or the experiment.
    pub what: String,
    /// How that claim stands; `None` where no claim is open.
    pub standing: Option<Standing>,
    /// Whether it is a comparison, whose trials are pairs.
    pub is_comparison: bool,
    /// Its trials so far.
    pub trials: u64,
    /// The most that it will have, where somebody said.
    pub most_trials: Option<u64>,
    /// The fewest that an answer takes; `None` where there were many and they are quick: nobody waits for them.
    pub least: Option<u64>,
    /// What a trial takes, once there was one.
    pub trial_ns: Option<f64>,
    /// What is going on until the next time.
    pub now: Now,
}

/// How an open claim stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// How it is judged: the trials of an order are pairs.
    pub judging: Judging,
    /// Its trials so far, also those of which nothing is known that counts.
    pub trials: u64,
    /// In which it was true.
    pub successes: u64,
    /// In which it was not.
    pub failures: u64,
    /// The quantile of the paired statistic, or of the only metric, as soon as there is one.
    pub estimate: Option<f64>,
    /// Whether that is how many times better the candidate is.
    pub is_ratio: bool,
    /// The unit of what is measured, where that is one metric.
    pub unit: Option<Unit>,
}

/// What the answers of a run take, where that is more than the time that was given or that there is as a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlook {
    /// What they take at the least.
    pub least: Least,
    /// The trials that there is time for.
    pub allowed: u64,
    /// Time that the run may take.
    pub max_time: Duration,
    /// Whether that is more than as a rule, so that it may suffice.
    pub is_longer: bool,
}

/// Hears nothing.
pub struct Silent;

impl Observer for Silent {
    fn progress(&mut self, _: &Progress) {}
}

/// Carries out a plan: measures in randomised trials until every claim is decided, every table is full,
/// the time is up, or somebody asks for the end.
///
/// # Errors
/// When the plan can't be carried out. A target's failure is an outcome, not an error, and without evidence that can't
/// be written the run goes on, as [`Run::unkept`] says.
pub fn run(
    plan: &Plan,
    registry: &Registry,
    recording: Recording,
    stop: &interrupt::Stop,
    observer: &mut dyn Observer,
) -> Result<Run, Error> {
    run_by_clock(plan, registry, recording, stop, observer, &SystemClock)
}

/// Carries out a plan like [`run`], and measures the time of the run and of its trials by this clock. A test passes a
/// clock that it moves itself, so that the run does not depend on how busy the machine is. Evidence and the figures of
/// the moment have the times of the machine's clock all the same.
///
/// # Errors
/// As [`run`].
pub fn run_by_clock(
    plan: &Plan,
    registry: &Registry,
    recording: Recording,
    stop: &interrupt::Stop,
    observer: &mut dyn Observer,
    clock: &dyn Clock,
) -> Result<Run, Error> {
    #[cfg(feature = "recorded")]
    if let Recording::Continue(parts) = &recording {
        recorded::check(&parts.1.header, registry)?;
    }
    let machine = machine::describe();
    let asked = RefCell::new(&mut *observer);
    let here = |experiment: &dyn Experiment, arm: &Arm| {
        asked.borrow_mut().preparing(&experiment.spec().id);
        plan::lack_here(experiment, arm, &machine)
    };
    let (mut judge, unavailable) = match &recording {
        #[cfg(feature = "recorded")]
        Recording::Continue(parts) if parts.1.header.grouping() == Grouping::ByMachine => {
            let Recorded { header, trials } = &parts.1;
            let then = |experiment: &dyn Experiment, arm: &Arm| {
                recorded::lack_then(header, trials, &experiment.spec().id, arm)
            };
            plan::lanes(plan, registry, &machine, Grouping::ByMachine, &then)?
        }
        _ => plan::lanes(plan, registry, &machine, Grouping::ByPlan, &here)?,
    };
    let Opened { mut writer, recorded, run_id, mut unkept } =
        open_evidence(plan, registry, recording, &machine, unavailable);
    if let Some(error) = &unkept {
        observer.unkept(error);
    }
    if let Some(writer) = &mut writer {
        judge.introduce(writer);
    }
    let mut former = recorded.as_ref().and_then(|recorded| recorded.header.outcome.clone());
    #[cfg(feature = "recorded")]
    if let Some(Recorded { header, trials }) = recorded {
        recorded::replay(&mut judge, &header, &trials)?;
    }
    let recorded_values = judge.observations.count();
    let start_ns = clock.now_ns();
    let ends_ns = start_ns.saturating_add(nanoseconds(plan.config.max_time));
    let facts = RunFacts {
        registry,
        machine: &machine,
        cpu_times: machine::cpu_times(),
        commands: &plan.commands,
        run_id: &run_id,
        seed: plan.config.seed,
    };
    let now = Now::new(judge.lanes.iter().map(|lane| lane.arms.iter().map(ToString::to_string).collect()).collect());
    let mut executor = Local::new(registry, plan.config.seed, stop.clone(), now.clone(), clock);
    let evidence = writer.as_mut();
    let time = (start_ns..ends_ns, clock);
    let mut schedule = Schedule::new(&mut executor, &mut judge, evidence, &facts, (stop, observer), time, now.clone());
    let interrupted = schedule.go().is_err() || stop.is_asked();
    unkept = unkept.or(schedule.unkept);
    let mut writer = writer.filter(|_| unkept.is_none());
    judge.lose_the_rest(writer.as_mut());
    // Sessions end here: clean-up commands run before the outcome is written, but after what was measured is.
    let flushed = writer.as_mut().map_or(Ok(()), Writer::flush);
    drop(executor);
    let claims = judge.results();
    let former_remarks = former.as_mut().map(|former| std::mem::take(&mut former.remarks));
    let remarks = remarks(&now, &judge.lanes, former_remarks.unwrap_or_default());
    let observations = judge.observations;
    let mut outcome = Outcome { remarks, ..summary::outcome(&facts, &observations, claims, interrupted) };
    if let Some(mut former) = former {
        // What was found of arms stays true of the values that they had.
        former.facts.retain(|facts| !outcome.facts.contains(facts));
        former.facts.append(&mut outcome.facts);
        outcome.facts = former.facts;
        // Where nothing was added, so does what was noted of the machine.
        if observations.count() == recorded_values {
            (outcome.machine, outcome.threats, outcome.cpu_times) = (former.machine, former.threats, former.cpu_times);
        }
    }
    let target_failed = observations.any_failed() || outcome.claims.iter().any(|c| c.verdict == Verdict::Failed);
    let finished = flushed.and_then(|()| writer.map(|writer| writer.finish(outcome.clone())).transpose());
    let folder = finished.unwrap_or_else(|error| {
        observer.unkept(&error);
        unkept = Some(error);
        None
    });
    Ok(Run { outcome, observations, folder, unkept, target_failed })
}

/// What was said of arms, and before the run was continued of others.
fn remarks(now: &Now, lanes: &[Lane], mut former: Vec<ArmRemark>) -> Vec<ArmRemark> {
    let of_arm = |((lane, slot), remark): ((usize, usize), Remark)| {
        let Lane { experiment, arms, .. } = &lanes[lane];
        let (experiment, Arm { variant, point: at }) = (experiment.spec().id.clone(), arms[slot].clone());
        ArmRemark { experiment, variant, at, remark }
    };
    let said: Vec<ArmRemark> = now.all_remarks().into_iter().map(of_arm).collect();
    let is_of_others = |one: &ArmRemark| {
        let is_same =
            |new: &ArmRemark| (&new.experiment, &new.variant, &new.at) == (&one.experiment, &one.variant, &one.at);
        !said.iter().any(is_same)
    };
    former.retain(is_of_others);
    former.extend(said);
    former
}

/// A time without end is 500 years.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns a word of the command line up to the first value of these environment variables.
fn without_values(mut word: String, hidden: &[&str]) -> String {
    let values = hidden.iter().filter_map(|name| Some(word.find(&format!("{name}="))? + name.len() + 1));
    if let Some(first) = values.min() {
        word.truncate(first);
        word.push('…');
    }
    word
}

struct Opened {
    writer: Option<Writer>,
    recorded: Option<Recorded>,
    run_id: String,
    unkept: Option<evidence::Error>,
}

fn open_evidence(
    plan: &Plan,
    registry: &Registry,
    recording: Recording,
    machine: &machine::Machine,
    unavailable: Vec<LeftOut>,
) -> Opened {
    let entropy = clock::now_ns() ^ plan.config.seed ^ u64::from(std::process::id());
    let run_id = evidence::new_run_id(clock::unix_ns(), entropy);
    match recording {
        Recording::None => Opened { writer: None, recorded: None, run_id, unkept: None },
        #[cfg(feature = "recorded")]
        Recording::Continue(parts) => {
            let (writer, recorded) = *parts;
            let run_id = recorded.header.run_id.clone();
            Opened { writer: Some(writer), recorded: Some(recorded), run_id, unkept: None }
        }
        Recording::New { runs, command_line, request, label, revision, known } => {
            let named = |id: &str| {
                plan.claims.iter().any(|claim| claim.experiment == id)
                    || plan.tables.iter().any(|table| table.experiment == id)
            };
            let specs = registry.iter().map(|experiment| experiment.spec());
            let (recorded_plan, hidden) = plan.recorded();
            let header = Header {
                schema: evidence::SCHEMA.to_string(),
                run_id: run_id.clone(),
                started: evidence::rfc3339(clock::unix_ns()),
                ascertain_version: env!("CARGO_PKG_VERSION").to_string(),
                command_line: command_line.into_iter().map(|word| without_values(word, &hidden)).collect(),
                request,
                label,
                revision,
                machine: machine.clone(),
                experiments: specs.filter(|spec| named(&spec.id)).cloned().collect(),
                plan: recorded_plan,
                unavailable,
                outcome: None,
                lines_bytes: None,
                lines_checksum: None,
                parquet_checksum: None,
            };
            let (writer, unkept) = match Writer::create(&runs, header, known.as_deref()) {
                Ok(writer) => (Some(writer), None),
                Err(error) => (None, Some(error)),
            };
            Opened { writer, recorded: None, run_id, unkept }
        }
    }
}
