//! The experiment `cache-race`: a cache on a disk in front of a server. If the disk is slow, a request may also go to
//! the server. The experiment measures the gain, and the cost in additional requests.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

#[cfg(target_os = "linux")]
mod disk;
#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod origin;
#[cfg(target_os = "linux")]
mod session;
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
use session::{is_available, open};

/// The experiment `cache-race`: races between a cache and its origin.
pub struct CacheRace;

const NEVER: &str = "never";
const ALWAYS: &str = "always";
const AFTER: &str = "after";
const PERCENTILE: &str = "percentile";
const THROTTLED: &str = "throttled";

const DRAWN: &str = "drawn";
const RECORDED: &str = "recorded";

/// The levels of the factor `trace` that are keywords instead of paths. Every other level is the path of a file with
/// recorded durations.
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
    title: "Races between a sometimes slow cache and its origin: policies for live and for recorded requests".into(),
    emulates: Some(
        Emulates::new(
            "the link to the server; in a replay, the durations at the cache and at the origin, if they were not \
             recorded",
        )
        .except(&[NEVER, THROTTLED], &Point::default().with("trace", LIVE)),
    ),
    variants: vec![
        (NEVER, "no race; the request goes to the origin only if the cache fails").into(),
        (ALWAYS, "every request goes to the cache and the origin at once").into(),
        (AFTER, "the request also goes to the origin after `delay_us`").into(),
        (PERCENTILE, "the request also goes to the origin if the cache is slower than `percentile`, within the budget")
            .into(),
        (THROTTLED, "no race; at most `at_once` requests read the cache at the same time").into(),
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
            "source of the requests: live (a disk and a link), firefox or stalls (artificial), or a file of recorded times",
            LIVE,
            Accepts::Anything,
        ),
        Factor::one_of(
            "order",
            "for a file or firefox: drawn (a new random sample in each trial) or recorded (all requests in order)",
            [DRAWN, RECORDED],
        ),
        Factor::integer(
            "quantile_permille",
            "quantile of a trial's requests that `time` reports, in thousandths",
            990,
            1..=999,
        ),
        Factor::integer(
            "delay_us",
            "`after`: delay of the request to the origin in microseconds",
            2_000,
            0..=60_000_000,
        ),
        Factor::integer(
            "percentile",
            "`percentile`: percentage of requests that the cache should answer before a race starts",
            95,
            1..=99,
        ),
        Factor::integer(
            "budget_permille",
            "`percentile`: largest share of requests that may go to the origin unnecessarily, in thousandths",
            50,
            0..=1_000,
        ),
        Factor::integer(
            "at_once",
            "`throttled`: number of requests that may read the cache at the same time",
            2,
            1..=1_000,
        ),
        Factor::integer("stalls_permille", "`stalls`: share of requests that stall, in thousandths", 30, 0..=500),
        Factor::integer("requests", "live: number of requests in a trial", 128, 1..=1_000_000),
        Factor::integer("concurrency", "live: number of requests in flight", 8, 1..=1_000),
        Factor::integer("bytes", "live: size of each object in bytes", 262_144, 1..=1 << 30),
        Factor::one_of(
            "page_cache",
            "live: state of the cache's files: cold, or warm (in the kernel's memory)",
            [COLD, WARM],
        ),
        Factor::new("folder", "live: folder of the cache's files; none means /var/tmp", OURS, Accepts::Anything),
        Factor::integer("rtt_ms", "live: round-trip time of the link to the server in ms", 20, 1..=10_000),
        Factor::one_of("server", "live: server program of the origin", SERVERS),
        Factor::new(
            "record",
            "live, `never`: file to which each request's durations at the cache and at the origin are appended",
            OURS,
            Accepts::Anything,
        ),
    ]
}

fn metrics() -> Vec<Metric> {
    let share = |name, about| Metric::share(name, about, Better::Lower);
    let one = |name, about| Metric::new(name, about, Unit::One, Better::Higher);
    [
        Metric::time("time", "duration of a request: the quantile `quantile_permille` of the trial's requests"),
        share("raced", "share of requests that raced: sent to the origin while the cache could still answer"),
        Metric::share("won", "share of races that the origin won; 0 if no request raced", Better::Higher),
        share("extra", "share of requests that went to the origin unnecessarily, as far as is known"),
        one("gain", "for a trace: time that the policy saves at the quantile, divided by the time that `always` saves"),
        share("withheld", "share of requests that were late, but did not race because the budget was used up"),
        one("requests", "number of requests in a trial, from which the quantile and the shares are computed"),
        share("resident", "share of the files' pages that were in memory before the reads"),
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

    /// Returns whether the factor applies to the arm. Some factors apply only to one policy, to live arms, or to
    /// traces.
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

    /// Returns the arms of the default table:
    ///
    /// - replays of artificial stalls under several policies, with the 99th percentile of the durations
    /// - a replay with the published counts of Firefox, with the median
    /// - each policy on the disk, with the median, because only one or two requests of a trial are slow
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

    /// Returns the memory in bytes that live arms need. It holds the answers in flight from the cache and the origin,
    /// and the contents of the cache.
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
