//! Commands as an experiment: its sessions, and what the end of a command means.

mod check;
mod hooks;
mod line;

use ascertain_sys::interrupt::Stop;
use ascertain_sys::machine::Machine;
use ascertain_sys::perf::Counter;
use ascertain_sys::process::{Exit, Usage};

pub use check::CommandError;

use self::check::check;
use self::hooks::{Entered, Hooks, run_untimed};
use self::line::{Around, CommandLine, LastWords, Occasion, Requests};
use super::printed::Reader;
use super::{CommandSet, EXIT, OnFailure, WALL};
use crate::block::Block;
use crate::experiment::{
    Arm, ArmId, Experiment, Point, Samples, Session, Setup, Spec, Status, TargetError, Trial, Unavailable,
};
use crate::finding::{Remark, Work};
use crate::now::Now;

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
    set: CommandSet,
    hooks: Hooks,
    spec: Spec,
    /// The printed figures of the set.
    readers: Vec<Reader>,
}

impl CommandExperiment {
    /// Makes an experiment of commands. Nothing is run yet.
    ///
    /// # Errors
    /// Whatever can be known to be wrong beforehand: see [`CommandError`].
    pub fn new(set: CommandSet) -> Result<Self, CommandError> {
        let set = set.with_distinct_names();
        let readers = Reader::all(&set.printed)?;
        check(&set)?;
        Ok(CommandExperiment { spec: set.spec(), hooks: Hooks::default(), set, readers })
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
        match counter(metric).filter(|_| self.set.counters) {
            Some(counter) => counter.available().map_err(Unavailable::other),
            None => Ok(()),
        }
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session + '_>, TargetError> {
        Ok(Box::new(CommandSession::open(self, arms, setup)?))
    }

    fn cleanup_failures(&self) -> Vec<String> {
        self.hooks.failures()
    }
}

/// Commands with their set-ups in force, until it is dropped.
struct CommandSession<'e> {
    set: &'e CommandSet,
    hooks: &'e Hooks,
    readers: &'e [Reader],
    targets: Vec<Target>,
    requests: Option<Requests>,
    stop: Stop,
    now: Now,
    /// Dropped last: clean-ups come after everything else.
    _entered: Vec<Entered<'e>>,
}

