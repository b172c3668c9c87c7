//! DNS propagation: after a change of a zone, when each of its servers says so.
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
mod places;
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
mod updates;

use std::sync::LazyLock;
use std::time::Duration;

use ascertain_engine::experiment::{
    Accepts, Arm, Better, Emulates, Experiment, Factor, Level, Metric, Plot, Session, Setup, Spec, TargetError,
    Unavailable,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Machine;
#[cfg(target_os = "linux")]
use {places::is_available, updates::open};

#[cfg(not(target_os = "linux"))]
use crate::links::elsewhere::{is_available, open};
use crate::links::{self, OURS};

/// A change of a zone, and when its servers have it.
pub struct DnsPropagation;

const TOGETHER: &str = "together";
const APART: &str = "apart";
const WATCH: &str = "watch";
const RFC2136: &str = "rfc2136";
const ROUTE53: &str = "route53";
const CLOUD_DNS: &str = "cloud-dns";
const EXEC: &str = "exec";

const ALL: usize = 0;
const HALF: usize = 1;
const FIRST: usize = 2;
const UNSURE: usize = 3;
const DONE: usize = 4;
const DONE_BEFORE: usize = 5;
const SPREAD: usize = 6;
const HELD: usize = 7;
const SERVER: usize = 8;
const REPLICAS: usize = 9;
const SHARE: usize = 10;
const LOST: usize = 11;
const STRANGE: usize = 12;
const INTERVAL: usize = 13;
const BY_TCP: usize = 14;
const REPLICA: usize = 15;
const REPLICA_SHARE: usize = 16;
const LATE: usize = 17;

/// From so many ports simulated servers are asked, each so often, and others, unless somebody says something else. So
/// many ports find eight replicas that share a server's questions evenly in 99.8 of 100 cases; fewer are more polite.
const SIMULATED_PORTS: u64 = 64;
const OTHERS_PORTS: u64 = 16;
const SIMULATED_INTERVAL_MS: u64 = 80;
const OTHERS_INTERVAL_MS: u64 = 1_000;
/// More questions a second nobody takes kindly whose server it is.
const MOST_PER_S: u64 = 1_000;
/// What is known of a question, with what is waited for.
const QUESTION_BYTES: u64 = 160;
/// So many servers a zone has that nobody has asked for yet.
const USUAL_SERVERS: u64 = 8;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "A change of a zone: how long until every server says so".into(),
    emulates: Some(
        Emulates::of("a zone and its servers in this process, behind an emulated link").unless(&["record", "zone"]),
    ),
    variants: vec![
        (TOGETHER, "a zone that is simulated: the servers' replicas stand at the same places, which get it in turn")
            .into(),
        (APART, "a zone that is simulated: each server gets it by itself").into(),
        (WATCH, "somebody else changes it: waits until all servers of a `record` have what you `expect`").into(),
        (RFC2136, "your `zone`, which is changed by an update of its primary `server`, signed with $TSIG_KEY").into(),
        (ROUTE53, "your `zone` at Amazon's Route 53, which is changed with AWS' usual credentials").into(),
        (CLOUD_DNS, "your `zone` at Google's Cloud DNS, which is changed with Google's usual credentials").into(),
        (EXEC, "your `zone`, which is changed by a program of yours").into(),
    ],
    factors: factors(),
    metrics: vec![
        Metric::time("all", "from the call until the last server has it, all of its replicas"),
        Metric::time("half", "until half of the answers are new"),
        Metric::time("first", "until the first replica has it"),
        Metric::time("unsure", "how wide the interval is that `all` lies in the middle of"),
        Metric::time("done", "until the provider says that it is done"),
        Metric::new(
            "done_before",
            "by how much that is before the last server has it",
            Unit::Nanosecond,
            Better::Lower,
        ),
        Metric::time("spread", "between the first server that has it everywhere and the last one"),
        Metric::time(
            "held",
            "between the first server that has it everywhere and the next: a NOTIFY that is held back",
        ),
        Metric::time("server", "until a server has it everywhere").by_key(),
        Metric::new("replicas", "of a server: the fewest that explain its answers", Unit::One, Better::Higher).by_key(),
        Metric::share("share", "of new answers to what a server was asked at a time", Better::Higher),
        Metric::share("lost", "share of questions without an answer in time", Better::Lower),
        Metric::new("strange", "messages that were no answers to what was asked", Unit::One, Better::Lower),
        Metric::time("interval", "that each server was asked in from each port: longer where it has a limit"),
        Metric::share("by_tcp", "share of questions that took a connection: a datagram had no room", Better::Lower),
        Metric::time("replica", "until a replica behind a server's address has it").by_key(),
        Metric::share("replica_share", "of new answers to what it was asked at a time", Better::Higher),
    ]
    .into_iter()
    .chain(links::metrics())
    .collect(),
    plots: ["share", "replica_share"].map(|metric| Plot::Curve { metric: metric.into() }).into(),
    ..Spec::new("dns-propagation", include_str!("README.md"))
});

