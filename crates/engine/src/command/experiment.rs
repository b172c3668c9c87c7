//! An experiment that measures commands. It opens sessions, runs the commands, and turns the results of each execution
//! into observations.

mod check;
mod line;
mod setups;

use ascertain_sys::interrupt::Stop;
use ascertain_sys::machine::Machine;
use ascertain_sys::perf::Counter;
use ascertain_sys::process::{Command, Exit, Usage};

pub use check::CommandError;

use self::check::check;
use self::line::{CommandLine, HookLines, Invocation, LastOutput, Requests};
use self::setups::{SetupGuard, Setups, run_untimed};
use super::printed::FigureReader;
use super::{CommandSet, EXIT, OnFailure, ProgramRevision, WALL};
use crate::block::Block;
use crate::experiment::{
    Arm, ArmId, Experiment, Point, Samples, Session, Setup, Spec, Status, TargetError, Trial, Unavailable,
};
use crate::finding::{Remark, Work};
use crate::now::Now;

/// An experiment that runs commands and measures them.
///
/// ```
/// use ascertain_engine::command::{CommandExperiment, CommandSet, NamedCommand};
/// use ascertain_engine::experiment::Experiment;
///
/// let line = |line: &str| NamedCommand { line: line.into(), ..NamedCommand::default() };
/// let set = CommandSet {
///     id: "compare".into(),
///     commands: vec![line("true"), line("true")],
///     ..CommandSet::default()
/// };
/// let experiment = CommandExperiment::new(set.clone()).unwrap();
/// let names = experiment.spec().variants.iter().map(|variant| variant.name.as_str());
/// assert_eq!(names.collect::<Vec<_>>(), ["true", "true (2)"]);
///
/// let missing = CommandSet { commands: vec![line("no-such-program")], ..set };
/// let error = CommandExperiment::new(missing).err().unwrap();
/// assert!(error.to_string().contains("`no-such-program` was not found"));
/// ```
pub struct CommandExperiment {
    set: CommandSet,
    setups: Setups,
    spec: Spec,
    /// The readers of the figures that the commands print, in the order of [`CommandSet::printed`].
    readers: Vec<FigureReader>,
}

impl CommandExperiment {
    /// Creates an experiment from commands. Nothing is run yet.
    ///
    /// # Errors
    /// If the set has a mistake that can be found before anything runs: see [`CommandError`].
    pub fn new(set: CommandSet) -> Result<Self, CommandError> {
        let set = set.with_distinct_names();
        let readers = FigureReader::all(&set.printed)?;
        check(&set)?;
        Ok(CommandExperiment { spec: set.spec(), setups: Setups::default(), set, readers })
    }
}

/// Returns the first command of a set as a program to start, for reading its output while it runs.
///
/// # Errors
/// If the command line cannot be split into words.
pub(crate) fn piped_command(set: &CommandSet) -> Result<Command, CommandError> {
    let command = set.commands.first().ok_or_else(|| CommandError::Set("there is no command".into()))?;
    Ok(CommandLine::measured(set, command, &Point::default())?.command(Invocation::default()))
}

impl Experiment for CommandExperiment {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        match self.set.command(&arm.variant) {
            Some(_) => Ok(()),
            None => Err(Unavailable::other(format!("there is no command `{}`", arm.variant))),
        }
    }

    fn shows(&self, _: &Arm, metric: usize, _: &Machine) -> Result<(), Unavailable> {
        match counter(metric).filter(|_| self.set.counters) {
            Some(counter) => counter.available().map_err(Unavailable::other),
            None => Ok(()),
        }
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session + '_>, TargetError> {
        Ok(Box::new(CommandSession::open(self, arms, setup)?))
    }

    fn cleanup_failures(&self) -> Vec<String> {
        self.setups.failures()
    }
}

