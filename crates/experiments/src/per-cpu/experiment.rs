//! The experiment as data: counters, free lists and locks, over threads.

use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Accepts, Arm, Better, Experiment, Factor, Metric, Plot, Session, Setup, Spec, TargetError, Unavailable, Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Machine;

use super::{interruption, session, target};

/// Data of a CPU's own.
pub struct PerCpu;

pub(super) const TIME: usize = 0;
pub(super) const RATE: usize = 1;
pub(super) const RESTARTS: usize = 2;
pub(super) const SWITCHES_SEEN: usize = 3;
pub(super) const INTERRUPTS_SEEN: usize = 4;

const VARIANTS: [(&str, &str); 15] = [
    ("counter", "per_cpu::Counter by restartable sequences: add 1"),
    ("counter-sharded", "per_cpu::Counter by sharded atomics"),
    ("thread-local", "a thread_local! number"),
    ("plain", "limit: a number of each thread's own, found once: as fast as adding in memory gets"),
    ("atomic", "an atomic of each thread's own: the LOCK prefix, and nobody else"),
    ("atomic-shared", "one atomic for all threads"),
    ("free-list", "per_cpu::FreeList by restartable sequences: pop 64 bytes and push them"),
    ("free-list-sharded", "per_cpu::FreeList by sharded locks"),
    ("stack", "limit: a stack of each thread's own, found once, in C: pop and push, and nothing is looked at"),
    ("box", "Rust's global allocator: allocate 64 bytes and free them"),
    ("malloc", "malloc and free of the C library"),
    ("lock", "per_cpu::Lock by restartable sequences: acquire, and store twice"),
    ("mutex", "a mutex of each thread's own: lock, store twice, unlock"),
    ("restarts", "how often a sequence is aborted, where a thread does nothing else"),
    ("null-gs", "a null selector in GS: what it shows of switches and interrupts"),
];

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    id: "per-cpu".into(),
    title: "Data of a CPU's own, without atomic instructions".into(),
    readme: include_str!("README.md").into(),
    variants: VARIANTS.iter().map(|(name, about)| Variant { name: (*name).into(), about: (*about).into() }).collect(),
    factors: vec![Factor::new(
        "threads",
        "threads that do it at once, on whatever CPUs the kernel gives them",
        1,
        Accepts::Integers { min: 1, max: 1_024 },
    )],
    metrics: vec![
        Metric::new("time", "CPU time of one operation", Unit::Nanosecond, Better::Lower),
        Metric::new("rate", "operations a second of all threads, by the wall", Unit::PerSecond, Better::Higher),
        Metric::new("restarts", "sequences aborted for each time slice", Unit::One, Better::Lower),
        Metric::new("switches_seen", "share of the switches to other threads that GS shows", Unit::One, Better::Higher),
        Metric::new(
            "interrupts_seen",
            "interrupts that GS shows, for each tick of the CPU's timer",
            Unit::One,
            Better::Higher,
        ),
    ],
    plots: vec![
        Plot::Sweep { metric: "time".into(), factor: "threads".into(), footprints: Vec::new() },
        Plot::Sweep { metric: "rate".into(), factor: "threads".into(), footprints: Vec::new() },
    ],
});

impl Experiment for PerCpu {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        match arm.variant.as_str() {
            "restarts" => interruption::restarts_are_available(),
            "null-gs" => interruption::null_gs_is_available(),
            _ => target::target(&arm.variant).map(drop),
        }
    }

    fn shows(&self, _: &Arm, metric: usize, _: &Machine) -> Result<(), Unavailable> {
        if metric == INTERRUPTS_SEEN { interruption::ticks_are_told() } else { Ok(()) }
    }

    fn open(&self, arms: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        session::open(arms)
    }
}
