//! The first flight: what of a page arrives before the server has to wait for an answer, through an emulated link.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

mod cliff;
#[cfg(target_os = "linux")]
mod flights;
#[cfg(target_os = "linux")]
mod pages;
#[cfg(target_os = "linux")]
mod places;

use std::sync::LazyLock;

use ascertain_engine::claim::{Claim, Test};
use ascertain_engine::experiment::{
    Accepts, Arm, Better, Emulates, Experiment, Factor, Level, Metric, Plot, Reduce, Session, Setup, Spec, TargetError,
    Unavailable,
};
use ascertain_engine::predicate::Predicate;
use ascertain_engine::unit::Unit;
use ascertain_netlab::http::Protocol::{self, Http1, Http2};
use ascertain_netlab::http::TlsVersion::{self, V1_2, V1_3};
use ascertain_sys::machine::Machine;

#[cfg(not(target_os = "linux"))]
use crate::links::elsewhere::{is_available, open};
use crate::links::{self, OURS};
use crate::url::Url;
#[cfg(target_os = "linux")]
use {pages::open, places::is_available};

/// Pages and the first flight.
pub struct FirstFlight;

const TIME: usize = 0;
const ROUND_TRIPS: usize = 1;
const CLIFF: usize = 2;
const PREDICTED: usize = 3;
const MISSED: usize = 4;
const REQUESTS: usize = 5;
const ROUND_TRIP: usize = 6;
const HEAD: usize = 7;
const BODY: usize = 8;
const OVER: usize = 9;
const TRIM: usize = 10;
const REQUEST: usize = 11;
const LATE: usize = 12;

/// Who answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Host {
    Own,
    Nginx,
    Caddy,
}

/// A way to be answered.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    about: &'static str,
    host: Host,
    protocol: Protocol,
    tls: Option<TlsVersion>,
}

const fn way(name: &'static str, about: &'static str, host: Host, protocol: Protocol, tls: Option<TlsVersion>) -> Way {
    Way { name, about, host, protocol, tls }
}

const WAYS: [Way; 12] = [
    way("http", "HTTP/1.1 in the open, by our own server", Host::Own, Http1, None),
    way("tls1.3", "HTTP/1.1 over TLS 1.3, by our own server", Host::Own, Http1, Some(V1_3)),
    way("tls1.2", "HTTP/1.1 over TLS 1.2, by our own server", Host::Own, Http1, Some(V1_2)),
    way("h2", "HTTP/2 over TLS 1.3, by our own server", Host::Own, Http2, Some(V1_3)),
    way("nginx-http", "HTTP/1.1 in the open, by nginx", Host::Nginx, Http1, None),
    way("nginx-tls1.3", "HTTP/1.1 over TLS 1.3, by nginx", Host::Nginx, Http1, Some(V1_3)),
    way("nginx-tls1.2", "HTTP/1.1 over TLS 1.2, by nginx", Host::Nginx, Http1, Some(V1_2)),
    way("nginx-h2", "HTTP/2 over TLS 1.3, by nginx", Host::Nginx, Http2, Some(V1_3)),
    way("caddy-http", "HTTP/1.1 in the open, by Caddy", Host::Caddy, Http1, None),
    way("caddy-tls1.3", "HTTP/1.1 over TLS 1.3, by Caddy", Host::Caddy, Http1, Some(V1_3)),
    way("caddy-tls1.2", "HTTP/1.1 over TLS 1.2, by Caddy", Host::Caddy, Http1, Some(V1_2)),
    way("caddy-h2", "HTTP/2 over TLS 1.3, by Caddy", Host::Caddy, Http2, Some(V1_3)),
];

/// The level of `bytes` that asks for the cliff: an empty page has no flight.
const SEARCH: u64 = 0;
const KERNEL: &str = "kernel";

const NEW: &str = "new";
const RESUMED: &str = "resumed";

