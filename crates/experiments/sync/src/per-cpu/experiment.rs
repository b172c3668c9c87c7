//! Per-CPU data, compared with atomics, thread-local data and the allocator. The threads start together, on the CPUs
//! that the kernel chooses.

mod interruption;
mod operation;

use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Arm, ArmId, Better, Experiment, Factor, Metric, Plot, Samples, Session, Setup, Spec, TargetError, Trial,
    Unavailable, Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Machine;
use ascertain_sys::threads::{ParallelRun, run_in_parallel};

use operation::{Operation, operation};

/// The experiment `per-cpu`: per-CPU data.
pub struct PerCpu;

const TIME: usize = 0;
const RATE: usize = 1;
const RESTARTS: usize = 2;
const SWITCHES_SEEN: usize = 3;
const INTERRUPTS_SEEN: usize = 4;

const VARIANTS: [(&str, &str); 17] = [
    ("counter", "per_cpu::Counter by restartable sequences: add 1"),
    ("counter-sharded", "per_cpu::Counter by sharded atomics"),
    ("thread-local", "a thread_local! number"),
    ("plain", "speed limit: a per-thread number whose address is looked up once; no addition to memory is faster"),
    (
        "limit-counter",
        "speed limit of a restartable sequence in C: store a pointer, read and check the CPU's number, add to its count",
    ),
    ("atomic", "a per-thread atomic, which costs the LOCK prefix but has no contention"),
    ("atomic-shared", "one atomic for all threads"),
    ("free-list", "per_cpu::FreeList by restartable sequences: pop 64 bytes and push them"),
    ("free-list-sharded", "per_cpu::FreeList by sharded locks"),
    ("stack", "speed limit: a per-thread stack in C whose address is looked up once: pop and push, without checks"),
    ("limit-free-list", "speed limit in C: the memory accesses and checks of the two sequences of a pop and a push"),
    ("box", "Rust's global allocator: allocate 64 bytes and free them"),
    ("malloc", "malloc and free of the C library"),
    ("lock", "per_cpu::Lock by restartable sequences: acquire, and store twice"),
    ("mutex", "a per-thread mutex: lock, store twice, unlock"),
    ("restarts", "how often a sequence is aborted in a thread that runs nothing but sequences"),
    ("null-gs", "a null selector in GS: how many thread switches and interrupts it detects"),
];

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "Per-CPU data without atomic instructions".into(),
    variants: VARIANTS.map(Variant::from).to_vec(),
    factors: vec![Factor::integer(
        "threads",
        "threads that run at once, on the CPUs that the kernel chooses",
        1,
        1..=1_024,
    )],
    metrics: vec![
        Metric::time("time", "CPU time of one operation"),
        Metric::new("rate", "operations per second of all threads, by wall time", Unit::PerSecond, Better::Higher),
        Metric::new("restarts", "sequences aborted per time slice", Unit::One, Better::Lower),
        Metric::share(
            "switches_seen",
            "share of the switches to other threads that the GS register reveals",
            Better::Higher,
        ),
        Metric::new(
            "interrupts_seen",
            "interrupts that the GS register reveals, per tick of the CPU's timer",
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
            _ => operation(&arm.variant).map(drop),
        }
    }

    fn shows(&self, _: &Arm, metric: usize, _: &Machine) -> Result<(), Unavailable> {
        if metric == INTERRUPTS_SEEN { interruption::ticks_are_told() } else { Ok(()) }
    }

    fn open(&self, arms: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        Ok(Box::new(PerCpuSession(arms.iter().map(ThreadedWork::new).collect::<Result<_, _>>()?)))
    }
}

/// Number of operations that each thread performs. The fastest operation takes about a nanosecond, so the thread runs
/// for at least 0.2 ms.
const OPERATIONS: u64 = 200_000;

struct ThreadedWork {
    work: Work,
    threads: usize,
}

enum Work {
    Repeated(Box<Operation>),
    Restarts,
    NullGs,
}

struct PerCpuSession(Vec<ThreadedWork>);

impl ThreadedWork {
    fn new(arm: &Arm) -> Result<ThreadedWork, TargetError> {
        let work = match arm.variant.as_str() {
            "restarts" => Work::Restarts,
            "null-gs" => Work::NullGs,
            variant => {
                let operation = operation(variant).map_err(|error| TargetError::Failed(format!("{arm}: {error}")))?;
                Work::Repeated(Box::new(operation))
            }
        };
        Ok(ThreadedWork { work, threads: arm.integer("threads")? as usize })
    }
}

/// Runs the operation on several threads. The sum in the result is the number of operations that the threads counted
/// themselves.
fn repeat(operation: &Operation, threads: usize) -> Result<ParallelRun, TargetError> {
    run_in_parallel(threads, |_| Ok(()), |()| operation.run(OPERATIONS)).map_err(TargetError::Failed)
}

impl Session for PerCpuSession {
    /// Checks that each operation is counted once, however often a thread is interrupted during an operation.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let ThreadedWork { work: Work::Repeated(operation), threads } = &self.0[arm] else { return Ok(()) };
        let before = operation.counted();
        let own = repeat(operation, *threads)?.sum;
        if let (Some(before), Some(after)) = (before, operation.counted()) {
            let (seen, expected) = (after.wrapping_sub(before) + own, OPERATIONS * *threads as u64);
            if seen != expected {
                return Err(TargetError::WrongAnswer(format!("{seen} operations were counted instead of {expected}")));
            }
        }
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let ThreadedWork { work, threads } = &self.0[arm];
        match work {
            Work::Repeated(operation) => {
                let ParallelRun { wall_ns, cpu_ns, .. } = repeat(operation, *threads)?;
                let operations = (OPERATIONS * *threads as u64) as f64;
                out.push(TIME, cpu_ns as f64 / operations);
                out.push(RATE, operations / wall_ns as f64 * 1e9);
            }
            Work::Restarts => out.push(RESTARTS, interruption::restarts(*threads)?),
            Work::NullGs => {
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
