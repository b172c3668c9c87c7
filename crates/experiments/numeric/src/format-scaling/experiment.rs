//! Formatting on several threads, each on its own CPU: with which formatters do the threads wait for each other?

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Arm, ArmId, Better, Experiment, Factor, Metric, Plot, Point, Samples, Session, Setup, Spec, TargetError, Trial,
    Unavailable, Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::affinity;
use ascertain_sys::machine::Machine;
use ascertain_sys::threads::{ParallelRun, run_in_parallel};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::decimal::contestants::{Contestant, contestant};

/// The experiment `format-scaling`: formatting on several threads.
pub struct FormatScaling;

const RATE: usize = 0;
const PER_THREAD: usize = 1;
const CPU_TIME: usize = 2;

/// The variants, under the names that they have in the experiment `decimal`.
const VARIANTS: [(&str, &str); 9] = [
    ("libc", "snprintf of the C library"),
    ("stringstream", "std::ostringstream of C++, a new one for each number"),
    ("fmt", "{fmt}"),
    ("to-chars", "std::to_chars of C++"),
    ("std", "write! of Rust's standard library"),
    ("itoa", "the itoa crate"),
    ("plain", "numeric::decimal's default"),
    ("portable", "numeric::decimal, portable"),
    ("avx512", "numeric::decimal with AVX-512"),
];

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "Formatting integers on several threads at once: do they wait for each other?".into(),
    variants: VARIANTS.map(Variant::from).to_vec(),
    factors: vec![Factor::integer("threads", "number of threads, each on its own CPU", 1, 1..=1_024)],
    metrics: vec![
        Metric::new("rate", "conversions per second of all threads, by wall time", Unit::PerSecond, Better::Higher),
        Metric::new("per_thread", "conversions per second of one thread", Unit::PerSecond, Better::Higher),
        Metric::time("cpu_time", "CPU time of a conversion"),
    ],
    plots: vec![Plot::sweep("rate", "threads")],
    ..Spec::new("format-scaling", include_str!("README.md"))
});

impl Experiment for FormatScaling {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// Returns arms of each variant with one thread, with two threads as in the claims, and with one thread for each
    /// CPU.
    fn table_arms(&self) -> Vec<Arm> {
        let threads = BTreeSet::from([1, 2, affinity::allowed().len() as u64]);
        let point = |threads: u64| Point::default().with("threads", threads);
        let arms = VARIANTS.iter().flat_map(|(name, _)| threads.iter().map(move |&threads| (*name, threads)));
        arms.map(|(name, threads)| Arm { variant: name.into(), point: point(threads) }).collect()
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        let (threads, cpus) = (arm.integer("threads").unwrap_or(0), affinity::allowed().len());
        if threads > cpus as u64 {
            return Err(Unavailable::Cpus { needed: threads as usize, usable: cpus });
        }
        contestant(&arm.variant).map(drop)
    }

    /// Draws the numbers: two to the power of a uniform random number below 64. Also determines each variant's number
    /// of rounds. In a round, every thread formats all numbers once.
    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(setup.seed);
        let numbers: Vec<u64> = (0..NUMBERS).map(|_| (64.0 * rng.random::<f64>()).exp2() as u64).collect();
        let mut rounds: BTreeMap<&str, u64> = BTreeMap::new();
        for arm in arms {
            // The number of rounds is determined with one thread, so that all arms of a variant do the same work. The
            // fastest of several tries counts.
            let alone = ParallelFormatter { variant: arm.variant.clone(), threads: 1, rounds: 1 };
            for _ in 0..5 {
                let most = rounds.entry(&arm.variant).or_insert(1);
                *most = (*most).max(WORK_NS / alone.convert(&numbers)?.wall_ns);
            }
        }
        let formatter = |arm: &Arm| {
            let threads = arm.integer("threads")? as usize;
            Ok(ParallelFormatter { variant: arm.variant.clone(), threads, rounds: rounds[arm.variant.as_str()] })
        };
        Ok(Box::new(FormatSession {
            formatters: arms.iter().map(formatter).collect::<Result<_, TargetError>>()?,
            numbers,
        }))
    }
}

/// Number of values that each thread formats in a round. Each text overwrites the previous one in a small buffer, so
/// the total of about 100 KB needs no room.
const NUMBERS: usize = 10_000;
/// Approximate duration of a thread's work in nanoseconds. It is so long that the time to start all threads is
/// negligible.
const WORK_NS: u64 = 3_000_000;

struct ParallelFormatter {
    variant: String,
    threads: usize,
    rounds: u64,
}

struct FormatSession {
    formatters: Vec<ParallelFormatter>,
    numbers: Vec<u64>,
}

impl ParallelFormatter {
    /// Formats the numbers on several threads, each pinned to its own CPU. The field `sum` of the result is the number
    /// of bytes of text.
    fn convert(&self, numbers: &[u64]) -> Result<ParallelRun, TargetError> {
        let cpus = affinity::allowed();
        if cpus.len() < self.threads {
            let (needed, usable) = (self.threads, cpus.len());
            return Err(TargetError::Failed(Unavailable::Cpus { needed, usable }.to_string()));
        }
        let get_ready = |number: usize| {
            affinity::pin_current_thread(cpus[number]).map_err(|error| error.to_string())?;
            contestant(&self.variant).map_err(|error| error.to_string())
        };
        let work = |mut contestant: Contestant| (0..self.rounds).map(|_| (contestant.each)(numbers) as u64).sum();
        run_in_parallel(self.threads, get_ready, work).map_err(TargetError::Failed)
    }
}

impl Session for FormatSession {
    /// Checks the texts that one thread writes, and the total number of bytes that all threads write.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let formatter = &self.formatters[arm];
        let mut alone = contestant(&formatter.variant).map_err(|error| TargetError::Failed(error.to_string()))?;
        alone.check(&self.numbers).map_err(TargetError::WrongAnswer)?;
        let once: u64 = self.numbers.iter().map(|number| number.to_string().len() as u64).sum();
        let expected = once * formatter.threads as u64 * formatter.rounds;
        let ParallelRun { sum, .. } = formatter.convert(&self.numbers)?;
        if sum != expected {
            return Err(TargetError::WrongAnswer(format!("{sum} bytes of text instead of {expected}")));
        }
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let formatter = &self.formatters[arm];
        let ParallelRun { wall_ns, cpu_ns, .. } = formatter.convert(&self.numbers)?;
        let conversions = (NUMBERS as u64 * formatter.rounds * formatter.threads as u64) as f64;
        let rate = conversions / wall_ns as f64 * 1e9;
        out.push(RATE, rate);
        out.push(PER_THREAD, rate / formatter.threads as f64);
        out.push(CPU_TIME, cpu_ns as f64 / conversions);
        Ok(())
    }
}
