//! The session: measures all runtimes of a trial interleaved, each workload in a fresh process.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, ArmId, Point, Sample, Samples, Session, Setup, Status, TargetError, Trial};
use ascertain_engine::finding::{FailedWorkload, WorkloadFailure};
use ascertain_sys::process::Exit;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::launch::{self, PADDING, Ran};
use super::levels::{self, text};
use super::probe::{self, Control, Runtime};
use super::workloads::{self, Folder, Source, Workload};
use super::{CONTROL, DRIFT, FIRST, PASS, PHASE, RUNTIME, START, STARTED, SUITE, TIME, WARM, pyperformance};

mod output;
mod remarks;
#[cfg(test)]
mod tests;

use output::{Passes, read_passes, read_pyperf_value};

/// The largest number of random bytes by which the environments of two trials differ.
const MOST_PADDING: usize = 4096;
/// A pass of pyperformance is repeated until it takes about this long, in seconds.
const LOOPS_S: f64 = 0.05;
/// The seed of hashes for the check of results before the first trial.
const VERIFYING_SEED: u32 = 1;
/// Number of bytes by which the strings of two processes of an arm may differ: seeds, loops, and variables of the
/// session.
const STRINGS_ROOM: usize = 256;
/// The lower bound of a time of which nothing is known, in nanoseconds.
const LEAST_NS: f64 = 1.0;

pub struct RuntimesSession {
    arms: Vec<ArmState>,
    folder: Folder,
    setup: Setup,
    control: Option<Control>,
    /// Number of bytes that is enough for the strings of any process of the session.
    strings_bytes: usize,
    /// The loops of each workload of pyperformance, which are the same for all runtimes.
    loops: BTreeMap<String, u64>,
    /// The first output of each file of the user in the current trial.
    outputs: BTreeMap<String, FirstOutput>,
    /// The trial whose samples are in the arms.
    current: Option<(u64, u64)>,
    /// The seeds of all processes so far: one for each workload of a trial.
    seeds: Vec<u32>,
}

struct ArmState {
    arm: Arm,
    runtime: Arc<Runtime>,
    workloads: Vec<Workload>,
    phase: Phase,
    limit: Duration,
    is_verified: bool,
    failures: BTreeMap<String, FailedWorkload>,
    /// The first line that each workload printed to standard error.
    errors_printed: BTreeMap<String, String>,
    /// Files whose output differs from run to run. It is therefore not compared.
    unstable: Vec<String>,
    samples: Vec<Sample>,
}

/// The part of a process that is a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// The whole process; only for files of the user.
    Process,
    Start,
    First,
    Warm {
        ns: u64,
    },
}

/// The conditions that all processes of a workload share in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Conditions {
    /// The seed of hashes.
    seed: u32,
    /// The size of the arguments and variables together, in bytes.
    strings_bytes: usize,
}

/// The output of a file of the user, with which the outputs of other arms under the same conditions are compared.
#[derive(Clone, Debug)]
struct FirstOutput {
    arm: ArmId,
    conditions: Conditions,
    text: String,
}

/// The time of a process, and whether it is only a lower bound.
struct Timed {
    time_ns: f64,
    is_censored: bool,
    passes: Option<Passes>,
}

impl RuntimesSession {
    pub fn open(arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let folder = Folder::new().map_err(TargetError::Failed)?;
        folder.write_all().map_err(TargetError::Failed)?;
        let state = |arm: &Arm| {
            let runtime = levels::runtime(arm).map_err(TargetError::Failed)?;
            let phase = match text(arm, PHASE).as_str() {
                START => Phase::Start,
                FIRST => Phase::First,
                WARM => Phase::Warm { ns: arm.integer("warm_ms")? * 1_000_000 },
                _ => Phase::Process,
            };
            Ok(ArmState {
                workloads: workloads::select(arm, runtime.language).map_err(TargetError::Failed)?,
                arm: arm.clone(),
                runtime,
                phase,
                limit: Duration::from_secs(arm.integer("limit_s")?),
                is_verified: false,
                failures: BTreeMap::new(),
                errors_printed: BTreeMap::new(),
                unstable: Vec::new(),
                samples: Vec::new(),
            })
        };
        let arms = arms.iter().map(state).collect::<Result<Vec<_>, TargetError>>()?;
        let runtimes: Vec<Arc<Runtime>> = arms.iter().map(|arm| arm.runtime.clone()).collect();
        let has_files = arms.iter().any(|arm| arm.phase == Phase::Process);
        let control = if has_files { None } else { probe::control(&runtimes) };
        if let (Some(control), Some(runtime)) = (&control, runtimes.first()) {
            let name = format!("{}/{CONTROL}.{}", runtime.language.name, runtime.language.extension);
            folder.write(&name, control.source).map_err(TargetError::Failed)?;
        }
        let mut session = Self {
            arms,
            folder,
            setup: setup.clone(),
            control,
            strings_bytes: 0,
            loops: BTreeMap::new(),
            outputs: BTreeMap::new(),
            current: None,
            seeds: Vec::new(),
        };
        session.strings_bytes = session.most_strings_bytes().map_err(TargetError::Failed)?;
        Ok(session)
    }

