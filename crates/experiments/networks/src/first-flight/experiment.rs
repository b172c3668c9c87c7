//! Measures how much of a page arrives over an emulated link before the server must wait for an acknowledgement.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

mod cliff;
#[cfg(target_os = "linux")]
mod flights;
#[cfg_attr(not(target_os = "linux"), path = "../elsewhere.rs")]
mod pages;
#[cfg_attr(not(target_os = "linux"), path = "../elsewhere.rs")]
mod servers;

use std::sync::LazyLock;

use ascertain_engine::claim::{Claim, Test};
use ascertain_engine::experiment::Better::{Higher, Lower};
use ascertain_engine::experiment::{
    Arm, Emulates, Experiment, Factor, Level, Metric, Plot, Reduce, Session, Setup, Spec, TargetError, Unavailable,
};
use ascertain_engine::predicate::Predicate;
use ascertain_engine::unit::Unit;
use ascertain_netlab::http::Protocol::{self, Http1, Http2};
use ascertain_netlab::http::TlsVersion::{self, V1_2, V1_3};
use ascertain_sys::machine::Machine;

use crate::levels::given;
use crate::links::{self, OURS};
use crate::url::Url;
use {pages::open, servers::is_available};

/// The experiment `first-flight`.
pub struct FirstFlight;

indices! { TIME, ROUND_TRIPS, CLIFF, PREDICTED, MISSED, REQUESTS, ROUND_TRIP, HEAD, BODY, OVER, TRIM, REQUEST, LATE }

/// The program that serves the page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Host {
    Own,
    Nginx,
    Caddy,
}

/// The server and the protocol of a variant.
#[derive(Clone, Copy)]
struct ServerVariant {
    name: &'static str,
    about: &'static str,
    host: Host,
    protocol: Protocol,
    tls: Option<TlsVersion>,
}

const fn variant(
    name: &'static str,
    about: &'static str,
    host: Host,
    protocol: Protocol,
    tls: Option<TlsVersion>,
) -> ServerVariant {
    ServerVariant { name, about, host, protocol, tls }
}

const SERVER_VARIANTS: [ServerVariant; 12] = [
    variant("http", "HTTP/1.1 without TLS, by our own server", Host::Own, Http1, None),
    variant("tls1.3", "HTTP/1.1 over TLS 1.3, by our own server", Host::Own, Http1, Some(V1_3)),
    variant("tls1.2", "HTTP/1.1 over TLS 1.2, by our own server", Host::Own, Http1, Some(V1_2)),
    variant("h2", "HTTP/2 over TLS 1.3, by our own server", Host::Own, Http2, Some(V1_3)),
    variant("nginx-http", "HTTP/1.1 without TLS, by nginx", Host::Nginx, Http1, None),
    variant("nginx-tls1.3", "HTTP/1.1 over TLS 1.3, by nginx", Host::Nginx, Http1, Some(V1_3)),
    variant("nginx-tls1.2", "HTTP/1.1 over TLS 1.2, by nginx", Host::Nginx, Http1, Some(V1_2)),
    variant("nginx-h2", "HTTP/2 over TLS 1.3, by nginx", Host::Nginx, Http2, Some(V1_3)),
    variant("caddy-http", "HTTP/1.1 without TLS, by Caddy", Host::Caddy, Http1, None),
    variant("caddy-tls1.3", "HTTP/1.1 over TLS 1.3, by Caddy", Host::Caddy, Http1, Some(V1_3)),
    variant("caddy-tls1.2", "HTTP/1.1 over TLS 1.2, by Caddy", Host::Caddy, Http1, Some(V1_2)),
    variant("caddy-h2", "HTTP/2 over TLS 1.3, by Caddy", Host::Caddy, Http2, Some(V1_3)),
];

/// The level of `bytes` that searches for the largest page in the first flight. The number 0 is free for this purpose,
/// because an empty page has no flight to measure.
const SEARCH: u64 = 0;
const KERNEL: &str = "kernel";

const NEW: &str = "new";
const RESUMED: &str = "resumed";

