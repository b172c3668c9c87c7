//! Reads the folder of a run and judges its trials again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::path::ClaimPath;
use super::replay;
use crate::claim::{Claim, Test};
use crate::error::Error;
use crate::evidence::{self, FinalLines, Header, RunEvidence, Series, Trials};
use crate::experiment::{Arm, Experiment, Session, Setup, Spec, TargetError};
use crate::finding::{Reason, Unavailable};
use crate::judging::{ClaimJudge, ClosedReason};
use crate::observations::{ArmValues, Observations};
use crate::outcome::{ClaimResult, Outcome, Verdict};
use crate::plan;
use crate::result::RunResult;
use crate::summary::{self, RunFacts};
use crate::windows;

/// A recorded run, read from its folder.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedRun {
    /// The folder from which the run was read.
    pub folder: PathBuf,
    /// The contents of `run.json`: everything except the rows.
    pub header: Header,
    /// The state of the run: finished, interrupted, running or killed.
    pub state: State,
    /// The outcome that the run wrote. If the run wrote none, this is the outcome that follows from its rows.
    pub outcome: Outcome,
    /// All values by arm and metric, equal to the values that the run itself returned.
    pub observations: Observations,
    /// The rows, grouped by experiment, arm, metric and key.
    pub series: Vec<Series>,
    /// For each claim, its outcomes and e-values over the trials, in the order of the outcome's claims.
    pub paths: Vec<ClaimPath>,
    /// Number of rows in the complete trials.
    pub rows: u64,
    /// Messages about files of the run that are damaged, or that became longer or shorter after the run ended.
    pub faults: Vec<String>,
    /// `true` if rows that the run had when it ended are missing.
    pub has_lost_rows: bool,
}

impl RecordedRun {
    /// Returns the result that the run itself returned, except for data that the evidence does not contain. This data
    /// is the errors of failed clean-ups, and the time that the run did not spend on claims.
    #[must_use]
    pub fn into_result(self) -> RunResult {
        let RecordedRun { folder, header, outcome, observations, .. } = self;
        let elapsed_ns = outcome.claims.iter().map(|claim| claim.elapsed_ns).max().unwrap_or(0);
        RunResult {
            plan: header.plan,
            target_failed: outcome.claims.iter().any(|claim| claim.verdict == Verdict::Failed)
                || outcome.remarks.iter().any(|of_arm| of_arm.remark.is_failure()),
            outcome,
            observations,
            folder: Some(folder),
            unkept: None,
            elapsed: Duration::from_nanos(elapsed_ns),
            recorded_trials: 0,
            measured_nothing: false,
            cleanup_failures: Vec::new(),
            error: None,
        }
    }
}

/// Reads a run's folder in its present state. This changes nothing, and the folder need not be writable.
///
/// Only rows of complete trials are read; an incomplete last trial, which a kill may leave, is left out. The path of
/// each claim comes from judging its trials again, as the run did. The path ends with the last judged trial, so it has
/// as many trials as the claim's result.
///
/// If the run has written an outcome, this outcome is returned. If it has written none, or was continued afterwards,
/// the outcome comes from judging the trials again. This is the outcome that the run would have had if it had ended
/// with these rows, with one exception. Rows show neither which arms failed nor which claims were deferred because they
/// would have taken too long. The affected claims are undecided.
///
/// # Memory
/// All rows are held in memory. A row needs at most 49 bytes while the run is read, and 20 bytes afterwards, or 28
/// bytes if rows have an offset. This was measured for a million rows in trials of two arms and two metrics, with a
/// claim about them (`cargo run --release --example evidence_cost`). A run of 10^8 rows needs 5 GB; if they do not fit
/// in memory, the process is killed. DuckDB, pandas and polars can query `trials.parquet` without reading it
/// completely.
///
/// # Errors
/// If there is no run in the folder, or if its files are not valid or from another version. Rows that do not match the
/// plan, or that were changed after the run ended, are also an error. `trials.parquet` is not needed if `trials.jsonl`
/// is complete, and vice versa.
///
/// ```
/// let folder = std::env::temp_dir().join("no run");
/// let error = ascertain_engine::recorded::read(&folder).unwrap_err();
/// assert!(error.to_string().contains("the folder has no run.json"));
/// ```
pub fn read(folder: &Path) -> Result<RecordedRun, Error> {
    let length = evidence::lines_bytes(folder);
    let run = read_once(folder);
    // If the run ended in the meantime, its rows have moved from `trials.jsonl` to the Parquet file.
    if evidence::lines_bytes(folder) < length { read_once(folder) } else { run }
}

