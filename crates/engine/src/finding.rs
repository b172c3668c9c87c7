//! What a run found beside its figures, as data: why something has no verdict or no figures, what speaks against its
//! trials being alike, and what threatens its results. `ascertain-report` has the words.
//!
//! In JSON each has a `code`. Runs of the first version have the words alone: those are read as [`Reason::Said`] and so
//! on.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::experiment::Arm;
use crate::outcome::{Decision, Verdict};

/// Why a claim has no verdict, or an arm no figures, or not all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Reason {
    /// This machine can't measure it.
    Unavailable {
        /// Which arm, where a claim has several.
        arm: Option<Arm>,
        /// What is missing.
        lack: Unavailable,
    },
    /// The target failed or gave a wrong answer.
    Failed {
        /// Which arm, where a claim has several.
        arm: Option<Arm>,
        /// Whether its answer was wrong: then its times are none of the work that it should do.
        is_wrong: bool,
        /// The line of the command that failed, where one did; `how` names it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<String>,
        /// How, in the target's words.
        how: String,
    },
    /// The time was up before it was measured.
    TimeUp {
        /// Whether it had been tried, and others promised more.
        was_tried: bool,
        /// What it takes to try all that was asked for, by what was tried; `None` where this was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        all_tried_ns: Option<f64>,
    },
    /// Its shortest possible verdict does not fit in the time that was left.
    TooLong {
        /// What that takes.
        needed_ns: f64,
        /// How many trials it takes; 0 where a version did not note it.
        #[serde(default)]
        trials: u64,
        /// How many would do if the run might be wrong more often.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_error: Option<AtError>,
    },
    /// There were fewer trials than an answer takes.
    TooEarly {
        /// What one takes.
        least: Least,
        /// What the trials were limited to, where that allowed too few.
        most_trials: Option<u64>,
        /// Whether somebody ended the run before its time was up.
        #[serde(default)]
        is_interrupted: bool,
        /// Whether other claims had some of the run's time, of which `least` is this one's alone.
        #[serde(default)]
        is_shared: bool,
    },
    /// Later trials contradict an answer, which is withdrawn.
    Withdrawn {
        /// The answer, of a claim.
        verdict: Verdict,
        /// The answer to a comparison.
        decision: Option<Decision>,
        /// After so many trials.
        trials: u64,
    },
    /// Of both commands nothing is known but that they met their time limits.
    BothStopped {
        /// In so many pairs.
        pairs: u64,
        /// Of so many.
        all: u64,
    },
    /// What was cut off leaves trials open, which counts against either answer.
    LeftOpen {
        /// So many trials.
        trials: u64,
        /// Of so many.
        all: u64,
        /// Whether any of them met a time limit.
        has_met_limit: bool,
    },
    /// Trials are judged in sets, and the last one was not finished.
    UnfinishedSet {
        /// The trials of a set.
        trials: u64,
        /// So many of the last one were measured.
        measured: u64,
    },
    /// In the words of a run of the first version.
    Said {
        /// The words.
        words: String,
    },
}

impl Reason {
    /// What is said of a claim that has no answer for this reason.
    pub(crate) fn verdict(&self) -> Verdict {
        match self {
            Reason::Unavailable { .. } => Verdict::Unavailable,
            Reason::Failed { .. } => Verdict::Failed,
            Reason::TimeUp { .. } | Reason::TooLong { .. } => Verdict::Deferred,
            _ => Verdict::Undecided,
        }
    }
}

/// What an answer takes at the least.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Least {
    /// Which one; `None` of a comparison, where each takes as many.
    pub verdict: Option<Verdict>,
    /// So many trials, all of which speak for it.
    pub trials: u64,
    /// What those take, by what trials took so far; `None` where that is not known, as of a run that was killed.
    pub takes_ns: Option<f64>,
    /// How many would do if the run might be wrong more often.
    pub at_error: Option<AtError>,
}

/// The fewest trials of an answer if the run might be wrong with this chance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AtError {
    /// The chance that any verdict of the run is wrong.
    pub error: f64,
    /// So many trials would do.
    pub trials: u64,
}

