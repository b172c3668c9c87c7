//! From a folder to a run, judged again.

use std::path::{Path, PathBuf};

use super::path::ClaimPath;
use super::replay;
use crate::claim::{Claim, Test};
use crate::error::Error;
use crate::evidence::{self, Header, LinesThen, ReadBack, Series, Trials};
use crate::experiment::{Arm, Experiment, Session, Setup, Spec, TargetError};
use crate::finding::{Reason, Unavailable};
use crate::judging::{ClaimJudge, Closed};
use crate::observations::{ArmValues, Observations};
use crate::outcome::{ClaimResult, Outcome};
use crate::plan;
use crate::summary::{self, RunFacts};

/// A run as its folder has it.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedRun {
    /// The run's folder.
    pub folder: PathBuf,
    /// Everything but the rows.
    pub header: Header,
    /// How it ended, if it did.
    pub state: State,
    /// The outcome that the run wrote, or, where it has none yet, the one that its rows say.
    pub outcome: Outcome,
    /// The rows, by experiment, arm, metric and key.
    pub series: Vec<Series>,
    /// How each claim came to its verdict, in the order of the outcome's claims.
    pub paths: Vec<ClaimPath>,
    /// How many rows there are.
    pub rows: u64,
    /// Files that are not as the run left them, in plain words: damaged, longer, shorter.
    pub faults: Vec<String>,
    /// Whether rows are missing that the run had when it ended.
    pub has_lost_rows: bool,
}

/// Reads a run's folder as it is now. Nothing is changed there, and the folder need not be writable.
///
/// The rows are those of whole trials: what a kill left of a last one is left out. Each claim's path comes
/// from judging them again, as the run did, and ends with the last trial that is judged, so that it has as
/// many as the claim's result. Where the run has written no outcome, or has gone on since then, the outcome
/// comes from there too; it is what the run would have said if it had ended with these rows, but for what
/// rows do not tell: which targets failed, and which claims were deferred. Those claims are undecided.
///
/// # Memory
/// All rows are held: 49 bytes each at the most, measured of a million in trials of two arms and two metrics
/// with a claim about them (`cargo run --release --example evidence_cost`), of which 20 stay, and 28 where
/// rows have an offset. A run of 10^8 rows takes 5 GB; one that does not fit ends the process. DuckDB, pandas
/// and polars query its `trials.parquet` without holding it.
///
/// # Errors
/// When there is no run in the folder, its files are of another version or not what Ascertain writes, its rows
/// were changed since it ended, or do not fit its plan. `trials.parquet` is not needed where `trials.jsonl` is
/// whole, and the other way round.
///
/// ```
/// let folder = std::env::temp_dir().join("no run");
/// let error = ascertain_engine::recorded::read(&folder).unwrap_err();
/// assert!(error.to_string().contains("it has no run.json"));
/// ```
pub fn read(folder: &Path) -> Result<RecordedRun, Error> {
    let length = evidence::lines_bytes(folder);
    let run = read_once(folder);
    // A run that ends meanwhile removes its lines, and has them in its Parquet file.
    if evidence::lines_bytes(folder) < length { read_once(folder) } else { run }
}

fn read_once(folder: &Path) -> Result<RecordedRun, Error> {
    // Asked first: a run that is seen to have ended has written all that it will.
    let is_going_on = evidence::is_going_on(folder);
    let header = evidence::read_header(folder)?;
    let ReadBack { trials, faults, lost } = evidence::read_trials(folder, &header)?;
    let interrupted = header.outcome.as_ref().map(|outcome| outcome.interrupted);
    let state = State::of(folder, is_going_on, interrupted, header.lines_bytes, header.lines_checksum.as_deref());
    // A run that was continued keeps its former outcome until it has another: it may have been killed.
    let written = header.outcome.as_ref().filter(|_| matches!(state, State::Finished | State::Interrupted));
    let again = judge_again(&header, &trials, written)?;
    let mut outcome = written.unwrap_or(&again.outcome).clone();
    // Earlier versions did not write down the conditions of predicates.
    for (claim, ClaimResult { asked, .. }) in outcome.claims.iter_mut().zip(again.outcome.claims) {
        claim.asked.tests = asked.tests;
    }
    let (folder, rows) = (folder.to_path_buf(), trials.rows());
    let series = in_order(trials.into_series(), &header, again.observations.arms());
    let has_lost_rows = lost.is_some();
    Ok(RecordedRun { folder, state, outcome, series, paths: again.paths, rows, header, faults, has_lost_rows })
}

/// What recorded trials say.
struct Again {
    outcome: Outcome,
    paths: Vec<ClaimPath>,
    observations: Observations,
}

