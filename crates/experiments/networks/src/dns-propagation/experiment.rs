//! Measures when each server of a DNS zone begins to answer with a change of the zone.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

#[cfg(target_os = "linux")]
mod authorities;
#[cfg(target_os = "linux")]
mod cloud_dns;
#[cfg(target_os = "linux")]
mod exec;
#[cfg(target_os = "linux")]
mod hosted;
#[cfg(target_os = "linux")]
mod primary;
#[cfg(target_os = "linux")]
mod propagation;
#[cfg(target_os = "linux")]
mod providers;
#[cfg(target_os = "linux")]
mod remarks;
#[cfg(target_os = "linux")]
mod route53;
#[cfg(target_os = "linux")]
mod rules;
#[cfg(target_os = "linux")]
mod test_zone;
#[cfg(target_os = "linux")]
mod updates;

use std::sync::LazyLock;
use std::time::Duration;

use ascertain_engine::experiment::Better::{Higher, Lower};
use ascertain_engine::experiment::{
    Accepts, Arm, Emulates, Experiment, Factor, Level, Metric, Plot, Session, Setup, Spec, TargetError, Unavailable,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Machine;
#[cfg(target_os = "linux")]
use {rules::is_available, updates::open};

use crate::levels::user_factor;
#[cfg(not(target_os = "linux"))]
use crate::links::elsewhere::{is_available, open};
use crate::links::{self, OURS};

/// The experiment `dns-propagation`.
pub struct DnsPropagation;

const TOGETHER: &str = "together";
const APART: &str = "apart";
const WATCH: &str = "watch";
const RFC2136: &str = "rfc2136";
const ROUTE53: &str = "route53";
const CLOUD_DNS: &str = "cloud-dns";
const EXEC: &str = "exec";

indices! {
    ALL, HALF, FIRST, UNSURE, DONE, DONE_BEFORE, SPREAD, HELD, SERVER, REPLICAS, SHARE, LOST, STRANGE, INTERVAL,
    BY_TCP, REPLICA, REPLICA_SHARE, LATE
}

/// Default number of ports from which simulated servers are queried. If eight replicas share a server's queries evenly,
/// 64 ports find all of them with a probability of 99.8 %.
const SIMULATED_PORTS: u64 = 64;
/// Default number of ports from which servers of other operators are queried. It is lower than for simulated servers,
/// to put less load on the operators' servers.
const OTHERS_PORTS: u64 = 16;
/// Default interval between two queries from one port to a simulated server, in ms.
const SIMULATED_INTERVAL_MS: u64 = 80;
/// Default interval between two queries from one port to another server, in ms.
const OTHERS_INTERVAL_MS: u64 = 1_000;
/// Largest number of queries per second to a server on another machine. This limit keeps the load on such a server low.
const MOST_PER_S: u64 = 1_000;
/// Memory in bytes that each query of a trial needs, including its pending answer.
const QUESTION_BYTES: u64 = 160;
/// Number of servers assumed for a zone that has not been queried yet.
const USUAL_SERVERS: u64 = 8;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "DNS propagation: how long until every server of a zone has a change".into(),
    emulates: Some(
        Emulates::new("a zone and its servers in this process, behind an emulated link").unless(&["record", "zone"]),
    ),
    variants: vec![
        (
            TOGETHER,
            "a simulated zone: replicas get the change one after the other, with the same delays for each server",
        )
            .into(),
        (APART, "a simulated zone: each server gets the change at its own time").into(),
        (WATCH, "a change by another program: waits until all servers of a `record` have the value `expect`").into(),
        (RFC2136, "your `zone`, changed by an update to its primary `server`, signed with $TSIG_KEY").into(),
        (ROUTE53, "your `zone` at Amazon Route 53, changed with the usual AWS credentials").into(),
        (CLOUD_DNS, "your `zone` at Google Cloud DNS, changed with the usual Google credentials").into(),
        (EXEC, "your `zone`, changed by your own program").into(),
    ],
    factors: factors(),
    metrics: vec![
        Metric::time("all", "time from the request for the change until all replicas of all servers have the change"),
        Metric::time("half", "time from the request for the change until half of the answers have the change"),
        Metric::time("first", "time from the request for the change until the first replica has the change"),
        Metric::time("unsure", "width of the interval in which the exact time of `all` lies"),
        Metric::time("done", "time from the request for the change until the provider reports the change as done"),
        Metric::time(
            "done_before",
            "time from the provider's report that the change is done until the last server has it",
        ),
        Metric::time(
            "spread",
            "time from when all replicas of the first server have the change until all replicas of the last server \
             have it",
        ),
        Metric::time(
            "held",
            "time from when all replicas of the first server have the change until all replicas of the second server \
             have it; longer if a NOTIFY is delayed",
        ),
        Metric::time("server", "time from the request for the change until all replicas of a server have the change")
            .by_key(),
        Metric::new("replicas", "smallest number of replicas that explains a server's answers", Unit::One, Higher)
            .by_key(),
        Metric::share("share", "share of a server's answers that have the change, over time", Higher),
        Metric::share("lost", "share of queries without an answer in time", Lower),
        Metric::new("strange", "number of messages that were not answers to a query", Unit::One, Lower),
        Metric::time("interval", "time between queries from a port to a server; longer if the server has a rate limit"),
        Metric::share(
            "by_tcp",
            "share of queries that were sent over TCP, because the answer over UDP was truncated",
            Lower,
        ),
        Metric::time("replica", "time from the request for the change until a replica of a server has the change")
            .by_key(),
        Metric::share("replica_share", "share of a replica's answers that have the change, over time", Higher),
    ]
    .into_iter()
    .chain(links::metrics())
    .collect(),
    plots: ["share", "replica_share"].map(|metric| Plot::Curve { metric: metric.into() }).into(),
    ..Spec::new("dns-propagation", include_str!("README.md"))
});

