//! Carries out a plan: chooses the next lane, measures a trial, judges it, and decides whether to stop.

use std::cell::RefCell;
use std::ops::Range;
use std::time::Duration;

use ascertain_sys::{interrupt, machine};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::block::{Block, End, Executor, TrialRecord};
#[cfg(feature = "commands")]
use crate::command::CommandExperiment;
use crate::error::Error;
use crate::evidence::{self, RunEvidence, Writer};
use crate::experiment::{Accepts, Arm, Experiment, TargetError};
use crate::finding::{Reason, Remark};
use crate::judging::{ClaimJudge, Lane, RunJudge};
use crate::measure::LocalExecutor;
pub use crate::now::{Activity, Now};
pub use crate::observer::{Observer, Outlook, Progress, Silent, Standing};
use crate::outcome::{ArmRemark, Outcome, Verdict};
use crate::plan::{self, Plan, Registry};
use crate::recorded;
pub use crate::recording::Recording;
use crate::recording::{EvidenceStart, open_evidence};
use crate::result::RunResult;
use crate::summary::{self, RunFacts};
pub use crate::time::{Clock, SystemClock};
#[cfg(feature = "commands")]
use crate::windows;

mod outlook;

/// Duration of a slice, in nanoseconds. During a slice, only the arms of one lane (a group that is measured together)
/// are measured. Then another lane may be chosen.
const SLICE_NS: u64 = 250_000_000;
/// Minimum time between two progress reports to the observer, in nanoseconds.
const PROGRESS_NS: u64 = 100_000_000;
/// Trials that take at least this long, in nanoseconds, count as slow. If trials are faster, progress reports omit
/// [`Progress::least`] after the first [`FEW`] trials.
const SLOW_NS: f64 = 1e8;
const FEW: u64 = 64;
/// Share of the run's time during which open claims have priority over tables of results. Arms that only tables need
/// must wait until then. Afterwards, tables get every second slice of the time, so that a claim that cannot be decided
/// does not leave a table empty.
const CLAIMS_SHARE: f64 = 0.75;
/// Inverse of a share of the run's time: 4 means a quarter. A pilot prepares a lane (group of arms) and runs its
/// warm-up trials. Until pilots have used this share of the time, they run before any other trials. Afterwards, pilots
/// may take up to half of the elapsed time.
const PILOTS_SHARE: u64 = 4;

/// Measures a plan in randomised trials. Stops when every claim is decided and every table is full, when the time is
/// up, or when `stop` is requested. Measures the plan's own commands in addition to the experiments of the registry.
///
/// # Errors
/// If the plan cannot be carried out. A failed arm is part of the outcome, not an error. If evidence cannot be written,
/// the run continues without it: see [`RunResult::unkept`].
pub fn run(
    plan: &Plan,
    registry: &Registry,
    recording: Recording,
    stop: &interrupt::Stop,
    observer: &mut dyn Observer,
) -> Result<RunResult, Error> {
    run_by_clock(plan, registry, recording, stop, observer, &SystemClock)
}

