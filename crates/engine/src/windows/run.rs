//! Carries out a long measurement: opens the evidence, feeds the observations, and puts the result together.

use std::time::Duration;

use ascertain_sys::{interrupt, machine};

use super::derived::{self, LiveSeries};
use super::feed::{Feeder, Surroundings};
use super::judge::{explain_too_early, judge_of, limit_of, primary_metric, stopped_threat};
use super::meter::Meter;
use super::record::Recorder;
use super::state::{Measured, State};
use super::totals::MetricTotal;
use super::{Drift, Ended, MemoryReport, WindowError, WindowPlan, WindowReport};
use crate::command::{CommandExperiment, CommandSet};
use crate::error::Error;
use crate::experiment::{Arm, Experiment, Spec, TargetError};
use crate::judging::ClosedReason;
use crate::now::Now;
use crate::observations::Observations;
use crate::observer::{Observer, Silent};
use crate::outcome::{Absence, ArmRemark, LeftOut, PointSummary};
use crate::plan::{Plan, Registry};
use crate::recording::{EvidenceStart, Recording, open_evidence};
use crate::result::RunResult;
use crate::summary::{self, RunFacts};
use crate::time::Clock;

/// Measures the plan's command until the planned time is up, the command ends, or `stop` is requested.
///
/// # Errors
/// If the plan cannot be carried out, or if the command prints no observation. A later error ends the run, and is part
/// of the result.
pub(crate) fn run(
    plan: &Plan,
    recording: Recording,
    stop: &interrupt::Stop,
    observer: &mut dyn Observer,
    clock: &dyn Clock,
) -> Result<RunResult, Error> {
    let began_ns = ascertain_sys::clock::now_ns();
    let (Some(windows), [set]) = (&plan.windows, plan.commands.as_slice()) else {
        return Err(WindowError::Target("a long measurement has exactly one command".into()).into());
    };
    windows.check()?;
    let experiment = CommandExperiment::new(set.clone())?;
    let registry: &Registry = &[&experiment];
    let (spec, arm) = (experiment.spec(), arm_of(windows)?);
    observer.started(plan);
    let machine = machine::describe();
    let judge = judge_of(plan, windows, spec)?;
    let plans = derived::plans(windows, spec, set.lines.is_none())?;
    let primary = primary_metric(&windows.success, spec);
    let measured = Measured { windows, set, spec, primary, plans: &plans };
    let is_recorded = !matches!(recording, Recording::None);
    let memory = measured.announce(is_recorded);
    check_memory(&memory, measured, is_recorded)?;
    observer.announced(plan, windows, &memory, is_recorded);
    let EvidenceStart { writer, run_id, mut unkept, .. } =
        open_evidence(plan, registry, recording, &machine, Vec::new());
    let (recorder, failed) = Recorder::new(windows, spec, &arm, writer);
    unkept = unkept.or(failed);
    if let Some(error) = &unkept {
        observer.unkept(error);
    }
    let facts = RunFacts { registry, machine: &machine, cpu_times: machine::cpu_times(), plan, run_id: &run_id };
    let now = Now::new(vec![vec![arm.to_string()]]);
    let state = State::new(measured, judge)?;
    let mut feeder = Feeder::new(measured, Surroundings { plan, stop, clock }, state, recorder, observer, now.clone());
    let ended = match &set.lines {
        Some(lines) => feeder.lines(set, lines),
        None => feeder.commands(registry, &arm),
    };
    let (ended, error) = match ended {
        Ok(ended) => (ended, None),
        Err(error) => (Ended::Error(error.to_string()), Some(error)),
    };
    let interrupted = ended == Ended::Interrupted || stop.is_requested();
    feeder.finish();
    let report = report(&mut feeder, &ended, set, memory);
    let (error, fatal) = if feeder.index > 0 { (error, None) } else { (None, error) };
    let Feeder { state, recorder, failure, crash, left_running, is_judged, observer, .. } = feeder;
    let State { mut judge, mut meter, others, series, .. } = state;
    let report = WindowReport { series: series.into_iter().map(LiveSeries::report).collect(), ..report };
    let (writer, failed) = recorder.finish();
    unkept = unkept.or(failed);
    if let Some(failure) = &failure {
        judge.close(ClosedReason::NotJudged(failure.reason(Some(&arm))));
    }
    let crash = crash.or_else(|| error.as_ref().map(|error| TargetError::Failed(error.to_string())));
    let left_out = failure.or(crash).map(|failure| {
        let (experiment, reason) = (spec.id.clone(), failure.reason(None));
        LeftOut { experiment, arm: arm.clone(), absence: Absence::Failed, reason }
    });
    let claims = if is_judged { vec![judge.result()] } else { Vec::new() };
    let mut outcome = summary::summarise(&facts, &Observations::default(), claims, interrupted);
    outcome.points = points(spec, &arm, primary, &mut meter, others);
    for claim in &mut outcome.claims {
        claim.median = outcome.points[primary].median;
        explain_too_early(claim, &report.ended, &report.total);
    }
    outcome.threats.extend(stopped_threat(&outcome.points[primary], set, &arm));
    outcome.remarks = remarks(&now, &spec.id, &arm);
    outcome.left_out = left_out.into_iter().collect();
    outcome.windows = Some(report);
    let target_failed = !outcome.left_out.is_empty();
    let finished = writer.map(|writer| writer.finish(outcome.clone())).transpose();
    let folder = finished.unwrap_or_else(|error| {
        observer.unkept(&error);
        unkept = Some(error);
        None
    });
    if let Some(error) = fatal {
        return Err(error.into());
    }
    let mut cleanup_failures = experiment.cleanup_failures();
    cleanup_failures.extend(left_running.map(still_runs));
    Ok(RunResult {
        plan: plan.clone(),
        outcome,
        observations: Observations::default(),
        folder,
        unkept,
        target_failed,
        elapsed: Duration::from_nanos(ascertain_sys::clock::now_ns().saturating_sub(began_ns)),
        recorded_trials: 0,
        measured_nothing: false,
        cleanup_failures,
        error: error.map(Error::from),
    })
}

