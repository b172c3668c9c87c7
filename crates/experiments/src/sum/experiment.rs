//! The experiment as data: every variant of `numeric::sum`, over size, type and accumulators.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Accepts, Arm, Better, Experiment, Factor, Footprint, Level, Metric, Plot, Point, Session, Setup, Spec, TargetError,
    Unavailable, Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_numeric::sum::Element;
use ascertain_sys::machine::Machine;

use super::contestants::{DEFAULTS, OTHERS, contestant};
use super::session;

/// Summation.
pub struct Sum;

pub(super) const TIME: usize = 0;
pub(super) const THROUGHPUT: usize = 1;
pub(super) const ERROR: usize = 2;

/// What a table shows: without and with enough of them for the claims.
const SHOWN_ACCUMULATORS: [u32; 2] = [1, 4];

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    // The names are the same for each type.
    let ours = f32::VARIANTS.iter().map(|v| (v.name, v.about));
    let dots = f32::DOT_VARIANTS.iter().map(|v| (v.name, v.about));
    let variants = ours
        .chain(DEFAULTS)
        .chain(OTHERS)
        .chain(dots)
        .map(|(name, about)| Variant { name: name.into(), about: about.into() });
    Spec {
        id: "sum".into(),
        title: "Adding up floating-point numbers: speed and error".into(),
        readme: include_str!("README.md").into(),
        variants: variants.collect(),
        factors: vec![
            Factor::new("elements", "how many numbers", 187_500, Accepts::Integers { min: 1, max: 1 << 32 }),
            Factor::new(
                "type",
                "their type; each is summed into f64",
                "f32",
                Accepts::OneOf(vec!["f32".into(), "f64".into()]),
            ),
            Factor::new(
                "accumulators",
                "independent chains of additions; nothing to the plain calls, the peers and the dot products",
                1,
                Accepts::OneOf([1, 2, 4, 8].map(Level::from).to_vec()),
            ),
        ],
        plots: vec![
            sweep("throughput"),
            sweep("error"),
            Plot::Sweep { metric: "throughput".into(), factor: "accumulators".into(), footprints: Vec::new() },
        ],
        metrics: vec![
            Metric::new("time", "time of one sum or dot product: the mean of a batch", Unit::Nanosecond, Better::Lower),
            Metric::new("throughput", "bytes read a second, over the same batch", Unit::BytePerSecond, Better::Higher),
            Metric::new(
                "error",
                "relative error against the exact sum: the mean over the arrays that the seed draws",
                Unit::One,
                Better::Lower,
            ),
        ],
    }
});

/// A metric over the size, with the caches' ends marked.
fn sweep(metric: &str) -> Plot {
    let footprint = |name: &str, bytes_each| Footprint { at: Point::default().with("type", name), bytes_each };
    let footprints = vec![footprint("f32", 4.0), footprint("f64", 8.0)];
    Plot::Sweep { metric: metric.into(), factor: "elements".into(), footprints }
}

impl Experiment for Sum {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// One and four accumulators, of those that come with both, and of what comes with others only the fewest.
    fn table_arms(&self) -> Vec<Arm> {
        let arm = |name: &str, accumulators: u32| {
            let point = SPEC.default_point().with("accumulators", u64::from(accumulators));
            Arm { variant: name.into(), point }
        };
        let of_variant = |variant: &Variant| -> Vec<Arm> {
            let comes_with = f32::variant(&variant.name).map_or(&[1][..], |ours| ours.accumulators);
            let shown = comes_with.iter().filter(|accumulators| SHOWN_ACCUMULATORS.contains(accumulators));
            let shown: Vec<Arm> = shown.map(|&accumulators| arm(&variant.name, accumulators)).collect();
            if shown.is_empty() { vec![arm(&variant.name, comes_with[0])] } else { shown }
        };
        SPEC.variants.iter().flat_map(of_variant).collect()
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        let size =
            Size::of(arm).ok_or_else(|| Unavailable::other("its factors are elements, type and accumulators"))?;
        match size.double {
            false => contestant::<f32>(&arm.variant, size.accumulators).map(drop)?,
            true => contestant::<f64>(&arm.variant, size.accumulators).map(drop)?,
        }
        Ok(())
    }

    /// For each size and type an array and its reverse, which the dot products take; that small ones have several is little.
    fn memory_bytes(&self, arms: &[Arm]) -> u64 {
        let sizes = arms.iter().filter_map(Size::of).map(|size| ((size.elements, size.double), size.bytes()));
        let bytes: BTreeMap<(u64, bool), u64> = sizes.collect();
        bytes.values().map(|bytes| bytes.saturating_mul(2)).fold(0, u64::saturating_add)
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        session::open(arms, setup)
    }
}

/// An arm's point, read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub elements: u64,
    pub double: bool,
    pub accumulators: u32,
}

impl Size {
    pub fn of(arm: &Arm) -> Option<Size> {
        let integer = |factor: &str| arm.point.get(factor).and_then(Level::integer);
        Some(Size {
            elements: integer("elements")?,
            double: *arm.point.get("type")? == Level::from("f64"),
            accumulators: integer("accumulators")? as u32,
        })
    }

    /// Of one array.
    pub fn bytes(&self) -> u64 {
        self.elements * if self.double { 8 } else { 4 }
    }
}
