//! Measures how closely emulated links follow their specification, and what they cost.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

#[cfg_attr(not(target_os = "linux"), path = "../elsewhere.rs")]
mod sending;

use std::sync::LazyLock;

use ascertain_engine::experiment::Better::{Higher, Lower};
use ascertain_engine::experiment::{
    Arm, Experiment, Factor, Metric, Point, Session, Setup, Spec, TargetError, Unavailable,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Machine;

use crate::links;
use sending::{is_available, open};

/// The experiment `link-truth`.
pub struct LinkTruth;

const TUN_OFFLOADS: &str = "tun-offloads";
const TUN: &str = "tun";
const VETH: &str = "veth";
const BARE_TUN_OFFLOADS: &str = "bare-tun-offloads";
const BARE_TUN: &str = "bare-tun";
const BARE_VETH: &str = "bare-veth";

indices! { EXCESS, EXCESS_P99, EARLY, REORDERED, LOST, RATE_SHARE, THROUGHPUT, SEGMENTS, LATE }

/// Size of the headers of IPv4 and UDP in bytes.
const HEADER_BYTES: u64 = 28;
/// Size of the smallest packet in bytes. Its payload contains only the number of the trial and the sequence number.
const LEAST_BYTES: u64 = HEADER_BYTES + 16;

const DATAGRAMS: &str = "datagrams";
const STREAM: &str = "stream";
/// A level of `rate_mbit_s` that is too high to delay any segment. It is used because a link with a rate limit delivers
/// each segment as its own frame.
const CUT_MBIT_S: u64 = 100_000;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "Emulated links: how faithful they are, and what they cost".into(),
    variants: vec![
        (TUN_OFFLOADS, "a TUN on each side; the emulator cuts frames into segments (the default of a link)").into(),
        (TUN, "a TUN on each side; the kernel cuts frames into segments").into(),
        (VETH, "virtual Ethernet on each side, which needs no device file").into(),
        (BARE_TUN_OFFLOADS, "limit: a thread reads each frame from one TUN, and writes it to the other").into(),
        (BARE_TUN, "limit: the same, while the kernel cuts frames into segments").into(),
        (BARE_VETH, "limit: the same with virtual Ethernet").into(),
    ],
    factors: vec![
        Factor::one_of(
            "sends",
            "traffic over the link: datagrams, or a stream, which is a TCP connection that sends as fast as it can",
            [DATAGRAMS, STREAM],
        ),
        Factor::integer("rtt_ms", "round-trip time of the link", 20, 0..=10_000),
        Factor::integer("rate_mbit_s", "rate of the link; 0 means no limit", 0, 0..=CUT_MBIT_S),
        Factor::integer("queue_bytes", "size of the link's queue", 1 << 20, 0..=1 << 30),
        Factor::integer("loss_percent", "percentage of segments that are lost, in each direction", 0, 0..=50),
        Factor::integer("datagrams", "number of datagrams in a trial", 100, 2..=1_000_000),
        Factor::integer("bytes", "size of each datagram's IP packet", 100, LEAST_BYTES..=1_500),
        Factor::integer("gap_us", "time from one datagram to the next; 0 sends all at once", 1_000, 0..=1_000_000),
        Factor::integer("left_out_ms", "uncounted time at the beginning of the stream (slow start)", 50, 0..=60_000),
        Factor::integer("measured_ms", "counted duration of the stream, after `left_out_ms`", 150, 10..=60_000),
    ],
    metrics: [
        Metric::time("excess", "time by which the median datagram arrived too late"),
        Metric::time("excess_p99", "99th percentile of the time by which datagrams arrived too late"),
        Metric::new("early", "number of datagrams that arrived too early", Unit::One, Lower),
        Metric::new("reordered", "number of datagrams that arrived after a datagram sent later", Unit::One, Lower),
        Metric::share("lost", "share of the datagrams that did not arrive", Lower),
        Metric::new("rate_share", "rate at which a burst arrived, as a share of the expected rate", Unit::One, Higher),
        Metric::new("throughput", "bytes per second of the stream, without headers", Unit::BytePerSecond, Higher),
        Metric::new(
            "segments_per_cpu_s",
            "segments of the stream, in both directions, per second of the emulator's CPU time",
            Unit::PerSecond,
            Higher,
        ),
    ]
    .into_iter()
    .chain(links::metrics())
    .collect(),
    ..Spec::new("link-truth", include_str!("README.md"))
});

impl Experiment for LinkTruth {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// Returns four kinds of arms: for the delay, for the rate, for a stream in large frames, and for a stream that is
    /// cut into segments. Each kind is measured with every carrier, such as a TUN device. No rate limit slows the
    /// streams. Bare links have no delay and no rate, so only the arms without them are measured.
    fn table_arms(&self) -> Vec<Arm> {
        let delay = SPEC.default_point();
        let burst = [("rate_mbit_s", 100), ("datagrams", 400), ("bytes", 1_500), ("gap_us", 0)];
        let burst = burst.iter().fold(delay.clone(), |point, (factor, level)| point.with(factor, *level));
        let stream = delay.clone().with("sends", STREAM).with("rtt_ms", 0);
        let cut = stream.clone().with("rate_mbit_s", CUT_MBIT_S).with("queue_bytes", 64 << 20);
        let points = [delay.clone(), burst, stream.clone(), cut];
        let bare_points = [delay.with("rtt_ms", 0), stream];
        let arm = |variant: &str, point: &Point| Arm { variant: variant.into(), point: point.clone() };
        let with_each =
            |variants: [&'static str; 3], point| variants.into_iter().map(move |variant| arm(variant, point));
        let emulated = points.iter().flat_map(|point| with_each([TUN_OFFLOADS, TUN, VETH], point));
        let bare = bare_points.iter().flat_map(|point| with_each([BARE_TUN_OFFLOADS, BARE_TUN, BARE_VETH], point));
        emulated.chain(bare).collect()
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        is_available(arm)
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        open(arms, setup)
    }
}
