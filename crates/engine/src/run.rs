//! A run from its plan to its outcome.

use std::path::PathBuf;
use std::time::Duration;

use ascertain_sys::{clock, interrupt, machine};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::error::Error;
use crate::evidence::{self, Header, Recorded, Writer};
use crate::experiment::TargetError;
use crate::judging::{ClaimJudge, Closed};
use crate::lane::{Bench, Lane};
use crate::observations::Observations;
use crate::outcome::{ClaimResult, LeftOut, Outcome, Verdict};
use crate::plan::{Config, Plan, Registry};
use crate::planning::{self, Lanes};
use crate::replay;
use crate::summary::{self, Setting};
use crate::unit::Unit;

/// A lane keeps the machine to itself for that long before another may have it.
const SLICE_NS: u64 = 250_000_000;
/// The observer hears of the run this often.
const PROGRESS_NS: u64 = 100_000_000;

/// What came of a run.
#[derive(Debug)]
pub struct Run {
    /// In a form that front ends print.
    pub outcome: Outcome,
    /// Every value.
    pub observations: Observations,
    /// Where the evidence is, when it was kept.
    pub folder: Option<PathBuf>,
    /// Why evidence could not be kept to the end: the disk is full, for example. The run ended there, and the outcome is
    /// of everything that was measured until then.
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
    },
    /// After what is there already.
    Continue(Box<(Writer, Recorded)>),
}

/// Hears of a run while it goes on, between trials.
pub trait Observer {
    /// What this machine can't measure of what was asked for, before the first trial; not called where that is nothing.
    fn unavailable(&mut self, _left_out: &[LeftOut]) {}

    /// How far it is; at most ten times a second.
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
    /// Time since its start.
    pub elapsed: Duration,
    /// Time that it may take.
    pub max_time: Duration,
    /// Claims that are decided, or can't be.
    pub claims_closed: usize,
    /// All claims.
    pub claims: usize,
    /// What is measured at the moment, in a few words.
    pub headline: String,
}

/// Hears nothing.
pub struct Silent;

impl Observer for Silent {
    fn progress(&mut self, _: &Progress) {}
}

/// Carries out a plan: measures in randomised trials until every claim is decided, every table is full,
/// the time is up, or Ctrl-C comes.
///
/// # Errors
/// When the plan can't be carried out, or evidence can't be begun. A target's failure is an outcome, not an error, and
/// evidence that can't be written any more ends the run as [`Run::unkept`] says.
pub fn run(plan: &Plan, registry: &Registry, recording: Recording, observer: &mut dyn Observer) -> Result<Run, Error> {
    if let Recording::Continue(parts) = &recording {
        replay::check(&parts.1.header, registry)?;
    }
    let machine = machine::describe();
    let mut observations = Observations::default();
    let mut judges = planning::judges(plan, registry)?;
    let Lanes { mut lanes, unavailable } = planning::lanes(plan, registry, &machine, &mut judges, &mut observations)?;
    if !unavailable.is_empty() {
        observer.unavailable(&unavailable);
    }
    let (mut writer, recorded, run_id) = open_evidence(plan, registry, recording, &machine, unavailable)?;
    if let Some(writer) = &mut writer {
        for (index, values) in observations.arms().to_vec().iter().enumerate() {
            let spec = planning::find(registry, &values.experiment)?.spec();
            observations.set_evidence_id(index, writer.add_arm(spec, &values.arm));
        }
    }
    let mut bench =
        Bench { claims: &mut judges, observations: &mut observations, evidence: writer.as_mut(), config: &plan.config };
    let former = recorded.as_ref().and_then(|recorded| recorded.header.outcome.clone());
    if let Some(Recorded { header, trials }) = recorded {
        replay::replay(&mut lanes, &header, &trials, &mut bench)?;
    }
    let recorded_values = bench.observations.count();
    let start_ns = clock::now_ns();
    let ends_ns = start_ns.saturating_add(nanoseconds(plan.config.max_time));
    let setting = Setting {
        registry,
        machine: &machine,
        cpu_times: machine::cpu_times(),
        commands: &plan.commands,
        run_id: &run_id,
        seed: plan.config.seed,
    };
    let mut runner =
        Runner { config: &plan.config, setting: &setting, lanes, start_ns, ends_ns, next_progress_ns: 0, observer };
    let (interrupted, mut unkept) = match runner.go(&mut bench) {
        Ok(()) => (interrupt::requested(), None),
        Err(Stop::Interrupted) => (true, None),
        Err(Stop::Evidence(error)) => (interrupt::requested(), Some(error)),
    };
    // Sessions end here: clean-up commands run before the outcome is written.
    drop(runner);
    let claims = judges.iter_mut().map(ClaimJudge::result).collect();
    let mut outcome = summary::outcome(&setting, &observations, claims, interrupted);
    // Where nothing was added, what was noted of the machine stays true of the values.
    if let Some(former) = former.filter(|_| observations.count() == recorded_values) {
        (outcome.machine, outcome.threats, outcome.cpu_times) = (former.machine, former.threats, former.cpu_times);
    }
    let target_failed = observations.any_failed() || outcome.claims.iter().any(|c| c.verdict == Verdict::Failed);
    let finished = writer.filter(|_| unkept.is_none()).map(|writer| writer.finish(outcome.clone()));
    let folder = finished.and_then(|finished| finished.map_err(|error| unkept = Some(error)).ok());
    Ok(Run { outcome, observations, folder, unkept, target_failed })
}