fn factors() -> Vec<Factor> {
    vec![
        Factor::integer("servers", "number of servers of the simulated zone", 4, 1..=64),
        Factor::integer("replicas", "number of replicas of each simulated server, behind one address", 3, 1..=8),
        Factor::integer("slowest_ms", "time from a change until the last simulated replica has it", 200, 1..=600_000),
        Factor::integer(
            "done_after_ms",
            "time from a change until the simulated provider reports it as done",
            10,
            0..=600_000,
        ),
        Factor::integer("rtt_ms", "round-trip time of the link to the simulated servers", 4, 1..=1_000),
        Factor::integer(
            "loss_percent",
            "percentage of packets that are lost on the link, in each direction",
            0,
            0..=90,
        ),
        Factor::integer(
            "interval_ms",
            "time between queries from each port to each server; 0 selects 80 for simulated servers, and 1000 \
             for others",
            0,
            0..=600_000,
        ),
        Factor::integer(
            "ports",
            "number of ports that query each server; 0 selects 64 for simulated servers, and 16 for others",
            0,
            0..=256,
        ),
        Factor::integer(
            "limit_s",
            "time limit of a change, which may exceed the time limit of the run; for `watch`, it includes the first \
             queries to the servers",
            120,
            1..=86_400,
        ),
        Factor::new(
            "family",
            "IP version of the addresses at which a zone's servers are queried: 4, 6, or 0 for all that have a route",
            0,
            Accepts::OneOf([0, 4, 6].map(Level::Integer).into()),
        ),
        user_factor("record", "name of the watched record"),
        Factor::new("type", "type of the watched record: TXT, A, AAAA, CNAME, …", "TXT", Accepts::Anything),
        user_factor("expect", "value that the watched record must have at all servers"),
        user_factor("zone", "zone to change"),
        user_factor("server", "primary server of the zone, which receives updates: ADDRESS[:PORT] or HOST[:PORT]"),
        user_factor("zone_id", "provider's id of the zone; required if the provider has several zones with its name"),
        user_factor("project", "project of the zone at Cloud DNS"),
        Factor::new(
            "endpoint",
            "endpoint of the provider's API: http[s]://HOST[:PORT]; must not contain credentials",
            OURS,
            Accepts::Address {
                none: OURS.into(),
                schemes: ["http://", "https://"].map(String::from).into(),
                from_variable: false,
            },
        ),
        user_factor(
            "exec",
            "program that changes the zone; its arguments are `add`, `done` or `remove`, a name and a text",
        ),
        Factor::new(
            "addresses",
            "servers to query instead of the servers that the zone names: HOST[:PORT],ADDRESS[:PORT]",
            OURS,
            Accepts::List,
        ),
        user_factor(
            "resolver",
            "resolver to use instead of this system's resolver when looking up the zone's servers: ADDRESS[:PORT]",
        ),
    ]
}