/// Returns the message about a command that could not be ended.
fn still_runs(process: u32) -> String {
    format!(
        "the command still runs as process {process}, because SIGTERM and SIGKILL had no effect on it; end the process \
         as the user to whom it belongs"
    )
}

/// Returns the announced memory of a plan, and the bytes that its parts allocate, as `count` counts them. For tests of
/// the announcement.
///
/// # Errors
/// As for a run.
#[doc(hidden)]
pub fn allocated(
    plan: &Plan,
    recording: Recording,
    count: impl FnOnce(&mut dyn FnMut()) -> u64,
) -> Result<(MemoryReport, u64), Error> {
    let (Some(windows), [set]) = (&plan.windows, plan.commands.as_slice()) else {
        return Err(WindowError::Target("a long measurement has exactly one command".into()).into());
    };
    let experiment = CommandExperiment::new(set.clone())?;
    let (spec, arm) = (experiment.spec(), arm_of(windows)?);
    let plans = derived::plans(windows, spec, set.lines.is_none())?;
    let primary = primary_metric(&windows.success, spec);
    let measured = Measured { windows, set, spec, primary, plans: &plans };
    let memory = measured.announce(!matches!(recording, Recording::None));
    let machine = machine::describe();
    let writer = open_evidence(plan, &[&experiment], recording, &machine, Vec::new()).writer;
    let (mut inputs, mut parts) = (Some((judge_of(plan, windows, spec)?, writer)), None);
    let bytes = count(&mut || {
        let taken = inputs.take();
        parts = taken.map(|(judge, writer)| (State::new(measured, judge), Recorder::new(windows, spec, &arm, writer)));
    });
    match parts {
        Some((Err(error), _)) => Err(error.into()),
        _ => Ok((memory, bytes)),
    }
}