    fn most_strings_bytes(&self) -> Result<usize, String> {
        let mut most = 0;
        for (arm, state) in self.arms.iter().enumerate() {
            for workload in state.workloads.iter().chain(&self.control_workload()) {
                let arguments = self.arguments(arm, workload, VERIFYING_SEED)?;
                most = most.max(launch::strings_bytes(&state.runtime.program, &arguments, &[]));
            }
        }
        // The path of pyperf in a variable begins with that of the folder.
        Ok(most + STRINGS_ROOM + self.folder.path().as_os_str().len())
    }

    /// Returns the arguments of a process that runs a workload.
    fn arguments(&self, arm: ArmId, workload: &Workload, seed: u32) -> Result<Vec<OsString>, String> {
        let ArmState { runtime, phase, .. } = &self.arms[arm];
        let language = runtime.language;
        let mut arguments: Vec<OsString> = Vec::new();
        if !language.seed_option.is_empty() {
            arguments.push(format!("{}{seed}", language.seed_option).into());
        }
        let of_language =
            |name: &str| self.folder.path().join(language.name).join(format!("{name}.{}", language.extension));
        match &workload.source {
            Source::File(path) => arguments.push(path.into()),
            Source::Driven { .. } => {
                let least = match phase {
                    Phase::Warm { ns } => ns.to_string(),
                    _ => "-1".into(),
                };
                arguments.extend([of_language("drive").into(), of_language(&workload.name).into(), least.into()]);
            }
            Source::Pyperformance(script) => {
                // The first result is that of a single pass.
                let loops = if *phase == Phase::Start { None } else { self.loops.get(&workload.name).copied() };
                let is_warm = matches!(phase, Phase::Warm { .. });
                arguments.extend(pyperformance::arguments(
                    script,
                    is_warm,
                    loops.unwrap_or(1),
                    &self.folder.path().join("times.json"),
                ));
            }
        }
        Ok(arguments)
    }

    /// Runs a workload in a fresh process.
    fn start(&self, arm: ArmId, workload: &Workload, conditions: Conditions) -> Result<Ran, TargetError> {
        let Conditions { seed, strings_bytes } = conditions;
        let ArmState { runtime, limit, .. } = &self.arms[arm];
        let arguments = self.arguments(arm, workload, seed).map_err(TargetError::Failed)?;
        let mut environment: Vec<(OsString, OsString)> = Vec::new();
        if !runtime.language.seed_variable.is_empty() {
            environment.push((runtime.language.seed_variable.into(), seed.to_string().into()));
        }
        if matches!(workload.source, Source::Pyperformance(_)) {
            let packages = pyperformance::library(runtime.language, &self.folder).map_err(TargetError::Failed)?;
            environment.push(("PYTHONPATH".into(), packages.into()));
            _ = fs::remove_file(self.folder.path().join("times.json"));
        }
        environment.push((PADDING.into(), OsString::new()));
        let own = launch::strings_bytes(&runtime.program, &arguments, &environment);
        environment.push((PADDING.into(), "x".repeat(strings_bytes.saturating_sub(own)).into()));
        launch::run(&runtime.program, &arguments, &environment, (self.folder.path(), *limit, &self.setup.stop))
    }

