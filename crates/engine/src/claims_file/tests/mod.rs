//! Tests of claims files. The registry has two experiments, which claims can name but no test measures.

mod claims;
mod mistakes;
mod mutations;

use std::path::Path;

use crate::claims_file::{ClaimsFile, ClaimsFileError, parse};
use crate::experiment::{
    Accepts, Arm, Better, Experiment, Factor, Level, Metric, Session, Setup, Spec, TargetError, Variant,
};
use crate::unit::Unit;

pub(super) struct Named(Spec);

impl Experiment for Named {
    fn spec(&self) -> &Spec {
        &self.0
    }

    /// Excludes the factor `capacity` from arms with a single bin.
    fn has(&self, arm: &Arm, factor: &str) -> bool {
        factor != "capacity" || arm.point.get("bins") != Some(&Level::Integer(1))
    }

    fn open(&self, _: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        Err(TargetError::Failed("only a name".into()))
    }
}

/// Parses a text as the file `claims.toml`, with the two experiments in the registry.
pub(super) fn read(text: &str) -> Result<ClaimsFile, ClaimsFileError> {
    read_as(text, "claims.toml")
}

/// Parses a text as a file with the given name.
pub(super) fn read_as(text: &str, name: &str) -> Result<ClaimsFile, ClaimsFileError> {
    parse(text, Path::new(name), &[&sum(), &fill_rate()])
}

pub(super) fn sum() -> Named {
    let factors = vec![
        factor("elements", Level::Integer(1024), Accepts::Integers { min: 1, max: 1 << 30 }),
        factor("type", "f32".into(), Accepts::OneOf(vec!["f32".into(), "f64".into()])),
        factor("accumulators", Level::Integer(1), Accepts::OneOf([1, 2, 4, 8].map(Level::Integer).to_vec())),
    ];
    let metrics = vec![
        metric("time", Unit::Nanosecond, Better::Lower),
        metric("error", Unit::One, Better::Lower),
        metric("memory", Unit::Byte, Better::Lower),
        metric("throughput", Unit::PerSecond, Better::Higher),
    ];
    spec("sum", &["naive", "kahan", "kahan-avx512"], factors, metrics)
}

pub(super) fn fill_rate() -> Named {
    let accepts = || Accepts::Integers { min: 1, max: 1_000_000 };
    let factors =
        vec![factor("bins", Level::Integer(1000), accepts()), factor("capacity", Level::Integer(30_000), accepts())];
    spec("fill-rate", &["greedy"], factors, vec![metric("fill_rate", Unit::One, Better::Higher)])
}

fn spec(id: &str, variants: &[&str], factors: Vec<Factor>, metrics: Vec<Metric>) -> Named {
    let variant = |name: &&str| Variant { name: name.to_string(), about: String::new() };
    Named(Spec {
        id: id.into(),
        title: String::new(),
        readme: String::new(),
        emulates: None,
        variants: variants.iter().map(variant).collect(),
        factors,
        metrics,
        plots: Vec::new(),
    })
}

fn factor(name: &str, default: Level, accepts: Accepts) -> Factor {
    Factor { name: name.into(), about: String::new(), default, accepts }
}

fn metric(name: &str, unit: Unit, better: Better) -> Metric {
    Metric::new(name, "", unit, better)
}
