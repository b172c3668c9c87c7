//! HTTPS throughput: how much HTTP carries in the open and encrypted, and what that costs both ends.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

#[cfg(target_os = "linux")]
mod clients;
#[cfg(target_os = "linux")]
mod go;
#[cfg(target_os = "linux")]
mod requests;
#[cfg(target_os = "linux")]
mod servers;
#[cfg(target_os = "linux")]
mod transfers;

use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Arm, Better, Experiment, Factor, Metric, Plot, Session, Setup, Spec, TargetError, Unavailable, Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Machine;

#[cfg(not(target_os = "linux"))]
use crate::links::elsewhere::{is_available, open};
#[cfg(target_os = "linux")]
use {servers::is_available, transfers::open};

/// Throughput of HTTP, in the open and encrypted.
pub struct HttpsThroughput;

const PLAIN: &str = "plain";
const TLS: &str = "tls1.3";
const KERNEL_TLS: &str = "ktls";

const OWN: &str = "own";
const CURL: &str = "curl";
const NGINX: &str = "nginx";
const CADDY: &str = "caddy";
const GO: &str = "go";

/// What encrypts, by the names of a session of ours.
const CIPHERS: [(&str, &str); 3] = [
    ("aes-128-gcm", "TLS13_AES_128_GCM_SHA256"),
    ("aes-256-gcm", "TLS13_AES_256_GCM_SHA384"),
    ("chacha20-poly1305", "TLS13_CHACHA20_POLY1305_SHA256"),
];

/// What is known of a request in the end, with its times in their order.
const REQUEST_BYTES: u64 = 64;

/// Of `cpus`: what both ends may use.
const ALL: &str = "all";
const ONE: &str = "one";

/// The level of `rate` that has as much transferred as can be.
const AS_MUCH: u64 = 0;

const CPU: usize = 0;
const THROUGHPUT: usize = 1;
const CLIENT_CPU: usize = 2;
const SERVER_CPU: usize = 3;
/// From this one on, one for each of the quantiles.
const LATENCY: usize = 4;
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
const LATE: usize = LATENCY + QUANTILES.len();
const ANSWERED: usize = LATE + 1;
const OVERLOADED: usize = LATE + 2;
const REQUEST_CPU: usize = LATE + 3;

/// Of what either end took by itself.
const CAVEAT: &str = "loopback's soft interrupts are charged to whichever side runs, so that it varies while the sum of \
                      both, `cpu`, does not: that is what claims judge";

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "Throughput of HTTP in the open and over TLS, and the CPU time that it costs both ends".into(),
    variants: vec![
        (PLAIN, "HTTP/1.1 in the open").into(),
        (TLS, "HTTP/1.1 over TLS 1.3").into(),
        (KERNEL_TLS, "the same, encrypted by the kernel").into(),
    ],
    factors: factors(),
    metrics: metrics(),
    plots: [("cpu", "streams"), ("throughput", "streams"), ("latency_p99", "rate")]
        .map(|(metric, factor)| Plot::sweep(metric, factor))
        .into(),
    ..Spec::new("https-throughput", include_str!("README.md"))
});

fn factors() -> Vec<Factor> {
    vec![
        Factor::one_of("client", "who asks: ours on hyper and rustls, or one that is installed", [OWN, CURL, GO]),
        Factor::one_of("server", "who answers", [OWN, NGINX, CADDY, GO]),
        Factor::integer("streams", "connections at once", 1, 1..=64),
        Factor::integer("mb", "megabytes that they transfer, all of them together", 128, 1..=1_000_000),
        Factor::one_of("cpus", "which both ends use: all that there are, or one together", [ALL, ONE]),
        Factor::one_of("cipher", "what encrypts", CIPHERS.map(|(level, _)| level)),
        Factor::integer(
            "rate",
            "small requests a second, sent when they are due whatever comes of the others, instead of one large one a \
             stream; 0 has none",
            AS_MUCH,
            AS_MUCH..=1_000_000,
        ),
        Factor::integer("answer_bytes", "the answer to each of them", 1_000, 0..=1_000_000_000),
        Factor::integer("measured_ms", "for how long they are sent", 500, 1..=3_600_000),
    ]
}

fn metrics() -> Vec<Metric> {
    let latency = |(name, _): (&str, f64)| {
        let about = format!("{name} of the time from when a request was due to the last byte of its answer");
        Metric::time(&format!("latency_{name}"), &about)
    };
    [
        Metric::time("cpu", "CPU time of both ends for each gigabyte"),
        Metric::new("throughput", "bytes of bodies a second, all streams", Unit::BytePerSecond, Better::Higher),
        Metric::time("client_cpu", &format!("CPU time of the client for each gigabyte; {CAVEAT}")),
        Metric::time("server_cpu", &format!("CPU time of the server for it; {CAVEAT}")),
    ]
    .into_iter()
    .chain(QUANTILES.map(latency))
    .chain([
        Metric::time("late", "p99 of the time from when a request was due to when it was sent"),
        Metric::new("answered", "requests that were answered in a second", Unit::PerSecond, Better::Higher),
        Metric::share("overloaded", "1 where they came at less than 95 % of the rate", Better::Lower),
        Metric::time("request_cpu", "CPU time of both ends for each request"),
    ])
    .collect()
}

impl Experiment for HttpsThroughput {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// Requests at a rate have sizes of their own, and nothing else has them; in the open nothing is encrypted.
    fn has(&self, arm: &Arm, factor: &str) -> bool {
        let is_as_much = arm.point.get("rate") == Some(&AS_MUCH.into());
        match factor {
            "mb" => is_as_much,
            "answer_bytes" | "measured_ms" => !is_as_much,
            "cipher" => arm.variant != PLAIN,
            _ => true,
        }
    }

    /// Each way by one stream and by several, of which the source speaks.
    fn table_arms(&self) -> Vec<Arm> {
        let point = |streams: u64| SPEC.default_point().with("streams", streams);
        let arms =
            |variant: &Variant| [1, 4].map(|streams| Arm { variant: variant.name.clone(), point: point(streams) });
        SPEC.variants.iter().flat_map(arms).collect()
    }

    /// What nginx and Caddy serve is a file for each arm, which is to stay in memory, and of nginx's a file for each
    /// stream; of requests at a rate it is also kept what became of each.
    fn memory_bytes(&self, arms: &[Arm]) -> u64 {
        let of_arm = |arm: &Arm| {
            let integer = |factor| arm.integer(factor).unwrap_or(0);
            let is_by = |name: &str| arm.point.get("server") == Some(&name.into());
            if integer("rate") == AS_MUCH {
                return if is_by(NGINX) || is_by(CADDY) { integer("mb") * 1_000_000 } else { 0 };
            }
            let files = if is_by(NGINX) { integer("streams") } else { u64::from(is_by(CADDY)) };
            integer("rate") * integer("measured_ms") / 1_000 * REQUEST_BYTES + files * integer("answer_bytes")
        };
        arms.iter().map(of_arm).sum()
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        is_available(arm)
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        open(arms, setup)
    }
}