    /// Returns the time of a process, or the kind of its failure.
    fn timed(
        &mut self,
        arm: ArmId,
        workload: &Workload,
        ran: &Ran,
        conditions: Conditions,
    ) -> Result<Timed, FailedWorkload> {
        let state = &self.arms[arm];
        let failed = |kind: WorkloadFailure, how: String| FailedWorkload { workload: workload.name.clone(), kind, how };
        let limit_ns = state.limit.as_nanos() as f64;
        match ran.exit {
            Exit::Code(0) => {}
            Exit::TimedOut => {
                let time_ns = self.least_time(arm, workload, ran, limit_ns);
                return Ok(Timed { time_ns, is_censored: true, passes: None });
            }
            exit => return Err(crashed(exit, ran, &failed)),
        }
        let time_ns = match (&workload.source, self.phase(arm, workload)) {
            (Source::File(_), _) | (_, Phase::Process) => {
                self.compare_output(arm, workload, &ran.output, conditions)?;
                return Ok(Timed { time_ns: ran.wall_ns as f64, is_censored: false, passes: None });
            }
            (Source::Pyperformance(_), Phase::Start) => ran.wall_ns as f64,
            (Source::Pyperformance(_), _) => {
                let value_s = read_pyperf_value(&self.folder.path().join("times.json"));
                let how = || failed(WorkloadFailure::Crash, "it wrote no time".into());
                value_s.ok_or_else(how)? * 1e9
            }
            (Source::Driven { result, .. }, phase) => {
                let passes = read_passes(&ran.output, ran.start_ns)
                    .ok_or_else(|| failed(WorkloadFailure::Crash, "it printed no times".into()))?;
                if let Some(expected) = result.filter(|expected| *expected != passes.result) {
                    let how = format!("the result is {}, and not {expected}", passes.result);
                    return Err(failed(WorkloadFailure::Wrong, how));
                }
                let time_ns = match phase {
                    Phase::Start => passes.first_end_ns,
                    Phase::First => passes.times_ns[0],
                    _ => *passes.times_ns.last().unwrap_or(&f64::NAN),
                };
                return Ok(Timed { time_ns, is_censored: false, passes: Some(passes) });
            }
        };
        Ok(Timed { time_ns, is_censored: false, passes: None })
    }

    /// Returns the part of a process that is a sample of this workload. The time from the start of a process is mostly
    /// work of the runtime, and would hide the work of the control. The control therefore always has a pass instead.
    fn phase(&self, arm: ArmId, workload: &Workload) -> Phase {
        match self.arms[arm].phase {
            Phase::Start if workload.name == CONTROL => Phase::First,
            phase => phase,
        }
    }

    /// Returns a lower bound of the time of a process that reached its limit. A first pass that has not ended takes at
    /// least half of the limit, because starting takes less than the other half. After that, at most the passes up to
    /// the measured pass are missing. A value of pyperformance is the time of one loop of an unknown number, so nothing
    /// is known of it.
    fn least_time(&self, arm: ArmId, workload: &Workload, ran: &Ran, limit_ns: f64) -> f64 {
        let is_of_pyperformance = matches!(workload.source, Source::Pyperformance(_));
        match (self.phase(arm, workload), output::first_end_ns(&ran.output, ran.start_ns)) {
            (Phase::Process | Phase::Start, _) => limit_ns,
            _ if is_of_pyperformance => LEAST_NS,
            (Phase::Warm { ns }, Some(first_end_ns)) => (limit_ns - first_end_ns - ns as f64).max(LEAST_NS),
            _ => limit_ns / 2.0,
        }
    }

    /// Compares the output of a file with its output under the runtime that ran it first in this trial, under the same
    /// conditions. If that runtime prints something else each time, the output is not compared. The first output under
    /// new conditions is not compared either: the engine verifies single arms again between trials.
    fn compare_output(
        &mut self,
        arm: ArmId,
        workload: &Workload,
        output: &str,
        conditions: Conditions,
    ) -> Result<(), FailedWorkload> {
        let name = &workload.name;
        let known = self.outputs.get(name).filter(|known| known.conditions == conditions).cloned();
        let Some(FirstOutput { arm: first, text: expected, .. }) = known else {
            self.outputs.insert(name.clone(), FirstOutput { arm, conditions, text: output.to_string() });
            return Ok(());
        };
        let is_unstable = self.arms.iter().any(|arm| arm.unstable.contains(name));
        if output == expected || is_unstable {
            return Ok(());
        }
        let again = self.start(first, workload, conditions).map(|ran| ran.output).unwrap_or_default();
        if again != expected {
            self.arms[first].unstable.push(name.clone());
            return Ok(());
        }
        let shown = |text: &str| text.lines().next().unwrap_or_default().chars().take(60).collect::<String>();
        let reference = levels::name(&self.arms[first].arm);
        let how = format!("it printed `{}`, and `{reference}` printed `{}`", shown(output), shown(&expected));
        Err(FailedWorkload { workload: name.clone(), kind: WorkloadFailure::Wrong, how })
    }

