//! Measuring: threads that begin together, wherever the kernel puts them.

use std::sync::Barrier;
use std::thread;

use ascertain_engine::experiment::{Arm, ArmId, Samples, Session, TargetError, Trial};
use ascertain_sys::clock;

use super::experiment::{INTERRUPTS_SEEN, RATE, RESTARTS, SWITCHES_SEEN, TIME};
use super::interruption;
use super::target::{Target, target};

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

/// Makes what each arm works on.
pub fn open(arms: &[Arm]) -> Result<Box<dyn Session>, TargetError> {
    let row = |arm: &Arm| {
        let failed = |reason: String| TargetError::Failed(format!("{arm}: {reason}"));
        let threads = arm.point.get("threads").and_then(|level| level.integer());
        let threads = threads.ok_or_else(|| failed("threads is a whole number".into()))? as usize;
        let what = match arm.variant.as_str() {
            "restarts" => What::Restarts,
            "null-gs" => What::NullGs,
            variant => What::Repeated(Box::new(target(variant).map_err(|error| failed(error.to_string()))?)),
        };
        Ok(Row { what, threads })
    };
    Ok(Box::new(Rows(arms.iter().map(row).collect::<Result<_, TargetError>>()?)))
}

/// What all threads of an arm together did.
struct Repeated {
    wall_ns: u64,
    cpu_ns: u64,
    /// By threads for themselves.
    counted: u64,
}

fn repeat(target: &Target, threads: usize) -> Repeated {
    let together = Barrier::new(threads);
    let one = || {
        together.wait();
        let (start_ns, start_cpu_ns) = (clock::now_ns(), clock::thread_cpu_ns());
        let counted = target.run(OPERATIONS);
        (start_ns, clock::now_ns(), clock::thread_cpu_ns() - start_cpu_ns, counted)
    };
    let done: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let start_ns = done.iter().map(|(start_ns, ..)| *start_ns).min().unwrap_or(0);
    let end_ns = done.iter().map(|(_, end_ns, ..)| *end_ns).max().unwrap_or(0);
    Repeated {
        wall_ns: (end_ns - start_ns).max(1),
        cpu_ns: done.iter().map(|(_, _, cpu_ns, _)| cpu_ns).sum(),
        counted: done.iter().map(|(.., counted)| counted).sum(),
    }
}

impl Session for Rows {
    /// Each operation is counted once, however often threads were stopped in one.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let Row { what: What::Repeated(target), threads } = &self.0[arm] else { return Ok(()) };
        let before = target.counted();
        let own = repeat(target, *threads).counted;
        if let (Some(before), Some(after)) = (before, target.counted()) {
            let (seen, expected) = (after.wrapping_sub(before) + own, OPERATIONS * *threads as u64);
            if seen != expected {
                return Err(TargetError::WrongAnswer(format!("{seen} operations were counted instead of {expected}")));
            }
        }
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let Row { what, threads } = &self.0[arm];
        match what {
            What::Repeated(target) => {
                let Repeated { wall_ns, cpu_ns, .. } = repeat(target, *threads);
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
