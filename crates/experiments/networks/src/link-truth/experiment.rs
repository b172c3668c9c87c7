//! Emulated links: whether they are what they were asked to be, and what they cost.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

mod seen;
#[cfg(target_os = "linux")]
mod sending;

use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Accepts, Arm, Better, Experiment, Factor, Metric, Session, Setup, Spec, TargetError, Unavailable,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Machine;

use crate::links;
#[cfg(not(target_os = "linux"))]
use crate::links::elsewhere::{is_available, open};
#[cfg(target_os = "linux")]
use sending::{is_available, open};

/// Emulated links and what goes through them.
pub struct LinkTruth;

const TUN_OFFLOADS: &str = "tun-offloads";
const TUN: &str = "tun";
const VETH: &str = "veth";

const EXCESS: usize = 0;
const EXCESS_P99: usize = 1;
const EARLY: usize = 2;
const REORDERED: usize = 3;
const LOST: usize = 4;
const RATE_SHARE: usize = 5;
const THROUGHPUT: usize = 6;
const SEGMENTS: usize = 7;
const LATE: usize = 8;

const DATAGRAMS: &str = "datagrams";
const STREAM: &str = "stream";
/// So fast that nothing waits, and still each segment is a frame of its own.
const CUT_MBIT_S: u64 = 100_000;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "Emulated links: are they what they were asked to be, and what do they cost?".into(),
    variants: vec![
        (TUN_OFFLOADS, "a TUN on each side, where the emulator cuts what the kernel sends: what a link has by default")
            .into(),
        (TUN, "a TUN on each side, where the kernel does that").into(),
        (VETH, "virtual Ethernet on each side, which needs no device file").into(),
    ],
    factors: vec![
        Factor::new(
            "sends",
            "what goes through it: datagrams, or a stream, which is one connection of TCP that sends what it can",
            DATAGRAMS,
            Accepts::OneOf([DATAGRAMS, STREAM].map(Into::into).to_vec()),
        ),
        Factor::new("rtt_ms", "the link's round trip", 20, Accepts::Integers { min: 0, max: 10_000 }),
        Factor::new(
            "rate_mbit_s",
            "its rate; 0 is as much as the machine can",
            0,
            Accepts::Integers { min: 0, max: CUT_MBIT_S },
        ),
        Factor::new("queue_bytes", "what may wait at it", 1 << 20, Accepts::Integers { min: 0, max: 1 << 30 }),
        Factor::new("loss_percent", "of segments, each way", 0, Accepts::Integers { min: 0, max: 50 }),
        Factor::new("datagrams", "how many a trial has", 100, Accepts::Integers { min: 2, max: 1_000_000 }),
        Factor::new("bytes", "of each, as an IP packet", 100, Accepts::Integers { min: seen::LEAST_BYTES, max: 1_500 }),
        Factor::new(
            "gap_us",
            "from one datagram to the next; 0 sends all at once",
            1_000,
            Accepts::Integers { min: 0, max: 1_000_000 },
        ),
        Factor::new(
            "left_out_ms",
            "of the stream, at its beginning: slow start",
            50,
            Accepts::Integers { min: 0, max: 60_000 },
        ),
        Factor::new("measured_ms", "of the stream, behind that", 150, Accepts::Integers { min: 10, max: 60_000 }),
    ],
    metrics: [
        Metric::time("excess", "by how much the median datagram took longer than the link should have it"),
        Metric::time("excess_p99", "the same of the 99th percentile"),
        Metric::new("early", "datagrams that arrived before they should have", Unit::One, Better::Lower),
        Metric::new("reordered", "datagrams that arrived behind a later one", Unit::One, Better::Lower),
        Metric::share("lost", "the share of the datagrams that did not arrive", Better::Lower),
        Metric::new(
            "rate_share",
            "how fast a burst arrived, as a share of how fast it should have",
            Unit::One,
            Better::Higher,
        ),
        Metric::new("throughput", "of the stream, without headers", Unit::BytePerSecond, Better::Higher),
        Metric::new(
            "segments_per_cpu_s",
            "of the stream, both ways, by the emulator's thread and the kernel's work for it",
            Unit::PerSecond,
            Better::Higher,
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

    /// With each carrier: delay, rate, and streams as fast as they go, in large frames and cut into segments.
    fn table_arms(&self) -> Vec<Arm> {
        let delay = SPEC.default_point();
        let burst = [("rate_mbit_s", 100), ("datagrams", 400), ("bytes", 1_500), ("gap_us", 0)];
        let burst = burst.iter().fold(delay.clone(), |point, (factor, level)| point.with(factor, *level));
        let stream = delay.clone().with("sends", STREAM).with("rtt_ms", 0);
        let cut = stream.clone().with("rate_mbit_s", CUT_MBIT_S).with("queue_bytes", 64 << 20);
        let points = [delay, burst, stream, cut];
        let with_each = |point| [TUN_OFFLOADS, TUN, VETH].map(|variant| (variant, point));
        let arms = points.iter().flat_map(with_each);
        arms.map(|(variant, point)| Arm { variant: variant.into(), point: point.clone() }).collect()
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        is_available(arm)
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        open(arms, setup)
    }
}
