//! The experiment as data: every method of `numeric::cbrt`, over the length of the numbers.

use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Accepts, Arm, Better, Experiment, Factor, Metric, Session, Setup, Spec, TargetError, Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_numeric::cbrt::VARIANTS;

use super::session;

/// Integer cube roots.
pub struct Cbrt;

pub(super) const TIME: usize = 0;
pub(super) const MAX: usize = 1;
pub(super) const STD: usize = 2;
pub(super) const LATENCY: usize = 3;
pub(super) const ERROR_PERCENT: usize = 4;
pub(super) const WORST: usize = 5;
pub(super) const SIZE: usize = 6;

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    let variants = VARIANTS.iter().map(|v| Variant { name: v.name.into(), about: v.about.into() });
    let lower = |name: &str, about: &str, unit| Metric::new(name, about, unit, Better::Lower);
    Spec {
        id: "cbrt".into(),
        title: "Integer cube roots: speed, error and size of every method".into(),
        readme: include_str!("README.md").into(),
        variants: variants.collect(),
        factors: vec![Factor::new(
            "bits",
            "the numbers are random and below two to that power",
            40,
            Accepts::Integers { min: 1, max: 64 },
        )],
        metrics: vec![
            lower("time", "time of a root among independent ones: the mean of a batch", Unit::Nanosecond),
            lower("max", "time of a root in the slowest of 32 groups of 64 numbers", Unit::Nanosecond),
            lower("std", "standard deviation of that over the groups", Unit::Nanosecond),
            lower("latency", "time of a root that the next one waits for: the mean of a batch", Unit::Nanosecond),
            lower(
                "error_percent",
                "100 times the mean of |root − ∛x| / ∛x over the numbers that the seed draws",
                Unit::One,
            ),
            lower("worst", "greatest |root − ⌊∛x⌋| of these numbers", Unit::One),
            lower("size", "machine code of one root, without tables and library calls", Unit::Byte),
        ],
        plots: Vec::new(),
    }
});

impl Experiment for Cbrt {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        session::open(arms, setup)
    }
}
