//! The experiment as data: everybody who writes integers, over distributions.

use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Accepts, Arm, Better, Experiment, Factor, Level, Metric, Plot, Session, Setup, Spec, TargetError, Unavailable,
    Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_numeric::decimal::VARIANTS;
use ascertain_sys::machine::Machine;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

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
    let digits = std::iter::once(distribution::ANY.into()).chain((1..=20).map(Level::Integer)).collect();
    Spec {
        id: "decimal".into(),
        title: "Integers to decimal text: libraries and methods on six distributions".into(),
        readme: include_str!("README.md").into(),
        variants: variants.map(|(name, about)| Variant { name: name.into(), about: about.into() }).collect(),
        factors: vec![
            Factor::new("distribution", "how the 64-bit numbers are drawn", "skewed", Accepts::OneOf(names)),
            Factor::new("digits", "only those of so many digits", distribution::ANY, Accepts::OneOf(digits)),
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

    /// Each variant on the source's six distributions.
    fn table_arms(&self) -> Vec<Arm> {
        let of_variant = |variant: &Variant| distribution::NAMES.map(|name| at_distribution(&variant.name, name));
        SPEC.variants.iter().flat_map(of_variant).collect()
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        if distribution::draw(arm, &mut Xoshiro256PlusPlus::seed_from_u64(0)).is_none() {
            return Err(Unavailable::other("needs numbers with so many digits, which the distribution lacks"));
        }
        contestants::contestant(&arm.variant).map(|_| ())
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        session::open(arms, setup)
    }
}

fn at_distribution(variant: &str, distribution: &str) -> Arm {
    Arm { variant: variant.into(), point: SPEC.default_point().with("distribution", distribution) }
}