/// One arm.
struct Target {
    line: CommandLine,
    prepare: Option<CommandLine>,
    conclude: Option<CommandLine>,
    warm_ups: u64,
    has_run: bool,
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
        let hooks = &experiment.hooks;
        let entered = around.into_iter().zip(&targets);
        let entered = entered.map(|(around, target)| hooks.enter(around, &target.line, &setup.stop));
        Ok(CommandSession {
            set,
            hooks,
            readers: &experiment.readers,
            _entered: entered.collect::<Result<_, _>>()?,
            targets,
            requests: set.requests.clone().map(|texts| Requests::new(texts, setup.seed)),
            stop: setup.stop.clone(),
            now: setup.now.clone(),
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
            let line = CommandLine::measured(set, command, &point)?;
            let mut around = Around::new(set, command, &point)?;
            let (prepare, conclude) = (around.prepare.take(), around.conclude.take());
            Ok((Target { line, prepare, conclude, warm_ups: 0, has_run: false }, around))
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
        self.hooks.check()?;
        let target = &mut self.targets[arm];
        let iteration = match trial.number {
            Block::WARM_UP => format!("warmup-{}", target.warm_ups),
            number => number.to_string(),
        };
        target.warm_ups += u64::from(trial.number == Block::WARM_UP);
        // A command that fails mostly fails at once. Later runs are not slowed down by keeping their output.
        let is_heard = !std::mem::replace(&mut target.has_run, true);
        let request = self.requests.as_mut().map(|requests| requests.of(trial.number).to_owned());
        let request = request.as_deref();
        let occasion = Occasion { request, iteration: Some(&iteration), is_heard, is_neutral: false };
        let target = &self.targets[arm];
        let usage = self.run(target, occasion, out)?;
        if is_heard && target.line.discards_to_null() {
            // It only serves the warning: a command that fails there has been measured all the same.
            match self.run(target, Occasion { is_neutral: true, is_heard: false, ..occasion }, &mut Samples::default())
            {
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
    /// Runs a command once, with its preparation and conclusion.
    fn run(&self, target: &Target, occasion: Occasion, out: &mut Samples) -> Result<Usage, TargetError> {
        let Target { line, prepare, conclude, .. } = target;
        if let Some(prepare) = prepare {
            run_untimed(prepare, occasion, &self.stop)?;
        }
        let ran = line.run(occasion, self.set.time_limit, &self.stop);
        let observed = ran.and_then(|(usage, last_words)| {
            if let Some(how) = observe(&usage, &last_words, (self.set, self.readers), line, out)? {
                self.now.remark(Remark::NoFigure { how });
            }
            if occasion.is_heard
                && failure(usage.exit).is_some()
                && let Some(said) = last_words.said()
            {
                self.now.remark(Remark::Failure { said });
            }
            Ok(usage)
        });
        // What was prepared is to be undone, whatever came of the command.
        let Some(conclude) = conclude else { return observed };
        if observed == Err(TargetError::Interrupted) {
            self.hooks.run_regardless(conclude, occasion);
            return observed;
        }
        let concluded = run_untimed(conclude, occasion, &self.stop);
        observed.and_then(|usage| concluded.map(|()| usage))
    }
}

fn work(usage: &Usage) -> Work {
    Work { cpu_ns: usage.user_ns + usage.system_ns, read_bytes: usage.read_bytes }
}

/// CPU times of short commands vary by more than a fifth from run to run, but hardly by more than this.
const CPU_NOISE_NS: u64 = 5_000_000;

/// Returns whether a command did less with its output to `/dev/null`: by more than a fifth of the bytes that it read, or
/// of its CPU time.
fn is_other_work(null: Work, neutral: Work) -> bool {
    let is_less = |less: u64, more: u64| (less as f64) < 0.8 * more as f64;
    let reads_less = null.read_bytes.zip(neutral.read_bytes).is_some_and(|(null, neutral)| is_less(null, neutral));
    reads_less || is_less(null.cpu_ns + CPU_NOISE_NS, neutral.cpu_ns)
}

/// Between [`WALL`] and [`EXIT`].
const USER: usize = 1;
const SYSTEM: usize = 2;
const MEMORY_PEAK: usize = 3;

/// The counter that a metric is of: they follow the others.
fn counter(metric: usize) -> Option<Counter> {
    metric.checked_sub(EXIT + 1).and_then(|index| Counter::ALL.get(index).copied())
}

/// Notes what was seen of a command that has ended, or was stopped at its time limit. Returns why a figure was not
/// printed, if that is an observation too.
///
/// # Errors
/// When it failed, and that is to stop it. `Interrupted` when a signal came: what had been seen by then is noted.
fn observe(
    usage: &Usage,
    last_words: &LastWords,
    (set, readers): (&CommandSet, &[Reader]),
    line: &CommandLine,
    out: &mut Samples,
) -> Result<Option<String>, TargetError> {
    let failure = failure(usage.exit);
    let is_stopped = matches!(usage.exit, Exit::TimedOut | Exit::Interrupted);
    let status = match failure {
        // A time-out is an observation, whatever failures are; and all that is known of it is what had gone by.
        _ if is_stopped => Status::Censored,
        Some(ref reason) if stops(&set.on_failure, usage.exit) => {
            let (called, said) = (line.called(), last_words.or_advice());
            return Err(line.failed(format!("{called} {reason}{said}; go on all the same with `compare -i`")));
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
    let mut missing = None;
    for (index, reader) in readers.iter().enumerate() {
        let metric = set.first_printed() + index;
        match reader.read(&last_words.output) {
            // The last figure might still have come. Nobody interrupted the trial, so it is not lost.
            _ if usage.exit == Exit::TimedOut => out.push_with(metric, f64::NAN, Status::Censored),
            Ok(value) => out.push_with(metric, value, status),
            Err(how) => {
                let ended = failure.as_ref().map_or_else(String::new, |failure| format!("{failure} and "));
                let how = format!("{ended}{how}{}", last_words.as_end());
                if set.on_failure != OnFailure::Observe {
                    return Err(line.failed(format!("{} {how}", line.called())));
                }
                missing.get_or_insert(how);
            }
        }
    }
    Ok(missing)
}

/// Whether a failure is to stop the command.
fn stops(on_failure: &OnFailure, exit: Exit) -> bool {
    match (on_failure, exit) {
        (OnFailure::Stop, _) => true,
        (OnFailure::IgnoreCodes(codes), Exit::Code(code)) => !codes.contains(&code),
        (OnFailure::IgnoreCodes(codes), Exit::Signal(signal)) => !codes.contains(&(128 + signal)),
        _ => false,
    }
}

/// Why an observation is no success; none where it is one, or where nobody knows.
fn failure(exit: Exit) -> Option<String> {
    match exit {
        Exit::Code(0) => None,
        Exit::Code(code) => Some(format!("ended with exit code {code}")),
        Exit::Signal(signal) => Some(format!("was ended by signal {signal}")),
        Exit::TimedOut => Some("met its time limit".into()),
        Exit::Interrupted => None,
    }
}

#[cfg(test)]
mod tests;
