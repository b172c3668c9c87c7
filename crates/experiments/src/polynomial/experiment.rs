//! The experiment as data: our variants and two loops in C, over size, compiler and level.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Accepts, Arm, Better, Experiment, Factor, Footprint, Metric, Plot, Point, Session, Setup, Spec, TargetError,
    Unavailable, Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_numeric::polynomial::VARIANTS;
use ascertain_sys::machine::Machine;

use super::{compiled, session};

/// Filling a slice with a quadratic.
pub struct Polynomial;

pub(super) const TIME: usize = 0;
pub(super) const THROUGHPUT: usize = 1;
pub(super) const ERROR: usize = 2;
pub(super) const WIDTH: usize = 3;
pub(super) const INSTRUCTIONS: usize = 4;
pub(super) const VALUES: usize = 5;

/// The call for everybody, under its name.
pub(super) const FILL: &str = "fill";

/// The levels that the source tells figures of.
const SOURCE_LEVELS: [&str; 3] = ["O0", "O1", "O3"];

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    let words = |words: &[&str]| Accepts::OneOf(words.iter().map(|&word| word.into()).collect());
    let ours = VARIANTS.iter().map(|v| (v.name, v.about));
    let variants = compiled::LOOPS
        .iter()
        .copied()
        .chain([(FILL, "the call for everybody: the first of direct-… that the CPU has")])
        .chain(ours);
    Spec {
        id: "polynomial".into(),
        title: "A quadratic at 0, 1, 2 …: multiplications against additions".into(),
        readme: include_str!("README.md").into(),
        variants: variants.map(|(name, about)| Variant { name: name.into(), about: about.into() }).collect(),
        factors: vec![
            Factor::new("elements", "how many values", 1_000_000, Accepts::Integers { min: 1, max: 1 << 30 }),
            Factor::new(
                "compiler",
                "what compiles the loops in C; nothing to the others",
                "gcc",
                words(&["gcc", "clang"]),
            ),
            Factor::new(
                "level",
                "its options; nothing to the others",
                "O3",
                words(&compiled::LEVELS.map(|(name, _)| name)),
            ),
        ],
        metrics: vec![
            Metric::new("time", "time of one value: the mean of a batch", Unit::Nanosecond, Better::Lower),
            Metric::new(
                "throughput",
                "bytes written a second, over the same batch",
                Unit::BytePerSecond,
                Better::Higher,
            ),
            Metric::new("error", "greatest relative error of a value; no chance in it", Unit::One, Better::Lower),
            Metric::new("width", "bits of the widest register that the loop calculates in", Unit::One, Better::Higher),
            Metric::new(
                "instructions",
                "instructions of the loop, however many values it writes",
                Unit::One,
                Better::Lower,
            ),
            Metric::new("values", "values that one turn of the loop writes", Unit::One, Better::Higher),
        ],
        plots: vec![Plot::Sweep {
            metric: "throughput".into(),
            factor: "elements".into(),
            footprints: vec![Footprint { at: Point::default(), bytes_each: 8.0 }],
        }],
    }
});

impl Experiment for Polynomial {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// The loops in C as the source compiles them, and the others, to which that is nothing, once.
    fn table_arms(&self) -> Vec<Arm> {
        let arm =
            |name: &str, level: &str| Arm { variant: name.into(), point: SPEC.default_point().with("level", level) };
        let in_c = compiled::LOOPS.iter().flat_map(|(name, _)| SOURCE_LEVELS.map(|level| arm(name, level)));
        let ours = [FILL].into_iter().chain(VARIANTS.iter().map(|variant| variant.name));
        in_c.chain(ours.map(|name| arm(name, "O3"))).collect()
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        match VARIANTS.iter().find(|variant| variant.name == arm.variant) {
            Some(variant) => {
                variant.is_available().map_err(|feature| Unavailable::Feature { feature: feature.to_string() })
            }
            None if arm.variant == FILL => Ok(()),
            None => compiled::available(arm),
        }
    }

    /// One slice for each size.
    fn memory_bytes(&self, arms: &[Arm]) -> u64 {
        let sizes: BTreeSet<u64> = arms.iter().filter_map(elements).collect();
        sizes.iter().map(|elements| elements.saturating_mul(8)).fold(0, u64::saturating_add)
    }

    fn open(&self, arms: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        session::open(arms)
    }
}

/// How many values an arm is about.
pub(super) fn elements(arm: &Arm) -> Option<u64> {
    arm.point.get("elements")?.integer()
}