/// Returns whether the arm's page comes from an address that the user gave.
fn is_elsewhere(arm: &Arm) -> bool {
    given(arm, "url").is_some()
}

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "Pages and the first flight: how large a page may be before it takes another round trip".into(),
    emulates: Some(Emulates::new("a link between two namespaces of this machine").unless(&["url"])),
    variants: SERVER_VARIANTS.iter().map(|variant| (variant.name, variant.about).into()).collect(),
    factors: vec![
        Factor::integer(
            "bytes",
            "size of the page without the HTTP head; 0 searches for the largest page that arrives in the first flight",
            14_000,
            SEARCH..=cliff::MOST_BYTES,
        ),
        Factor::integer("rtt_ms", "round-trip time of the link", 20, 1..=10_000),
        Factor::integer(
            "window",
            "number of segments that a server sends before anything is acknowledged",
            10,
            1..=1_000,
        ),
        Factor::one_of(
            "congestion",
            "congestion control of TCP; `kernel` selects the kernel's default",
            ["cubic", "bbr", KERNEL],
        ),
        Factor::integer(
            "idle_ms",
            "time since an earlier request for the page on the same connection; 0 for a new connection",
            0,
            0..=60_000,
        ),
        Factor::new(
            "url",
            "address of a page to measure instead of a page over the emulated link: http://… or https://…",
            OURS,
            Url::accepted(),
        ),
        Factor::one_of(
            "session",
            "TLS session: `new` as on a first visit, `resumed` as for a returning visitor",
            [NEW, RESUMED],
        ),
    ],
    metrics: [
        Metric::time("time", "time from the request to the last byte of the answer, without connecting"),
        Metric::new("round_trips", "`time` as a multiple of the link's round-trip time", Unit::One, Lower),
        Metric::new("cliff", "size of the largest page that takes one round trip", Unit::Byte, Higher),
        Metric::new(
            "predicted",
            "size of the largest page that takes one round trip, as predicted from the first answer",
            Unit::Byte,
            Higher,
        ),
        Metric::new("missed", "difference between `predicted` and `cliff`", Unit::Byte, Lower),
        Metric::new("requests", "number of requests that the search for the largest page needed", Unit::One, Lower),
        Metric::time("round_trip", "time to open the connection"),
        Metric::new("head", "bytes of the HTTP head and of HTTP/2's frames", Unit::Byte, Lower),
        Metric::new("body", "bytes of the page's body", Unit::Byte, Lower),
        Metric::new("over", "bytes of the answer that arrive after the first flight", Unit::Byte, Lower),
        Metric::new("trim", "bytes of the last flight; 0 if there is only one flight", Unit::Byte, Lower),
        Metric {
            reduce: Reduce::Sum,
            ..Metric::time(
                "request",
                "time of the request by phase, including the time to connect if the connection is new",
            )
        },
    ]
    .into_iter()
    .chain(links::metrics())
    .collect(),
    plots: vec![Plot::sweep("round_trips", "bytes"), Plot::Waterfall { metric: "request".into() }],
    ..Spec::new("first-flight", include_str!("README.md"))
});

impl Experiment for FirstFlight {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// Returns one arm for each variant. The arm searches for the largest page that arrives in the first flight.
    fn table_arms(&self) -> Vec<Arm> {
        let point = SPEC.default_point().with("bytes", SEARCH);
        SERVER_VARIANTS.iter().map(|variant| Arm { variant: variant.name.into(), point: point.clone() }).collect()
    }

    /// Returns `false` for most factors of the link if the user gave the page's address, and for `session` without TLS.
    fn has(&self, arm: &Arm, factor: &str) -> bool {
        match factor {
            "session" => SERVER_VARIANTS.iter().any(|variant| variant.name == arm.variant && variant.tls.is_some()),
            "bytes" | "rtt_ms" | "congestion" => !is_elsewhere(arm),
            _ => true,
        }
    }

    fn settled(&self, factor: &str, level: Level) -> Result<Level, String> {
        if factor == "url" {
            Url::check(&level)?;
        }
        Ok(level)
    }

    /// Drops arms whose variant cannot request the user's page, unless the user named the variants.
    fn chosen(&self, mut arms: Vec<Arm>, are_named: bool) -> Result<Vec<Arm>, String> {
        arms.retain(|arm| are_named || !is_elsewhere(arm) || is_available(arm).is_ok());
        Ok(arms)
    }

    /// Returns one claim for each variant. It states that the user's page arrives in the first flight.
    fn claims_about(&self, arms: &[Arm]) -> Vec<Claim> {
        let claim = |arm: &Arm| {
            let id = format!("first-flight.your-page-{}", arm.variant);
            let says = format!("With `{}`, the whole page arrives in the server's first flight", arm.variant);
            let test = Test::predicate(arm.clone(), Predicate::at_most(&SPEC.metrics[OVER], 0.0));
            Claim::in_half(&SPEC.id, id, says, test)
        };
        arms.iter().filter(|arm| is_elsewhere(arm)).map(claim).collect()
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        is_available(arm)
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        open(arms, setup)
    }
}
