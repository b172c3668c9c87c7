//! Commands as an experiment: its sessions, what is run around commands, and what the end of one means.

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ascertain_sys::interrupt::Stop;
use ascertain_sys::machine::Machine;
use ascertain_sys::perf::Counter;
use ascertain_sys::process::{Exit, Usage};

use super::line::{Around, CommandLine, Key, Requests};
use super::set::check;
use super::{CommandError, CommandSet, OnFailure, Output};
use crate::experiment::{
    Arm, ArmId, Experiment, Point, Samples, Session, Setup, Spec, Status, TargetError, Trial, Unavailable,
};

/// A set of commands that can be measured.
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
    pub(super) set: CommandSet,
    hooks: Hooks,
    spec: Spec,
}

impl CommandExperiment {
    /// Makes an experiment of commands. Nothing is run yet.
    ///
    /// # Errors
    /// Whatever can be known to be wrong beforehand: see [`CommandError`].
    pub fn new(set: CommandSet) -> Result<Self, CommandError> {
        let set = set.with_distinct_names();
        check(&set)?;
        Ok(CommandExperiment { spec: set.spec(), hooks: Hooks::default(), set })
    }

    /// What went wrong in cleaning up so far. Sessions clean up when they end, where no error can be
    /// returned.
    pub fn cleanup_failures(&self) -> Vec<String> {
        self.hooks.failures()
    }
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
        match counter(metric) {
            Some(counter) => counter.available().map_err(Unavailable::other),
            None => Ok(()),
        }
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session + '_>, TargetError> {
        Ok(Box::new(CommandSession::open(self, arms, setup)?))
    }
}

/// Commands with their set-ups in force, until it is dropped.
struct CommandSession<'e> {
    set: &'e CommandSet,
    targets: Vec<Target>,
    requests: Option<Requests>,
    stop: Stop,
    /// Dropped last: clean-ups come after everything else.
    _entered: Vec<Entered<'e>>,
}

/// One arm.
struct Target {
    line: CommandLine,
    prepare: Option<CommandLine>,
}

impl<'e> CommandSession<'e> {
    /// Makes the arms ready and runs their set-ups.
    ///
    /// # Errors
    /// When a set-up fails. Those before it are cleaned up after.
    pub fn open(experiment: &'e CommandExperiment, arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let set = &experiment.set;
        let default = experiment.spec().default_point();
        let ready = arms.iter().map(|arm| Target::new(set, &default, arm));
        let (targets, around): (Vec<Target>, Vec<Around>) = ready.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let entered = around.into_iter().map(|around| experiment.hooks.enter(around, &setup.stop));
        Ok(CommandSession {
            set,
            targets,
            requests: set.requests.clone().map(|texts| Requests::new(texts, setup.seed)),
            stop: setup.stop.clone(),
            _entered: entered.collect::<Result<_, _>>()?,
        })
    }
}

impl Target {
    fn new(set: &CommandSet, default: &Point, arm: &Arm) -> Result<(Target, Around), TargetError> {
        let mut point = default.clone();
        point.0.extend(arm.point.0.clone());
        let missing = || TargetError::Failed(format!("there is no command `{}`", arm.variant));
        let command = set.command(&arm.variant).ok_or_else(missing)?;
        let make = || -> Result<_, CommandError> {
            let line = CommandLine::measured(set, &command.line, &point)?;
            let mut around = Around::new(set, command, &point)?;
            Ok((Target { line, prepare: around.prepare.take() }, around))
        };
        make().map_err(|error| TargetError::Failed(error.to_string()))
    }
}

impl Session for CommandSession<'_> {
    /// A command's answer is its exit code, which each observation sees.
    fn verify(&mut self, _: ArmId) -> Result<(), TargetError> {
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let Target { line, prepare } = &self.targets[arm];
        if let Some(prepare) = prepare {
            run_untimed(prepare, &self.stop)?;
        }
        let request = self.requests.as_mut().map(|requests| requests.of(trial.number));
        let usage = line.run(request, self.set.time_limit, &self.stop)?;
        observe(&usage, self.set, line, out)
    }
}

/// The set-ups that are in force. Several arms, and several sessions at a time, may need the same:
/// it is run for the first of them, and its clean-up after the last.
#[derive(Default)]
struct Hooks {
    users: Mutex<HashMap<Key, usize>>,
    failures: Mutex<Vec<String>>,
}

/// A set-up in force, for one user. Dropping it lets it go.
struct Entered<'h> {
    hooks: &'h Hooks,
    key: Key,
    cleanup: Option<CommandLine>,
}

impl Hooks {
    /// Runs the set-up unless it is in force already.
    ///
    /// # Errors
    /// When it fails: nothing is cleaned up after it then.
    pub fn enter(&self, around: Around, stop: &Stop) -> Result<Entered<'_>, TargetError> {
        let key = around.key();
        let mut users = lock(&self.users);
        let count = users.entry(key.clone()).or_default();
        if let (0, Some(setup)) = (*count, &around.setup) {
            run_untimed(setup, stop)?;
        }
        *count += 1;
        Ok(Entered { hooks: self, key, cleanup: around.cleanup })
    }

    /// What went wrong in cleaning up so far.
    pub fn failures(&self) -> Vec<String> {
        lock(&self.failures).clone()
    }
}

