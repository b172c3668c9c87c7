//! The traits that experiments and sessions implement, and the samples that a measurement returns.

use std::borrow::Cow;
use std::time::Duration;

use ascertain_sys::interrupt::Stop;
use ascertain_sys::machine::Machine;
use serde::{Deserialize, Serialize};

use super::{Arm, Level, Point, Spec};
use crate::claim::Claim;
use crate::finding::{Reason, Remark, Unavailable};
use crate::now::Now;
use crate::values::Bounds;

/// A set of alternatives that can be measured again and again, such as algorithms or servers.
pub trait Experiment {
    /// Returns the description of the experiment, as plain data.
    fn spec(&self) -> &Spec;

    /// Checks that this machine can measure the arm, without considering its [memory](Self::memory_bytes). By default,
    /// every machine can measure every arm.
    ///
    /// # Errors
    /// Returns the reason why this machine cannot measure the arm, as text for the user: "needs AVX-512 (avx512f)".
    fn available(&self, _arm: &Arm, _machine: &Machine) -> Result<(), Unavailable> {
        Ok(())
    }

    /// Checks that this machine can observe the metric with the index `_metric` in this arm. Called only for arms that
    /// this machine can measure. If the check fails, claims about the metric are unavailable, but the other metrics of
    /// the arm are still measured.
    ///
    /// # Errors
    /// Returns the reason why this machine cannot observe the metric, as text for the user: "two levels need four CPUs,
    /// and only 2 may be used".
    fn shows(&self, _arm: &Arm, _metric: usize, _machine: &Machine) -> Result<(), Unavailable> {
        Ok(())
    }

    /// Returns whether the factor applies to the arm. A factor applies if its level changes what is measured, given the
    /// arm's other levels. [`trimmed`](Self::trimmed) drops factors that do not apply.
    fn has(&self, _arm: &Arm, _factor: &str) -> bool {
        true
    }

    /// Returns the arm without levels of factors that do not apply to it. Arms are always trimmed before they are
    /// measured.
    fn trimmed(&self, arm: &Arm) -> Arm {
        Arm { point: arm.point.only(|factor, _| self.has(arm, factor)), variant: arm.variant.clone() }
    }

    /// Converts a level that the user requested to the level that is measured. For example, an experiment may replace a
    /// server's name by its address.
    ///
    /// # Errors
    /// Returns the reason why the requested level is invalid, as text for the user. Levels are checked before anything
    /// is measured.
    fn settled(&self, _factor: &str, level: Level) -> Result<Level, String> {
        Ok(level)
    }

    /// Returns the arms to measure if the user chose none: by default, every variant at the default point. An
    /// experiment may add points that its source or its claims mention. The arms are [trimmed](Self::trimmed)
    /// afterwards.
    fn table_arms(&self) -> Vec<Arm> {
        let point = self.spec().default_point();
        let names = self.spec().variants.iter().map(|variant| variant.name.clone());
        names.map(|variant| Arm { variant, point: point.clone() }).collect()
    }

    /// Returns the arms to measure, chosen from the arms that the user requested. `_are_named` is `true` if the user
    /// named variants. Otherwise an experiment may drop arms whose variants do not support the requested levels.
    ///
    /// # Errors
    /// Returns the reason, as text for the user, if something is missing or cannot be combined. Arms are checked before
    /// anything is measured.
    fn chosen(&self, arms: Vec<Arm>, _are_named: bool) -> Result<Vec<Arm>, String> {
        Ok(arms)
    }

    /// Returns additional claims about these arms, which the command `run` judges. These claims are about things that
    /// only the user knows, such as the user's own server, so no shipped file can contain them.
    fn claims_about(&self, _arms: &[Arm]) -> Vec<Claim> {
        Vec::new()
    }

    /// Returns what the user should know before these arms are measured, such as the expected bill of a store. `_trials`
    /// is the number of trials of the table. Called before anything is measured.
    ///
    /// # Errors
    /// Returns the reason why the arms cannot be measured, as text for the user.
    fn notices(&self, _arms: &[Arm], _trials: u64) -> Result<Vec<Remark>, String> {
        Ok(Vec::new())
    }

    /// Returns the time that a run of this experiment should take by default; `None` for the default of all
    /// experiments.
    fn run_time(&self) -> Option<Duration> {
        None
    }

    /// Returns whether the event that this arm measures happens only once, such as a change in a DNS zone. A table then
    /// has a single trial of the arm, unless the user requests more.
    fn happens_once(&self, _arm: &Arm) -> bool {
        false
    }

    /// Returns how much memory a session of these arms needs for its data, in bytes. Returns 0 if the size does not
    /// depend on any factor. A run that needs more than half of the machine's memory is refused: see
    /// [`memory`](crate::memory).
    fn memory_bytes(&self, _arms: &[Arm]) -> u64 {
        0
    }

    /// Prepares everything for measuring these arms, and returns a session.
    ///
    /// # Errors
    /// If anything that the arms need is not available.
    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session + '_>, TargetError>;