/// Returns whether the arm's zone is simulated.
fn is_simulated(arm: &Arm) -> bool {
    [TOGETHER, APART].contains(&arm.variant.as_str())
}

/// Returns two numbers: how many source ports query each server, and the interval between two queries from one port.
fn rhythm(arm: &Arm) -> Result<(usize, Duration), TargetError> {
    let usual = |factor: &str, simulated, others| match arm.integer(factor)? {
        0 => Ok::<u64, TargetError>(if is_simulated(arm) { simulated } else { others }),
        asked => Ok(asked),
    };
    let ports = usual("ports", SIMULATED_PORTS, OTHERS_PORTS)?;
    let interval_ms = usual("interval_ms", SIMULATED_INTERVAL_MS, OTHERS_INTERVAL_MS)?;
    Ok((ports as usize, Duration::from_millis(interval_ms)))
}

/// Removes the records that killed runs have left in the user's zones. Uses credentials from the environment
/// (`TSIG_KEY`, `TSIG_KEY_FILE`, those of AWS and Google). Returns a message for the user for each record.
///
/// # Errors
/// Returns the reason if the folder that lists such records cannot be read.
pub fn clean() -> Result<Vec<Result<String, String>>, String> {
    #[cfg(target_os = "linux")]
    return providers::clean(&providers::notes_folder());
    #[cfg(not(target_os = "linux"))]
    Ok(Vec::new())
}

impl Experiment for DnsPropagation {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    #[cfg(target_os = "linux")]
    fn settled(&self, factor: &str, level: Level) -> Result<Level, String> {
        rules::settled(factor, level)
    }

    #[cfg(target_os = "linux")]
    fn has(&self, arm: &Arm, factor: &str) -> bool {
        rules::has(arm, factor)
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        is_available(arm)
    }

    #[cfg(target_os = "linux")]
    fn chosen(&self, arms: Vec<Arm>, are_named: bool) -> Result<Vec<Arm>, String> {
        rules::chosen(arms, are_named)
    }

    /// Returns `true` if another program changes the zone. That program makes a single change, so the arm can be
    /// measured only once.
    fn happens_once(&self, arm: &Arm) -> bool {
        arm.variant == WATCH
    }

    /// Returns the memory for the queries of the arm that has the most queries until its time limit. The other arms
    /// need no additional memory, because only one arm is measured at a time.
    fn memory_bytes(&self, arms: &[Arm]) -> u64 {
        let of_arm = |arm: &Arm| {
            let (ports, interval) = rhythm(arm).ok()?;
            let servers = match arm.point.get("addresses") {
                _ if is_simulated(arm) => arm.integer("servers").ok()?,
                Some(Level::Text(addresses)) if addresses != OURS => addresses.split(',').count() as u64,
                _ => USUAL_SERVERS,
            };
            let rounds = arm.integer("limit_s").ok()? * 1_000 / interval.as_millis() as u64;
            Some(servers * ports as u64 * rounds * QUESTION_BYTES)
        };
        arms.iter().filter_map(of_arm).max().unwrap_or(0)
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        open(arms, setup)
    }
}
