//! Carries out a long measurement: opens the evidence, feeds the observations, and puts the result together.

use std::time::Duration;

use ascertain_sys::{interrupt, machine};

use super::derived::{self, LiveSeries};
use super::feed::{Feeder, MetricTotal};
use super::judge::{judge_of, primary_metric};
use super::meter::Meter;
use super::record::Recorder;
use super::{Drift, Ended, MemoryReport, WindowError, WindowPlan, WindowReport};
use crate::command::{CommandExperiment, CommandSet};
use crate::error::Error;
use crate::experiment::{Arm, Experiment, Spec};
use crate::finding::Threat;
use crate::judging::{ClaimJudge, ClosedReason};
use crate::now::Now;
use crate::observations::Observations;
use crate::observer::Observer;
use crate::outcome::{Absence, ArmRemark, LeftOut, PointSummary};
use crate::plan::{Plan, Registry};
use crate::recording::{EvidenceStart, Recording, open_evidence};
use crate::result::RunResult;
use crate::summary::{self, RunFacts};
use crate::time::Clock;
use crate::unit::Unit;

/// Measures the plan's command until the planned time is up, the command ends, or `stop` is requested.
///
/// # Errors
/// If the plan cannot be carried out, or if a line of the command is not an observation. The evidence then has everything
/// that was observed before.
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
    let mut judge = judge_of(plan, windows, spec)?;
    judge.reserve();
    let plans = derived::plans(&windows.series, spec, set.lines.is_none())?;
    let memory = memory(windows, set, spec, &plans);
    check_memory(&memory, windows)?;
    observer.announced(plan, windows, &memory, !matches!(recording, Recording::None));
    let EvidenceStart { writer, run_id, mut unkept, .. } =
        open_evidence(plan, registry, recording, &machine, Vec::new());
    let (recorder, failed) = Recorder::new(windows, spec, &arm, writer);
    unkept = unkept.or(failed);
    if let Some(error) = &unkept {
        observer.unkept(error);
    }
    let primary = primary_metric(&windows.success, spec);
    let facts = RunFacts { registry, machine: &machine, cpu_times: machine::cpu_times(), plan, run_id: &run_id };
    let now = Now::new(vec![vec![arm.to_string()]]);
    let state = |error: ascertain_streams::RunError| WindowError::State(error.to_string());
    let series = plans.iter().map(|plan| LiveSeries::new(plan, windows.windows())).collect::<Result<Vec<_>, _>>()?;
    let others = (0..spec.metrics.len()).map(|metric| MetricTotal::new(&spec.metrics[metric], metric == primary));
    let mut feeder = Feeder {
        plan,
        windows,
        spec,
        primary,
        meter: Meter::new(windows, is_signed(spec, primary)).map_err(state)?,
        series,
        others: others.collect::<Result<_, _>>().map_err(state)?,
        recorder,
        judge,
        is_judged: !plan.claims.is_empty(),
        observer,
        stop,
        clock,
        now: now.clone(),
        start_ns: clock.now_ns(),
        has_begun: false,
        next_tick_ns: 0,
        index: 0,
        is_unkept_reported: false,
        failure: None,
    };
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
    let Feeder { mut judge, mut meter, others, recorder, series, failure, is_judged, observer, .. } = feeder;
    let report = WindowReport { series: series.into_iter().map(LiveSeries::report).collect(), ..report };
    let (writer, failed) = recorder.finish();
    unkept = unkept.or(failed);
    let mut left_out = Vec::new();
    if let Some(failure) = failure {
        judge.close(ClosedReason::NotJudged(failure.reason(Some(&arm))));
        let (experiment, reason) = (spec.id.clone(), failure.reason(None));
        left_out.push(LeftOut { experiment, arm: arm.clone(), absence: Absence::Failed, reason });
    }
    let claims = if is_judged { vec![judge.result()] } else { Vec::new() };
    let mut outcome = summary::summarise(&facts, &Observations::default(), claims, interrupted);
    outcome.points = points(spec, &arm, primary, &mut meter, others);
    outcome.claims.iter_mut().for_each(|claim| claim.median = outcome.points[primary].median);
    outcome.threats.extend(stopped(&outcome.points[primary], set, &arm));
    outcome.remarks = remarks(&now, &spec.id, &arm);
    outcome.left_out = left_out;
    outcome.windows = Some(report);
    let target_failed = !outcome.left_out.is_empty();
    let finished = writer.map(|writer| writer.finish(outcome.clone())).transpose();
    let folder = finished.unwrap_or_else(|error| {
        observer.unkept(&error);
        unkept = Some(error);
        None
    });
    match error {
        Some(error) => Err(error.into()),
        None => Ok(RunResult {
            plan: plan.clone(),
            outcome,
            observations: Observations::default(),
            folder,
            unkept,
            target_failed,
            elapsed: Duration::from_nanos(ascertain_sys::clock::now_ns().saturating_sub(began_ns)),
            recorded_trials: 0,
            measured_nothing: false,
            cleanup_failures: experiment.cleanup_failures(),
        }),
    }
}

