//! The experiment as data: writers of integers, over threads.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Accepts, Arm, Better, Experiment, Factor, Metric, Plot, Point, Session, Setup, Spec, TargetError, Unavailable,
    Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::affinity;
use ascertain_sys::machine::Machine;

use super::super::decimal::contestants;
use super::session;

/// Formatting over threads.
pub struct FormatScaling;

pub(super) const RATE: usize = 0;
pub(super) const PER_THREAD: usize = 1;
pub(super) const CPU_TIME: usize = 2;

/// The variants, which are `decimal`'s under their names there.
const VARIANTS: [(&str, &str); 8] = [
    ("libc", "snprintf of the C library"),
    ("stringstream", "std::ostringstream of C++, a new one for each number"),
    ("fmt", "{fmt}"),
    ("to-chars", "std::to_chars of C++"),
    ("std", "write! of Rust's standard library"),
    ("itoa", "the itoa crate"),
    ("portable", "numeric::decimal, portable"),
    ("avx512", "numeric::decimal with AVX-512"),
];

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    id: "format-scaling".into(),
    title: "Formatting integers on several threads at once: who takes turns".into(),
    readme: include_str!("README.md").into(),
    variants: VARIANTS.iter().map(|(name, about)| Variant { name: (*name).into(), about: (*about).into() }).collect(),
    factors: vec![Factor::new(
        "threads",
        "threads, each on a CPU of its own",
        1,
        Accepts::Integers { min: 1, max: 1_024 },
    )],
    metrics: vec![
        Metric::new("rate", "conversions a second of all threads, by the wall", Unit::PerSecond, Better::Higher),
        Metric::new("per_thread", "conversions a second of one thread", Unit::PerSecond, Better::Higher),
        Metric::new("cpu_time", "CPU time of a conversion", Unit::Nanosecond, Better::Lower),
    ],
    plots: vec![Plot::Sweep { metric: "rate".into(), factor: "threads".into(), footprints: Vec::new() }],
});

impl Experiment for FormatScaling {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// One thread, two as the claims have it, and all.
    fn table_arms(&self) -> Vec<Arm> {
        let threads = BTreeSet::from([1, 2, affinity::allowed().len() as u64]);
        let point = |threads: u64| Point::default().with("threads", threads);
        let arms = VARIANTS.iter().flat_map(|(name, _)| threads.iter().map(move |&threads| (*name, threads)));
        arms.map(|(name, threads)| Arm { variant: name.into(), point: point(threads) }).collect()
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        let (threads, cpus) = (threads(arm).unwrap_or(0), affinity::allowed().len());
        if threads > cpus as u64 {
            return Err(Unavailable::Cpus { needed: threads as usize, usable: cpus });
        }
        contestants::contestant(&arm.variant).map(|_| ())
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        session::open(arms, setup)
    }
}

/// How many threads an arm has.
pub(super) fn threads(arm: &Arm) -> Option<u64> {
    arm.point.get("threads")?.integer()
}
