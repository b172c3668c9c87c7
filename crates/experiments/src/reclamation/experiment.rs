//! The experiment as data: schemes and barriers, over the number of objects.

use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Accepts, Arm, Better, Experiment, Factor, Metric, Plot, Session, Setup, Spec, TargetError, Unavailable, Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Machine;

use super::contestants::{VARIANTS, is_available};
use super::session;

/// Reclamation.
pub struct Reclamation;

pub(super) const TIME: usize = 0;
pub(super) const LATENCY: usize = 1;
pub(super) const HELD: usize = 2;
pub(super) const FREE_TIME: usize = 3;
pub(super) const UPDATE: usize = 4;
pub(super) const DEFER: usize = 5;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    id: "reclamation".into(),
    title: "Reading what others replace and free: hazard pointers and epochs without fences".into(),
    readme: include_str!("README.md").into(),
    variants: VARIANTS.iter().map(|(name, about)| Variant { name: (*name).into(), about: (*about).into() }).collect(),
    factors: vec![Factor::new(
        "objects",
        "objects that are read in turn",
        256,
        Accepts::Integers { min: 1, max: 1 << 16 },
    )],
    metrics: vec![
        Metric::new("time", "a read among independent ones: the mean of a batch", Unit::Nanosecond, Better::Lower),
        Metric::new(
            "latency",
            "a read that the next one waits for: the mean of a batch",
            Unit::Nanosecond,
            Better::Lower,
        ),
        Metric::new("held", "objects not freed of 4,000 replaced while a reader stalls", Unit::One, Better::Lower),
        Metric::new(
            "free_time",
            "from retiring an object to its being freed, no one reading",
            Unit::Nanosecond,
            Better::Lower,
        ),
        Metric::new(
            "update",
            "replacing an object by one made of it, and freeing others meanwhile: the mean of 4,000",
            Unit::Nanosecond,
            Better::Lower,
        ),
        Metric::new(
            "defer",
            "pinning and deferring a closure that frees an object, and calling others meanwhile: the mean of 4,000",
            Unit::Nanosecond,
            Better::Lower,
        ),
    ],
    plots: vec![Plot::Sweep { metric: "latency".into(), factor: "objects".into(), footprints: Vec::new() }],
});

impl Experiment for Reclamation {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        is_available(&arm.variant)
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        session::open(arms, setup)
    }
}