/// Measures a plan as [`run`] does, but uses `clock` for the time limits and the durations of trials. A test can pass a
/// clock that it controls, so that the run does not depend on the load of the machine. The evidence and the current
/// activity still use the machine's clock.
///
/// # Errors
/// As for [`run`].
pub fn run_by_clock(
    plan: &Plan,
    registry: &Registry,
    recording: Recording,
    stop: &interrupt::Stop,
    observer: &mut dyn Observer,
    clock: &dyn Clock,
) -> Result<RunResult, Error> {
    #[cfg(feature = "commands")]
    if plan.windows.is_some() {
        return windows::run(plan, recording, stop, observer, clock);
    }
    let began_ns = ascertain_sys::clock::now_ns();
    // Without the feature `commands`, a plan with commands has an unknown experiment, which is an error.
    #[cfg(feature = "commands")]
    let commands = plan.commands.iter().cloned().map(CommandExperiment::new).collect::<Result<Vec<_>, _>>()?;
    #[cfg(feature = "commands")]
    let registry: &Registry =
        &registry.iter().copied().chain(commands.iter().map(|set| set as &dyn Experiment)).collect::<Vec<_>>();
    check_addresses(plan, registry)?;
    observer.started(plan);
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
    let (mut judge, unavailable) = plan::lanes(plan, registry, &machine, &here)?;
    let EvidenceStart { mut writer, recorded, run_id, mut unkept } =
        open_evidence(plan, registry, recording, &machine, unavailable);
    if let Some(error) = &unkept {
        observer.unkept(error);
    }
    if let Some(writer) = &mut writer {
        judge.introduce(writer);
    }
    let is_continued = recorded.is_some();
    let recorded_trials = recorded.as_ref().map_or(0, |recorded| recorded.trials.count());
    let former = recorded.as_ref().and_then(|recorded| recorded.header.outcome.clone());
    #[cfg(feature = "recorded")]
    if let Some(RunEvidence { header, trials, .. }) = recorded {
        recorded::replay(&mut judge, &header, &trials, 1)?;
    }
    let recorded_values = judge.observations.count();
    let start_ns = clock.now_ns();
    let ends_ns = start_ns.saturating_add(nanoseconds(plan.config.max_time));
    let facts = RunFacts { registry, machine: &machine, cpu_times: machine::cpu_times(), plan, run_id: &run_id };
    let now = Now::new(judge.lanes.iter().map(|lane| lane.arms.iter().map(ToString::to_string).collect()).collect());
    let mut executor = LocalExecutor::new(registry, plan.config.seed, stop.clone(), now.clone(), clock);
    let evidence = writer.as_mut();
    let time = (start_ns..ends_ns, clock);
    let mut trial_loop =
        TrialLoop::new(&mut executor, &mut judge, evidence, &facts, (stop, observer), time, now.clone());
    let interrupted = trial_loop.run().is_err() || stop.is_requested();
    unkept = unkept.or(trial_loop.unkept);
    let mut writer = writer.filter(|_| unkept.is_none());
    judge.lose_the_rest(writer.as_mut());
    // Order of the steps: write all measurements, drop the sessions (which runs clean-up commands), then write the
    // outcome.
    let flushed = writer.as_mut().map_or(Ok(()), Writer::flush);
    drop(executor);
    let claims = judge.results();
    let remarks = remarks(&now, &judge.lanes);
    let observations = judge.observations;
    let mut outcome = Outcome { remarks, ..summary::summarise(&facts, &observations, claims, interrupted) };
    if let Some(former) = former {
        carry_over(former, &mut outcome, observations.count() != recorded_values);
    }
    let measured_nothing = is_continued && observations.count() == recorded_values;
    let target_failed = observations.any_failed()
        || outcome.claims.iter().any(|c| c.verdict == Verdict::Failed)
        || outcome.remarks.iter().any(|of_arm| of_arm.remark.is_failure());
    let finished = flushed.and_then(|()| writer.map(|writer| writer.finish(outcome.clone())).transpose());
    let folder = finished.unwrap_or_else(|error| {
        observer.unkept(&error);
        unkept = Some(error);
        None
    });
    Ok(RunResult {
        plan: plan.clone(),
        outcome,
        observations,
        folder,
        unkept,
        target_failed,
        elapsed: Duration::from_nanos(ascertain_sys::clock::now_ns().saturating_sub(began_ns)),
        recorded_trials,
        measured_nothing,
        cleanup_failures: registry.iter().flat_map(|experiment| experiment.cleanup_failures()).collect(),
        error: None,
    })
}

/// Checks that every environment variable to which a level refers is set. This check runs before anything is measured.
fn check_addresses(plan: &Plan, registry: &Registry) -> Result<(), Error> {
    for (id, arm) in plan.arms() {
        let experiment = registry.iter().find(|experiment| experiment.spec().id == id);
        for factor in experiment.iter().flat_map(|experiment| &experiment.spec().factors) {
            if let Accepts::Address { none, from_variable: true, .. } = &factor.accepts {
                arm.address(&factor.name, none)?;
            }
        }
    }
    Ok(())
}

/// Returns the remarks that sessions made, each with its arm.
fn remarks(now: &Now, lanes: &[Lane]) -> Vec<ArmRemark> {
    let to_remark = |((lane, slot), remark): ((usize, usize), Remark)| {
        let Lane { experiment, arms, .. } = &lanes[lane];
        ArmRemark { experiment: experiment.spec().id.clone(), arm: arms[slot].clone(), remark }
    };
    now.all_remarks().into_iter().map(to_remark).collect()
}

