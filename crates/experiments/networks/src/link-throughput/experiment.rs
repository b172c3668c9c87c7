//! Link throughput: how much goes through a network, to a listener and back, and what that costs.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

#[cfg(target_os = "linux")]
mod iperf3;
#[cfg(target_os = "linux")]
mod places;
#[cfg(target_os = "linux")]
mod throughputs;

use std::sync::LazyLock;

use ascertain_engine::claim::{Bound, Claim, Effect, Test};
use ascertain_engine::experiment::{
    Accepts, Arm, Better, Emulates, Experiment, Factor, Level, Metric, Plot, Reduce, Session, Setup, Spec, TargetError,
    Unavailable,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Machine;

#[cfg(not(target_os = "linux"))]
use crate::links::elsewhere::{is_available, open};
use crate::links::{self, OURS};
#[cfg(target_os = "linux")]
use {places::is_available, throughputs::open};

/// How much goes through a network.
pub struct LinkThroughput;

const OWN: &str = "own";
const IPERF3: &str = "iperf3";

const UP: &str = "up";
const DOWN: &str = "down";
const BOTH: &str = "both";
const TCP: &str = "tcp";
const UDP: &str = "udp";

const THROUGHPUT: usize = 0;
const RETRANSMITTED: usize = 1;
const ROUND_TRIP: usize = 2;
const NEAR_CPU: usize = 3;
const FAR_CPU: usize = 4;
const LOST: usize = 5;
const REORDERED: usize = 6;
const JITTER: usize = 7;
const BURST: usize = 8;
const REFILL: usize = 9;
const RAN_OUT: usize = 10;
const LATE: usize = 11;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "Throughput of a network, by TCP and UDP, and what it costs: against iperf3, and where credit runs out"
        .into(),
    emulates: Some(Emulates::of("a link between two namespaces of this machine").unless(&["listener"])),
    variants: vec![
        (OWN, "netlab::throughput, which `ascertain listen` answers").into(),
        (IPERF3, "iperf3, where it is installed").into(),
    ],
    factors: factors(),
    metrics: metrics(),
    plots: vec![Plot::Curve { metric: "throughput".into() }],
    ..Spec::new("link-throughput", include_str!("README.md"))
});

fn factors() -> Vec<Factor> {
    vec![
        Factor::one_of("direction", "to the listener, from it, or both at once", [DOWN, UP, BOTH]),
        Factor::one_of("protocol", "as much as TCP can, or UDP at a rate", [TCP, UDP]),
        Factor::integer("streams", "connections each way", 1, 1..=64),
        Factor::new("ip", "IPv4 or IPv6", 4, Accepts::OneOf(vec![4.into(), 6.into()])),
        Factor::integer("rate_mbit_s", "the emulated link's rate", 50, 1..=10_000),
        Factor::integer("rtt_ms", "its round trip", 10, 1..=1_000),
        Factor::integer(
            "burst_kb",
            "what it lets through at that rate before its credit runs out; 0 has no end",
            0,
            0..=1_000_000,
        ),
        Factor::integer("refill_mbit_s", "its rate when that has run out", 10, 1..=10_000),
        Factor::integer("udp_kbit_s", "the rate of each stream of UDP", 10_000, 1..=10_000_000),
        Factor::integer("datagram_bytes", "their size, headers aside", 1_400, 28..=65_507),
        Factor::integer(
            "pause_ms",
            "before each measurement, beside what the emulated credit needs to fill up",
            20,
            0..=600_000,
        ),
        Factor::integer("left_out_ms", "of each, at its beginning: slow start", 200, 0..=600_000),
        Factor::integer("interval_ms", "what the rest is cut into; iperf3's are 100 or more", 100, 1..=60_000),
        Factor::integer("measured_ms", "all of these together", 800, 10..=3_600_000),
        Factor::new(
            "listener",
            "HOST:PORT of `ascertain listen` instead of the emulated link; its token is in ASCERTAIN_LISTEN_TOKEN",
            OURS,
            Accepts::Anything,
        ),
    ]
}