fn read_once(folder: &Path) -> Result<RecordedRun, Error> {
    // Checked before the files are read. A run that is not in progress now has already written all its files.
    let is_going_on = evidence::is_going_on(folder);
    let RunEvidence { header, trials, faults, lost_rows } = evidence::read_run(folder)?;
    let interrupted = header.outcome.as_ref().map(|outcome| outcome.interrupted);
    let state = State::new(folder, is_going_on, interrupted, header.lines_bytes, header.lines_checksum.as_deref());
    // A continued run still has its former outcome until it ends again, even if it is killed before that.
    let written = header.outcome.as_ref().filter(|_| matches!(state, State::Finished | State::Interrupted));
    // A long measurement records more of its first observations. Only those at equal distances are summarised.
    let every = windows::recorded_every(folder, &header);
    let (outcome, mut paths, observations) = judge_again(&header, &trials, written, every)?;
    let mut outcome = written.cloned().unwrap_or(outcome);
    if header.plan.windows.is_some() {
        windows::complete(folder, &header, every, &mut outcome)?;
        // A long measurement records only a part of its observations, so its rows do not show the path to the verdict.
        paths.iter_mut().for_each(|path| *path = ClaimPath::default());
    }
    let (folder, rows) = (folder.to_path_buf(), trials.rows());
    let mut series = in_order(trials.into_series(), &header, observations.arms());
    if every > 1 {
        series.iter_mut().for_each(|series| series.keep_every(every));
    }
    let has_lost_rows = lost_rows.is_some();
    Ok(RecordedRun { folder, state, outcome, observations, series, paths, rows, header, faults, has_lost_rows })
}

/// Judges the trials again as the run did, but only those whose number is a multiple of `every`. Returns the outcome,
/// the path of each claim, and all values. If the run has written an outcome, `written`, each claim ends after as many
/// trials as in that outcome.
fn judge_again(
    header: &Header,
    trials: &Trials,
    written: Option<&Outcome>,
    every: u64,
) -> Result<(Outcome, Vec<ClaimPath>, Observations), Error> {
    let specs = header.experiments.iter();
    let experiments: Vec<_> = specs.map(RecordedExperiment).collect();
    let registry: Vec<&dyn Experiment> = experiments.iter().map(|experiment| experiment as &dyn Experiment).collect();
    replay::check(header, &registry)?;
    let (plan, machine) = (&header.plan, &header.machine);
    let lack = |experiment: &dyn Experiment, arm: &Arm| lack_then(header, trials, &experiment.spec().id, arm);
    let (mut run, _) = plan::lanes(plan, &registry, machine, &lack)?;
    for judge in &mut run.claims {
        judge.keep_path();
        let result = written.and_then(|outcome| outcome.claims.iter().find(|result| result.id == judge.claim.id));
        if let Some(result) = result {
            end_with(judge, result);
        } else if let Some(reason) = not_observed(&judge.claim, header, trials) {
            judge.close(ClosedReason::NotJudged(reason));
        }
    }
    replay::replay(&mut run, header, trials, every)?;
    let claims = run.results();
    let facts = RunFacts { registry: &registry, machine, cpu_times: None, plan, run_id: &header.run_id };
    let outcome = summary::summarise(&facts, &run.observations, claims, false);
    let paths = run.claims.iter_mut().map(ClaimJudge::take_path).collect();
    Ok((outcome, paths, run.observations))
}

/// Makes a claim end after as many trials as in the written outcome. The run may have ended the claim early, by its own
/// limits or for lack of time. Rows do not show this, so the claim would otherwise also count later trials that contain
/// its arms.
fn end_with(judge: &mut ClaimJudge, result: &ClaimResult) {
    match result.trials {
        0 => judge.close(ClosedReason::BudgetExhausted),
        trials => judge.end_after(trials),
    }
}

