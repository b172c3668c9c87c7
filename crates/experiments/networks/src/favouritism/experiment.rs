//! Favouritism: whether a download of one's own is faster while a speed test runs beside it.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

#[cfg(target_os = "linux")]
mod flows;
#[cfg(target_os = "linux")]
mod places;

use std::sync::LazyLock;

use ascertain_engine::claim::{Bound, Claim, Effect, Test};
use ascertain_engine::experiment::{
    Accepts, Arm, Better, Emulates, Experiment, Factor, Level, Metric, Session, Setup, Spec, TargetError, Unavailable,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Machine;

#[cfg(not(target_os = "linux"))]
use crate::links::elsewhere::{is_available, open};
use crate::links::{self, OURS};
use crate::url::Url;
#[cfg(target_os = "linux")]
use {flows::open, places::is_available};

/// One's own download, alone and beside a speed test.
pub struct Favouritism;

const ALONE: &str = "alone";
const BESIDE_TEST: &str = "beside-test";
const DISGUISED: &str = "disguised";

const THROUGHPUT: usize = 0;
const TEST_THROUGHPUT: usize = 1;
const LATE: usize = 2;

const FAIR: &str = "fair";
const CHEATING: &str = "cheating";

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "A speed test beside one's own download: does it make the network faster?".into(),
    emulates: Some(Emulates::of("a link and both servers, in this process").unless(&["url"])),
    variants: vec![
        (ALONE, "a download of one's own, and nothing else").into(),
        (BESIDE_TEST, "the same while a speed test downloads from somebody else, in several streams").into(),
        (DISGUISED, "a download from the speed test's server, so that the provider takes it for a speed test").into(),
    ],
    factors: vec![
        Factor::new(
            "link",
            "the emulated provider: fair, or cheating, which throttles all but while a speed test runs",
            FAIR,
            Accepts::OneOf([FAIR, CHEATING].map(Into::into).to_vec()),
        ),
        Factor::new("rate_mbit_s", "the link's rate", 50, Accepts::Integers { min: 1, max: 10_000 }),
        Factor::new(
            "throttled_mbit_s",
            "what a cheating one lets through",
            2,
            Accepts::Integers { min: 1, max: 10_000 },
        ),
        Factor::new("rtt_ms", "the link's round trip", 10, Accepts::Integers { min: 1, max: 1_000 }),
        Factor::new("streams", "connections of the speed test", 4, Accepts::Integers { min: 1, max: 64 }),
        Factor::new(
            "pause_ms",
            "before each download, beside two of the link's round trips: what came before is to be forgotten",
            20,
            Accepts::Integers { min: 0, max: 600_000 },
        ),
        Factor::new(
            "left_out_ms",
            "of each download, at its beginning: slow start",
            80,
            Accepts::Integers { min: 0, max: 60_000 },
        ),
        Factor::new("measured_ms", "of it, behind that", 120, Accepts::Integers { min: 10, max: 60_000 }),
        Factor::new(
            "url",
            "a file to download instead of ours, through your own provider: http://… or https://…",
            OURS,
            Url::accepted(),
        ),
        Factor::new("speedtest", "the same of a speed test, where there is a url", OURS, Url::accepted()),
    ],
    metrics: [
        Metric::new("throughput", "of one's own download", Unit::BytePerSecond, Better::Higher),
        Metric::new("test_throughput", "of the speed test, all streams", Unit::BytePerSecond, Better::Higher),
    ]
    .into_iter()
    .chain(links::metrics())
    .collect(),
    ..Spec::new("favouritism", include_str!("README.md"))
});

/// Returns whether the file comes from a user's address.
fn is_elsewhere(arm: &Arm) -> bool {
    arm.point.get("url").is_some_and(|url| *url != OURS.into())
}

impl Experiment for Favouritism {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// All variants through both links.
    fn table_arms(&self) -> Vec<Arm> {
        let arm = |variant: &str, link| Arm { variant: variant.into(), point: SPEC.default_point().with("link", link) };
        [FAIR, CHEATING]
            .into_iter()
            .flat_map(|link| [ALONE, BESIDE_TEST, DISGUISED].map(|variant| arm(variant, link)))
            .collect()
    }

    /// The emulated link has no part in a download from elsewhere.
    fn has(&self, arm: &Arm, factor: &str) -> bool {
        !["link", "rate_mbit_s", "throttled_mbit_s", "rtt_ms"].contains(&factor) || !is_elsewhere(arm)
    }

    fn settled(&self, factor: &str, level: Level) -> Result<Level, String> {
        if ["url", "speedtest"].contains(&factor) {
            Url::check(&level)?;
        }
        Ok(level)
    }

    /// Asks whether the user's own provider favours speed tests.
    fn claims_about(&self, arms: &[Arm]) -> Vec<Claim> {
        let beside = arms.iter().filter(|arm| arm.variant == BESIDE_TEST && is_elsewhere(arm));
        let claim = |beside: &Arm| {
            let alone = arms.iter().find(|arm| arm.variant == ALONE && arm.point == beside.point)?;
            let test = Test::Versus {
                metric: THROUGHPUT,
                candidate: beside.clone(),
                baseline: alone.clone(),
                scale: Effect::Ratio,
                bound: Bound::AtLeast(1.2),
            };
            let says = "A download is at least 1.2 times as fast while a speed test runs beside it: the provider \
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