/// Judges the trials as the run did: as far as the outcome that it has written, if it has.
fn judge_again(header: &Header, trials: &Trials, written: Option<&Outcome>) -> Result<Again, Error> {
    let specs = header.experiments.iter();
    let experiments: Vec<_> = specs.map(RecordedExperiment).collect();
    let registry: Vec<&dyn Experiment> = experiments.iter().map(|experiment| experiment as &dyn Experiment).collect();
    replay::check(header, &registry)?;
    let (plan, machine) = (&header.plan, &header.machine);
    let lack = |experiment: &dyn Experiment, arm: &Arm| lack_then(header, trials, &experiment.spec().id, arm);
    let (mut run, _) = plan::lanes(plan, &registry, machine, header.grouping(), &lack)?;
    for judge in &mut run.claims {
        judge.keep_path();
        let result = written.and_then(|outcome| outcome.claims.iter().find(|result| result.id == judge.claim.id));
        if let Some(result) = result {
            end_with(judge, result);
        } else if let Some(reason) = not_observed(&judge.claim, header, trials) {
            judge.close(Closed::For(reason));
        }
    }
    replay::replay(&mut run, header, trials)?;
    let claims = run.results();
    let facts = RunFacts {
        registry: &registry,
        machine,
        cpu_times: None,
        commands: &plan.commands,
        run_id: &header.run_id,
        seed: plan.config.seed,
    };
    let outcome = summary::outcome(&facts, &run.observations, claims, false);
    let paths = run.claims.iter_mut().map(ClaimJudge::take_path).collect();
    Ok(Again { outcome, paths, observations: run.observations })
}

/// Rows do not tell that a claim was deferred, or used up its own time: later trials may hold its arms.
fn end_with(judge: &mut ClaimJudge, result: &ClaimResult) {
    match result.trials {
        0 => judge.close(Closed::BudgetExhausted),
        trials => judge.claim.max_trials = Some(trials),
    }
}

/// Why the machine can't have shown what a claim's predicates speak of: of an arm that was measured it was never seen.
fn not_observed(claim: &Claim, header: &Header, trials: &Trials) -> Option<Reason> {
    let spec = header.experiments.iter().find(|spec| spec.id == claim.experiment)?;
    let predicates = claim.tests.iter().filter(|test| matches!(test, Test::Predicate { .. }));
    predicates.flat_map(Test::observed).find_map(|(arm, metric)| {
        let name = &spec.metrics[metric].name;
        let is_of_arm = |series: &&Series| series.experiment == spec.id && series.arm == *arm;
        let mut of_arm = trials.series.iter().filter(is_of_arm).peekable();
        let is_missing = of_arm.peek().is_some() && of_arm.all(|series| series.metric != *name);
        let lack = || Unavailable::Metric { metric: name.clone() };
        is_missing.then(|| Reason::Unavailable { arm: Some(arm.clone()), lack: lack() })
    })
}

/// By experiment, by arm as tables and claims name them, by metric; keys as they were observed.
fn in_order(mut series: Vec<Series>, header: &Header, arms: &[ArmValues]) -> Vec<Series> {
    series.sort_by_cached_key(|series| {
        let experiment = header.experiments.iter().position(|spec| spec.id == series.experiment);
        let metric = experiment.and_then(|index| header.experiments[index].metric(&series.metric));
        let arm = arms.iter().position(|values| values.experiment == series.experiment && values.arm == series.arm);
        (experiment, arm, metric)
    });
    series
}

/// What the machine of a recorded run lacked for an arm. A run may have been continued where more can be measured.
pub(crate) fn lack_then(header: &Header, trials: &Trials, experiment: &str, arm: &Arm) -> Option<Unavailable> {
    let left_out = header.unavailable.iter().find(|left_out| left_out.is_of(experiment, arm))?;
    if trials.arms.iter().any(|(id, measured)| id == experiment && measured == arm) {
        return None;
    }
    Some(match left_out.reason.clone() {
        Reason::Unavailable { lack, .. } => lack,
        Reason::Said { words } => Unavailable::other(words),
        reason => Unavailable::other(format!("{reason:?}")),
    })
}

/// An experiment as a run has recorded it: its trials can be judged again, and it can't be measured.
struct RecordedExperiment<'a>(&'a Spec);

impl Experiment for RecordedExperiment<'_> {
    fn spec(&self) -> &Spec {
        self.0
    }

    fn open(&self, _: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        Err(TargetError::Failed("what was recorded can't be measured".into()))
    }
}

/// How a run ended, if it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It came to its end.
    Finished,
    /// Ctrl-C or SIGTERM ended it.
    Interrupted,
    /// It is going on: another process holds its lock.
    Running,
    /// It was killed: nobody holds its lock, and it wrote no outcome, or went on after one.
    Killed,
}

impl State {
    /// What `run.json` and `trials.jsonl` tell: whether the outcome says that it was interrupted, where there is
    /// one, and the header's `lines_bytes` and `lines_checksum`. Whether the run is going on is to be asked
    /// ([`evidence::is_going_on`]) before `run.json` is read: a run that is seen to have ended has written all
    /// that it will.
    pub fn of(
        folder: &Path,
        is_going_on: bool,
        interrupted: Option<bool>,
        lines_bytes: Option<u64>,
        lines_checksum: Option<&str>,
    ) -> State {
        let then = lines_bytes.map(|bytes| LinesThen { bytes, checksum: lines_checksum });
        let went_on = || then.is_some_and(|then| evidence::went_on(folder, then));
        match interrupted {
            _ if is_going_on => State::Running,
            None => State::Killed,
            Some(_) if went_on() => State::Killed,
            Some(true) => State::Interrupted,
            Some(false) => State::Finished,
        }
    }
}
