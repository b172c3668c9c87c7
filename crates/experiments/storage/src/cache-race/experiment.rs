//! A disk cache before a server: what is gained by asking the server too where the disk is slow, and what that costs.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

#[cfg(target_os = "linux")]
mod disk;
#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod origin;
#[cfg(target_os = "linux")]
mod races;
mod traces;

use std::path::Path;
use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Accepts, Arm, Better, Emulates, Experiment, Factor, Level, Metric, Plot, Point, Session, Setup, Spec, TargetError,
    Unavailable,
};
use ascertain_engine::unit::Unit;
#[cfg(not(target_os = "linux"))]
use ascertain_experiments_networks::links::elsewhere::{is_available, open};
use ascertain_experiments_networks::links::{self, OURS};
use ascertain_sys::machine::Machine;

#[cfg(target_os = "linux")]
use races::{is_available, open};

/// A cache before an origin, and the origin asked too.
pub struct CacheRace;

const NEVER: &str = "never";
const ALWAYS: &str = "always";
const AFTER: &str = "after";
const PERCENTILE: &str = "percentile";
const THROTTLED: &str = "throttled";

const DRAWN: &str = "drawn";
const RECORDED: &str = "recorded";

/// Levels of `trace` that are no files.
const LIVE: &str = "live";
const FIREFOX: &str = "firefox";
const STALLS: &str = "stalls";

const COLD: &str = "cold";
const WARM: &str = "warm";

const SERVERS: [&str; 3] = ["own", "nginx", "caddy"];

const TIME: usize = 0;
const RACED: usize = 1;
const WON: usize = 2;
const EXTRA: usize = 3;
const GAIN: usize = 4;
const WITHHELD: usize = 5;
const REQUESTS: usize = 6;
const RESIDENT: usize = 7;
const LATE: usize = 8;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "A cache that is at times slow: the origin asked too, by policy, live and on recorded requests".into(),
    emulates: Some(
        Emulates::of("the link to the server, and in a replay the times of both, unless somebody recorded them")
            .except(&[NEVER, THROTTLED], &Point::default().with("trace", LIVE)),
    ),
    variants: vec![
        (NEVER, "the origin is asked when the cache has failed").into(),
        (ALWAYS, "both are asked at once").into(),
        (AFTER, "the origin is asked too after `delay_us`").into(),
        (PERCENTILE, "the origin is asked too when the cache takes longer than `percentile` did, within the budget")
            .into(),
        (THROTTLED, "no race; no more than `at_once` requests read the cache").into(),
    ],
    factors: factors(),
    metrics: metrics(),
    plots: vec![Plot::sweep("time", "quantile_permille"), Plot::sweep("gain", "stalls_permille")],
    ..Spec::new("cache-race", include_str!("README.md"))
});

fn factors() -> Vec<Factor> {
    vec![
        Factor::new(
            "trace",
            "live is a disk and a link; firefox and stalls are made up, see `explain`; else a file of recorded times",
            LIVE,
            Accepts::Anything,
        ),
        Factor::one_of(
            "order",
            "of a file or firefox: drawn draws blocks of neighbours for each trial, recorded has all requests in order",
            [DRAWN, RECORDED],
        ),
        Factor::integer("quantile_permille", "the quantile of a trial's requests that `time` is", 990, 1..=999),
        Factor::integer("delay_us", "`after`: when the origin is asked too", 2_000, 0..=60_000_000),
        Factor::integer(
            "percentile",
            "`percentile`: of how many requests in a hundred the cache is waited for",
            95,
            1..=99,
        ),
        Factor::integer(
            "budget_permille",
            "`percentile`: of a thousand requests so many may be asked in vain",
            50,
            0..=1_000,
        ),
        Factor::integer("at_once", "`throttled`: how many may read the cache", 2, 1..=1_000),
        Factor::integer("stalls_permille", "`stalls`: of a thousand requests so many", 30, 0..=500),
        Factor::integer("requests", "live: in a trial", 128, 1..=1_000_000),
        Factor::integer("concurrency", "live: how many are under way", 8, 1..=1_000),
        Factor::integer("bytes", "live: of each object", 262_144, 1..=1 << 30),
        Factor::one_of("page_cache", "live: whether the kernel has the cache's files in memory", [COLD, WARM]),
        Factor::new("folder", "live: where they are; none is /var/tmp", OURS, Accepts::Anything),
        Factor::integer("rtt_ms", "live: the round trip of the link to the server", 20, 1..=10_000),
        Factor::one_of("server", "live: who answers there", SERVERS),
        Factor::new(
            "record",
            "live, `never`: a file that both sides' times of each request are added to",
            OURS,
            Accepts::Anything,
        ),
    ]
}

