//! Findings of a run, as plain data: reasons for missing verdicts or figures, signs that trials are not alike, threats
//! to the results, and remarks. The crate `ascertain-report` turns the findings into sentences.
//!
//! In JSON, the field `code` contains the name of the finding.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::experiment::Arm;
use crate::outcome::{Decision, Verdict};

/// The reason why a claim has no verdict, or why figures of an arm are missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Reason {
    /// This machine cannot measure the arm or the claim.
    Unavailable {
        /// The arm that cannot be measured; `None` if the context of the reason already names the arm.
        arm: Option<Arm>,
        /// The requirement that this machine does not meet.
        lack: Unavailable,
    },
    /// The arm failed or gave a wrong answer. Its values are therefore missing or invalid.
    Failed {
        /// The arm that failed; `None` if the context of the reason already names the arm.
        arm: Option<Arm>,
        /// `true` if the arm gave a wrong answer. Its times are then meaningless, because it did not do the intended
        /// work.
        is_wrong: bool,
        /// The command line, if the arm failed because of a command. The text in `how` contains this line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<String>,
        /// The description of the failure, from the experiment.
        how: String,
    },
    /// The time limit was reached before the claim's or arm's first trial.
    TimeUp {
        /// `true` if the arm was prepared for measuring, but never measured. The run spent its time on other arms, for
        /// which it expected more evidence per second.
        was_tried: bool,
        /// Estimated time for preparing and trying every requested arm, in nanoseconds. `None` if it is not known, or
        /// if `was_tried` is `true`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        all_tried_ns: Option<f64>,
    },
    /// The remaining time is too short even for the quickest possible verdict.
    TooLong {
        /// Time that the quickest possible verdict needs, in nanoseconds.
        needed_ns: f64,
        /// Number of trials that the quickest possible verdict needs.
        trials: u64,
        /// A higher error probability with which the remaining time would be enough, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_error: Option<AtError>,
    },
    /// The run ended with fewer trials than an answer needs.
    TooEarly {
        /// The smallest number of trials that an answer needs, and the time that they take.
        least: Least,
        /// The maximum number of trials, if it is too small for an answer.
        most_trials: Option<u64>,
        /// `true` if the run was interrupted before its time limit.
        is_interrupted: bool,
        /// `true` if the run also spent time on other claims. The claim then needs more time than `least` states,
        /// because `least` is for a run with this claim alone.
        is_shared: bool,
    },
    /// A verdict or answer had been reached, but later trials contradict it, so it is withdrawn.
    Withdrawn {
        /// The verdict that is withdrawn.
        verdict: Verdict,
        /// If the claim is a comparison, the answer that is withdrawn.
        decision: Option<Decision>,
        /// Number of trials that had led to the verdict or answer.
        trials: u64,
    },
    /// In some pairs both commands were stopped at their time limits, so it is unknown which of them was faster.
    BothStopped {
        /// Number of pairs in which both commands were stopped.
        pairs: u64,
        /// Total number of pairs of the comparison, including these.
        all: u64,
    },
    /// In some trials, values were cut off. The outcome of these trials is therefore unknown. Such trials count as
    /// evidence against every possible answer.
    LeftOpen {
        /// Number of trials with an unknown outcome.
        trials: u64,
        /// Total number of trials of the claim.
        all: u64,
        /// `true` if a time limit cut off a value in any of these trials; `false` if only signals such as Ctrl-C did.
        has_met_limit: bool,
    },
    /// The last set of trials is incomplete, and trials are judged only in complete sets.
    UnfinishedSet {
        /// Number of trials in a complete set.
        trials: u64,
        /// Number of trials of the last, incomplete set that were measured.
        measured: u64,
    },
}

impl Reason {
    /// Returns the verdict that a claim gets if this reason prevents an answer.
    pub(crate) fn verdict(&self) -> Verdict {
        match self {
            Reason::Unavailable { .. } => Verdict::Unavailable,
            Reason::Failed { .. } => Verdict::Failed,
            Reason::TimeUp { .. } | Reason::TooLong { .. } => Verdict::Deferred,
            _ => Verdict::Undecided,
        }
    }
}

