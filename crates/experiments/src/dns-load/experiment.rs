//! A name server asked at a rate: how long its answers take.

mod asking;

use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Accepts, Arm, Better, Emulates, Experiment, Factor, Metric, Session, Setup, Spec, TargetError,
};
use ascertain_engine::unit::Unit;

use crate::links::OURS;

/// Questions at a rate, and their answers.
pub struct DnsLoad;

/// What is known of a question in the end, with its times in their order.
const QUESTION_BYTES: u64 = 64;

const UDP: &str = "udp";
const TCP: &str = "tcp";

const P99: usize = 0;
const P50: usize = 1;
const P90: usize = 2;
const WORST: usize = 3;
const CODE_P50: usize = 4;
const CODE_P99: usize = 5;
const ANSWERS: usize = 6;
const LOST: usize = 7;
const TRUNCATED: usize = 8;
const STRANGE: usize = 9;
const BEHIND: usize = 10;
const CPU: usize = 11;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    id: "dns-load".into(),
    title: "A name server asked at a rate: how long its answers take".into(),
    readme: include_str!("README.md").into(),
    emulates: Some(Emulates::of("a name server in this process").unless(&["server"])),
    variants: vec![
        (UDP, "a datagram each").into(),
        (TCP, "connections that are kept, on which no question waits for another's answer").into(),
    ],
    factors: vec![
        Factor::new("server", "that is asked: ADDRESS:PORT", OURS, Accepts::Anything),
        Factor::new("queries", "a file as dnsperf reads it: a name and a type a line", OURS, Accepts::Anything),
        Factor::new("rate_per_s", "questions a second", 1_000, Accepts::Integers { min: 1, max: 1_000_000 }),
        Factor::new("seconds", "that they are asked for in a trial", 1, Accepts::Integers { min: 1, max: 3_600 }),
        Factor::new("connections", "or ports, that take turns", 4, Accepts::Integers { min: 1, max: 256 }),
        Factor::new("limit_ms", "what takes longer is lost", 2_000, Accepts::Integers { min: 1, max: 60_000 }),
    ],
    metrics: vec![
        Metric::time("p99", "from when a question was due to its answer, a lost one above the limit"),
        Metric::time("p50", "of the same"),
        Metric::time("p90", "of the same"),
        Metric::time("worst", "of the same"),
        Metric::time("code_p50", "of the answers of each response code"),
        Metric::time("code_p99", "of the answers of each response code"),
        Metric::new("answers", "share of the questions that had that response code", Unit::One, Better::Higher),
        Metric::new("lost", "share of the questions without an answer in time", Unit::One, Better::Lower),
        Metric::new("truncated", "share of the questions whose answer was not whole", Unit::One, Better::Lower),
        Metric::new("strange", "messages that were no answers to what was asked", Unit::One, Better::Lower),
        Metric::time("behind", "by how much questions were sent later than due, p99"),
        Metric::new("cpu", "share of a CPU that asking took until all was sent", Unit::One, Better::Lower),
    ],
    plots: Vec::new(),
});

impl Experiment for DnsLoad {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// What became of each question of a trial: the next one's come after it.
    fn memory_bytes(&self, arms: &[Arm]) -> u64 {
        let of_arm = |arm: &Arm| Some(arm.integer("rate_per_s").ok()? * arm.integer("seconds").ok()? * QUESTION_BYTES);
        arms.iter().filter_map(of_arm).max().unwrap_or(0)
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        Ok(Box::new(asking::Asking::open(arms, setup)?))
    }
}