fn metrics() -> Vec<Metric> {
    let own = [
        Metric {
            reduce: Reduce::Quantile(0.5),
            ..Metric::new("throughput", "what arrives in an interval, all streams", Unit::BytePerSecond, Better::Higher)
        },
        Metric::new("retransmitted", "segments that were sent again", Unit::One, Better::Lower),
        Metric::time("round_trip", "as the sender's kernel has it at the end, the longest of all streams"),
        Metric::time("near_cpu", "CPU time of this end for each gigabyte that arrived"),
        Metric::time("far_cpu", "CPU time of the listener's end for it"),
        Metric::share("lost", "the share of the datagrams that never arrived", Better::Lower),
        Metric::share("reordered", "the share of those that arrived which came behind a later one", Better::Lower),
        Metric::time("jitter", "of the datagrams, as RFC 3550 has it, the largest of all streams"),
        Metric::new(
            "burst",
            "what was let through before a credit ran out, counted in IP packets",
            Unit::Byte,
            Better::Higher,
        ),
        Metric::new("refill", "the rate from then on, counted likewise", Unit::BytePerSecond, Better::Higher),
        Metric::new("ran_out", "when that was", Unit::Nanosecond, Better::Higher),
    ];
    own.into_iter().chain(links::metrics()).collect()
}

/// Returns whether the arm's network is a user's.
fn is_elsewhere(arm: &Arm) -> bool {
    arm.point.get("listener").is_some_and(|listener| *listener != OURS.into())
}

impl Experiment for LinkThroughput {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// Both variants either way, and a credit that runs out.
    fn table_arms(&self) -> Vec<Arm> {
        let point = SPEC.default_point();
        let arm = |variant: &str, point| Arm { variant: variant.into(), point };
        let ways = [DOWN, UP].map(|direction| point.clone().with("direction", direction));
        let credit = [("burst_kb", 5_000), ("refill_mbit_s", 25), ("interval_ms", 20), ("measured_ms", 2_500)];
        let credit = credit.into_iter().fold(point.clone(), |point, (factor, level)| point.with(factor, level));
        let arms = ways.iter().flat_map(|point| [OWN, IPERF3].map(|variant| arm(variant, point.clone())));
        arms.chain([arm(OWN, credit)]).collect()
    }

    /// A network that is real has its own rate, round trip and credit.
    fn has(&self, arm: &Arm, factor: &str) -> bool {
        !["rate_mbit_s", "rtt_ms", "burst_kb", "refill_mbit_s"].contains(&factor) || !is_elsewhere(arm)
    }

    /// iperf3 does not speak with `ascertain listen`.
    fn chosen(&self, mut arms: Vec<Arm>, are_named: bool) -> Result<Vec<Arm>, String> {
        arms.retain(|arm| are_named || arm.variant == OWN || !is_elsewhere(arm));
        Ok(arms)
    }

    /// Asks whether one connection fills the user's own network.
    fn claims_about(&self, arms: &[Arm]) -> Vec<Claim> {
        let is_one = |arm: &&Arm| {
            let is_at = |factor, level: Level| arm.point.get(factor) == Some(&level);
            is_elsewhere(arm) && is_at("streams", 1.into()) && is_at("protocol", TCP.into())
        };
        let claim = |one: &Arm| {
            let four = Arm { point: one.point.clone().with("streams", 4), ..one.clone() };
            let way = one.point.get("direction").map(Level::to_string).unwrap_or_default();
            let id = format!("link-throughput.your-network-{way}");
            let says =
                format!("One connection ({way}) carries at least 0.9 times as much as four: it fills the network");
            let (candidate, baseline, scale, bound) = (one.clone(), four, Effect::Ratio, Bound::AtLeast(0.9));
            Claim::in_half(&SPEC.id, id, says, Test::Versus { metric: THROUGHPUT, candidate, baseline, scale, bound })
        };
        arms.iter().filter(is_one).map(claim).collect()
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        is_available(arm)
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        open(arms, setup)
    }
}