/// The smallest effort, in trials and time, that can lead to an answer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Least {
    /// The verdict that can be reached with this effort. `None` for a comparison, in which every answer needs the same
    /// number of trials.
    pub verdict: Option<Verdict>,
    /// Number of trials that are enough if all of them support the answer.
    pub trials: u64,
    /// Estimated duration of these trials, in nanoseconds, according to the trials so far. `None` if no duration is
    /// known, as for a killed run.
    pub takes_ns: Option<f64>,
    /// A higher error probability with which fewer trials would be enough, if there is one.
    pub at_error: Option<AtError>,
}

/// The smallest number of trials that would be enough for an answer if the run's error probability were higher.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AtError {
    /// The higher error probability of the run: the probability that any of its verdicts is wrong.
    pub error: f64,
    /// Number of trials that would be enough with this error probability.
    pub trials: u64,
}

/// The reason why this machine cannot measure an arm, or observe one of its metrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "lacks", rename_all = "snake_case")]
pub enum Unavailable {
    /// The CPU lacks an instruction set that the arm needs.
    #[error("needs {feature}, which this CPU lacks")]
    Feature {
        /// Name of the instruction set.
        feature: String,
    },
    /// The machine has too few CPUs, or this process may use too few of them.
    #[error("needs {needed} CPUs, but only {usable} may be used")]
    Cpus {
        /// Number of CPUs that the arm needs.
        needed: usize,
        /// Number of CPUs that this process may use.
        usable: usize,
    },
    /// The data of the arm does not fit in memory.
    #[error(transparent)]
    Memory(crate::memory::Shortage),
    /// A compiler or another program that the arm needs is missing or does not work.
    #[error("needs {program}: {error}")]
    Program {
        /// The program in words, such as `a C compiler`.
        program: String,
        /// The error message of the program, or a message about a missing program. It also explains what to do.
        error: String,
    },
    /// The arm was measured, but one of its metrics could not be observed.
    #[error("`{metric}` was not observed")]
    Metric {
        /// Name of the metric that could not be observed.
        metric: String,
    },
    /// The experiment has no variant of this name.
    #[error("there is no such variant")]
    Variant,
    /// The levels of the arm cannot be combined with each other or with the variant, on any machine.
    #[error("{words}")]
    Levels {
        /// The reason why the levels cannot be combined, as text for the user.
        words: String,
    },
    /// The machine cannot measure the arm for another reason, which the experiment or the system states in words.
    #[error("{words}")]
    Other {
        /// The reason, as text for the user.
        words: String,
    },
}

impl Unavailable {
    /// Returns the reason for a CPU without the instruction set `feature`.
    pub fn feature(feature: impl ToString) -> Unavailable {
        Unavailable::Feature { feature: feature.to_string() }
    }

    /// Returns the reason for levels that cannot be combined. `words` explains why.
    pub fn levels(words: impl ToString) -> Unavailable {
        Unavailable::Levels { words: words.to_string() }
    }

    /// Returns any other reason, which `words` explains.
    pub fn other(words: impl ToString) -> Unavailable {
        Unavailable::Other { words: words.to_string() }
    }
}

