//! DNS propagation: after a change of a zone, when each of its servers says so.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

#[cfg(target_os = "linux")]
mod places;
#[cfg(target_os = "linux")]
mod propagation;
#[cfg(target_os = "linux")]
mod updates;

use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Accepts, Arm, Better, Experiment, Factor, Metric, Plot, Session, Setup, Spec, TargetError, Unavailable,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Machine;
#[cfg(target_os = "linux")]
use {places::is_available, updates::open};

use crate::links;
#[cfg(not(target_os = "linux"))]
use crate::links::elsewhere::{is_available, open};

/// A change of a zone, and when its servers have it.
pub struct DnsPropagation;

const TOGETHER: &str = "together";
const APART: &str = "apart";

const ALL: usize = 0;
const HALF: usize = 1;
const FIRST: usize = 2;
const UNSURE: usize = 3;
const DONE: usize = 4;
const DONE_BEFORE: usize = 5;
const SPREAD: usize = 6;
const SERVER: usize = 7;
const REPLICAS: usize = 8;
const SHARE: usize = 9;
const LOST: usize = 10;
const STRANGE: usize = 11;
const LATE: usize = 12;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    id: "dns-propagation".into(),
    title: "A change of a zone: how long until every server says so".into(),
    readme: include_str!("README.md").into(),
    variants: vec![
        (TOGETHER, "a zone that is simulated: the servers' replicas stand at the same places, which get it in turn")
            .into(),
        (APART, "a zone that is simulated: each server gets it by itself").into(),
    ],
    factors: factors(),
    metrics: vec![
        Metric::time("all", "from the call until the last server has it, all of its replicas"),
        Metric::time("half", "until half of the answers are new"),
        Metric::time("first", "until the first replica has it"),
        Metric::time("unsure", "how wide the interval is that `all` lies in the middle of"),
        Metric::time("done", "until the provider says that it is done"),
        Metric::new(
            "done_before",
            "by how much that is before the last server has it",
            Unit::Nanosecond,
            Better::Lower,
        ),
        Metric::time("spread", "between the first server that has it everywhere and the last one"),
        Metric::time("server", "until a server has it everywhere"),
        Metric::new("replicas", "of a server: the fewest that explain its answers", Unit::One, Better::Higher),
        Metric::new("share", "of new answers to what a server was asked at a time", Unit::One, Better::Higher),
        Metric::new("lost", "share of questions without an answer in time", Unit::One, Better::Lower),
        Metric::new("strange", "messages that were no answers to what was asked", Unit::One, Better::Lower),
    ]
    .into_iter()
    .chain(links::metrics())
    .collect(),
    plots: vec![Plot::Curve { metric: "share".into() }],
});

fn factors() -> Vec<Factor> {
    let milliseconds = |max| Accepts::Integers { min: 1, max };
    vec![
        Factor::new("servers", "of the simulated zone", 4, Accepts::Integers { min: 1, max: 64 }),
        Factor::new("replicas", "of each of them, behind one address", 3, Accepts::Integers { min: 1, max: 8 }),
        Factor::new("slowest_ms", "how long the last replica takes to have it", 200, milliseconds(600_000)),
        Factor::new(
            "done_after_ms",
            "how long after it took the change the zone's provider says that it is done",
            10,
            Accepts::Integers { min: 0, max: 600_000 },
        ),
        Factor::new("rtt_ms", "the round trip of the link to them", 4, milliseconds(1_000)),
        Factor::new("loss_percent", "of what goes over it, each way", 0, Accepts::Integers { min: 0, max: 90 }),
        Factor::new("interval_ms", "how often each server is asked from each port", 20, milliseconds(600_000)),
        Factor::new("ports", "that each server is asked from", 16, Accepts::Integers { min: 1, max: 256 }),
        Factor::new("limit_s", "how long a change is waited for", 120, Accepts::Integers { min: 1, max: 86_400 }),
    ]
}

impl Experiment for DnsPropagation {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        is_available(arm)
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        open(arms, setup)
    }
}
