//! Remarks of sessions about their arms.

use serde::{Deserialize, Serialize};

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
    /// The file that was given as a runtime is a script. It is unknown which program it starts, so the script was
    /// measured.
    ScriptRuntime {
        /// Path of the script.
        given: String,
        /// Median time of an empty program through the script, in nanoseconds.
        start_ns: f64,
    },
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
        /// Names of runtimes that do not use these seeds, because of the options or variables of their wrappers.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unseeded: Vec<String>,
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
