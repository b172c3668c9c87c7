//! A name server asked at a rate: how long its answers take.

mod asking;

use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Accepts, Arm, Better, Emulates, Experiment, Factor, Level, Metric, Session, Setup, Spec, TargetError,
};
use ascertain_engine::unit::Unit;

use crate::name_servers::address;

/// Questions at a rate, and their answers.
pub struct DnsLoad;

/// What is known of a question in the end, with its times in their order.
const QUESTION_BYTES: u64 = 64;

/// The level of `server` and `queries` that is neither somebody's, as other experiments have it.
const OURS: &str = "own";

const UDP: &str = "udp";
const TCP: &str = "tcp";

const P99: usize = 0;
const P50: usize = 1;
const P90: usize = 2;
const WORST: usize = 3;
const SENT: usize = 4;
const SENT_PER_S: usize = 5;
const ANSWERED_PER_S: usize = 6;
const ANSWERED: usize = 7;
const LOST: usize = 8;
const TRUNCATED: usize = 9;
const STRANGE: usize = 10;
const BEHIND: usize = 11;
const CPU: usize = 12;
/// The first of three for each response code: its share, and two quantiles.
const BY_CODE: usize = 13;

/// The response codes in the order of their numbers; those behind them, which are about updates, are one.
const CODES: [&str; 7] = ["noerror", "formerr", "servfail", "nxdomain", "notimp", "refused", "other"];

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "A name server asked at a rate: how long its answers take".into(),
    emulates: Some(Emulates::of("a name server in this process").unless(&["server"])),
    variants: vec![
        (UDP, "a datagram each").into(),
        (TCP, "connections that are kept, on which no question waits for another's answer").into(),
    ],
    factors: vec![
        Factor::new("server", "that is asked: ADDRESS[:PORT] or HOST[:PORT]", OURS, Accepts::Anything),
        Factor::new("queries", "a file as dnsperf reads it: a name and a type a line", OURS, Accepts::Anything),
        Factor::new(
            "rate_per_s",
            "questions a second; 0 is 10000 to the server in this process, and 1000 to others",
            0,
            Accepts::Integers { min: 0, max: 1_000_000 },
        ),
        Factor::new("seconds", "that they are asked for in a trial", 1, Accepts::Integers { min: 1, max: 3_600 }),
        Factor::new("connections", "or ports, that take turns", 4, Accepts::Integers { min: 1, max: 256 }),
        Factor::new("limit_ms", "what takes longer is lost", 2_000, Accepts::Integers { min: 1, max: 60_000 }),
    ],
    metrics: vec![
        Metric::time("p99", "from when a question was due to its answer, a lost one above the limit"),
        Metric::time("p50", "of the same"),
        Metric::time("p90", "of the same"),
        Metric::time("worst", "of the same"),
        Metric::new("sent", "questions that were sent", Unit::One, Better::Higher),
        Metric::new(
            "sent_per_s",
            "of these a second: less than the rate where who asks is slow",
            Unit::PerSecond,
            Better::Higher,
        ),
        Metric::new("answered_per_s", "answers a second until the last one", Unit::PerSecond, Better::Higher),
        Metric::share("answered", "share of the questions with an answer in time", Better::Higher),
        Metric::share("lost", "share of the questions without one", Better::Lower),
        Metric::share("truncated", "share of the questions whose answer was not whole", Better::Lower),
        Metric::new("strange", "messages that were no answers to what was asked", Unit::One, Better::Lower),
        Metric::time("behind", "by how much questions were sent later than due, p99"),
        Metric::new(
            "cpu",
            "CPU time that asking took until all was sent, as a share of one CPU",
            Unit::One,
            Better::Lower,
        ),
    ]
    .into_iter()
    .chain(CODES.iter().flat_map(of_code))
    .collect(),
    ..Spec::new("dns-load", include_str!("README.md"))
});

/// How often is asked: what nobody chose is what the claim is about, or what others' servers hardly notice.
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
    // That a name is not there is an answer like any other.
    let better = if ["noerror", "nxdomain"].contains(code) { Better::Higher } else { Better::Lower };
    [
        Metric::share(code, &format!("share of the questions that {text} was the answer to"), better),
        Metric::time(&format!("{code}_p50"), &format!("from when a question was due to {text} as its answer")),
        Metric::time(&format!("{code}_p99"), "of the same"),
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
            "queries" => asking::read(&level.to_string()).map(|_| level),
            _ => Ok(level),
        }
    }

    /// What became of each question of a trial: the next one's come after it.
    fn memory_bytes(&self, arms: &[Arm]) -> u64 {
        let of_arm = |arm: &Arm| Some(rate_per_s(arm).ok()? * arm.integer("seconds").ok()? * QUESTION_BYTES);
        arms.iter().filter_map(of_arm).max().unwrap_or(0)
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        Ok(Box::new(asking::Asking::open(arms, setup)?))
    }
}
