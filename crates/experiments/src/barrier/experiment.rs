//! The experiment as data: ways to wait for every CPU.

use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Accepts, Arm, Better, Experiment, Factor, Metric, Point, Session, Setup, Spec, TargetError, Unavailable, Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Machine;

use super::{methods, session};

/// Ways to wait for every CPU.
pub struct Barrier;

pub(super) const TIME: usize = 0;
pub(super) const OTHERS: usize = 1;
pub(super) const DAEMON: usize = 2;
pub(super) const PROGRAM: usize = 3;

/// Levels of `load`.
pub(super) const IDLE: &str = "idle";
pub(super) const BUSY: &str = "busy";
pub(super) const SPACED: &str = "spaced";

const VARIANTS: [(&str, &str); 8] = [
    ("heartbeat", "sync::barrierd: wait for interrupts, which the daemon makes while somebody waits"),
    ("interrupts", "sync::barrierd: look, by virtual time, whether each CPU happens to have been interrupted"),
    ("interrupts-clock", "the same by CLOCK_MONOTONIC, as the source's daemon first did; to be timed only"),
    ("plain", "membarrier, which waits for the scheduler"),
    ("expedited", "membarrier by interrupts, expedited"),
    ("asked", "limit: no barrier, a thread in real time is asked over a socket, as the daemon is, and answers"),
    ("mprotect", "a page's rights taken away and given back; no barrier, to be timed only"),
    ("none", "no barrier: what measuring takes, and what the others are held against at load=spaced"),
];

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    id: "barrier".into(),
    title: "The slow side of an asymmetric barrier: how long until every CPU has passed".into(),
    readme: include_str!("README.md").into(),
    variants: VARIANTS.iter().map(|(name, about)| Variant { name: (*name).into(), about: (*about).into() }).collect(),
    factors: vec![Factor::new(
        "load",
        "the rest of the machine: idle; busy (two threads a CPU at low priority); spaced (busy, and one barrier a \
         millisecond, to see what that costs the others)",
        BUSY,
        Accepts::OneOf([IDLE, BUSY, SPACED].map(Into::into).to_vec()),
    )],
    metrics: vec![
        Metric::new("time", "time for one barrier", Unit::Nanosecond, Better::Lower),
        Metric::new("others", "rounds a second of the busy threads, all together", Unit::PerSecond, Better::Higher),
        Metric::new("daemon", "CPU time of the daemon, as a share of one CPU", Unit::One, Better::Lower),
        Metric::new(
            "program",
            "time that the daemon's program takes at interrupts, as a share of each CPU",
            Unit::One,
            Better::Lower,
        ),
    ],
    plots: Vec::new(),
});

impl Experiment for Barrier {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// As the source's figures: idle, and loaded; and what it costs the rest of the machine.
    fn table_arms(&self) -> Vec<Arm> {
        let arm = |name: &str, load: &str| Arm { variant: name.into(), point: Point::default().with("load", load) };
        let timed = VARIANTS.iter().flat_map(|(name, _)| [arm(name, IDLE), arm(name, BUSY)]);
        // One of each kind, for they take long: by heartbeats, by the scheduler, by interrupts at once.
        timed.chain(["heartbeat", "plain", "expedited", "none"].map(|name| arm(name, SPACED))).collect()
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        methods::is_available(&arm.variant).map_err(Unavailable::other)
    }

    fn shows(&self, _: &Arm, metric: usize, _: &Machine) -> Result<(), Unavailable> {
        if metric == PROGRAM { methods::program_is_counted().map_err(Unavailable::other) } else { Ok(()) }
    }

    fn open(&self, arms: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        session::open(arms).map_err(TargetError::Failed)
    }
}

/// The load of an arm: one of the levels.
pub(super) fn load(arm: &Arm) -> Option<&'static str> {
    let level = arm.point.get("load")?.to_string();
    [IDLE, BUSY, SPACED].into_iter().find(|known| *known == level)
}
