//! The experiment as data: everybody who writes integers, over distributions.

use std::sync::LazyLock;

use ascertain::experiment::{
    Accepts, Arm, Better, Experiment, Factor, Level, Metric, Plot, Session, Setup, Spec, TargetError, Unavailable,
    Variant,
};
use ascertain::unit::Unit;
use ascertain_numeric::decimal::VARIANTS;
use ascertain_sys::machine::Machine;

use super::{contestants, distribution, session};

/// Integers to text.
pub struct Decimal;

pub(super) const TIME: usize = 0;
pub(super) const SPREAD: usize = 1;
pub(super) const SIZE: usize = 2;

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    let ours = VARIANTS.iter().map(|v| (v.name, v.about));
    let variants = ours.chain(contestants::OTHERS);
    let names: Vec<Level> = distribution::NAMES.map(Level::from).to_vec();
    Spec {
        id: "decimal".into(),
        title: "Integers to decimal text: libraries and methods on seven distributions".into(),
        readme: include_str!("README.md").into(),
        variants: variants.map(|(name, about)| Variant { name: name.into(), about: about.into() }).collect(),
        factors: vec![
            Factor {
                name: "distribution".into(),
                about: "how the 64-bit numbers are drawn".into(),
                default: "skewed".into(),
                accepts: Accepts::OneOf(names),
            },
            Factor {
                name: "digits".into(),
                about: "how many digits they have where the distribution is `digits`; nothing to the others".into(),
                default: 8.into(),
                accepts: Accepts::Integers { min: 1, max: 20 },
            },
        ],
        metrics: vec![
            Metric::new("time", "time of one number: the mean of a batch", Unit::Nanosecond, Better::Lower),
            Metric::new("spread", "the slowest digit count's time over the fastest's", Unit::One, Better::Lower),
            Metric::new("size", "machine code of one call, without tables", Unit::Byte, Better::Lower),
        ],
        plots: vec![Plot::Sweep { metric: "time".into(), factor: "digits".into(), footprints: Vec::new() }],
    }
});

impl Experiment for Decimal {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        contestants::contestant(&arm.variant).map(|_| ())
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        session::open(arms, setup)
    }
}