/// Returns whether the arm's page comes from a user's address.
fn is_elsewhere(arm: &Arm) -> bool {
    arm.point.get("url").is_some_and(|url| *url != OURS.into())
}

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "Pages and the first flight: how large one may be before it takes another round trip".into(),
    emulates: Some(Emulates::of("a link between two namespaces of this machine").unless(&["url"])),
    variants: WAYS.iter().map(|way| (way.name, way.about).into()).collect(),
    factors: vec![
        Factor::new(
            "bytes",
            "the page, without its head; 0 looks for the largest that comes with the first flight",
            14_000,
            Accepts::Integers { min: SEARCH, max: cliff::MOST_BYTES },
        ),
        Factor::new("rtt_ms", "the link's round trip", 20, Accepts::Integers { min: 1, max: 10_000 }),
        Factor::new(
            "window",
            "segments that a server sends before anything is acknowledged",
            10,
            Accepts::Integers { min: 1, max: 1_000 },
        ),
        Factor::new(
            "congestion",
            "TCP's congestion control; kernel takes what the kernel does by default",
            "cubic",
            Accepts::OneOf(["cubic", "bbr", KERNEL].map(Into::into).to_vec()),
        ),
        Factor::new(
            "idle_ms",
            "since a request for the same page on the same connection; 0 is a connection of its own",
            0,
            Accepts::Integers { min: 0, max: 60_000 },
        ),
        Factor::new(
            "url",
            "somebody's page instead of one through a link: http://… or https://…",
            OURS,
            Url::accepted(),
        ),
        Factor::one_of("session", "of TLS: new is a first visit, resumed a returning visitor's", [NEW, RESUMED]),
    ],
    metrics: [
        Metric::time("time", "from the request to the last byte of the answer, without connecting"),
        Metric::new("round_trips", "the same, in round trips of the link", Unit::One, Better::Lower),
        Metric::new("cliff", "the largest page that takes one round trip", Unit::Byte, Better::Higher),
        Metric::new("predicted", "the same, as the first answer of the search has it", Unit::Byte, Better::Higher),
        Metric::new("missed", "by how much the prediction is wrong", Unit::Byte, Better::Lower),
        Metric::new("requests", "how many the search took", Unit::One, Better::Lower),
        Metric::time("round_trip", "how long it took to connect"),
        Metric::new("head", "what came with the page: its head, and HTTP/2's frames", Unit::Byte, Better::Lower),
        Metric::new("body", "the page without it", Unit::Byte, Better::Lower),
        Metric::new("over", "how much of the page came behind the first flight", Unit::Byte, Better::Lower),
        Metric::new("trim", "how much of it came with the last of several flights", Unit::Byte, Better::Lower),
        Metric {
            reduce: Reduce::Sum,
            ..Metric::time("request", "the whole of it by phase, with its connection where that is its own")
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

    /// The cliff of each way.
    fn table_arms(&self) -> Vec<Arm> {
        let point = SPEC.default_point().with("bytes", SEARCH);
        WAYS.iter().map(|way| Arm { variant: way.name.into(), point: point.clone() }).collect()
    }

    /// A link has no part in somebody's page, and what is in the open has no session.
    fn has(&self, arm: &Arm, factor: &str) -> bool {
        match factor {
            "session" => WAYS.iter().any(|way| way.name == arm.variant && way.tls.is_some()),
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

    /// Of somebody's page, the ways that the address allows: its server is not ours to choose.
    fn chosen(&self, mut arms: Vec<Arm>, are_named: bool) -> Result<Vec<Arm>, String> {
        arms.retain(|arm| are_named || !is_elsewhere(arm) || is_available(arm).is_ok());
        Ok(arms)
    }

    /// Asks whether the user's page comes with the first flight.
    fn claims_about(&self, arms: &[Arm]) -> Vec<Claim> {
        let claim = |arm: &Arm| {
            let id = format!("first-flight.your-page-{}", arm.variant);
            let says = format!("The whole page arrives in the server's first flight, by `{}`", arm.variant);
            let test = Test::Predicate { arm: arm.clone(), predicate: Predicate::at_most(OVER, 0.0) };
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