/// Why this machine can't measure an arm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "lacks", rename_all = "snake_case")]
pub enum Unavailable {
    /// The CPU lacks an instruction set.
    #[error("needs {feature}, which this CPU lacks")]
    Feature {
        /// Its name.
        feature: String,
    },
    /// There are too few CPUs.
    #[error("needs {needed} CPUs, and only {usable} may be used")]
    Cpus {
        /// So many are needed.
        needed: usize,
        /// So many may be used.
        usable: usize,
    },
    /// It does not fit in memory.
    #[error(transparent)]
    Memory(crate::memory::Shortage),
    /// A compiler or another program is missing, or does not do its work.
    #[error("needs {program}: {error}")]
    Program {
        /// What it is.
        program: String,
        /// What came of looking for it, and what to do.
        error: String,
    },
    /// A metric of an arm that was measured was not observed.
    #[error("`{metric}` was not observed")]
    Metric {
        /// Its name.
        metric: String,
    },
    /// The experiment has no such variant.
    #[error("there is no such variant")]
    Variant,
    /// Its levels do not go together, or not with the variant: no machine can measure that.
    #[error("{words}")]
    Levels {
        /// Why not.
        words: String,
    },
    /// Whatever else the technique or the system says.
    #[error("{words}")]
    Other {
        /// The words.
        words: String,
    },
}

impl Unavailable {
    /// This CPU lacks an instruction set.
    pub fn feature(feature: impl ToString) -> Unavailable {
        Unavailable::Feature { feature: feature.to_string() }
    }

    /// Levels do not go together.
    pub fn levels(words: impl ToString) -> Unavailable {
        Unavailable::Levels { words: words.to_string() }
    }

    /// What the technique or the system says.
    pub fn other(words: impl ToString) -> Unavailable {
        Unavailable::Other { words: words.to_string() }
    }
}

/// A sign that trials are not alike: intervals, and saying anything of other trials than these, need them to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Unlike {
    /// No one value fits all trials, so that there is no interval.
    NoneFits {
        /// The value of what.
        of: Estimated,
    },
    /// The value left the interval that earlier trials allow, so that there is none.
    Left {
        /// The value of what.
        of: Estimated,
    },
    /// What a trial ended with shows in the next one: no coin seems to have decided it.
    Interferes {
        /// The share won by the command after a trial that ended with itself.
        after_candidate: f64,
        /// The share won by the command after a trial that ended with the reference.
        after_baseline: f64,
    },
    /// Neighbouring trials tend to come out alike, or opposite where it is below zero.
    Neighbours {
        /// The correlation of outcomes with the ones before.
        correlation: f64,
    },
    /// It drifts.
    Drifts {
        /// The share of successes in the first half of the trials.
        early: f64,
        /// The share of successes in the second half.
        late: f64,
    },
    /// In the words of a run of the first version.
    Said {
        /// The words.
        words: String,
    },
}

/// What an interval is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Estimated {
    /// The rate of success.
    Rate,
    /// A ratio, or the value of a predicate's metric.
    Ratio,
    /// A difference.
    Difference,
}

/// What may make a run's times differ from run to run, or from other machines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Threat {
    /// The CPU's frequency follows the load.
    Governor {
        /// The governor's name.
        governor: String,
    },
    /// The CPU may boost its frequency.
    Boost,
    /// It is a virtual machine.
    VirtualMachine {
        /// What runs it.
        hypervisor: String,
    },
    /// A control group grants so much time.
    Quota {
        /// That of so many CPUs.
        cpus: f64,
    },
    /// Other work competes.
    Load {
        /// The load.
        load_1m: f64,
        /// The CPUs.
        cpus: usize,
    },
    /// What is measured shares its CPUs with everything else.
    FewCpus {
        /// So many may be used.
        cpus: usize,
    },
    /// The clock is coarse.
    CoarseClock {
        /// Its steps.
        step_ns: f64,
    },
    /// Reading the clock takes a system call.
    SlowClock {
        /// Its source.
        source: String,
    },
    /// The hypervisor gave time to others.
    Steal {
        /// The share of the time that was wanted.
        share: f64,
    },
    /// A command failed, which was ignored: its times are those of a command that fails.
    IgnoredFailures {
        /// The command.
        arm: Arm,
        /// Its exit code, where it was always the same.
        exit: Option<f64>,
        /// So many trials.
        trials: usize,
        /// Of so many.
        all: usize,
    },
    /// A command was stopped at its time limit.
    Stopped {
        /// The command.
        arm: Arm,
        /// The limit.
        limit_ns: f64,
        /// So many trials.
        trials: usize,
        /// Of so many.
        all: usize,
    },
    /// In the words of a run of the first version.
    Said {
        /// The words.
        words: String,
    },
}