/// A sign that trials are not alike: that they depend on one another, or that conditions changed. Confidence intervals
/// and conclusions about future trials assume that all trials are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Unlike {
    /// No value of the estimated quantity is consistent with all trials. So there is no confidence interval.
    NoneFits {
        /// The quantity whose interval is missing.
        of: Estimated,
    },
    /// Later trials moved the estimate out of the confidence interval that earlier trials gave. So there is no
    /// interval.
    Left {
        /// The quantity whose interval is missing.
        of: Estimated,
    },
    /// The arm that is measured last in a trial seems to influence the next trial. So trials are not independent.
    Interferes {
        /// The candidate's share of wins in trials that follow a trial in which the candidate was measured last.
        after_candidate: f64,
        /// The candidate's share of wins in trials that follow a trial in which the baseline was measured last.
        after_baseline: f64,
    },
    /// Consecutive trials tend to have the same outcome (positive correlation) or opposite outcomes (negative
    /// correlation).
    Neighbours {
        /// Correlation of each trial's outcome with the outcome of the trial before it, from -1 to 1.
        correlation: f64,
    },
    /// The share of successes changed during the run.
    Drifts {
        /// Share of successes in the first half of the trials.
        early: f64,
        /// Share of successes in the second half of the trials.
        late: f64,
    },
}

/// The quantity that a confidence interval is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Estimated {
    /// The share of trials in which the claim's tests are true.
    Rate,
    /// A ratio of two arms, or the value of a predicate's metric.
    Ratio,
    /// A difference between two arms.
    Difference,
}

/// A property of the machine or the run that may change times. The times may then differ from the times of another run
/// or another machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Threat {
    /// The CPU's frequency depends on the load, because of its frequency governor.
    Governor {
        /// Name of the governor, such as `powersave`.
        governor: String,
    },
    /// The CPU may temporarily raise its frequency (turbo boost).
    Boost,
    /// The machine is a virtual machine, which may share its hardware with other virtual machines.
    VirtualMachine {
        /// Name of the hypervisor, such as `kvm`.
        hypervisor: String,
    },
    /// A control group limits the CPU time of this process.
    Quota {
        /// The limit, as a number of CPUs: 1.5 means 1.5 s of CPU time per second.
        cpus: f64,
    },
    /// Other work on the machine competes for the CPUs.
    Load {
        /// Load average over the last minute.
        load_1m: f64,
        /// Number of CPUs of the machine that are online.
        cpus: usize,
    },
    /// The measured programs have few CPUs, and share them with all other processes.
    FewCpus {
        /// Number of CPUs that this process may use.
        cpus: usize,
        /// Number of CPUs of the machine that are online. `None` in runs that did not record it.
        #[serde(default)]
        online: Option<usize>,
    },
    /// The clock advances in large steps, so it cannot measure short times.
    CoarseClock {
        /// Size of the clock's steps, in nanoseconds.
        step_ns: f64,
    },
    /// Reading the clock needs a system call, so it takes longer than on other machines.
    SlowClock {
        /// Name of the clock source, such as `hpet`.
        source: String,
    },
    /// The hypervisor gave CPU time to other virtual machines although this machine requested it (steal).
    Steal {
        /// Share of the requested CPU time that other virtual machines got, from 0 to 1.
        share: f64,
    },
    /// A command failed in some trials, but the run was told to ignore failures. The times in these trials are times of
    /// failed executions.
    IgnoredFailures {
        /// The command that failed.
        arm: Arm,
        /// The exit code of the command, if it was the same in all failures; else `None`.
        exit: Option<f64>,
        /// Number of trials in which the command failed.
        trials: usize,
        /// Total number of trials of the command.
        all: usize,
    },
    /// A command was stopped at its time limit in some trials.
    Stopped {
        /// The command that was stopped.
        arm: Arm,
        /// The time limit, in nanoseconds.
        limit_ns: f64,
        /// Number of trials in which the command was stopped.
        trials: usize,
        /// Total number of trials of the command.
        all: usize,
    },
    /// Other people recorded these figures on their machines. Ascertain did not measure them, and knows only the
    /// contents of the file.
    RecordedByOthers {
        /// Type of the machines, such as `c7g.16xlarge`.
        machine_type: String,
        /// Number of whole cores of such a machine; `None` if it is not known.
        cores: Option<u64>,
        /// Origin of the figures, with its licence if that is known.
        source: String,
    },
    /// Compared runtimes were built in different ways. Their difference may come from the build, and not from the
    /// version.
    UnlikeBuilds {
        /// The facts in which the builds differ.
        facts: Vec<UnlikeFact>,
    },
    /// The negative control differs between two runtimes, although its work is done by the same shared library. A cause
    /// outside of the runtimes then affects the comparison.
    ControlDiffers {
        /// The runtime whose control differs from the baseline's control.
        candidate: String,
        /// The runtime with which it is compared.
        baseline: String,
        /// The factor by which the control is faster in the candidate.
        ratio: f64,
    },
}

