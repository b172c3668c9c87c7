//! What an experiment and its sessions promise, and what a measurement saw.

use std::borrow::Cow;

use ascertain_sys::interrupt::Stop;
use ascertain_sys::machine::Machine;
use serde::{Deserialize, Serialize};

use super::{Arm, Level, Point, Spec};
use crate::claim::Claim;
use crate::finding::{Reason, Unavailable};
use crate::now::Now;
use crate::values::Bounds;

/// Something that can be measured again and again, in several variants.
pub trait Experiment {
    /// The experiment as plain data.
    fn spec(&self) -> &Spec;

    /// Whether this machine can measure the arm, its [memory](Self::memory_bytes) aside: any can, unless this says why
    /// not.
    ///
    /// # Errors
    /// The reason why not, for people: "needs AVX-512 (avx512f)".
    fn available(&self, _arm: &Arm, _machine: &Machine) -> Result<(), Unavailable> {
        Ok(())
    }

    /// Whether this machine can show a metric (its index) of an arm that it can measure: a claim that speaks of one
    /// that it can't is unavailable, and the arm's other metrics are measured all the same.
    ///
    /// # Errors
    /// The reason why not, for people: "two levels need four CPUs, and only 2 may be used".
    fn shows(&self, _arm: &Arm, _metric: usize, _machine: &Machine) -> Result<(), Unavailable> {
        Ok(())
    }

    /// Whether the factor changes what this arm measures, given its other levels; [`trimmed`](Self::trimmed) drops the
    /// others.
    fn has(&self, _arm: &Arm, _factor: &str) -> bool {
        true
    }

    /// The arm without the levels of factors that mean nothing to it: so are all that are measured.
    fn trimmed(&self, arm: &Arm) -> Arm {
        Arm { point: arm.point.only(|factor, _| self.has(arm, factor)), variant: arm.variant.clone() }
    }

    /// The level that is measured where somebody asks for this one: the address of a server that is named, say.
    ///
    /// # Errors
    /// Why it can be none, for people: that is asked before anything is measured.
    fn settled(&self, _factor: &str, level: Level) -> Result<Level, String> {
        Ok(level)
    }

    /// The arms of a table where nobody says which: every variant at the default point, and where an experiment says
    /// so, the points besides that its source and the claims speak of. They are [trimmed](Self::trimmed) before they
    /// are measured.
    fn table_arms(&self) -> Vec<Arm> {
        let point = self.spec().default_point();
        let names = self.spec().variants.iter().map(|variant| variant.name.clone());
        names.map(|variant| Arm { variant, point: point.clone() }).collect()
    }

    /// What is measured of the arms that somebody asks for: all of them, unless some of their levels mean something to
    /// other variants alone. Whether variants were named is `are_named`.
    ///
    /// # Errors
    /// What is missing, or can't be together, for people: that is asked before anything is measured.
    fn chosen(&self, arms: Vec<Arm>, _are_named: bool) -> Result<Vec<Arm>, String> {
        Ok(arms)
    }

    /// Returns claims that no shipped file can contain, because only the user knows what they are about, such as a server
    /// in `arms`. `run` judges them in addition to the shipped ones.
    fn claims_about(&self, _arms: &[Arm]) -> Vec<Claim> {
        Vec::new()
    }

    /// Whether what this arm measures happens once, so that a table of such arms has one trial unless somebody says
    /// more.
    fn happens_once(&self, _arm: &Arm) -> bool {
        false
    }

    /// The memory that a session of these arms takes for its data. More than half of what there is is refused before
    /// anything is measured: see [`memory`](crate::memory). Zero where it does not grow with a factor.
    fn memory_bytes(&self, _arms: &[Arm]) -> u64 {
        0
    }

    /// Gets everything ready to measure these arms.
    ///
    /// # Errors
    /// When something that the arms need can't be had.
    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session + '_>, TargetError>;