/// What a session says of an arm beside its figures: while it measures it, and in the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Remark {
    /// So many servers say what they are waited for to say.
    Agreement {
        /// How many say so.
        agree: usize,
        /// Of how many.
        all: usize,
        /// After how long the last of those did; 0 where all did from the beginning.
        after_ns: u64,
        /// The others.
        others: Vec<Dissent>,
    },
    /// By how much an announcement that a change was done came before the last server had it; below zero: after it.
    Done {
        /// In so many changes: the median over them.
        changes: u64,
        /// By how much.
        before_ns: f64,
        /// The lower end of its interval.
        low_ns: f64,
        /// The upper end; none where the last server did not have it in time.
        high_ns: Option<f64>,
    },
    /// The server that was told of a change had it about a second before all others, each time.
    Held {
        /// Its name.
        server: String,
        /// How long before the next.
        held_ns: f64,
    },
    /// Servers limit their answers: these were asked less often.
    Limited {
        /// Their names, and how often each was asked from each port.
        servers: Vec<(String, u64)>,
        /// How often the others were.
        interval_ns: u64,
    },
    /// The flights in which a page arrived: a server waits for an acknowledgement between them.
    Flights {
        /// The page without its head.
        body_bytes: u64,
        /// The compression of the body, if any.
        compression: Option<String>,
        /// The number of flights.
        flights: u64,
        /// Segments of the first.
        first_segments: u64,
        /// Segments that it was expected to have.
        expected_segments: u64,
        /// Bytes of the last; 0 of a single one.
        trim_bytes: u64,
    },
    /// Behind a server there may be replicas that were not seen: few ports stand behind the count.
    FewPorts {
        /// The server of which this is the most likely.
        server: String,
        /// So many replicas were seen.
        replicas: u64,
        /// From so many ports.
        ports: u64,
        /// The chance that these ports would miss one if there were one more, and all were asked alike.
        chance: f64,
    },
    /// Servers of a zone that can't be asked, for they have no address.
    NoAddress {
        /// Their names.
        servers: Vec<String>,
    },
    /// Questions were sent less often than they should have been, or late, or could not be sent.
    Overload {
        /// In so many trials.
        limited: u64,
        /// Of so many, warm-ups with them.
        trials: u64,
        /// So many a second should have been sent.
        wanted_per_s: f64,
        /// So many were in the last such trial.
        sent_per_s: f64,
        /// By how much one of a hundred was late there, or more; 0 where that was no reason.
        #[serde(default)]
        late_ns: f64,
        /// So many the system refused to send there.
        #[serde(default)]
        refused: u64,
    },
    /// A command does other work when its output goes to `/dev/null`.
    RecognisesNull {
        /// Its work in one trial with the output to `/dev/null`.
        null: Work,
        /// Its work in one trial with the output to a device that it does not recognise.
        neutral: Work,
    },
    /// A command failed, which is one of its answers.
    Failure {
        /// What it said last.
        said: String,
    },
    /// A command did not print a figure, which counts as a failed trial.
    NoFigure {
        /// Why, as a clause that follows "the command": `printed no …`.
        how: String,
    },
}

/// The work of one run of a command.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Time on processors.
    pub cpu_ns: u64,
    /// Bytes read, if the kernel counts them.
    pub read_bytes: Option<u64>,
}

/// A server that says something else than what is waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dissent {
    /// Its name.
    pub server: String,
    /// What it says; none where it does not answer.
    pub says: Option<String>,
    /// For how long, of the time that it has been waited for.
    pub for_ns: u64,
}

/// A finding, or the words of a run of the first version.
#[derive(Deserialize)]
#[serde(untagged)]
enum Recorded<T> {
    Words(String),
    Data(T),
}

impl<T: From<String>> Recorded<T> {
    fn into_finding(self) -> T {
        match self {
            Recorded::Words(words) => T::from(words),
            Recorded::Data(finding) => finding,
        }
    }
}

macro_rules! from_words {
    ($($finding:ident)*) => { $(
        impl From<String> for $finding {
            fn from(words: String) -> Self {
                $finding::Said { words }
            }
        }
    )* };
}

from_words!(Reason Unlike Threat);

/// Reads one finding, several, or none.
pub(crate) fn findings<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: From<String> + Deserialize<'de>,
{
    #[derive(Deserialize)]
    #[serde(untagged, bound = "T: From<String> + Deserialize<'de>")]
    enum Few<T> {
        Several(Vec<Recorded<T>>),
        One(Recorded<T>),
        None(()),
    }
    Ok(match Few::deserialize(deserializer)? {
        Few::Several(several) => several.into_iter().map(Recorded::into_finding).collect(),
        Few::One(one) => vec![one.into_finding()],
        Few::None(()) => Vec::new(),
    })
}

/// Reads those that this version knows.
pub(crate) fn known<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let all: Vec<serde_json::Value> = Vec::deserialize(deserializer)?;
    Ok(all.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect())
}

/// Reads one finding.
pub(crate) fn finding<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: From<String> + Deserialize<'de>,
{
    Ok(Recorded::deserialize(deserializer)?.into_finding())
}
