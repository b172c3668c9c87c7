//! Integer cube roots: exact methods, and the methods that TCP's congestion control has used. Every method gets the
//! same numbers; their length in bits is a factor.

use std::rc::Rc;
use std::sync::LazyLock;

use ascertain_engine::batch::{self, Timed};
use ascertain_engine::black_box;
use ascertain_engine::experiment::{
    Arm, ArmId, Better, Experiment, Factor, Metric, Samples, Session, Setup, Spec, TargetError, Trial, Unavailable,
};
use ascertain_engine::unit::Unit;
use ascertain_numeric::cbrt::{VARIANTS, Variant};
use ascertain_sys::clock;
use ascertain_sys::machine::Machine;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The experiment `cbrt`: integer cube roots.
pub struct Cbrt;

const TIME: usize = 0;
const MAX: usize = 1;
const STD: usize = 2;
const LATENCY: usize = 3;
const ERROR_PERCENT: usize = 4;
const WORST: usize = 5;
const SIZE: usize = 6;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "Integer cube roots: the speed, error and code size of each method".into(),
    variants: VARIANTS.iter().map(|variant| (variant.name, variant.about).into()).collect(),
    factors: vec![Factor::integer(
        "bits",
        "length of the random numbers, which are below two to this power",
        40,
        1..=64,
    )],
    metrics: vec![
        Metric::time("time", "time per root if no root waits for another: the mean of a batch"),
        Metric::time("max", "time of a root in the slowest of 32 groups of 64 numbers"),
        Metric::time("std", "standard deviation of the time per root, between groups of roots"),
        Metric::time("latency", "time per root if each root waits for the previous root: the mean of a batch"),
        Metric::new(
            "error_percent",
            "100 times the mean of |root − ∛x| / ∛x over the numbers that the seed draws",
            Unit::One,
            Better::Lower,
        ),
        Metric::new("worst", "greatest |root − ⌊∛x⌋| over the numbers that the seed draws", Unit::One, Better::Lower),
        Metric::new(
            "size",
            "size of the machine code for one root, without tables and library calls",
            Unit::Byte,
            Better::Lower,
        ),
    ],
    ..Spec::new("cbrt", include_str!("README.md"))
});

impl Experiment for Cbrt {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        let variant = VARIANTS.iter().find(|variant| variant.name == arm.variant).ok_or(Unavailable::Variant)?;
        variant.is_available().map_err(Unavailable::feature)
    }

    /// Draws the random numbers of each arm, and determines how many times a batch computes the roots of all of them.
    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        let mut calls = arms.iter().map(|arm| cube_root_call(arm, setup.seed)).collect::<Result<Vec<_>, _>>()?;
        let iterations = batch::iterations(calls.iter_mut().map(|call| &mut call.time));
        Ok(Box::new(CubeRootSession { calls, iterations }))
    }
}

/// Number of random numbers whose roots a batch computes again and again. The numbers and their roots fit in L1d, and
/// the numbers are too many for a branch predictor to learn.
const NUMBERS: usize = 2_048;
/// Number of roots that [`spread_ns`] times together, because a single root takes less time than the clock can resolve.
const GROUP: usize = 64;
/// Number of times that one timing computes the 64 roots of a group. A single pass over the group would be too short
/// for the clock to resolve.
const ROUNDS: usize = 16;

struct CubeRootCall {
    variant: &'static Variant,
    numbers: Rc<[u64]>,
    time: Timed<'static>,
    latency: Option<Timed<'static>>,
    error_percent: f64,
    worst: f64,
}

struct CubeRootSession {
    calls: Vec<CubeRootCall>,
    iterations: u64,
}