/// A time without end is 500 years.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

type Opened = (Option<Writer>, Option<Recorded>, String);

fn open_evidence(
    plan: &Plan,
    registry: &Registry,
    recording: Recording,
    machine: &machine::Machine,
    unavailable: Vec<LeftOut>,
) -> Result<Opened, Error> {
    let entropy = clock::now_ns() ^ plan.config.seed ^ u64::from(std::process::id());
    let run_id = evidence::new_run_id(clock::unix_ns(), entropy);
    match recording {
        Recording::None => Ok((None, None, run_id)),
        Recording::Continue(parts) => {
            let (writer, recorded) = *parts;
            let run_id = recorded.header.run_id.clone();
            Ok((Some(writer), Some(recorded), run_id))
        }
        Recording::New { runs, command_line } => {
            let named = |id: &str| {
                plan.claims.iter().any(|claim| claim.experiment == id)
                    || plan.tables.iter().any(|table| table.experiment == id)
            };
            let specs = registry.iter().map(|experiment| experiment.spec());
            let header = Header {
                schema: evidence::SCHEMA.to_string(),
                run_id: run_id.clone(),
                started: evidence::rfc3339(clock::unix_ns()),
                ascertain_version: env!("CARGO_PKG_VERSION").to_string(),
                command_line,
                machine: machine.clone(),
                experiments: specs.filter(|spec| named(&spec.id)).cloned().collect(),
                plan: plan.clone(),
                unavailable,
                outcome: None,
                lines_bytes: None,
                lines_checksum: None,
                parquet_checksum: None,
            };
            Ok((Some(Writer::create(&runs, header)?), None, run_id))
        }
    }
}

/// Why a run ends early.
enum Stop {
    Interrupted,
    Evidence(evidence::Error),
}

struct Runner<'r, 'a> {
    config: &'r Config,
    setting: &'r Setting<'r>,
    lanes: Vec<Lane<'a>>,
    start_ns: u64,
    ends_ns: u64,
    next_progress_ns: u64,
    observer: &'r mut dyn Observer,
}

impl Runner<'_, '_> {
    fn go(&mut self, bench: &mut Bench) -> Result<(), Stop> {
        let pilots = match self.lanes.len() {
            0 | 1 => self.config.warmup_trials,
            _ => self.config.warmup_trials.max(1),
        };
        for index in 0..self.lanes.len() {
            self.pilot(index, pilots, bench)?;
        }
        while let Some(index) = self.choose(bench) {
            self.slice(index, bench)?;
        }
        if interrupt::requested() {
            return Ok(());
        }
        // Other lanes promised more a second.
        for lane in &mut self.lanes {
            if lane.is_open() && lane.trials == 0 && lane.wants_more(bench) {
                let why = "the time was up before its turn came; give more with --max-time";
                lane.give_up(&Closed::Deferred(why.into()), bench);
            }
        }
        Ok(())
    }

    fn time_left_ns(&self) -> u64 {
        self.ends_ns.saturating_sub(clock::now_ns())
    }

    /// Opens a lane and learns what a trial of it costs.
    fn pilot(&mut self, index: usize, pilots: u64, bench: &mut Bench) -> Result<(), Stop> {
        let ends_ns = self.ends_ns;
        let lane = &mut self.lanes[index];
        if !lane.wants_more(bench) {
            return Ok(());
        }
        if ends_ns <= clock::now_ns() {
            if lane.trials == 0 {
                let why = "the time was up before it could be tried; give more with --max-time";
                lane.give_up(&Closed::Deferred(why.into()), bench);
            }
            return Ok(());
        }
        match lane.open(bench) {
            Ok(()) => {}
            Err(TargetError::Interrupted) => return Err(Stop::Interrupted),
            Err(error) => {
                lane.give_up(&Closed::Failed(error.to_string()), bench);
                return Ok(());
            }
        }
        for _ in 0..pilots {
            if ends_ns <= clock::now_ns() {
                break;
            }
            self.lanes[index].warm_up(bench).map_err(|_| Stop::Interrupted)?;
            self.report_progress_if_due(clock::now_ns(), index, bench);
        }
        self.defer(index, bench);
        Ok(())
    }

