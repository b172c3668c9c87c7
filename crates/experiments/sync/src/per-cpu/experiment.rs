//! Data of a CPU's own, against atomics, threads' own data and the allocator: over threads that begin together,
//! wherever the kernel puts them.

mod interruption;
mod target;

use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Accepts, Arm, ArmId, Better, Experiment, Factor, Metric, Plot, Samples, Session, Setup, Spec, TargetError, Trial,
    Unavailable, Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Machine;
use ascertain_sys::threads::{ParallelRun, run_in_parallel};

use target::{Target, target};

/// Data of a CPU's own.
pub struct PerCpu;

const TIME: usize = 0;
const RATE: usize = 1;
const RESTARTS: usize = 2;
const SWITCHES_SEEN: usize = 3;
const INTERRUPTS_SEEN: usize = 4;

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
    title: "Data of a CPU's own, without atomic instructions".into(),
    variants: VARIANTS.map(Variant::from).to_vec(),
    factors: vec![Factor::new(
        "threads",
        "threads that do it at once, on whatever CPUs the kernel gives them",
        1,
        Accepts::Integers { min: 1, max: 1_024 },
    )],
    metrics: vec![
        Metric::time("time", "CPU time of one operation"),
        Metric::new("rate", "operations a second of all threads, by the wall", Unit::PerSecond, Better::Higher),
        Metric::new("restarts", "sequences aborted for each time slice", Unit::One, Better::Lower),
        Metric::share("switches_seen", "share of the switches to other threads that GS shows", Better::Higher),
        Metric::new(
            "interrupts_seen",
            "interrupts that GS shows, for each tick of the CPU's timer",
            Unit::One,
            Better::Higher,
        ),
    ],
    plots: vec![Plot::sweep("time", "threads"), Plot::sweep("rate", "threads")],
    ..Spec::new("per-cpu", include_str!("README.md"))
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
        Ok(Box::new(Rows(arms.iter().map(Row::new).collect::<Result<_, _>>()?)))
    }
}

/// Operations of each thread: the shortest take a nanosecond.
const OPERATIONS: u64 = 200_000;

struct Row {
    what: What,
    threads: usize,
}

enum What {
    Repeated(Box<Target>),
    Restarts,
    NullGs,
}

struct Rows(Vec<Row>);

impl Row {
    fn new(arm: &Arm) -> Result<Row, TargetError> {
        let what = match arm.variant.as_str() {
            "restarts" => What::Restarts,
            "null-gs" => What::NullGs,
            variant => {
                let target = target(variant).map_err(|error| TargetError::Failed(format!("{arm}: {error}")))?;
                What::Repeated(Box::new(target))
            }
        };
        Ok(Row { what, threads: arm.integer("threads")? as usize })
    }
}

/// Runs the operations on several threads. The sum is the number of operations that the threads counted themselves.
fn repeat(target: &Target, threads: usize) -> Result<ParallelRun, TargetError> {
    run_in_parallel(threads, |_| Ok(()), |()| target.run(OPERATIONS)).map_err(TargetError::Failed)
}

impl Session for Rows {
    /// Each operation is sum once, however often threads were stopped in one.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let Row { what: What::Repeated(target), threads } = &self.0[arm] else { return Ok(()) };
        let before = target.counted();
        let own = repeat(target, *threads)?.sum;
        if let (Some(before), Some(after)) = (before, target.counted()) {
            let (seen, expected) = (after.wrapping_sub(before) + own, OPERATIONS * *threads as u64);
            if seen != expected {
                return Err(TargetError::WrongAnswer(format!("{seen} operations were sum instead of {expected}")));
            }
        }
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let Row { what, threads } = &self.0[arm];
        match what {
            What::Repeated(target) => {
                let ParallelRun { wall_ns, cpu_ns, .. } = repeat(target, *threads)?;
                let operations = (OPERATIONS * *threads as u64) as f64;
                out.push(TIME, cpu_ns as f64 / operations);
                out.push(RATE, operations / wall_ns as f64 * 1e9);
            }
            What::Restarts => out.push(RESTARTS, interruption::restarts(*threads)?),
            What::NullGs => {
                let seen = interruption::seen_by_null_gs()?;
                out.push(SWITCHES_SEEN, seen.switches);
                if let Some(interrupts) = seen.interrupts {
                    out.push(INTERRUPTS_SEEN, interrupts);
                }
            }
        }
        Ok(())
    }
}