fn cube_root_call(arm: &Arm, seed: u64) -> Result<CubeRootCall, TargetError> {
    let variant = VARIANTS.iter().find(|variant| variant.name == arm.variant);
    let bits = arm.integer("bits").ok().filter(|bits| (1..=64).contains(bits));
    let (Some(variant), Some(bits)) = (variant, bits) else {
        return Err(TargetError::Failed(format!("{arm}: unknown method, or bits is not 1 to 64")));
    };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let numbers: Rc<[u64]> = (0..NUMBERS).map(|_| rng.random::<u64>() >> (64 - bits)).collect();
    let mut roots = vec![0; NUMBERS];
    variant.each(&numbers, &mut roots);
    let (error_percent, worst) = errors(&numbers, &roots);
    let (independent, chained) = (Rc::clone(&numbers), Rc::clone(&numbers));
    let time = batch::timed(move || {
        variant.each(black_box(&independent), &mut roots);
        black_box(&roots);
    });
    let has_chain = variant.chain(&[1]).is_some();
    let latency = has_chain.then(|| batch::timed(move || variant.chain(black_box(&chained))));
    Ok(CubeRootCall { variant, numbers, time, latency, error_percent, worst })
}

/// Returns two errors of the roots: the mean relative distance to the true root, in percent, and the greatest distance
/// to the true root rounded down.
fn errors(numbers: &[u64], roots: &[u32]) -> (f64, f64) {
    let positive = || numbers.iter().zip(roots).filter(|(number, _)| **number > 0);
    let relative = |(number, root): (&u64, &u32)| {
        let exact = (*number as f64).cbrt();
        (f64::from(*root) - exact).abs() / exact
    };
    let rounded = |number: u64| ascertain_numeric::cbrt::cbrt_u64(number);
    let worst = positive().map(|(number, root)| root.abs_diff(rounded(*number))).max().unwrap_or(0);
    (100.0 * positive().map(relative).sum::<f64>() / positive().count().max(1) as f64, f64::from(worst))
}

/// Returns two times in nanoseconds: the time per root of the slowest group of numbers, and the standard deviation of
/// the time per root over the groups.
fn spread_ns(variant: &Variant, numbers: &[u64]) -> (f64, f64) {
    let mut roots = [0; GROUP];
    let mut time_ns = |group: &[u64]| {
        let start_ns = clock::now_ns();
        for _ in 0..ROUNDS {
            variant.each(black_box(group), &mut roots);
            black_box(&roots);
        }
        (clock::now_ns() - start_ns) as f64 / (ROUNDS * GROUP) as f64
    };
    let times_ns: Vec<f64> = numbers.chunks_exact(GROUP).map(&mut time_ns).collect();
    let mean_ns = times_ns.iter().sum::<f64>() / times_ns.len() as f64;
    let squares = times_ns.iter().map(|time_ns| (time_ns - mean_ns).powi(2)).sum::<f64>();
    (times_ns.iter().fold(0.0, |most, time_ns| time_ns.max(most)), (squares / (times_ns.len() - 1) as f64).sqrt())
}

impl Session for CubeRootSession {
    /// Checks every root. An exact method must return the largest integer whose cube is at most the number. An
    /// approximate root is accepted under two conditions. Its cube must be at most about four times the number. The
    /// cube of the next integer must be at least an eighth of the number.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let CubeRootCall { variant, numbers, .. } = &self.calls[arm];
        if !variant.is_root {
            return Ok(());
        }
        let mut roots = vec![0; numbers.len()];
        variant.each(numbers, &mut roots);
        for (&number, &root) in numbers.iter().zip(&roots) {
            let [below, above] = [u128::from(root).pow(3), (u128::from(root) + 1).pow(3)];
            let number = u128::from(number);
            let is_right = match variant.is_exact {
                true => below <= number && number < above,
                false => below <= 4 * number + 4 && number <= 8 * above,
            };
            if !is_right {
                return Err(TargetError::WrongAnswer(format!("the cube root of {number} is not {root}")));
            }
        }
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let call = &mut self.calls[arm];
        let roots = (self.iterations * NUMBERS as u64) as f64;
        out.push(TIME, (call.time)(self.iterations) as f64 / roots);
        if let Some(latency) = &mut call.latency {
            out.push(LATENCY, latency(self.iterations) as f64 / roots);
        }
        let (max_ns, std_ns) = spread_ns(call.variant, &call.numbers);
        out.push(MAX, max_ns);
        out.push(STD, std_ns);
        if call.variant.is_root {
            out.push(ERROR_PERCENT, call.error_percent);
            out.push(WORST, call.worst);
        }
        if let Some(bytes) = call.variant.code_bytes() {
            out.push(SIZE, bytes as f64);
        }
        Ok(())
    }
}