    /// Defers the claims whose shortest possible verdict does not fit in the time that is left. Where there
    /// is one lane alone nothing would be won: its figures are better than none.
    fn defer(&self, index: usize, bench: &mut Bench) {
        let left_ns = self.time_left_ns() as f64;
        let lane = &self.lanes[index];
        if self.lanes.len() == 1 || lane.trials > 0 || self.config.exact_trials.is_some() {
            return;
        }
        for &claim in &lane.claims {
            let judge = &mut bench.claims[claim];
            let need_ns = lane.cost_ns * judge.soonest_verdict() as f64;
            if need_ns > left_ns {
                let need = Unit::Nanosecond.human(need_ns);
                let why = format!("its shortest possible verdict takes {need}; give more with --max-time");
                judge.close(Closed::Deferred(why));
            }
        }
    }

    /// The lane that is to have the next slice: tables fill first, then whichever expects most
    /// log-evidence a second. The choice looks only at the past, so it does not touch validity.
    fn choose(&mut self, bench: &mut Bench) -> Option<usize> {
        if self.time_left_ns() == 0 || interrupt::requested() {
            return None;
        }
        let mut best = None;
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            if !lane.is_open() {
                continue;
            }
            if !lane.wants_more(bench) {
                lane.shut();
                continue;
            }
            let waits = lane.table_waits(self.config);
            let open = lane.claims.iter().map(|&claim| &bench.claims[claim]).filter(|judge| judge.is_open());
            let growth: f64 = open.map(ClaimJudge::expected_growth).sum();
            let score = match waits {
                true => f64::MAX / (lane.trials as f64 + 2.0),
                false => growth / lane.cost_ns.max(1.0),
            };
            if best.is_none_or(|(_, most)| score > most) {
                best = Some((index, score));
            }
        }
        best.map(|(index, _)| index)
    }

    fn slice(&mut self, index: usize, bench: &mut Bench) -> Result<(), Stop> {
        let slice_ends_ns = self.ends_ns.min(clock::now_ns().saturating_add(SLICE_NS));
        loop {
            if !self.wait_for_gap(index, bench)? {
                return Ok(());
            }
            let lane = &mut self.lanes[index];
            lane.trial(bench).map_err(|_| Stop::Interrupted)?;
            let now_ns = clock::now_ns();
            if let Some(evidence) = bench.evidence.as_deref_mut() {
                // What would be a second old at the end of the next trial is written before it.
                let next_ends_ns = now_ns.saturating_add(lane.cost_ns as u64);
                evidence.flush_if_due(next_ends_ns).map_err(Stop::Evidence)?;
            }
            let goes_on = now_ns < slice_ends_ns && lane.wants_more(bench) && !interrupt::requested();
            self.report_progress_if_due(now_ns, index, bench);
            if !goes_on {
                return Ok(());
            }
        }
    }

    /// Trials that are to be spread over time start at random moments: a fixed rhythm could beat with
    /// what else the machine does. False when the run ends meanwhile.
    fn wait_for_gap(&mut self, index: usize, bench: &mut Bench) -> Result<bool, Stop> {
        let Some(gap) = self.config.gap else { return Ok(true) };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.config.seed ^ self.lanes[index].trials.rotate_left(32));
        let wait_ns = (gap.as_nanos() as f64 * 2.0 * rng.random::<f64>()) as u64;
        let until_ns = clock::now_ns().saturating_add(wait_ns).min(self.ends_ns);
        loop {
            let now_ns = clock::now_ns();
            if now_ns >= until_ns || interrupt::requested() {
                return Ok(now_ns < self.ends_ns && !interrupt::requested());
            }
            if let Some(evidence) = bench.evidence.as_deref_mut() {
                evidence.flush_if_due(now_ns).map_err(Stop::Evidence)?;
            }
            self.report_progress_if_due(now_ns, index, bench);
            std::thread::sleep(Duration::from_nanos((until_ns - now_ns).min(20_000_000)));
        }
    }

    fn report_progress_if_due(&mut self, now_ns: u64, index: usize, bench: &Bench) {
        if now_ns < self.next_progress_ns {
            return;
        }
        self.next_progress_ns = now_ns + PROGRESS_NS;
        let lane = &self.lanes[index];
        let mut open = lane.claims.iter().map(|&claim| &bench.claims[claim]).filter(|judge| judge.is_open());
        let headline = open.next().map_or_else(
            || format!("{}: {} trials", lane.experiment.spec().id, lane.trials),
            |judge| format!("{}: {}", judge.claim.id, judge.headline()),
        );
        self.observer.progress(&Progress {
            elapsed: Duration::from_nanos(now_ns.saturating_sub(self.start_ns)),
            max_time: self.config.max_time,
            claims_closed: bench.claims.iter().filter(|judge| !judge.is_open()).count(),
            claims: bench.claims.len(),
            headline,
        });
        if self.lanes.iter().any(|lane| lane.trials > 0) && self.observer.outcome_due(now_ns) {
            // Looking at a judge moves its interval: copies are looked at, so that the run goes as it would have.
            let claims: Vec<ClaimResult> = bench.claims.iter().map(|judge| judge.clone().result()).collect();
            let outcome = summary::outcome(self.setting, bench.observations, claims, false);
            self.observer.outcome(&outcome, bench.observations);
        }
    }
}