    /// Runs a workload and adds its samples to the arm. A failure removes the workload from the arm.
    fn sample(&mut self, arm: ArmId, workload: &Workload, conditions: Conditions) -> Result<(), TargetError> {
        let ran = self.start(arm, workload, conditions)?;
        let timed = self.timed(arm, workload, &ran, conditions);
        let state = &mut self.arms[arm];
        state.note_errors(workload, &ran);
        let key = workload.name.clone();
        let push = |samples: &mut Vec<Sample>, metric: usize, offset_ns: f64, value: f64, status: Status| {
            samples.push(Sample { metric, key: key.clone().into(), offset_ns: offset_ns as u64, value, status });
        };
        match timed {
            Err(failure) => {
                push(&mut state.samples, TIME, 0.0, f64::NAN, Status::Lost);
                state.failures.insert(key.clone(), failure);
            }
            Ok(Timed { time_ns, is_censored, passes }) => {
                let status = if is_censored { Status::Censored } else { Status::Ok };
                push(&mut state.samples, TIME, 0.0, time_ns, status);
                let Some(passes) = passes else { return Ok(()) };
                push(&mut state.samples, STARTED, 0.0, passes.first_end_ns, Status::Ok);
                if let Some(drift) = passes.drift() {
                    push(&mut state.samples, DRIFT, 0.0, drift, Status::Ok);
                }
                for (end_ns, time_ns) in passes.ends_ns.iter().zip(&passes.times_ns) {
                    push(&mut state.samples, PASS, *end_ns, *time_ns, Status::Ok);
                }
            }
        }
        Ok(())
    }

    /// Measures all workloads of all arms once: the workloads in random order, and the runtimes of each workload in
    /// random order. The processes of a workload share their seed of hashes, and the size of their strings.
    fn measure_trial(&mut self, trial: &Trial) -> Result<(), TargetError> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(trial.seed);
        self.arms.iter_mut().for_each(|arm| arm.samples.clear());
        self.outputs.clear();
        let mut workloads = self.by_workload();
        workloads.shuffle(&mut rng);
        for (workload, mut arms) in workloads {
            arms.shuffle(&mut rng);
            let seed = rng.random_range(1..=u32::MAX);
            let strings_bytes = self.strings_bytes + rng.random_range(0..MOST_PADDING);
            self.seeds.push(seed);
            for (arm, of_arm) in arms {
                if !self.arms[arm].failures.contains_key(&workload) {
                    self.sample(arm, &of_arm, Conditions { seed, strings_bytes })?;
                }
            }
        }
        self.add_suite();
        Ok(())
    }

    /// Returns each workload with the arms that have it, in the order of the arms.
    fn by_workload(&self) -> Vec<(String, Vec<(ArmId, Workload)>)> {
        let mut found: Vec<(String, Vec<(ArmId, Workload)>)> = Vec::new();
        for (arm, state) in self.arms.iter().enumerate().filter(|(_, state)| state.is_verified) {
            for workload in state.workloads.iter().chain(self.control_workload().iter()) {
                match found.iter_mut().find(|(name, _)| *name == workload.name) {
                    Some((_, arms)) => arms.push((arm, workload.clone())),
                    None => found.push((workload.name.clone(), vec![(arm, workload.clone())])),
                }
            }
        }
        found
    }

    fn control_workload(&self) -> Option<Workload> {
        let control = self.control.as_ref()?;
        Some(Workload { name: CONTROL.into(), source: Source::Driven { text: control.source, result: None } })
    }

    /// Adds the geometric mean of each arm, over the workloads that all arms which are compared with it completed in
    /// this trial.
    fn add_suite(&mut self) {
        let others = |arm: &ArmId| self.arms[*arm].arm.point.only(|factor, _| factor != RUNTIME);
        let mut groups: Vec<Vec<ArmId>> = Vec::new();
        for arm in (0..self.arms.len()).filter(|arm| self.arms[*arm].is_verified) {
            match groups.iter_mut().find(|group| others(&group[0]) == others(&arm)) {
                Some(group) => group.push(arm),
                None => groups.push(vec![arm]),
            }
        }
        groups.iter().for_each(|group| self.add_suite_of(group));
    }

    fn add_suite_of(&mut self, group: &[ArmId]) {
        let times = |arm: &ArmId| -> BTreeMap<String, (f64, Status)> {
            let samples = self.arms[*arm].samples.iter();
            let of_time = samples.filter(|sample| sample.metric == TIME && sample.key != CONTROL);
            of_time.map(|sample| (sample.key.to_string(), (sample.value, sample.status))).collect()
        };
        let by_arm: Vec<BTreeMap<String, (f64, Status)>> = group.iter().map(times).collect();
        let is_complete = |name: &&String| {
            let statuses: Vec<Option<Status>> =
                by_arm.iter().map(|times| times.get(*name).map(|(_, status)| *status)).collect();
            let stopped = statuses.iter().filter(|status| **status == Some(Status::Censored)).count();
            // If both of two runtimes were stopped, their ratio is unknown.
            stopped < 2 && statuses.iter().all(|status| status.is_some_and(|status| status != Status::Lost))
        };
        let common: BTreeSet<String> = by_arm.iter().flat_map(BTreeMap::keys).filter(is_complete).cloned().collect();
        for (arm, times) in group.iter().zip(&by_arm) {
            let of_common: Vec<(f64, Status)> =
                times.iter().filter(|(name, _)| common.contains(*name)).map(|(_, time)| *time).collect();
            let is_cut_off = of_common.iter().any(|(_, status)| *status == Status::Censored);
            let mean = of_common.iter().map(|(time, _)| time.ln()).sum::<f64>() / of_common.len() as f64;
            let status = match () {
                () if of_common.is_empty() => Status::Lost,
                () if is_cut_off => Status::Censored,
                () => Status::Ok,
            };
            let sample = Sample { metric: SUITE, key: "".into(), offset_ns: 0, value: mean.exp(), status };
            self.arms[*arm].samples.push(sample);
        }
    }
}

