//! Measuring: threads that begin together, each on its CPU.

use std::sync::{Arc, Barrier};
use std::thread;

use ascertain_engine::experiment::{Arm, ArmId, Samples, Session, Setup, TargetError, Trial};
use ascertain_sys::{affinity, clock};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::super::decimal::check::check;
use super::super::decimal::contestants::contestant;
use super::experiment::{CPU_TIME, PER_THREAD, RATE, threads};

/// Numbers of a thread; their text is some 100 KB, written to the same few bytes.
const NUMBERS: usize = 10_000;
/// A thread's work lasts about as long as this, so that beginning together is a small part of it.
const WORK_NS: u64 = 3_000_000;

struct Target {
    variant: String,
    threads: usize,
    rounds: u64,
}

struct Targets {
    targets: Vec<Target>,
    numbers: Arc<[u64]>,
}

/// Draws the numbers (skewed: 2 to the power of a uniform number below 64), and finds each variant's rounds.
pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(setup.seed);
    let numbers: Arc<[u64]> = (0..NUMBERS).map(|_| (64.0 * rng.random::<f64>()).exp2() as u64).collect();
    let targets = arms.iter().map(|arm| {
        let threads = threads(arm).ok_or_else(|| TargetError::Failed(format!("{arm}: threads is a whole number")))?;
        Ok(Target { variant: arm.variant.clone(), threads: threads as usize, rounds: 1 })
    });
    let mut targets = targets.collect::<Result<Vec<Target>, TargetError>>()?;
    for target in &mut targets {
        // Alone, so that all arms of a variant do the same work: the least of some rounds.
        let alone = Target { variant: target.variant.clone(), threads: 1, rounds: 1 };
        let mut least_ns = u64::MAX;
        for _ in 0..5 {
            least_ns = least_ns.min(convert(&alone, &numbers)?.wall_ns);
        }
        target.rounds = (WORK_NS / least_ns.max(1)).max(1);
    }
    // One number of rounds for all arms of a variant.
    for index in 0..targets.len() {
        let same = |other: &&Target| other.variant == targets[index].variant;
        targets[index].rounds = targets.iter().filter(same).map(|target| target.rounds).min().unwrap_or(1);
    }
    Ok(Box::new(Targets { targets, numbers }))
}

/// What all threads of an arm together did.
struct Converted {
    wall_ns: u64,
    cpu_ns: u64,
    bytes: usize,
}

fn convert(target: &Target, numbers: &Arc<[u64]>) -> Result<Converted, TargetError> {
    let failed = |reason: String| TargetError::Failed(reason);
    let cpus = affinity::allowed();
    if cpus.len() < target.threads {
        // Too few would wait for one another for ever.
        return Err(failed(format!("needs {} CPUs, and only {} may be used", target.threads, cpus.len())));
    }
    let together = Barrier::new(target.threads);
    let one = |cpu: usize| -> Result<(u64, u64, u64, usize), String> {
        // Whatever can fail does so behind the barrier, or the others would wait for ever.
        let ready = affinity::pin_current_thread(cpu).map_err(|error| error.to_string());
        let contestant = contestant(&target.variant).map_err(|error| error.to_string());
        together.wait();
        ready?;
        let mut each = contestant?.each;
        let mut bytes = 0;
        let (start_ns, start_cpu_ns) = (clock::now_ns(), clock::thread_cpu_ns());
        for _ in 0..target.rounds {
            bytes += each(numbers);
        }
        let (cpu_ns, end_ns) = (clock::thread_cpu_ns() - start_cpu_ns, clock::now_ns());
        Ok((start_ns, end_ns, cpu_ns, bytes))
    };
    let done: Result<Vec<_>, String> = thread::scope(|scope| {
        let workers: Vec<_> = cpus.iter().take(target.threads).map(|&cpu| scope.spawn(move || one(cpu))).collect();
        let joined =
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|_| Err("a thread panicked".into())));
        joined.collect()
    });
    let done = done.map_err(failed)?;
    let start_ns = done.iter().map(|(start_ns, ..)| *start_ns).min().unwrap_or(0);
    let end_ns = done.iter().map(|(_, end_ns, ..)| *end_ns).max().unwrap_or(0);
    Ok(Converted {
        wall_ns: (end_ns - start_ns).max(1),
        cpu_ns: done.iter().map(|(_, _, cpu_ns, _)| cpu_ns).sum(),
        bytes: done.iter().map(|(.., bytes)| bytes).sum(),
    })
}

impl Session for Targets {
    /// The texts on one thread, and the bytes of those of all threads together.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let target = &self.targets[arm];
        let mut alone = contestant(&target.variant).map_err(|error| TargetError::Failed(error.to_string()))?;
        check(&mut alone, &self.numbers).map_err(TargetError::WrongAnswer)?;
        let once: usize = self.numbers.iter().map(|number| number.to_string().len()).sum();
        let expected = once * target.threads * target.rounds as usize;
        let Converted { bytes, .. } = convert(target, &self.numbers)?;
        if bytes != expected {
            return Err(TargetError::WrongAnswer(format!("{bytes} bytes of text instead of {expected}")));
        }
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let target = &self.targets[arm];
        let Converted { wall_ns, cpu_ns, .. } = convert(target, &self.numbers)?;
        let conversions = (NUMBERS as u64 * target.rounds * target.threads as u64) as f64;
        let rate = conversions / wall_ns as f64 * 1e9;
        out.push(RATE, rate);
        out.push(PER_THREAD, rate / target.threads as f64);
        out.push(CPU_TIME, cpu_ns as f64 / conversions);
        Ok(())
    }
}