/// Adds data from `former`, the outcome before the run was continued, to the new outcome. This data is the facts about
/// arms, and the remarks about arms that have no new remarks. If `has_changed` is `false`, the continuation added no
/// values. The description of the machine, the threats and the CPU times then also come from `former`.
fn carry_over(mut former: Outcome, outcome: &mut Outcome, has_changed: bool) {
    let is_new =
        |old: &ArmRemark| outcome.remarks.iter().any(|new| (&new.experiment, &new.arm) == (&old.experiment, &old.arm));
    former.remarks.retain(|old| !is_new(old));
    former.facts.retain(|facts| !outcome.facts.contains(facts));
    outcome.remarks.splice(..0, former.remarks);
    outcome.facts.splice(..0, former.facts);
    if !has_changed {
        (outcome.machine, outcome.threats, outcome.cpu_times) = (former.machine, former.threats, former.cpu_times);
    }
}

/// Converts a duration to nanoseconds. A duration that does not fit in a `u64` (more than 500 years) becomes
/// `u64::MAX`.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The error for a run that must stop, because a signal arrived or a trial was cut off.
pub(crate) struct Interrupted;

/// The main loop of a run. It gives blocks to the executor and gives the resulting records to the judge, until no more
/// trials are wanted.
pub(crate) struct TrialLoop<'r, 'a> {
    executor: &'r mut dyn Executor,
    judge: &'r mut RunJudge<'a>,
    evidence: Option<&'r mut Writer>,
    /// The error that stopped the recording of values. After this error, the start of each trial is still recorded,
    /// so that a user cannot drop a trial by continuing the run.
    pub unkept: Option<evidence::Error>,
    facts: &'r RunFacts<'r>,
    stop: &'r interrupt::Stop,
    observer: &'r mut dyn Observer,
    time_ns: Range<u64>,
    clock: &'r dyn Clock,
    next_progress_ns: u64,
    /// Moment at which the run stops waiting for the plan's precision, as a reading of the clock in nanoseconds.
    precision_ends_ns: u64,
    now: Now,
    /// Number of lanes (groups of arms) whose pilot has run. A pilot shows how long a trial takes. Pilots run in the
    /// order of the lanes' indices.
    piloted: usize,
    /// Number of lanes (groups of arms) that the executor has opened so far.
    opened: usize,
    /// Time that all pilots have taken so far, in nanoseconds. A pilot prepares a lane and runs its warm-up trials.
    pilots_ns: u64,
    /// Number of lanes (groups of arms) that needed trials when the run began, and that this machine can measure.
    to_try: usize,
    /// For each lane (group of arms), `true` if the executor has opened it and not closed it yet.
    is_open: Vec<bool>,
    /// For each lane (group of arms), `true` if it already had recorded trials when the run was continued.
    goes_on: Vec<bool>,
    /// `true` once the run has estimated how much time its answers need.
    has_looked_ahead: bool,
    slices: u64,
    record: TrialRecord,
}