impl Drop for Entered<'_> {
    /// The clean-up runs after Ctrl-C too, when nothing else is started any more. What it fails with
    /// is kept: nobody takes an error here.
    fn drop(&mut self) {
        let mut users = lock(&self.hooks.users);
        let Some(count) = users.get_mut(&self.key) else { return };
        *count -= 1;
        if let (0, Some(cleanup)) = (*count, &self.cleanup)
            && let Err(reason) = run_regardless(cleanup)
        {
            lock(&self.hooks.failures).push(format!("{}: {reason}", cleanup.called()));
        }
    }
}

/// Runs a line whether or not a signal asked for the end.
fn run_regardless(line: &CommandLine) -> Result<(), String> {
    let command = line.command(None);
    let output = || if command.stdout == Output::Inherit { Stdio::inherit() } else { Stdio::null() };
    let status = Command::new(&command.program)
        .args(&command.args)
        .stdin(Stdio::null())
        .stdout(output())
        .stderr(output())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(status.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Whoever panicked while it held the lock left a count behind that is still right.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The place of the wall time in [`metrics`](super::metrics); those of the others follow.
pub const WALL: usize = 0;
const USER: usize = 1;
const SYSTEM: usize = 2;
const MEMORY_PEAK: usize = 3;
pub(crate) const EXIT: usize = 4;

/// The counter that a metric is of: they follow the others.
fn counter(metric: usize) -> Option<Counter> {
    metric.checked_sub(EXIT + 1).and_then(|index| Counter::ALL.get(index).copied())
}

/// Notes what was seen of a command that has ended, or was stopped at its time limit.
///
/// # Errors
/// When it failed, and that is to stop it. `Interrupted` when a signal came: what had been seen by then is noted.
fn observe(usage: &Usage, set: &CommandSet, line: &CommandLine, out: &mut Samples) -> Result<(), TargetError> {
    let failure = failure(usage.exit);
    let is_stopped = matches!(usage.exit, Exit::TimedOut | Exit::Interrupted);
    let status = match failure {
        // A time-out is an observation, whatever failures are; and all that is known of it is what had gone by.
        _ if is_stopped => Status::Censored,
        Some(reason) if set.on_failure == OnFailure::Stop => {
            let called = line.called();
            let message = format!("{called} {reason}; {ADVICE}, or go on all the same with -i (compare)");
            return Err(line.failed(message));
        }
        Some(_) if set.on_failure == OnFailure::Observe => Status::Failed,
        _ => Status::Ok,
    };
    // The same of all that met it.
    let limit_ns = set.time_limit.filter(|_| usage.exit == Exit::TimedOut).map(|limit| limit.as_nanos() as f64);
    out.push_with(WALL, limit_ns.unwrap_or(usage.wall_ns as f64), status);
    out.push_with(USER, usage.user_ns as f64, status);
    out.push_with(SYSTEM, usage.system_ns as f64, status);
    out.push_with(MEMORY_PEAK, usage.memory_peak_bytes as f64, status);
    // What the machine does not count is not observed, and neither is what it could not count to the end.
    for (index, count) in usage.counts.iter().enumerate().filter(|_| set.counters) {
        count.iter().for_each(|&count| out.push_with(EXIT + 1 + index, count as f64, status));
    }
    match usage.exit {
        Exit::Code(code) => out.push(EXIT, f64::from(code)),
        Exit::Signal(signal) => out.push(EXIT, f64::from(128 + signal)),
        // It has no exit code: it did not succeed in its time.
        Exit::TimedOut => out.push_with(EXIT, 0.0, Status::Censored),
        // Who knows how it would have ended?
        Exit::Interrupted => return Err(TargetError::Interrupted),
    }
    Ok(())
}

/// Runs what goes around a command.
///
/// # Errors
/// When it does not succeed.
fn run_untimed(line: &CommandLine, stop: &Stop) -> Result<(), TargetError> {
    let exit = line.run(None, None, stop)?.exit;
    match failure(exit) {
        _ if exit == Exit::Interrupted => Err(TargetError::Interrupted),
        None => Ok(()),
        Some(reason) => Err(line.failed(format!("{} {reason}; {ADVICE}", line.called()))),
    }
}

/// A file of claims has no such options: there the command is to be run alone.
const ADVICE: &str = "run it alone to see what it says, or use --output inherit (compare, slo)";

fn failure(exit: Exit) -> Option<String> {
    match exit {
        Exit::Code(0) => None,
        Exit::Code(code) => Some(format!("ended with exit code {code}")),
        Exit::Signal(signal) => Some(format!("was ended by signal {signal}")),
        Exit::TimedOut => Some("met its time limit".into()),
        Exit::Interrupted => None,
    }
}