/// The commands of the session's arms, after their set-ups have run. Dropping the session runs the clean-ups.
struct CommandSession<'e> {
    set: &'e CommandSet,
    setups: &'e Setups,
    readers: &'e [FigureReader],
    commands: Vec<MeasuredCommand>,
    requests: Option<Requests>,
    stop: Stop,
    now: Now,
    /// One guard for each arm that has a set-up. Dropping a guard may run the clean-up of that set-up. This is the last
    /// field, so it is dropped last: the clean-ups run after everything else.
    _guards: Vec<SetupGuard<'e>>,
}

/// The command of one arm, ready to run.
struct MeasuredCommand {
    line: CommandLine,
    hooks: HookLines,
    facts: Point,
    warm_ups: u64,
    has_run: bool,
}

impl<'e> CommandSession<'e> {
    /// Prepares the arms and runs their set-ups.
    ///
    /// # Errors
    /// If a set-up fails. The set-ups that ran before it are then undone by their clean-ups.
    pub fn open(experiment: &'e CommandExperiment, arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let set = &experiment.set;
        let default = experiment.spec().default_point();
        let commands = arms.iter().map(|arm| MeasuredCommand::new(set, &default, arm));
        let commands: Vec<MeasuredCommand> = commands.collect::<Result<_, _>>()?;
        let setups = &experiment.setups;
        let guards = commands.iter().map(|command| setups.enter(&command.hooks, &command.line, &setup.stop));
        Ok(CommandSession {
            set,
            setups,
            readers: &experiment.readers,
            _guards: guards.collect::<Result<_, _>>()?,
            commands,
            requests: set.requests.clone().map(|texts| Requests::new(texts, setup.seed)),
            stop: setup.stop.clone(),
            now: setup.now.clone(),
        })
    }
}

impl MeasuredCommand {
    fn new(set: &CommandSet, default: &Point, arm: &Arm) -> Result<MeasuredCommand, TargetError> {
        let mut point = default.clone();
        point.0.extend(arm.point.0.clone());
        let missing = || TargetError::Failed(format!("there is no command `{}`", arm.variant));
        let command = set.command(&arm.variant).ok_or_else(missing)?;
        let failed = |error: CommandError| TargetError::Failed(error.to_string());
        let line = CommandLine::measured(set, command, &point).map_err(failed)?;
        let hooks = HookLines::new(set, command, &point).map_err(failed)?;
        let facts = command.revision.as_ref().map(ProgramRevision::facts).unwrap_or_default();
        Ok(MeasuredCommand { line, hooks, facts, warm_ups: 0, has_run: false })
    }
}

impl Session for CommandSession<'_> {
    /// Does nothing, because every trial already checks the command: it observes the exit code.
    fn verify(&mut self, _: ArmId) -> Result<(), TargetError> {
        Ok(())
    }

    /// Returns the revision of the command's program, if it has one.
    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        Ok(self.commands[arm].facts.clone())
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        self.setups.check()?;
        let command = &mut self.commands[arm];
        let iteration = match trial.number {
            Block::WARM_UP => format!("warmup-{}", command.warm_ups),
            number => number.to_string(),
        };
        command.warm_ups += u64::from(trial.number == Block::WARM_UP);
        // Keeping the output takes time, so only that of the first execution is kept. It usually explains a failure,
        // because a command that fails at all mostly fails in its first execution.
        let keeps_output = !std::mem::replace(&mut command.has_run, true);
        let request = self.requests.as_mut().map(|requests| requests.get(trial.number).to_owned());
        let request = request.as_deref();
        let invocation = Invocation { request, iteration: Some(&iteration), keeps_output, is_neutral: false };
        let command = &self.commands[arm];
        let usage = self.run(command, invocation, out)?;
        if keeps_output && command.line.discards_to_null() {
            // This additional run only finds out whether the command does less work if its output goes to `/dev/null`,
            // which leads to a warning. Its own failure is ignored, because the command has already been measured.
            let neutral = Invocation { is_neutral: true, keeps_output: false, ..invocation };
            match self.run(command, neutral, &mut Samples::default()) {
                Err(TargetError::Interrupted) => return Err(TargetError::Interrupted),
                Err(_) => {}
                Ok(neutral) => {
                    let [null, neutral] = [work(&usage), work(&neutral)];
                    if is_other_work(null, neutral) {
                        self.now.remark(Remark::RecognisesNull { null, neutral });
                    }
                }
            }
        }
        Ok(())
    }
}

