//! Measures how long a name server takes to answer when queries arrive at a given rate.

mod load;

use std::sync::LazyLock;

use ascertain_engine::experiment::Better::{Higher, Lower};
use ascertain_engine::experiment::{
    Accepts, Arm, Emulates, Experiment, Factor, Level, Metric, Session, Setup, Spec, TargetError,
};
use ascertain_engine::unit::Unit;

use crate::name_servers::address;

/// The experiment `dns-load`.
pub struct DnsLoad;

/// Memory in bytes for each query: for its result, and for its place in the sorted list of times.
const QUESTION_BYTES: u64 = 64;

/// The level `own`. For the factor `server`, it selects the server in this process. For the factor `queries`, it
/// selects the queries for that server.
const OURS: &str = "own";

const UDP: &str = "udp";
const TCP: &str = "tcp";

indices! { P99, P50, P90, WORST, SENT, SENT_PER_S, ANSWERED_PER_S, ANSWERED, LOST, TRUNCATED, STRANGE, BEHIND, CPU }
/// Index of the first metric that is reported separately for each response code. Each code has three such metrics: the
/// share of queries with this code, and two quantiles of the time until the answer.
const BY_CODE: usize = 13;

/// The names of the response codes, in the order of their numeric values. Codes from 6 on, which are about updates, are
/// counted as `other`.
const CODES: [&str; 7] = ["noerror", "formerr", "servfail", "nxdomain", "notimp", "refused", "other"];

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    Spec {
    title: "A name server under load: how long its answers take".into(),
    emulates: Some(Emulates::new("a name server in this process").unless(&["server"])),
    variants: vec![
        (UDP, "a datagram for each query").into(),
        (TCP, "persistent connections, on which no query waits for the answer to an earlier query").into(),
    ],
    factors: vec![
        Factor::new("server", "name server to query: ADDRESS[:PORT] or HOST[:PORT]", OURS, Accepts::Anything),
        Factor::new(
            "queries",
            "file of queries in the format of dnsperf: a name and a type on each line",
            OURS,
            Accepts::Anything,
        ),
        Factor::integer(
            "rate_per_s",
            "queries per second; 0 selects 10000 for the server in this process, and 1000 for other servers",
            0,
            0..=1_000_000,
        ),
        Factor::integer("seconds", "time for which queries are sent in a trial", 1, 1..=3_600),
        Factor::integer("connections", "number of connections (or ports) used in turn", 4, 1..=256),
        Factor::integer("limit_ms", "time after which an answer counts as lost", 2_000, 1..=60_000),
    ],
    metrics: vec![
        Metric::time(
            "p99",
            "99th percentile of the time between a query's scheduled time and its answer; a lost answer counts as above the limit",
        ),
        Metric::time("p50", "median time between a query's scheduled time and its answer"),
        Metric::time("p90", "90th percentile of the time between a query's scheduled time and its answer"),
        Metric::time("worst", "maximum time between a query's scheduled time and its answer"),
        Metric::new("sent", "number of queries that were sent", Unit::One, Higher),
        Metric::new(
            "sent_per_s",
            "sent queries per second; less than the rate if the client is too slow",
            Unit::PerSecond,
            Higher,
        ),
        Metric::new("answered_per_s", "answers per second until the last answer", Unit::PerSecond, Higher),
        Metric::share("answered", "share of queries with an answer in time", Higher),
        Metric::share("lost", "share of queries without an answer in time", Lower),
        Metric::share("truncated", "share of queries with a truncated answer", Lower),
        Metric::new("strange", "number of messages that were not answers to a query", Unit::One, Lower),
        Metric::time("behind", "99th percentile of the delay with which queries were sent"),
        Metric::new("cpu", "CPU time of sending all queries, as a share of one CPU", Unit::One, Lower),
    ]
    .into_iter()
    .chain(CODES.iter().flat_map(of_code))
    .collect(),
    ..Spec::new("dns-load", include_str!("README.md"))
}
});

/// Returns the arm's query rate per second. By default, our own server gets the rate in the experiment's claim. Other
/// servers get a rate so low that they hardly notice it.
fn rate_per_s(arm: &Arm) -> Result<u64, TargetError> {
    let is_ours = arm.point.get("server").is_none_or(|server| *server == OURS.into());
    match arm.integer("rate_per_s")? {
        0 if is_ours => Ok(10_000),
        0 => Ok(1_000),
        rate_per_s => Ok(rate_per_s),
    }
}

fn of_code(code: &&str) -> [Metric; 3] {
    let text = code.to_uppercase();
    // An answer that says that the name does not exist is as good as an answer with records.
    let better = if ["noerror", "nxdomain"].contains(code) { Higher } else { Lower };
    [
        Metric::share(code, &format!("share of queries that were answered with {text}"), better),
        Metric::time(
            &format!("{code}_p50"),
            &format!("median time between a query's scheduled time and its answer {text}"),
        ),
        Metric::time(
            &format!("{code}_p99"),
            &format!("99th percentile of the time between a query's scheduled time and its answer {text}"),
        ),
    ]
}

impl Experiment for DnsLoad {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn settled(&self, factor: &str, level: Level) -> Result<Level, String> {
        match factor {
            _ if level == OURS.into() => Ok(level),
            "server" => Ok(Level::Text(address(&level.to_string())?.to_string())),
            "queries" => load::read(&level.to_string()).map(|_| level),
            _ => Ok(level),
        }
    }

    /// Returns the memory that the arm with the most queries needs. This is enough, because only one arm is measured at
    /// a time.
    fn memory_bytes(&self, arms: &[Arm]) -> u64 {
        let of_arm = |arm: &Arm| Some(rate_per_s(arm).ok()? * arm.integer("seconds").ok()? * QUESTION_BYTES);
        arms.iter().filter_map(of_arm).max().unwrap_or(0)
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        Ok(Box::new(load::Load::open(arms, setup)?))
    }
}