/// A fact in which compared builds differ, such as the compiler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnlikeFact {
    /// Name of the fact.
    pub fact: String,
    /// The different values, each with the names of the arms that have it.
    pub values: Vec<(String, Vec<String>)>,
}

/// A remark of a session about an arm. While the arm is measured, only its latest remark is shown. The final output
/// shows all remarks next to the arm's figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Remark {
    /// The number of servers of a zone that already give the expected answer.
    Agreement {
        /// Number of servers that give the expected answer.
        agree: usize,
        /// Number of servers that were queried.
        all: usize,
        /// Time until the last of the agreeing servers gave the expected answer, in nanoseconds. It is 0 if they all
        /// gave it from the beginning.
        after_ns: u64,
        /// The servers that do not give the expected answer.
        others: Vec<Dissent>,
    },
    /// The delay between a DNS provider's announcement that a change is done and the moment when the last server has
    /// the change. It is negative if the last server had the change before the announcement.
    Done {
        /// Number of changes for which the delay was measured.
        changes: u64,
        /// Median of the delay from the announcement until the last server has the change, in nanoseconds.
        before_ns: f64,
        /// Lower end of the median's confidence interval, in nanoseconds.
        low_ns: f64,
        /// Upper end of the median's confidence interval, in nanoseconds. `None` if a change did not reach the last
        /// server in time.
        high_ns: Option<f64>,
    },
    /// The server to which changes are sent always had a change about a second before all other servers.
    Held {
        /// Name of the server to which changes are sent.
        server: String,
        /// Time during which only this server had the change, until the first other server had it too, in nanoseconds.
        held_ns: f64,
    },
    /// Some DNS servers limit how often they answer. They were queried less often than the other servers.
    Limited {
        /// The servers that limit how often they answer. Each entry has the server's name, and the interval in
        /// nanoseconds between the queries that one port sends to this server.
        servers: Vec<(String, u64)>,
        /// Interval in nanoseconds between the queries that one port sends to each of the other servers.
        interval_ns: u64,
    },
    /// The number of flights in which a page arrived. A flight is the data that the server sends before it waits for an
    /// acknowledgement.
    Flights {
        /// Size of the response body, in bytes.
        body_bytes: u64,
        /// Compression of the response body, such as `gzip`; `None` if it is not compressed.
        compression: Option<String>,
        /// Number of flights in which the page arrived.
        flights: u64,
        /// Number of segments that arrived in the first flight.
        first_segments: u64,
        /// Number of segments that were expected in the first flight.
        expected_segments: u64,
        /// Number of bytes in the last flight; 0 if there is only one flight. If the page were smaller by this many
        /// bytes, it would arrive in one flight fewer.
        trim_bytes: u64,
    },
    /// A server may have more replicas than were counted, because queries were sent from only few ports.
    FewPorts {
        /// Name of the server that most likely has more replicas. Replicas are machines that answer at the same
        /// address.
        server: String,
        /// Number of replicas that were counted.
        replicas: u64,
        /// Number of ports that sent queries.
        ports: u64,
        /// Probability that queries from this many ports would miss one additional replica, if the queries are spread
        /// evenly over all replicas.
        chance: f64,
    },
    /// Some servers of a zone cannot be queried, because their names have no address.
    NoAddress {
        /// Names of the servers without an address.
        servers: Vec<String>,
    },
    /// A load generator was too slow: it sent requests at too low a rate or too late, or the system refused to send
    /// them.
    Overload {
        /// Number of limited trials, in which requests were sent too slowly, too late or not at all.
        limited: u64,
        /// Total number of trials of the arm, including warm-up trials.
        trials: u64,
        /// Rate at which requests should have been sent, per second.
        wanted_per_s: f64,
        /// Rate at which requests were sent in the last limited trial, per second.
        sent_per_s: f64,
        /// Delay behind the schedule in nanoseconds. In the last limited trial, 1 % of the requests were sent at least
        /// this late. It is 0 if requests were sent in time.
        late_ns: f64,
        /// Number of requests that the system refused to send in the last limited trial.
        refused: u64,
    },
    /// A command does less work if its output goes to `/dev/null`.
    RecognisesNull {
        /// Resources that the command used in a trial whose output went to `/dev/null`.
        null: Work,
        /// Resources that the command used in a trial whose output went to a neutral device. Such a device discards all
        /// output too, but programs do not recognise it.
        neutral: Work,
    },
    /// A command failed. The failure counts as an observation, not as an error.
    Failure {
        /// The last lines that the failed command printed.
        said: String,
    },
    /// A command did not print the figure of a metric. The trial counts as failed.
    NoFigure {
        /// The reason why there is no figure, as a clause that follows "the command": `printed no …`.
        how: String,
    },
    /// A comparison of two stores: the ranges of sizes at which each of them is faster.
    Crossover {
        /// Names of the two stores.
        stores: Vec<String>,
        /// Ranges of sizes with the same winner, in ascending order.
        ranges: Vec<SizeWinner>,
        /// Number of pairs of requests.
        pairs: u64,
        /// Highest probability that any of the ranges has a wrong winner.
        error: f64,
        /// The model T = L + size/B, fitted to the medians of each store. It is shown for comparison, and does not
        /// affect the ranges.
        fits: Vec<LatencyFit>,
        /// Size in bytes at which the two fits are equal; `None` if there is no such size.
        fit_crossover_bytes: Option<f64>,
        /// Number of requests that must be in flight to reach a rate, according to the fits. Empty for uploads.
        fill: Vec<LineFill>,
        /// For each store with incomplete answers: its name, the number of incomplete answers, and the number of all
        /// requests.
        incomplete: Vec<(String, u64, u64)>,
        /// `true` if both addresses lead to the same bucket.
        is_same_store: bool,
        /// `false` if the search would narrow the answer with more trials.
        is_finished: bool,
        /// Estimated number of pairs until the search is finished.
        #[serde(default)]
        pairs_left: u64,
        /// The required precision, as the upper end of a size interval divided by its lower end. The search stops
        /// narrowing an interval when this ratio falls below the required precision.
        precision: f64,
    },
    /// Requests that were not answered completely. The true time of such a request counts as longer than its observed
    /// time.
    Incomplete {
        /// Number of all requests of the arm.
        requests: u64,
        /// Number of refused requests for each HTTP status.
        refused: Vec<(u16, u64)>,
        /// Number of requests that timed out.
        timed_out: u64,
        /// Number of requests whose connection failed.
        broken: u64,
        /// Number of answers that ended early.
        short: u64,
    },
    /// The limits that the requests of an arm have reached.
    Limits {
        /// The limits, of which there is at least one.
        limits: Vec<StoreLimit>,
    },
    /// The throughput of each number of streams, compared with the throughput of the smallest number of streams.
    Scaling {
        /// The throughput for each number of streams, in ascending order.
        levels: Vec<ScaledThroughput>,
        /// The smallest number of streams with 90 % of the best throughput.
        knee: u64,
        /// `true` if the run also measured at least twice as many streams as `knee`. The additional streams then
        /// brought no large gain.
        is_flat: bool,
        /// The numbers of requests in flight, according to the model and as measured. The first entry is for 90 % of
        /// the best throughput. The second is for 90 % of the client's line, if its rate is known.
        #[serde(default)]
        reached: Vec<ReachedRate>,
    },
    /// The bits of requests and answers that were flipped in transit, and whether the store or the client noticed them.
    Faults {
        /// The checksum that the uploads carried.
        checksum: String,
        /// The flipped places.
        places: Vec<FaultPlace>,
    },
    /// The workloads that a runtime did not complete. They are left out of every comparison with this runtime.
    FailedWorkloads {
        /// The workloads, in alphabetical order.
        failures: Vec<FailedWorkload>,
    },
    /// The file that was given as a runtime starts another program.
    StartsAnother(StartedProgram),
    /// A runtime printed something to standard error.
    PrintedErrors {
        /// For each workload, its name and the first line.
        printed: Vec<(String, String)>,
    },
    /// The output of some files differs from run to run of the same runtime, so it was not compared between runtimes.
    UnstableOutput {
        /// Names of the workloads.
        workloads: Vec<String>,
    },
    /// The conditions that the processes of all runtimes share.
    Processes {
        /// The seeds of hashes: one for each workload of each trial, the same for all runtimes.
        seeds: Vec<u32>,
        /// Environment variables of the caller that were overruled.
        overruled: Vec<String>,
        /// Environment variables of the caller that change how all of these runtimes work.
        inherited: Vec<String>,
        /// The library that does the work of the negative control, and its build ID. `None` if the runtimes have no
        /// such library in common.
        control: Option<(String, String)>,
    },
    /// More workloads are installed than were measured.
    MoreWorkloads {
        /// Number of workloads of pyperformance that can be measured.
        count: u64,
    },
    /// The expected requests, bytes and costs at stores, and the limits on them.
    Bill {
        /// The bill of each store.
        stores: Vec<StoreBill>,
    },
}