impl CommandSession<'_> {
    /// Runs the command's preparation, the command itself, and its conclusion. Adds the observations to `out`, and
    /// returns the resources that the command used.
    fn run(&self, command: &MeasuredCommand, invocation: Invocation, out: &mut Samples) -> Result<Usage, TargetError> {
        let MeasuredCommand { line, hooks: HookLines { prepare, conclude, .. }, .. } = command;
        if let Some(prepare) = prepare {
            run_untimed(prepare, invocation, &self.stop)?;
        }
        let ran = line.run(invocation, self.set.time_limit, &self.stop);
        let observed = ran.and_then(|(usage, last_output)| {
            if let Some(how) = observe(&usage, &last_output, (self.set, self.readers), line, out)? {
                self.now.remark(Remark::NoFigure { how });
            }
            if invocation.keeps_output
                && failure(usage.exit).is_some()
                && let Some(said) = last_output.text()
            {
                self.now.remark(Remark::Failure { said });
            }
            Ok(usage)
        });
        // The preparation must be undone, whatever the result of the command.
        let Some(conclude) = conclude else { return observed };
        if observed == Err(TargetError::Interrupted) {
            self.setups.run_regardless(conclude, invocation);
            return observed;
        }
        let concluded = run_untimed(conclude, invocation, &self.stop);
        observed.and_then(|usage| concluded.map(|()| usage))
    }
}

fn work(usage: &Usage) -> Work {
    Work { cpu_ns: usage.user_ns + usage.system_ns, read_bytes: usage.read_bytes }
}

/// Difference in CPU time, in nanoseconds, that is always ignored when two executions are compared. The CPU times of a
/// short command may differ by more than 20 %, but rarely by more than this time.
const CPU_NOISE_NS: u64 = 5_000_000;

/// Returns whether a command did less work when its output went to `/dev/null` (`null`) than to another device
/// (`neutral`). Less work means over 20 % fewer bytes read, or over 20 % less CPU time.
fn is_other_work(null: Work, neutral: Work) -> bool {
    let is_less = |less: u64, more: u64| (less as f64) < 0.8 * more as f64;
    let reads_less = null.read_bytes.zip(neutral.read_bytes).is_some_and(|(null, neutral)| is_less(null, neutral));
    reads_less || is_less(null.cpu_ns + CPU_NOISE_NS, neutral.cpu_ns)
}

/// Index of the CPU time in user mode among the metrics of a command.
const USER: usize = 1;
/// Index of the CPU time in the kernel among the metrics of a command.
const SYSTEM: usize = 2;
/// Index of the peak memory among the metrics of a command.
const MEMORY_PEAK: usize = 3;

/// Returns the counter that a metric records; `None` for a metric that is not a counter. `metric` is an index into the
/// metrics of a command, in which the counters follow [`EXIT`].
fn counter(metric: usize) -> Option<Counter> {
    metric.checked_sub(EXIT + 1).and_then(|index| Counter::ALL.get(index).copied())
}

