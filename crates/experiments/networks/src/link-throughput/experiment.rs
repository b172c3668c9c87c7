//! Measures the throughput of a network in both directions, and the CPU time that it costs.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

#[cfg(target_os = "linux")]
mod iperf3;
#[cfg_attr(not(target_os = "linux"), path = "../elsewhere.rs")]
mod throughputs;

use std::sync::LazyLock;

use ascertain_engine::claim::{Bound, Claim, Effect, Test};
use ascertain_engine::experiment::Better::{Higher, Lower};
use ascertain_engine::experiment::{
    Accepts, Arm, Emulates, Experiment, Factor, Metric, Plot, Reduce, Session, Setup, Spec, TargetError, Unavailable,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Machine;

use crate::levels::{given, user_factor, word};
use crate::links;
use throughputs::{is_available, open};

/// The experiment `link-throughput`.
pub struct LinkThroughput;

const OWN: &str = "own";
const IPERF3: &str = "iperf3";

const UP: &str = "up";
const DOWN: &str = "down";
const BOTH: &str = "both";
const TCP: &str = "tcp";
const UDP: &str = "udp";

indices! {
    THROUGHPUT, RETRANSMITTED, ROUND_TRIP, NEAR_CPU, FAR_CPU, LOST, REORDERED, JITTER, BURST, REFILL, RAN_OUT, LATE
}

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "Throughput, CPU time and burst credit of a network over TCP and UDP, compared with iperf3".into(),
    emulates: Some(Emulates::new("a link between two namespaces of this machine").unless(&["listener"])),
    variants: vec![
        (OWN, "the client of netlab::throughput, which connects to `ascertain listen`").into(),
        (IPERF3, "iperf3, if it is installed").into(),
    ],
    factors: factors(),
    metrics: metrics(),
    plots: vec![Plot::Curve { metric: "throughput".into() }],
    ..Spec::new("link-throughput", include_str!("README.md"))
});

fn factors() -> Vec<Factor> {
    vec![
        Factor::one_of(
            "direction",
            "direction of the traffic: from the listener, to the listener, or both at once",
            [DOWN, UP, BOTH],
        ),
        Factor::one_of("protocol", "protocol: TCP as fast as possible, or UDP at a fixed rate", [TCP, UDP]),
        Factor::integer("streams", "number of connections in each direction", 1, 1..=64),
        Factor::new("ip", "IPv4 or IPv6", 4, Accepts::OneOf(vec![4.into(), 6.into()])),
        Factor::integer("rate_mbit_s", "rate of the emulated link", 50, 1..=10_000),
        Factor::integer("rtt_ms", "round-trip time of the emulated link", 10, 1..=1_000),
        Factor::integer(
            "burst_kb",
            "kilobytes that the link lets through at `rate_mbit_s` before its credit runs out; 0 means no limit",
            0,
            0..=1_000_000,
        ),
        Factor::integer("refill_mbit_s", "rate of the link after the credit ran out", 10, 1..=10_000),
        Factor::integer("udp_kbit_s", "rate of each UDP stream", 10_000, 1..=10_000_000),
        Factor::integer("datagram_bytes", "size of each datagram, without headers", 1_400, 28..=65_507),
        Factor::integer(
            "pause_ms",
            "pause before each measurement, in addition to the time in which the emulated credit fills up",
            20,
            0..=600_000,
        ),
        Factor::integer(
            "left_out_ms",
            "uncounted time at the beginning of each measurement (slow start)",
            200,
            0..=600_000,
        ),
        Factor::integer(
            "interval_ms",
            "length of the intervals in which arriving bytes are counted; at least 100 with iperf3",
            100,
            1..=60_000,
        ),
        Factor::integer("measured_ms", "duration of all counted intervals together", 800, 10..=3_600_000),
        user_factor(
            "listener",
            "HOST:PORT of `ascertain listen` instead of the emulated link; its token is in ASCERTAIN_LISTEN_TOKEN",
        ),
    ]
}