/// A workload that a runtime did not complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedWorkload {
    /// Name of the workload.
    pub workload: String,
    /// The kind of failure.
    pub kind: WorkloadFailure,
    /// Description of the failure, as text for the user.
    pub how: String,
}

/// The kind of failure of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkloadFailure {
    /// The process crashed or ended with an error.
    Crash,
    /// The result was wrong, or differs from the result of another runtime.
    Wrong,
    /// The runtime lacks a module.
    Missing,
}

/// A program that a wrapper starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartedProgram {
    /// The wrapper, as the user gave it.
    pub given: String,
    /// The program that it starts.
    pub starts: String,
    /// Median time of an empty program through the wrapper, in nanoseconds.
    pub wrapper_ns: f64,
    /// Median time of an empty program without the wrapper, in nanoseconds.
    pub program_ns: f64,
    /// `true` if the program was measured, and not the wrapper.
    pub is_followed: bool,
    /// Options and variables that the wrapper adds, and that the measured program also gets.
    pub kept: Vec<String>,
}

impl Remark {
    /// Returns whether the remark is about a runtime that crashed, or gave a wrong answer. A run with such a remark
    /// fails.
    pub fn is_failure(&self) -> bool {
        let fails = |failed: &FailedWorkload| failed.kind != WorkloadFailure::Missing;
        matches!(self, Remark::FailedWorkloads { failures } if failures.iter().any(fails))
    }
}

