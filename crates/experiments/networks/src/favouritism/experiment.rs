//! Measures whether a download is faster while a speed test runs at the same time.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

#[cfg_attr(not(target_os = "linux"), path = "../elsewhere.rs")]
mod flows;

use std::sync::LazyLock;

use ascertain_engine::claim::{Bound, Claim, Effect, Test};
use ascertain_engine::experiment::Better::Higher;
use ascertain_engine::experiment::{
    Arm, Emulates, Experiment, Factor, Level, Metric, Session, Setup, Spec, TargetError, Unavailable,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Machine;

use crate::levels::given;
use crate::links::{self, OURS};
use crate::url::Url;
use flows::{is_available, open};

/// The experiment `favouritism`.
pub struct Favouritism;

const ALONE: &str = "alone";
const BESIDE_TEST: &str = "beside-test";
const DISGUISED: &str = "disguised";

indices! { THROUGHPUT, TEST_THROUGHPUT, LATE }

const FAIR: &str = "fair";
const CHEATING: &str = "cheating";

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "A speed test during a download: does it make the network faster?".into(),
    emulates: Some(Emulates::new("a link and both servers, in this process").unless(&["url"])),
    variants: vec![
        (ALONE, "a download without other traffic").into(),
        (BESIDE_TEST, "the same download while a speed test downloads from another server, in several streams").into(),
        (DISGUISED, "a download from the speed test's server, so that the provider mistakes it for a speed test")
            .into(),
    ],
    factors: vec![
        Factor::one_of(
            "link",
            "emulated provider: fair, or cheating, which throttles all traffic unless a speed test runs",
            [FAIR, CHEATING],
        ),
        Factor::integer("rate_mbit_s", "rate of the link", 50, 1..=10_000),
        Factor::integer("throttled_mbit_s", "throttled rate of a cheating provider", 2, 1..=10_000),
        Factor::integer("rtt_ms", "round-trip time of the link", 10, 1..=1_000),
        Factor::integer("streams", "number of connections of the speed test", 4, 1..=64),
        Factor::integer(
            "pause_ms",
            "pause before each download, in addition to two round trips of the link",
            20,
            0..=600_000,
        ),
        Factor::integer("left_out_ms", "uncounted time at the beginning of each download (slow start)", 80, 0..=60_000),
        Factor::integer("measured_ms", "counted duration of each download, after `left_out_ms`", 120, 10..=60_000),
        Factor::new(
            "url",
            "file to download through your own provider, instead of the emulated link: http://… or https://…",
            OURS,
            Url::accepted(),
        ),
        Factor::new(
            "speedtest",
            "file to download as the speed test; required if `url` is given",
            OURS,
            Url::accepted(),
        ),
    ],
    metrics: [
        Metric::new("throughput", "bytes per second of the download", Unit::BytePerSecond, Higher),
        Metric::new(
            "test_throughput",
            "bytes per second of the speed test, all streams together",
            Unit::BytePerSecond,
            Higher,
        ),
    ]
    .into_iter()
    .chain(links::metrics())
    .collect(),
    ..Spec::new("favouritism", include_str!("README.md"))
});

/// Returns whether the measured file comes from an address that the user gave, and not from our own server.
fn is_elsewhere(arm: &Arm) -> bool {
    given(arm, "url").is_some()
}

impl Experiment for Favouritism {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// Returns two arms for each variant: one with the fair emulated link, and one with the cheating link.
    fn table_arms(&self) -> Vec<Arm> {
        let arm = |variant: &str, link| Arm { variant: variant.into(), point: SPEC.default_point().with("link", link) };
        [FAIR, CHEATING]
            .into_iter()
            .flat_map(|link| [ALONE, BESIDE_TEST, DISGUISED].map(|variant| arm(variant, link)))
            .collect()
    }

    /// Returns `false` for the factors of the emulated link if the file comes from the user's address.
    fn has(&self, arm: &Arm, factor: &str) -> bool {
        !["link", "rate_mbit_s", "throttled_mbit_s", "rtt_ms"].contains(&factor) || !is_elsewhere(arm)
    }

    fn settled(&self, factor: &str, level: Level) -> Result<Level, String> {
        if ["url", "speedtest"].contains(&factor) {
            Url::check(&level)?;
        }
        Ok(level)
    }

    /// Returns the claim that the user's own provider favours speed tests.
    fn claims_about(&self, arms: &[Arm]) -> Vec<Claim> {
        let beside = arms.iter().filter(|arm| arm.variant == BESIDE_TEST && is_elsewhere(arm));
        let claim = |beside: &Arm| {
            let alone = arms.iter().find(|arm| arm.variant == ALONE && arm.point == beside.point)?;
            let test = Test::Versus {
                measure: (&SPEC.metrics[THROUGHPUT]).into(),
                candidate: beside.clone(),
                baseline: alone.clone(),
                scale: Effect::Ratio,
                bound: Bound::AtLeast(1.2),
            };
            let says = "A download is at least 1.2 times as fast while a speed test runs at the same time: the provider \
                        favours speed tests";
            Some(Claim::in_half(&SPEC.id, "favouritism.your-provider".into(), says.into(), test))
        };
        beside.filter_map(claim).collect()
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        is_available(arm)
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        open(arms, setup)
    }
}