/// Takes `text` as output of the plan's command, `times` times. Returns the number of observations, and the allocations
/// meanwhile, as `count` counts them. For tests of the memory.
///
/// # Errors
/// As for a run.
#[doc(hidden)]
pub fn fed<T>(
    plan: &Plan,
    recording: Recording,
    clock: &dyn Clock,
    (text, times): (&[u8], u64),
    count: impl FnOnce(&mut dyn FnMut()) -> T,
) -> Result<(u64, T), Error> {
    let (Some(windows), [set]) = (&plan.windows, plan.commands.as_slice()) else {
        return Err(WindowError::Target("a long measurement has exactly one command".into()).into());
    };
    let experiment = CommandExperiment::new(set.clone())?;
    let (spec, arm) = (experiment.spec(), arm_of(windows)?);
    let plans = derived::plans(windows, spec, set.lines.is_none())?;
    let measured = Measured { windows, set, spec, primary: primary_metric(&windows.success, spec), plans: &plans };
    let writer = open_evidence(plan, &[&experiment], recording, &machine::describe(), Vec::new()).writer;
    let (recorder, _) = Recorder::new(windows, spec, &arm, writer);
    let (stop, mut observer) = (interrupt::Stop::default(), Silent);
    let surroundings = Surroundings { plan, stop: &stop, clock };
    let state = State::new(measured, judge_of(plan, windows, spec)?)?;
    let now = Now::new(vec![vec![arm.to_string()]]);
    let mut feeder = Feeder::new(measured, surroundings, state, recorder, &mut observer, now);
    let mut fed = Ok(());
    let allocations = count(&mut || fed = feeder.feed(text, times));
    fed?;
    Ok((feeder.index, allocations))
}

/// Returns the arm of the only command.
fn arm_of(windows: &WindowPlan) -> Result<Arm, WindowError> {
    let arm = windows.success.arms().first().map(|arm| (*arm).clone());
    arm.ok_or_else(|| WindowError::Target("the condition of a success names no command".into()))
}

fn check_memory(memory: &MemoryReport, measured: Measured, is_recorded: bool) -> Result<(), WindowError> {
    let limit = measured.windows.memory_limit_bytes.unwrap_or_else(machine::usable_memory_bytes);
    let needed = memory.total_bytes();
    if needed <= limit {
        return Ok(());
    }
    let one_window = WindowPlan { window: measured.windows.duration, ..measured.windows.clone() };
    let bytes_of = |measured: Measured| measured.announce(is_recorded).total_bytes();
    Err(WindowError::Memory {
        needed,
        limit,
        fixed: bytes_of(Measured { windows: &one_window, plans: &[], ..measured }),
        with_one_window: bytes_of(Measured { windows: &one_window, ..measured }),
        without_series: bytes_of(Measured { plans: &[], ..measured }),
    })
}

fn report(feeder: &mut Feeder, ended: &Ended, set: &CommandSet, memory: MemoryReport) -> WindowReport {
    let Feeder { windows, spec, primary, .. } = *feeder;
    let meter = &mut feeder.state.meter;
    let (metric, total) = (&spec.metrics[primary], meter.total());
    WindowReport {
        ended: ended.clone(),
        is_last_line_left_out: feeder.is_last_line_left_out,
        is_last_cut_off: feeder.is_last_cut_off,
        limit: limit_of(set, metric),
        elapsed_ns: total.end_ns,
        total,
        groups: meter.groups().to_vec(),
        windows: meter.windows().to_vec(),
        drift: Drift::of(meter.windows(), windows.window.as_nanos() as u64),
        recorded: feeder.recorder.report(),
        memory,
        ..WindowReport::empty(windows, metric)
    }
}

/// Returns the summary of each metric over all observations.
fn points(spec: &Spec, arm: &Arm, primary: usize, meter: &mut Meter, others: Vec<MetricTotal>) -> Vec<PointSummary> {
    let stopped = meter.total().stopped;
    let (values, moments) = meter.all();
    let of_metric = |(index, mut other): (usize, MetricTotal)| match index == primary {
        true => other.summary_of(spec, arm, values, moments, stopped),
        false => other.summary(spec, arm),
    };
    others.into_iter().enumerate().map(of_metric).collect()
}

fn remarks(now: &Now, experiment: &str, arm: &Arm) -> Vec<ArmRemark> {
    let of_arm = now.all_remarks().into_iter();
    of_arm.map(|(_, remark)| ArmRemark { experiment: experiment.to_string(), arm: arm.clone(), remark }).collect()
}