fn factors() -> Vec<Factor> {
    let milliseconds = |max| Accepts::Integers { min: 1, max };
    vec![
        Factor::new("servers", "of the simulated zone", 4, Accepts::Integers { min: 1, max: 64 }),
        Factor::new("replicas", "of each of them, behind one address", 3, Accepts::Integers { min: 1, max: 8 }),
        Factor::new("slowest_ms", "how long the last replica takes to have it", 200, milliseconds(600_000)),
        Factor::new(
            "done_after_ms",
            "how long after it took the change the zone's provider says that it is done",
            10,
            Accepts::Integers { min: 0, max: 600_000 },
        ),
        Factor::new("rtt_ms", "the round trip of the link to them", 4, milliseconds(1_000)),
        Factor::new("loss_percent", "of what goes over it, each way", 0, Accepts::Integers { min: 0, max: 90 }),
        Factor::new(
            "interval_ms",
            "how often each server is asked from each port; 0 is 80 for simulated ones, and 1000 for others",
            0,
            Accepts::Integers { min: 0, max: 600_000 },
        ),
        Factor::new(
            "ports",
            "that each server is asked from; 0 is 64 for simulated ones, and 16 for others",
            0,
            Accepts::Integers { min: 0, max: 256 },
        ),
        Factor::new(
            "limit_s",
            "time limit of a change, also beyond --max-time; for a record that somebody else changes it includes a first \
             look at the servers",
            120,
            Accepts::Integers { min: 1, max: 86_400 },
        ),
        Factor::new(
            "family",
            "by which addresses servers are asked that a zone names: 4, 6, or 0 for all that there is a route to",
            0,
            Accepts::OneOf([0, 4, 6].map(Level::Integer).into()),
        ),
        Factor::new("record", "the name that is watched", OURS, Accepts::Anything),
        Factor::new("type", "of the record that is watched: TXT, A, AAAA, CNAME, …", "TXT", Accepts::Anything),
        Factor::new("expect", "what the record is to say everywhere", OURS, Accepts::Anything),
        Factor::new("zone", "that is changed", OURS, Accepts::Anything),
        Factor::new("server", "its primary, which is told to: ADDRESS[:PORT] or HOST[:PORT]", OURS, Accepts::Anything),
        Factor::new("zone_id", "the provider's own name of the zone, where it has several", OURS, Accepts::Anything),
        Factor::new("project", "that a zone of Cloud DNS is in", OURS, Accepts::Anything),
        Factor::new(
            "endpoint",
            "where the provider's interface is: http[s]://HOST[:PORT]; credentials are looked up elsewhere",
            OURS,
            Accepts::Address {
                none: OURS.into(),
                schemes: ["http://", "https://"].map(String::from).into(),
                from_variable: false,
            },
        ),
        Factor::new(
            "exec",
            "a program that is called with add, done or remove, a name and a text",
            OURS,
            Accepts::Anything,
        ),
        Factor::new(
            "addresses",
            "servers to ask instead of those that the zone names: HOST[:PORT],ADDRESS[:PORT]",
            OURS,
            Accepts::List,
        ),
        Factor::new(
            "resolver",
            "who is asked for the zone's servers instead of this system's resolver: ADDRESS[:PORT]",
            OURS,
            Accepts::Anything,
        ),
    ]
}

/// From how many ports an arm's servers are asked, and how often from each.
fn rhythm(arm: &Arm) -> Result<(usize, Duration), TargetError> {
    let is_simulated = [TOGETHER, APART].contains(&arm.variant.as_str());
    let usual = |factor: &str, simulated, others| match arm.integer(factor)? {
        0 => Ok::<u64, TargetError>(if is_simulated { simulated } else { others }),
        asked => Ok(asked),
    };
    let ports = usual("ports", SIMULATED_PORTS, OTHERS_PORTS)?;
    let interval_ms = usual("interval_ms", SIMULATED_INTERVAL_MS, OTHERS_INTERVAL_MS)?;
    Ok((ports as usize, Duration::from_millis(interval_ms)))
}

/// Takes away the records that runs which were killed have left in zones of one's own, with what the environment has
/// for it (`TSIG_KEY`, `TSIG_KEY_FILE`, credentials of AWS and Google): what became of each, for people.
///
/// # Errors
/// Where it is not known what is left.
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
        places::settled(factor, level)
    }

    #[cfg(target_os = "linux")]
    fn has(&self, arm: &Arm, factor: &str) -> bool {
        places::has(arm, factor)
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        is_available(arm)
    }

    #[cfg(target_os = "linux")]
    fn chosen(&self, arms: Vec<Arm>, are_named: bool) -> Result<Vec<Arm>, String> {
        places::chosen(arms, are_named)
    }

    /// What others do is seen when they do it.
    fn happens_once(&self, arm: &Arm) -> bool {
        arm.variant == WATCH
    }

    /// What becomes of each question until the limit.
    fn memory_bytes(&self, arms: &[Arm]) -> u64 {
        let of_arm = |arm: &Arm| {
            let (ports, interval) = rhythm(arm).ok()?;
            let servers = match arm.point.get("addresses") {
                _ if [TOGETHER, APART].contains(&arm.variant.as_str()) => arm.integer("servers").ok()?,
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