impl ArmState {
    fn note_errors(&mut self, workload: &Workload, ran: &Ran) {
        let line = ran.error_output.lines().find(|line| !line.trim().is_empty());
        if let Some(line) = line {
            let shown = || line.trim().chars().take(120).collect();
            self.errors_printed.entry(workload.name.clone()).or_insert_with(shown);
        }
    }
}

/// Describes the end of a process that did not complete its workload.
fn crashed(exit: Exit, ran: &Ran, failed: &impl Fn(WorkloadFailure, String) -> FailedWorkload) -> FailedWorkload {
    let line = ran.last_error_line();
    let lacks = ["ModuleNotFoundError", "ImportError", "No module named", "Cannot find module", "Cannot find package"];
    let how = match exit {
        Exit::Code(code) => format!("it ended with exit code {code}"),
        Exit::Signal(signal) => format!("signal {signal} ended it"),
        Exit::TimedOut | Exit::Interrupted => "it was stopped".into(),
    };
    let is_missing = matches!(exit, Exit::Code(_)) && lacks.iter().any(|word| ran.error_output.contains(word));
    match is_missing {
        true => failed(WorkloadFailure::Missing, line),
        false if line.is_empty() => failed(WorkloadFailure::Crash, how),
        false => failed(WorkloadFailure::Crash, format!("{how}: {line}")),
    }
}

impl Session for RuntimesSession {
    /// Runs each workload once and checks its result. Workloads that fail are left out; an arm without any workload
    /// fails.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let conditions = Conditions { seed: VERIFYING_SEED, strings_bytes: self.strings_bytes };
        for workload in self.arms[arm].workloads.clone() {
            let ran = self.start(arm, &workload, conditions)?;
            self.arms[arm].note_errors(&workload, &ran);
            if let Err(failure) = self.timed(arm, &workload, &ran, conditions) {
                self.arms[arm].failures.insert(workload.name.clone(), failure);
            } else if matches!(workload.source, Source::Pyperformance(_)) && !self.loops.contains_key(&workload.name) {
                let value_s = read_pyperf_value(&self.folder.path().join("times.json")).unwrap_or(LOOPS_S);
                let loops = (LOOPS_S / value_s.max(1e-9)).ceil().clamp(1.0, 1e7) as u64;
                self.loops.insert(workload.name.clone(), loops);
            }
        }
        let state = &mut self.arms[arm];
        if state.workloads.iter().all(|of| state.failures.contains_key(&of.name)) {
            let first = state.failures.values().next().map(|failed| format!("{}: {}", failed.workload, failed.how));
            let name = levels::name(&state.arm);
            return Err(TargetError::Failed(format!(
                "`{name}` completed no workload; {}",
                first.unwrap_or_else(|| "there are none".into())
            )));
        }
        state.is_verified = true;
        Ok(())
    }

    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        Ok(self.facts_of(arm))
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let key = (trial.number, trial.seed);
        if self.current != Some(key) {
            self.measure_trial(trial)?;
            self.current = Some(key);
        }
        self.remarks(arm).into_iter().for_each(|remark| self.setup.now.remark(remark));
        self.arms[arm].samples.drain(..).for_each(|sample| out.push_sample(sample));
        Ok(())
    }
}