fn metrics() -> Vec<Metric> {
    let share = |name, about| Metric::share(name, about, Better::Lower);
    let one = |name, about| Metric::new(name, about, Unit::One, Better::Higher);
    [
        Metric::time("time", "of a trial's requests, at the quantile"),
        share("raced", "share of requests for which the origin was asked while the cache might answer"),
        Metric::share("won", "share of those that the network answered first; 0 of none", Better::Higher),
        share("extra", "share of requests for which the origin was asked in vain, as far as is known"),
        one("gain", "of a trace: how much of what always racing gains at the quantile"),
        share("withheld", "share of requests that were late, and had no budget left"),
        one("requests", "how many of a trial the quantile and the shares are of"),
        share("resident", "share of the files' pages that were in memory when they were asked for"),
    ]
    .into_iter()
    .chain(links::metrics())
    .collect()
}

fn text<'a>(arm: &'a Arm, factor: &str) -> std::borrow::Cow<'a, str> {
    match arm.point.get(factor) {
        Some(Level::Text(text)) => text.as_str().into(),
        Some(level) => level.to_string().into(),
        None => OURS.into(),
    }
}

impl Experiment for CacheRace {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn settled(&self, factor: &str, level: Level) -> Result<Level, String> {
        let (text, said) = (level.to_string(), |path: &Path, why: &str| Err(format!("{}: {why}", path.display())));
        let path = Path::new(&text);
        match factor {
            "trace" if ![LIVE, FIREFOX, STALLS].contains(&&*text) => traces::read(path).map(|_| level),
            "folder" if text != OURS && !path.is_dir() => said(path, "there is no such folder"),
            "record" if text != OURS => match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
                    said(folder, "there is no such folder")
                }
                _ if path.is_dir() => said(path, "it is a folder"),
                _ => Ok(level),
            },
            _ => Ok(level),
        }
    }

    /// What is for one policy, for a disk and a link, or for a trace.
    fn has(&self, arm: &Arm, factor: &str) -> bool {
        let (trace, is_of) = (text(arm, "trace"), |variant| arm.variant == variant);
        match factor {
            "trace" | "quantile_permille" => true,
            "delay_us" => is_of(AFTER),
            "percentile" | "budget_permille" => is_of(PERCENTILE),
            "at_once" => is_of(THROTTLED),
            "stalls_permille" => trace == STALLS,
            "order" => trace != STALLS && trace != LIVE,
            _ => trace == LIVE,
        }
    }

    /// The tails of policies that can be replayed; the source's counts, and each policy on the disk, by the median,
    /// since the tail of one trial there is a request or two.
    fn table_arms(&self) -> Vec<Arm> {
        let arm = |variant: &str, trace: &str, quantile: u64| {
            let point = SPEC.default_point().with("trace", trace).with("quantile_permille", quantile);
            Arm { variant: variant.into(), point }
        };
        let replayed = [NEVER, ALWAYS, AFTER, PERCENTILE].map(|variant| arm(variant, STALLS, 990));
        let live = SPEC.variants.iter().map(|variant| arm(&variant.name, LIVE, 500));
        replayed.into_iter().chain([arm(AFTER, FIREFOX, 500)]).chain(live).collect()
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        is_available(arm)
    }

    /// Live, what both sides have under way, and what the cache is made of.
    fn memory_bytes(&self, arms: &[Arm]) -> u64 {
        let live = arms.iter().filter(|arm| text(arm, "trace") == LIVE);
        let of_arm =
            |arm: &Arm| Some(arm.integer("bytes").ok()?.saturating_mul(2 * arm.integer("concurrency").ok()? + 1));
        live.filter_map(of_arm).max().unwrap_or(0)
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        open(arms, setup)
    }
}