/// Returns the arm of the only command.
fn arm_of(windows: &WindowPlan) -> Result<Arm, WindowError> {
    let arm = windows.success.arms().first().map(|arm| (*arm).clone());
    arm.ok_or_else(|| WindowError::Target("the condition of a success names no command".into()))
}

fn is_signed(spec: &Spec, metric: usize) -> bool {
    spec.metrics[metric].unit == Unit::One
}

/// Returns the memory of a long measurement.
fn memory(windows: &WindowPlan, set: &CommandSet, spec: &Spec, plans: &[ascertain_streams::Plan]) -> MemoryReport {
    let mut memory = MemoryReport::default();
    let primary = primary_metric(&windows.success, spec);
    Meter::announce(windows, is_signed(spec, primary), &mut memory);
    MetricTotal::announce(spec, primary, &mut memory);
    plans.iter().for_each(|plan| LiveSeries::announce(plan, windows.windows(), &mut memory));
    if set.lines.is_some() {
        Feeder::announce_lines(&mut memory);
    }
    Recorder::announce(windows, spec.metrics.len(), &mut memory);
    memory.add("checks whether observations are alike", ClaimJudge::reserved_bytes());
    memory
}

fn check_memory(memory: &MemoryReport, windows: &WindowPlan) -> Result<(), WindowError> {
    let limit = windows.memory_limit_bytes.unwrap_or_else(machine::usable_memory_bytes);
    let needed = memory.total_bytes();
    if needed <= limit { Ok(()) } else { Err(WindowError::Memory { needed, limit }) }
}

fn report(feeder: &mut Feeder, ended: &Ended, set: &CommandSet, memory: MemoryReport) -> WindowReport {
    let Feeder { windows, spec, primary, .. } = *feeder;
    let (metric, total) = (&spec.metrics[primary], feeder.meter.total());
    let limit = set.time_limit.filter(|_| set.lines.is_none() && metric.name == "wall");
    WindowReport {
        ended: ended.clone(),
        limit: limit.map(|limit| limit.as_nanos() as f64),
        elapsed_ns: total.end_ns,
        total,
        groups: feeder.meter.groups().to_vec(),
        windows: feeder.meter.windows().to_vec(),
        drift: Drift::of(feeder.meter.windows(), windows.window.as_nanos() as u64),
        recorded: feeder.recorder.report(),
        memory,
        ..WindowReport::empty(windows, metric)
    }
}

/// Returns the summary of each metric over all observations.
fn points(spec: &Spec, arm: &Arm, primary: usize, meter: &mut Meter, others: Vec<MetricTotal>) -> Vec<PointSummary> {
    let stopped = meter.total().stopped;
    let (table, moments) = meter.all();
    let of_metric = |(index, mut other): (usize, MetricTotal)| match index == primary {
        true => other.summary_of(spec, arm, table, moments, stopped),
        false => other.summary(spec, arm),
    };
    others.into_iter().enumerate().map(of_metric).collect()
}

/// Returns a threat if observations were stopped at their time limit.
fn stopped(point: &PointSummary, set: &CommandSet, arm: &Arm) -> Option<Threat> {
    let limit_ns = set.time_limit?.as_nanos() as f64;
    let (trials, all) = (point.censored as usize, point.n as usize);
    (trials > 0).then(|| Threat::Stopped { arm: arm.clone(), limit_ns, trials, all })
}

fn remarks(now: &Now, experiment: &str, arm: &Arm) -> Vec<ArmRemark> {
    let of_arm = now.all_remarks().into_iter();
    of_arm.map(|(_, remark)| ArmRemark { experiment: experiment.to_string(), arm: arm.clone(), remark }).collect()
}