/// Sizes that follow each other, and the store that is faster at all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeWinner {
    /// The smallest of these sizes that was judged, in bytes.
    pub from_bytes: u64,
    /// The largest of these sizes that was judged, in bytes.
    pub to_bytes: u64,
    /// Name of the faster store; `None` if it was not decided.
    pub winner: Option<String>,
}

/// The model T = L + size/B, fitted to the medians of a store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyFit {
    /// Name of the store.
    pub store: String,
    /// The latency L, in nanoseconds.
    pub latency_ns: f64,
    /// The rate B, in bytes per second; `None` if the times do not grow with the size.
    pub bytes_per_s: Option<f64>,
    /// The largest distance between a median and the fit, as a share of the median.
    pub off: f64,
    /// The size at which this distance is largest, in bytes.
    pub off_at_bytes: f64,
}

/// The number of requests that must be in flight to reach a rate: rate × (L/size + 1/B).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LineFill {
    /// Name of the store.
    pub store: String,
    /// The rate to reach, in bytes per second.
    pub line_bytes_per_s: f64,
    /// Pairs of a size in bytes and the number of requests of this size.
    pub requests: Vec<(f64, f64)>,
    /// Number of requests in flight for `cheapest_range_bytes`.
    pub most_requests: u64,
    /// The smallest size in bytes at which `most_requests` requests in flight reach the rate; `None` if no size is
    /// large enough.
    pub cheapest_range_bytes: Option<f64>,
}