/// Returns the reason why a claim cannot be judged, if a metric that its predicates need is missing for one of its
/// measured arms. Returns `None` if no metric is missing.
fn not_observed(claim: &Claim, header: &Header, trials: &Trials) -> Option<Reason> {
    let spec = header.experiments.iter().find(|spec| spec.id == claim.experiment)?;
    let predicates = claim.asked.tests.iter().filter(|test| matches!(test, Test::Predicate { .. }));
    predicates.flat_map(Test::observed).find_map(|(arm, metric)| {
        let is_of_arm = |series: &&Series| series.experiment == spec.id && series.arm == *arm;
        let mut of_arm = trials.series.iter().filter(is_of_arm).peekable();
        let is_missing = of_arm.peek().is_some() && of_arm.all(|series| series.metric != metric);
        let lack = || Unavailable::Metric { metric: metric.to_string() };
        is_missing.then(|| Reason::Unavailable { arm: Some(arm.clone()), lack: lack() })
    })
}

/// Sorts series by experiment, then by arm in the order of tables and claims, then by metric. Series that only differ
/// in their key keep the order in which they were observed.
fn in_order(mut series: Vec<Series>, header: &Header, arms: &[ArmValues]) -> Vec<Series> {
    series.sort_by_cached_key(|series| {
        let experiment = header.experiments.iter().position(|spec| spec.id == series.experiment);
        let metric = experiment.and_then(|index| header.experiments[index].metric(&series.metric));
        let arm = arms.iter().position(|values| values.experiment == series.experiment && values.arm == series.arm);
        (experiment, arm, metric)
    });
    series
}

/// Returns the reason why an arm could not be measured by the machine on which the recorded run started. Returns `None`
/// if a later machine, which continued the run, has measured the arm.
fn lack_then(header: &Header, trials: &Trials, experiment: &str, arm: &Arm) -> Option<Unavailable> {
    let left_out = header.unavailable.iter().find(|left_out| left_out.is_of(experiment, arm))?;
    if trials.arms.iter().any(|(id, measured)| id == experiment && measured == arm) {
        return None;
    }
    Some(match left_out.reason.clone() {
        Reason::Unavailable { lack, .. } => lack,
        reason => Unavailable::other(format!("{reason:?}")),
    })
}

/// An experiment that is known from the record of a run. Its trials can be judged again, but it cannot be measured.
pub(super) struct RecordedExperiment<'a>(pub(super) &'a Spec);

impl Experiment for RecordedExperiment<'_> {
    fn spec(&self) -> &Spec {
        self.0
    }

    fn open(&self, _: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        Err(TargetError::Failed("a recorded experiment cannot be measured".into()))
    }
}

/// The state of a recorded run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The run has ended without an interruption.
    Finished,
    /// Ctrl-C or SIGTERM ended the run.
    Interrupted,
    /// The run is in progress: another process holds its lock.
    Running,
    /// The run was killed: no process holds its lock, and it has written no outcome since it was started or continued.
    Killed,
}

impl State {
    /// Returns the state as a word for tables and JSON: `finished`, `interrupted`, `running` or `killed`.
    pub fn word(self) -> &'static str {
        match self {
            State::Finished => "finished",
            State::Interrupted => "interrupted",
            State::Running => "running",
            State::Killed => "killed",
        }
    }

    /// Returns the state of a run from its files. `interrupted` comes from the outcome, if there is one; `lines_bytes`
    /// and `lines_checksum` come from the header. Call [`evidence::is_going_on`] before reading `run.json`. If the run
    /// is not in progress at that time, it has already written all its files.
    pub fn new(
        folder: &Path,
        is_going_on: bool,
        interrupted: Option<bool>,
        lines_bytes: Option<u64>,
        lines_checksum: Option<&str>,
    ) -> State {
        let then = lines_bytes.map(|bytes| FinalLines { bytes, checksum: lines_checksum });
        let was_continued = || then.is_some_and(|then| evidence::was_continued(folder, then));
        match interrupted {
            _ if is_going_on => State::Running,
            None => State::Killed,
            Some(_) if was_continued() => State::Killed,
            Some(true) => State::Interrupted,
            Some(false) => State::Finished,
        }
    }
}
