//! Measures the throughput and the latency of HTTP with and without TLS, and the CPU time of both ends.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

#[cfg(target_os = "linux")]
mod clients;
#[cfg(target_os = "linux")]
mod go;
#[cfg(target_os = "linux")]
mod requests;
#[cfg_attr(not(target_os = "linux"), path = "../elsewhere.rs")]
mod servers;
#[cfg_attr(not(target_os = "linux"), path = "../elsewhere.rs")]
mod transfers;

use std::sync::LazyLock;

use ascertain_engine::experiment::Better::{Higher, Lower};
use ascertain_engine::experiment::{
    Arm, Experiment, Factor, Metric, Plot, Session, Setup, Spec, TargetError, Unavailable, Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Machine;

use {servers::is_available, transfers::open};

/// The experiment `https-throughput`.
pub struct HttpsThroughput;

const PLAIN: &str = "plain";
const TLS: &str = "tls1.3";
const KERNEL_TLS: &str = "ktls";

const OWN: &str = "own";
const CURL: &str = "curl";
const RUSTLS: &str = "rustls";
const NGINX: &str = "nginx";
const CADDY: &str = "caddy";
const GO: &str = "go";

/// The levels of `cipher`, each with the name of its cipher suite in rustls.
const CIPHERS: [(&str, &str); 3] = [
    ("aes-128-gcm", "TLS13_AES_128_GCM_SHA256"),
    ("aes-256-gcm", "TLS13_AES_256_GCM_SHA384"),
    ("chacha20-poly1305", "TLS13_CHACHA20_POLY1305_SHA256"),
];

/// Memory in bytes for the times of each small request.
const REQUEST_BYTES: u64 = 64;

/// The level of `cpus` that lets the client and the server use all CPUs.
const ALL: &str = "all";
/// The level of `cpus` that makes the client and the server share one CPU.
const ONE: &str = "one";

/// The level of `rate` that selects large downloads, which arrive as fast as possible, instead of small requests.
const AS_MUCH: u64 = 0;

indices! { CPU, THROUGHPUT, CLIENT_CPU, SERVER_CPU }
/// Index of the metric for the first quantile of the latency. The metrics for the other [`QUANTILES`] follow.
const LATENCY: usize = 4;
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
const LATE: usize = LATENCY + QUANTILES.len();
const ANSWERED: usize = LATE + 1;
const OVERLOADED: usize = LATE + 2;
const REQUEST_CPU: usize = LATE + 3;

/// Caveat for the descriptions of the metrics about the CPU time of only the client or only the server.
const CAVEAT: &str =
    "the kernel charges loopback's soft interrupts to the client or the server, so claims are about the sum, `cpu`";

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "Throughput of HTTP with and without TLS, and the CPU time of both ends".into(),
    variants: vec![
        (PLAIN, "HTTP/1.1 without TLS").into(),
        (TLS, "HTTP/1.1 over TLS 1.3").into(),
        (KERNEL_TLS, "HTTP/1.1 over TLS 1.3, encrypted by the kernel").into(),
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
        Factor::one_of(
            "client",
            "HTTP client: own (with hyper and rustls), rustls alone (the limit of own over TLS), or an installed one",
            [OWN, RUSTLS, CURL, GO],
        ),
        Factor::one_of("server", "HTTP server: own, or an installed one", [OWN, NGINX, CADDY, GO]),
        Factor::integer("streams", "number of concurrent connections", 1, 1..=64),
        Factor::integer("mb", "megabytes that all connections transfer together", 128, 1..=1_000_000),
        Factor::one_of("cpus", "CPUs of both ends: all, or one that they share", [ALL, ONE]),
        Factor::one_of("cipher", "cipher suite", CIPHERS.map(|(level, _)| level)),
        Factor::integer(
            "rate",
            "number of small requests per second, each sent at its scheduled time; 0: one large download on each \
             stream instead",
            AS_MUCH,
            AS_MUCH..=1_000_000,
        ),
        Factor::integer("answer_bytes", "size of the answer to each small request", 1_000, 0..=1_000_000_000),
        Factor::integer("measured_ms", "time for which small requests are sent", 500, 1..=3_600_000),
    ]
}

fn metrics() -> Vec<Metric> {
    let latency = |(name, _): (&str, f64)| {
        let about = format!("{name} of the time between a request's scheduled time and the last byte of its answer");
        Metric::time(&format!("latency_{name}"), &about)
    };
    [
        Metric::time("cpu", "CPU time of both ends per gigabyte"),
        Metric::new("throughput", "bytes of bodies per second, all streams together", Unit::BytePerSecond, Higher),
        Metric::time("client_cpu", &format!("CPU time of the client per gigabyte; {CAVEAT}")),
        Metric::time("server_cpu", &format!("CPU time of the server per gigabyte; {CAVEAT}")),
    ]
    .into_iter()
    .chain(QUANTILES.map(latency))
    .chain([
        Metric::time("late", "p99 of the delay with which requests were sent"),
        Metric::new("answered", "answered requests per second", Unit::PerSecond, Higher),
        Metric::share("overloaded", "1 if there were fewer answers per second than 95 % of `rate`", Lower),
        Metric::time("request_cpu", "CPU time of both ends for each request"),
    ])
    .collect()
}

impl Experiment for HttpsThroughput {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// Returns whether the factor applies. The size of answers and the duration apply to small requests only, `mb` to
    /// large downloads only, and `cipher` to TLS only.
    fn has(&self, arm: &Arm, factor: &str) -> bool {
        let is_as_much = arm.point.get("rate") == Some(&AS_MUCH.into());
        match factor {
            "mb" => is_as_much,
            "answer_bytes" | "measured_ms" => !is_as_much,
            "cipher" => arm.variant != PLAIN,
            _ => true,
        }
    }

    /// Returns two arms for each variant: one with a single stream, and one with four streams.
    fn table_arms(&self) -> Vec<Arm> {
        let point = |streams: u64| SPEC.default_point().with("streams", streams);
        let arms =
            |variant: &Variant| [1, 4].map(|streams| Arm { variant: variant.name.clone(), point: point(streams) });
        SPEC.variants.iter().flat_map(arms).collect()
    }

    /// Returns the memory of the files that nginx and Caddy serve, which must stay cached. There is one file for each
    /// arm, and with nginx one for each stream. Small requests also need memory for their times.
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