/// The number of requests in flight that reach a rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReachedRate {
    /// The rate, in bytes per second.
    pub bytes_per_s: f64,
    /// `true` if it is 90 % of the rate of the client's line.
    pub is_line: bool,
    /// The number according to the model: rate × (L/size + 1/B).
    pub model: f64,
    /// The smallest measured number that reached the rate; `None` if no measured number did.
    pub measured: Option<u64>,
}

/// A limit on the throughput or the rate of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum StoreLimit {
    /// The store refused requests.
    Refusals {
        /// HTTP status of the refusals.
        status: u16,
        /// Error code of the store, such as `SlowDown`; `None` if the answer has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// Number of refusals.
        count: u64,
    },
    /// The store limits the rate of one connection: the quickest requests all have the same rate.
    OneConnection {
        /// The rate of the quickest requests, in bytes per second.
        bytes_per_s: f64,
    },
    /// The client's CPU was the limit: the client runs all requests on a single CPU, which was nearly always busy.
    ClientCpu {
        /// The used share of a CPU.
        share: f64,
    },
    /// The client's line was nearly full.
    Line {
        /// The used share of the line.
        share: f64,
    },
}

/// The throughput of a number of streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScaledThroughput {
    /// Number of streams.
    pub streams: u64,
    /// Median throughput of all streams together, in bytes per second.
    pub bytes_per_s: f64,
    /// The throughput divided by the throughput of perfect scaling.
    pub share_of_linear: f64,
}

/// A place of a request or an answer in which a bit was flipped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultPlace {
    /// Name of the place, such as `upload: body`.
    pub place: String,
    /// The consequence of the flipped bit.
    pub noticed: FaultNoticed,
}

/// The consequence of a flipped bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultNoticed {
    /// The store refused the request.
    ByStore,
    /// The client noticed the wrong answer, or got none.
    ByClient,
    /// The flipped bit had no effect.
    Harmless,
    /// Wrong bytes were stored or read, and neither side noticed.
    Unnoticed,
}

/// The expected bill of a store, and the limits that are never exceeded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoreBill {
    /// Address of the store.
    pub store: String,
    /// Expected number of requests.
    pub requests: u64,
    /// Expected number of bytes in both directions.
    pub bytes: u64,
    /// Expected cost and its currency; `None` without prices.
    pub cost: Option<(f64, String)>,
    /// Source and date of the prices.
    pub prices: Option<(String, String)>,
    /// Limit on the requests.
    pub max_requests: u64,
    /// Limit on the bytes.
    pub max_bytes: u64,
    /// Limit on the cost; `None` without a limit.
    pub max_cost: Option<f64>,
}

/// The resources that one execution of a command used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// CPU time in user mode and in the kernel, in nanoseconds.
    pub cpu_ns: u64,
    /// Number of bytes that the command read; `None` if the kernel does not count them.
    pub read_bytes: Option<u64>,
}

/// A server whose answer differs from the expected answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dissent {
    /// Name of the server whose answer differs.
    pub server: String,
    /// The server's answer; `None` if the server does not answer.
    pub says: Option<String>,
    /// Time in nanoseconds for which the server has given this answer, or has given no answer. It does not include the
    /// time before the session began to wait.
    pub for_ns: u64,
}

/// Deserialises a list, and drops the elements that this version does not know.
pub(crate) fn known<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let all: Vec<serde_json::Value> = Vec::deserialize(deserializer)?;
    Ok(all.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect())
}