    /// Returns the errors of all clean-ups so far. Sessions clean up when they are dropped, and cannot return an error
    /// then.
    fn cleanup_failures(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A set of arms that are ready to be measured. Dropping a session releases everything that was prepared.
pub trait Session {
    /// Checks the result that the arm computes against a simple reference implementation. The time for this check is
    /// not part of any measured time.
    ///
    /// # Errors
    /// If the result is wrong. No time is recorded for an arm with a wrong result.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError>;

    /// Returns facts about the arm: properties that the user did not choose, and that are the same in each trial. They
    /// have the form of levels, as in `congestion=cubic mss_bytes=1448`. The engine calls this once, after `verify`,
    /// and records the facts.
    ///
    /// # Errors
    /// As for [`verify`](Self::verify).
    fn facts(&mut self, _arm: ArmId) -> Result<Point, TargetError> {
        Ok(Point::default())
    }

    /// Measures the arm once, and appends the samples to `out`.
    ///
    /// # Errors
    /// If the measurement failed, unless a failure is itself an observation of this experiment.
    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError>;
}

/// Identifier of an arm in a session: its index in the slice of arms with which the session was opened.
pub type ArmId = usize;

/// The trial in which an arm is measured.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// Index of the trial among the trials of the experiment, from 0.
    pub number: u64,
    /// Seed of the trial. It is the same for all arms of the trial, so that random inputs are the same too.
    pub seed: u64,
}

/// Everything that a session gets when it is opened, in addition to its arms.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Seed for data that the session generates.
    pub seed: u64,
    /// Signal that the run must stop. Operations that take a long time should check it regularly.
    pub stop: Stop,
    /// Handle to the current activity of the run, for adding remarks that the user sees while waiting.
    pub now: Now,
}

/// The error of an arm that failed or gave a wrong answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The arm failed for the given reason, which is text for the user.
    #[error("{0}")]
    Failed(String),
    /// A command of the arm failed, or could not be started.
    #[error("{how}")]
    Command {
        /// The command line that failed.
        line: String,
        /// Description of the failure, which contains the command line.
        how: String,
    },
    /// The arm gave a wrong answer, which the text describes.
    #[error("wrong answer: {0}")]
    WrongAnswer(String),
    /// Ctrl-C or SIGTERM arrived while the arm was measured.
    #[error("interrupted")]
    Interrupted,
}

impl TargetError {
    /// Converts this error to the reason why a claim has no verdict, or why an arm has no figures. `arm` is the arm
    /// that failed; `None` if the output already names the arm.
    pub(crate) fn reason(&self, arm: Option<&Arm>) -> Reason {
        let (is_wrong, line, how) = match self {
            TargetError::Failed(how) => (false, None, how.clone()),
            TargetError::Command { line, how } => (false, Some(line.clone()), how.clone()),
            TargetError::WrongAnswer(how) => (true, None, how.clone()),
            TargetError::Interrupted => (false, None, self.to_string()),
        };
        Reason::Failed { arm: arm.cloned(), is_wrong, line, how }
    }
}

/// One observed value of a metric, from one arm in one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Index of the metric in [`Spec::metrics`].
    pub metric: usize,
    /// Key of the value, such as a server or a pair of cores, for a metric with several values per trial. Empty for a
    /// metric with one value.
    pub key: Cow<'static, str>,
    /// Time at which this value was observed, in nanoseconds since the start of the measurement. It is 0 for a metric
    /// that does not record values over time.
    pub offset_ns: u64,
    /// The value, in the metric's unit.
    pub value: f64,
    /// The quality of the value: complete, cut off, lost or failed.
    pub status: Status,
}

/// The quality of a value: complete, cut off, lost or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The value was observed completely.
    Ok,
    /// The observation was cut off, so the true value is above the recorded value. If the recorded value is infinite,
    /// it is unknown at which value the observation was cut off.
    Censored,
    /// The trial was cut off before this value could be observed, so the true value may be anything.
    Lost,
    /// The arm failed during the measurement. The recorded value is the value at the time of the failure.
    Failed,
}

impl Sample {
    /// Returns a sample for a trial that was cut off: the value of the metric is unknown.
    pub(crate) fn lost(metric: usize) -> Sample {
        Sample { metric, key: Cow::Borrowed(""), offset_ns: 0, value: f64::NAN, status: Status::Lost }
    }

    /// Returns the range in which the true value lies.
    pub fn bounds(&self) -> Bounds {
        self.status.bounds(self.value)
    }
}

impl Status {
    /// Returns the word that stands for this status in evidence.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Censored => "censored",
            Status::Lost => "lost",
            Status::Failed => "failed",
        }
    }

    /// Returns the range in which the true value lies, if `value` was recorded with this status.
    pub fn bounds(self, value: f64) -> Bounds {
        match self {
            Status::Lost => Bounds::UNKNOWN,
            Status::Censored if value.is_finite() => Bounds::above(value),
            Status::Censored => Bounds::CUT_OFF,
            Status::Ok | Status::Failed if value == f64::INFINITY => Bounds::CUT_OFF,
            Status::Ok | Status::Failed => Bounds::exact(value),
        }
    }
}

/// The samples of one or more measurements. Sessions append samples, and the engine clears the list between
/// measurements.
#[derive(Clone, Debug, Default)]
pub struct Samples(pub(crate) Vec<Sample>);

impl Samples {
    /// Returns an iterator over the samples.
    pub fn iter(&self) -> std::slice::Iter<'_, Sample> {
        self.0.iter()
    }

    /// Appends a value of the metric with the index `metric`. The value has no key and was observed completely.
    pub fn push(&mut self, metric: usize, value: f64) {
        self.push_with(metric, value, Status::Ok);
    }

    /// Appends a value of the metric with the index `metric`, with its status. The value has no key.
    pub fn push_with(&mut self, metric: usize, value: f64, status: Status) {
        self.push_sample(Sample { metric, key: Cow::Borrowed(""), offset_ns: 0, value, status });
    }

    /// Appends a sample, such as a point of a curve or a cell of a matrix.
    pub fn push_sample(&mut self, sample: Sample) {
        self.0.push(sample);
    }
}