/// Adds the observations of one execution of the command `line` to `out`. Usually returns `None`. If a printed figure
/// is missing and failures count as observations, returns the reason why it is missing.
///
/// # Errors
/// If the command failed, and its failures end its measurement. Also if a printed figure is missing, unless failures
/// count as observations. If a signal arrived, the error is `Interrupted`, and the observations until then are added.
fn observe(
    usage: &Usage,
    last_output: &LastOutput,
    (set, readers): (&CommandSet, &[FigureReader]),
    line: &CommandLine,
    out: &mut Samples,
) -> Result<Option<String>, TargetError> {
    let failure = failure(usage.exit);
    let is_stopped = matches!(usage.exit, Exit::TimedOut | Exit::Interrupted);
    let status = match failure {
        // A time-out is an observation for every kind of `on_failure`. It is censored: the true value is above the
        // observed one.
        _ if is_stopped => Status::Censored,
        Some(ref reason) if stops(&set.on_failure, usage.exit) => {
            let (name, end) = (line.name(), last_output.failure_clause());
            return Err(line.failed(format!("{name} {reason}{end}; ignore its failures to measure it anyway")));
        }
        Some(_) if set.on_failure == OnFailure::Observe => Status::Failed,
        _ => Status::Ok,
    };
    // The limit itself is recorded, so that all commands that reach it have the same time.
    let limit_ns = set.time_limit.filter(|_| usage.exit == Exit::TimedOut).map(|limit| limit.as_nanos() as f64);
    out.push_with(WALL, limit_ns.unwrap_or(usage.wall_ns as f64), status);
    out.push_with(USER, usage.user_ns as f64, status);
    out.push_with(SYSTEM, usage.system_ns as f64, status);
    out.push_with(MEMORY_PEAK, usage.memory_peak_bytes as f64, status);
    // Counters that the machine does not support, or could not count to the end, are not observed.
    for (index, count) in usage.counts.iter().enumerate().filter(|_| set.counters) {
        count.iter().for_each(|&count| out.push_with(EXIT + 1 + index, count as f64, status));
    }
    match usage.exit {
        Exit::Code(code) => out.push(EXIT, f64::from(code)),
        Exit::Signal(signal) => out.push(EXIT, f64::from(128 + signal)),
        // There is no exit code, because the command did not end in time.
        Exit::TimedOut => out.push_with(EXIT, 0.0, Status::Censored),
        // It is not known how the command would have ended.
        Exit::Interrupted => return Err(TargetError::Interrupted),
    }
    let mut missing = None;
    for (index, reader) in readers.iter().enumerate() {
        let metric = set.first_printed() + index;
        match reader.read(&last_output.bytes) {
            // A stopped command might have printed another figure later, so the figure is recorded as cut off. It is
            // not recorded as lost, because only an interrupted trial loses values.
            _ if usage.exit == Exit::TimedOut => out.push_with(metric, f64::NAN, Status::Censored),
            Ok(value) => out.push_with(metric, value, status),
            Err(how) => {
                let ended = failure.as_ref().map_or_else(String::new, |failure| format!("{failure} and "));
                let how = format!("{ended}{how}{}", last_output.output_clause());
                if set.on_failure != OnFailure::Observe {
                    return Err(line.failed(format!("{} {how}", line.name())));
                }
                missing.get_or_insert(how);
            }
        }
    }
    Ok(missing)
}

/// Returns whether a failure of this kind ends the measurement of the command.
fn stops(on_failure: &OnFailure, exit: Exit) -> bool {
    match (on_failure, exit) {
        (OnFailure::Stop, _) => true,
        (OnFailure::IgnoreCodes(codes), Exit::Code(code)) => !codes.contains(&code),
        (OnFailure::IgnoreCodes(codes), Exit::Signal(signal)) => !codes.contains(&(128 + signal)),
        _ => false,
    }
}

/// Returns in words how a command failed; `None` if it succeeded or was interrupted.
fn failure(exit: Exit) -> Option<String> {
    match exit {
        Exit::Code(0) => None,
        Exit::Code(code) => Some(format!("ended with exit code {code}")),
        Exit::Signal(signal) => Some(format!("was killed by signal {signal}")),
        Exit::TimedOut => Some("reached its time limit".into()),
        Exit::Interrupted => None,
    }
}

#[cfg(test)]
mod tests;