    /// What went wrong in cleaning up so far. Sessions clean up when they end, where no error can be returned.
    fn cleanup_failures(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Arms made ready to be measured. Dropping it undoes what opening did.
pub trait Session {
    /// Checks the arm's result against a plain reference, outside of timing.
    ///
    /// # Errors
    /// When the answer is wrong: an error, never a time.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError>;

    /// What nobody chose and is the same in each of the arm's trials, as levels: `congestion=cubic mss_bytes=1448`.
    /// Evidence has it once. Asked for when the answer has been checked.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    fn facts(&mut self, _arm: ArmId) -> Result<Point, TargetError> {
        Ok(Point::default())
    }

    /// Measures one arm once and says what it saw.
    ///
    /// # Errors
    /// When the target failed, and the failure is not itself an observation.
    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError>;
}

/// An arm's index in the slice that the session was opened with.
pub type ArmId = usize;

/// What a measurement is told of its trial.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// Its number within the experiment, from 0.
    pub number: u64,
    /// A seed of its own, the same for every arm of the trial, so that arms that need random input
    /// get the same.
    pub seed: u64,
}

/// What a session is told when it is opened.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Seed for the data that the session makes.
    pub seed: u64,
    /// What takes long looks here whether somebody asked for the end.
    pub stop: Stop,
    /// Who waits hears here what there is to say meanwhile.
    pub now: Now,
}

/// A target failed or gave a wrong answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// It failed.
    #[error("{0}")]
    Failed(String),
    /// A command failed, or could not be started.
    #[error("{how}")]
    Command {
        /// Its line.
        line: String,
        /// How, with its line.
        how: String,
    },
    /// Its answer is wrong.
    #[error("wrong answer: {0}")]
    WrongAnswer(String),
    /// Ctrl-C or SIGTERM came while it was being measured.
    #[error("interrupted")]
    Interrupted,
}

impl TargetError {
    /// As the reason why there is no verdict, or why there are no figures of an arm.
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

/// The value of one metric of one arm in one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Index into the spec's metrics.
    pub metric: usize,
    /// Which of several series: a server, a pair of cores; empty for a scalar.
    pub key: Cow<'static, str>,
    /// When, since the measurement began, in nanoseconds; zero for a scalar.
    pub offset_ns: u64,
    /// The value in the metric's unit.
    pub value: f64,
    /// What became of it.
    pub status: Status,
}

/// What became of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The value was observed.
    Ok,
    /// It was cut off: the true value is above the one that was seen until then. An infinite one says that this is not
    /// known either.
    Censored,
    /// Its trial was cut off before it was seen: it could be anything.
    Lost,
    /// The target failed; the value is what was seen until then.
    Failed,
}

impl Sample {
    /// What is not known of a metric, for its trial was cut off.
    pub(crate) fn lost(metric: usize) -> Sample {
        Sample { metric, key: Cow::Borrowed(""), offset_ns: 0, value: f64::NAN, status: Status::Lost }
    }

    /// What is known of the value.
    pub fn bounds(&self) -> Bounds {
        self.status.bounds(self.value)
    }
}

impl Status {
    /// What is known of a value with this status.
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

/// Where a session puts what it saw; the engine empties it between measurements.
#[derive(Clone, Debug, Default)]
pub struct Samples(pub(crate) Vec<Sample>);

impl Samples {
    /// What was put there.
    pub fn iter(&self) -> std::slice::Iter<'_, Sample> {
        self.0.iter()
    }

    /// Adds a scalar that was observed.
    pub fn push(&mut self, metric: usize, value: f64) {
        self.push_with(metric, value, Status::Ok);
    }

    /// Adds a scalar with its status.
    pub fn push_with(&mut self, metric: usize, value: f64, status: Status) {
        self.push_sample(Sample { metric, key: Cow::Borrowed(""), offset_ns: 0, value, status });
    }

    /// Adds a sample of a series: a point of a curve, a cell of a matrix.
    pub fn push_sample(&mut self, sample: Sample) {
        self.0.push(sample);
    }
}