impl<'r, 'a> TrialLoop<'r, 'a> {
    pub fn new(
        executor: &'r mut dyn Executor,
        judge: &'r mut RunJudge<'a>,
        evidence: Option<&'r mut Writer>,
        facts: &'r RunFacts<'r>,
        (stop, observer): (&'r interrupt::Stop, &'r mut dyn Observer),
        (time_ns, clock): (Range<u64>, &'r dyn Clock),
        now: Now,
    ) -> Self {
        TrialLoop {
            precision_ends_ns: judge
                .config
                .precision_time
                .map_or(u64::MAX, |time| time_ns.start.saturating_add(nanoseconds(time))),
            is_open: vec![false; judge.lanes.len()],
            to_try: (0..judge.lanes.len()).filter(|&lane| judge.wants_more(lane)).count(),
            goes_on: judge.lanes.iter().map(|lane| lane.trials > 0).collect(),
            executor,
            judge,
            evidence,
            unkept: None,
            facts,
            stop,
            observer,
            time_ns,
            clock,
            next_progress_ns: 0,
            now,
            piloted: 0,
            opened: 0,
            pilots_ns: 0,
            has_looked_ahead: false,
            slices: 0,
            record: TrialRecord::default(),
        }
    }

    /// Measures until no more trials are wanted, the time is up, or the run is interrupted.
    pub fn run(&mut self) -> Result<(), Interrupted> {
        loop {
            let gone_ns = self.now_ns().saturating_sub(self.time_ns.start) as f64;
            self.judge.tables_too = gone_ns >= self.max_time().as_nanos() as f64 * CLAIMS_SHARE;
            if self.now_ns() >= self.precision_ends_ns {
                self.judge.forgo_precision();
                self.precision_ends_ns = u64::MAX;
            }
            if self.is_pilots_turn() {
                self.pilot_next()?;
                continue;
            }
            match self.choose() {
                Some(lane) => self.slice(lane)?,
                None if self.piloted < self.is_open.len() => self.pilot_next()?,
                None => break,
            }
        }
        while self.executor.collect(&mut self.record) {
            let evidence = self.evidence.as_deref_mut().filter(|_| self.unkept.is_none());
            self.judge.observe(&self.record, evidence);
        }
        if self.stop.is_requested() {
            return Ok(());
        }
        // A lane may be open without having had a trial, because other lanes promised more evidence per second until
        // the time was up.
        for lane in 0..self.is_open.len() {
            if self.is_open[lane] && self.judge.lanes[lane].trials == 0 && self.judge.wants_more(lane) {
                self.give_up(lane, &Reason::TimeUp { was_tried: true, all_tried_ns: None });
            }
        }
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Returns whether the next step is a pilot: preparing the next lane and running its warm-up trials. In
    /// comparisons, all pilots run first, because they show how long the comparisons take. In other runs, all pilots
    /// run first if a quarter of the time is enough for them; otherwise pilots alternate with other trials.
    fn is_pilots_turn(&self) -> bool {
        let gone_ns = self.now_ns().saturating_sub(self.time_ns.start);
        let all_ns = self.time_ns.end.saturating_sub(self.time_ns.start);
        let share_ns = (all_ns / PILOTS_SHARE).max(gone_ns / 2);
        let only_tables_are_left = || (self.piloted..self.is_open.len()).all(|lane| self.is_only_table(lane));
        let is_table_that_waits = || only_tables_are_left() && self.tables_wait();
        self.piloted < self.is_open.len()
            && !is_table_that_waits()
            && (self.judge.is_comparison() || self.pilots_ns < share_ns)
    }

    /// Returns whether the lane (group of arms) is measured only for a table, because none of its claims is open.
    fn is_only_table(&self, lane: usize) -> bool {
        self.judge.open_claims(lane).next().is_none()
    }

    /// Returns whether lanes that are only measured for tables must wait for open claims.
    fn tables_wait(&self) -> bool {
        let are_claims_open = (0..self.is_open.len()).any(|lane| {
            let may_be_measured = self.is_open[lane] || lane >= self.piloted;
            may_be_measured && !self.is_only_table(lane) && self.judge.wants_more(lane)
        });
        are_claims_open && !self.judge.tables_too
    }

    /// Opens the next lane (group of arms), measures how long its trials take, and defers claims that cannot be decided
    /// in time.
    fn pilot_next(&mut self) -> Result<(), Interrupted> {
        let (lane, start_ns) = (self.piloted, self.now_ns());
        let pilots = match self.is_open.len() {
            1 => self.judge.config.warmup_trials,
            // A lane that is measured only for a table needs no additional trial that shows how long a trial takes.
            _ if self.is_only_table(lane) => self.judge.config.warmup_trials,
            _ => self.judge.config.warmup_trials.max(1),
        };
        self.piloted += 1;
        self.pilot(lane, pilots)?;
        self.pilots_ns += self.now_ns().saturating_sub(start_ns);
        match pilots {
            0 => {}
            _ if self.piloted == self.is_open.len() => self.look_ahead(),
            _ => self.defer(lane),
        }
        Ok(())
    }

    fn time_left_ns(&self) -> u64 {
        self.time_ns.end.saturating_sub(self.now_ns())
    }

    fn close(&mut self, lane: usize) {
        self.executor.close(lane);
        self.is_open[lane] = false;
    }

    fn give_up(&mut self, lane: usize, why: &Reason) {
        self.judge.give_up(lane, why);
        self.close(lane);
    }

    /// Opens a lane (group of arms) and runs `pilots` warm-up trials, which also show how long a trial takes.
    fn pilot(&mut self, lane: usize, pilots: u64) -> Result<(), Interrupted> {
        if !self.judge.wants_more(lane) || self.stop.is_requested() {
            return Ok(());
        }
        if self.time_left_ns() == 0 {
            if self.judge.lanes[lane].trials == 0 {
                let of_one_ns = (self.opened > 0).then(|| self.pilots_ns as f64 / self.opened as f64);
                let all_tried_ns = of_one_ns.map(|of_one_ns| of_one_ns * self.to_try as f64);
                self.give_up(lane, &Reason::TimeUp { was_tried: false, all_tried_ns });
            }
            return Ok(());
        }
        self.report_progress_if_due(self.now_ns(), lane);
        let spec = self.judge.lanes[lane].experiment.spec();
        self.now.set_opening();
        self.opened += 1;
        let opened = self.executor.open(lane, &spec.id, &self.judge.lanes[lane].measurable());
        self.now.set_idle();
        match opened {
            Ok(found) => {
                self.is_open[lane] = true;
                found.into_iter().for_each(|(slot, facts)| self.judge.learn(lane, slot, facts));
            }
            Err(TargetError::Interrupted) => return Err(Interrupted),
            Err(error) => {
                self.give_up(lane, &error.reason(None));
                return Ok(());
            }
        }
        for _ in 0..pilots {
            if self.time_left_ns() == 0 {
                break;
            }
            self.report_progress_if_due(self.now_ns(), lane);
            self.warm_up(lane)?;
        }
        Ok(())
    }

    /// Runs a warm-up trial of a lane (group of arms). Its values are discarded.
    fn warm_up(&mut self, lane: usize) -> Result<(), Interrupted> {
        if self.stop.is_requested() {
            return Err(Interrupted);
        }
        let block = self.judge.warm_up(lane);
        self.measure(block);
        self.judge.lanes[lane].cost_ns = self.record.elapsed_ns as f64;
        match &self.record {
            TrialRecord { failure: Some((slot, error)), .. } => self.judge.set_aside(lane, *slot, error),
            TrialRecord { end: End::Whole, .. } => {}
            TrialRecord { .. } => return Err(Interrupted),
        }
        Ok(())
    }

    /// Chooses the lane (group of arms) to measure in the next slice of the time. Of the lanes with open claims,
    /// chooses the one whose e-values, the evidence for a verdict, are expected to grow fastest. If no lane has an open
    /// claim, chooses the table with the fewest trials. The choice depends only on the past, so it does not affect
    /// validity.
    fn choose(&mut self) -> Option<usize> {
        if self.time_left_ns() == 0 || self.stop.is_requested() {
            return None;
        }
        for lane in 0..self.is_open.len() {
            if self.is_open[lane] && !self.judge.wants_more(lane) {
                self.close(lane);
            }
        }
        let tables_wait = self.tables_wait();
        let is_tables_turn = !tables_wait && self.slices.is_multiple_of(2);
        let score = |lane: usize| {
            let table = 1.0 / (self.judge.lanes[lane].table_trials as f64 + 2.0);
            if self.is_only_table(lane) {
                // Lanes for tables come after all lanes with open claims, or before them if this slice of the time
                // belongs to tables.
                return (!tables_wait).then_some(if is_tables_turn { f64::MAX * table } else { -1.0 / table });
            }
            let growth: f64 = self.judge.open_claims(lane).map(ClaimJudge::expected_growth).sum();
            Some(growth / self.judge.lanes[lane].cost_ns.max(1.0))
        };
        let open = (0..self.is_open.len()).filter(|&lane| self.is_open[lane]);
        let scored = open.filter_map(|lane| Some((lane, score(lane)?)));
        // Among equal scores, use the first.
        scored.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(lane, _)| lane)
    }

    fn slice(&mut self, lane: usize) -> Result<(), Interrupted> {
        self.slices += 1;
        let slice_ends_ns = self.now_ns().saturating_add(SLICE_NS).min(self.time_ns.end).min(self.precision_ends_ns);
        loop {
            if !self.wait_for_gap(lane) {
                return Ok(());
            }
            self.report_progress_if_due(self.now_ns(), lane);
            self.trial(lane)?;
            if !self.has_looked_ahead && self.piloted == self.is_open.len() {
                self.look_ahead();
            }
            if self.now_ns() >= slice_ends_ns || !self.judge.wants_more(lane) || self.stop.is_requested() {
                return Ok(());
            }
        }
    }

    fn measure(&mut self, block: Block) {
        self.now.begin_trial(block.arms.iter().count(), self.now_ns());
        self.executor.run(block, &mut self.record);
        self.now.set_idle();
    }

    /// Runs one trial of a lane (group of arms). A trial that is interrupted counts as evidence against every possible
    /// answer. Otherwise a user could discard unwanted trials by interrupting the run and continuing it.
    fn trial(&mut self, lane: usize) -> Result<(), Interrupted> {
        let block = self.judge.issue(lane, self.evidence.as_deref_mut());
        self.measure(block);
        let record = &self.record;
        let mut evidence = self.evidence.as_deref_mut().filter(|_| self.unkept.is_none());
        self.judge.observe(record, evidence.as_deref_mut());
        let lane = &mut self.judge.lanes[record.block.map_or(lane, |block: Block| block.lane)];
        if let Some(whole_ns) = record.whole_ns() {
            // In a continued run, recorded trials have no times, so the mean begins with the first new trial.
            let known = if lane.cost_ns == 0.0 { 1.0 } else { lane.trials as f64 };
            lane.cost_ns += (whole_ns - lane.cost_ns) / known.clamp(1.0, 16.0);
        }
        if let Some(Err(error)) = evidence.map(|evidence| evidence.end_trial(lane.cost_ns)) {
            self.lose_evidence(error);
        }
        if self.record.end == End::Whole || self.record.failure.is_some() { Ok(()) } else { Err(Interrupted) }
    }

    /// Stops writing evidence after an error. The run continues, because an error is no reason to lose the
    /// measurements.
    fn lose_evidence(&mut self, error: evidence::Error) {
        self.observer.unkept(&error);
        self.unkept = Some(error);
    }

    /// Waits for a random time if the plan has a gap between trials. Regular gaps could coincide with periodic activity
    /// of the machine. Returns `false` if the run ends while waiting.
    fn wait_for_gap(&mut self, lane: usize) -> bool {
        let Some(gap) = self.judge.config.gap else { return true };
        let seed = self.judge.config.seed ^ self.judge.lanes[lane].trials.rotate_left(32);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let wait_ns = (gap.as_nanos() as f64 * 2.0 * rng.random::<f64>()) as u64;
        let until_ns = self.now_ns().saturating_add(wait_ns).min(self.time_ns.end);
        loop {
            let now_ns = self.now_ns();
            if now_ns >= until_ns || self.stop.is_requested() {
                return now_ns < self.time_ns.end && !self.stop.is_requested();
            }
            self.report_progress_if_due(now_ns, lane);
            self.clock.sleep(Duration::from_nanos((until_ns - now_ns).min(20_000_000)));
        }
    }

    fn report_progress_if_due(&mut self, now_ns: u64, lane: usize) {
        if now_ns < self.next_progress_ns {
            return;
        }
        self.next_progress_ns = now_ns + PROGRESS_NS;
        // First write the evidence, so that no kill can undo a trial that was already reported.
        let evidence = self.evidence.as_deref_mut().filter(|_| self.unkept.is_none());
        if let Some(Err(error)) = evidence.map(Writer::flush) {
            self.lose_evidence(error);
        }
        let progress = self.progress(now_ns, lane);
        self.observer.progress(&progress);
        let judge = &*self.judge;
        if judge.lanes.iter().any(|lane| lane.trials > 0) && self.observer.outcome_due(now_ns) {
            let outcome = summary::summarise(self.facts, &judge.observations, judge.results_so_far(), false);
            self.observer.outcome(self.facts.plan, &outcome, &judge.observations);
        }
    }

    fn progress(&self, now_ns: u64, lane: usize) -> Progress {
        let judge = &*self.judge;
        let state = &judge.lanes[lane];
        let (cost_ns, id) = (state.cost_ns, &state.experiment.spec().id);
        let open = judge.open_claims(lane).next();
        let closed = judge.claims.iter().filter(|claim| !claim.is_open());
        let verdicts: Vec<Verdict> = closed.map(|claim| claim.verdict().0).collect();
        let is_early = cost_ns == 0.0 || cost_ns >= SLOW_NS || state.trials < FEW;
        let least = judge.open_claims(lane).filter(|_| is_early).map(|claim| claim.least(None).trials).max();
        Progress {
            at_ns: now_ns,
            elapsed: Duration::from_nanos(now_ns.saturating_sub(self.time_ns.start)),
            max_time: self.max_time(),
            closed: Verdict::ALL.map(|verdict| verdicts.iter().filter(|known| **known == verdict).count()),
            claims: judge.claims.len(),
            what: open.map_or(id, |claim| &claim.claim.id).clone(),
            standing: open.map(ClaimJudge::standing),
            is_comparison: judge.is_comparison(),
            trials: state.trials,
            most_trials: judge.config.most_trials(),
            least,
            trial_ns: (cost_ns > 0.0).then_some(cost_ns),
            now: self.now.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