fn metrics() -> Vec<Metric> {
    let own = [
        Metric {
            reduce: Reduce::Quantile(0.5),
            ..Metric::new(
                "throughput",
                "bytes per second that arrive in an interval, all streams together",
                Unit::BytePerSecond,
                Higher,
            )
        },
        Metric::new("retransmitted", "number of retransmitted segments", Unit::One, Lower),
        Metric::time(
            "round_trip",
            "longest round-trip time of all streams at the end, according to the sender's kernel",
        ),
        Metric::time("near_cpu", "CPU time of this end per gigabyte that arrived"),
        Metric::time("far_cpu", "CPU time of the listener's end per gigabyte that arrived"),
        Metric::share("lost", "share of the datagrams that never arrived", Lower),
        Metric::share("reordered", "share of the arrived datagrams that a later datagram overtook", Lower),
        Metric::time("jitter", "jitter of the datagrams as defined in RFC 3550, the largest of all streams"),
        Metric::new(
            "burst",
            "bytes that were let through before the credit ran out, counted in IP packets",
            Unit::Byte,
            Higher,
        ),
        Metric::new("refill", "rate after the credit ran out, counted in IP packets", Unit::BytePerSecond, Higher),
        Metric::new("ran_out", "time at which the credit ran out", Unit::Nanosecond, Higher),
    ];
    own.into_iter().chain(links::metrics()).collect()
}

/// Returns whether the arm measures a network of the user, and not an emulated link.
fn is_elsewhere(arm: &Arm) -> bool {
    given(arm, "listener").is_some()
}

impl Experiment for LinkThroughput {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// Returns an arm for each variant and direction, and one arm whose link has a limited burst credit. The credit is
    /// the number of bytes that pass at the full rate.
    fn table_arms(&self) -> Vec<Arm> {
        let point = SPEC.default_point();
        let arm = |variant: &str, point| Arm { variant: variant.into(), point };
        let ways = [DOWN, UP].map(|direction| point.clone().with("direction", direction));
        let credit = [("burst_kb", 5_000), ("refill_mbit_s", 25), ("interval_ms", 20), ("measured_ms", 2_500)];
        let credit = credit.into_iter().fold(point.clone(), |point, (factor, level)| point.with(factor, level));
        let arms = ways.iter().flat_map(|point| [OWN, IPERF3].map(|variant| arm(variant, point.clone())));
        arms.chain([arm(OWN, credit)]).collect()
    }

    /// Returns `false` for the factors that describe the emulated link (rate, round trip, credit) if the arm measures
    /// the user's own network.
    fn has(&self, arm: &Arm, factor: &str) -> bool {
        !["rate_mbit_s", "rtt_ms", "burst_kb", "refill_mbit_s"].contains(&factor) || !is_elsewhere(arm)
    }

    /// Removes the arms of iperf3 that use the user's listener, because iperf3 does not support the protocol of
    /// `ascertain listen`. Keeps them if the user named the variants.
    fn chosen(&self, mut arms: Vec<Arm>, are_named: bool) -> Result<Vec<Arm>, String> {
        arms.retain(|arm| are_named || arm.variant == OWN || !is_elsewhere(arm));
        Ok(arms)
    }

    /// Returns the claim that one connection fills the user's own network.
    fn claims_about(&self, arms: &[Arm]) -> Vec<Claim> {
        let is_one = |arm: &&Arm| is_elsewhere(arm) && arm.integer("streams") == Ok(1) && word(arm, "protocol") == TCP;
        let claim = |one: &Arm| {
            let four = Arm { point: one.point.clone().with("streams", 4), ..one.clone() };
            let way = word(one, "direction");
            let id = format!("link-throughput.your-network-{way}");
            let says = format!(
                "One connection ({way}) is enough to fill the network: it carries at least 0.9 times as much as four"
            );
            let (candidate, baseline, scale, bound) = (one.clone(), four, Effect::Ratio, Bound::AtLeast(0.9));
            let measure = (&SPEC.metrics[THROUGHPUT]).into();
            Claim::in_half(&SPEC.id, id, says, Test::Versus { measure, candidate, baseline, scale, bound })
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
