//! Measuring: the same numbers for everybody.

use std::collections::BTreeMap;

use ascertain_engine::batch::{self, Timed};
use ascertain_engine::black_box;
use ascertain_engine::experiment::{Arm, ArmId, Samples, Session, Setup, TargetError, Trial};
use ascertain_sys::clock;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::check::check;
use super::contestants::{Contestant, contestant};
use super::distribution::draw;
use super::experiment::{SIZE, SPREAD, TIME};

/// As many as the source's.
const NUMBERS: usize = 10_000;
/// A digit count is timed alone where so many numbers have it …
const LEAST_OF_A_LENGTH: usize = 100;
/// … so often, of which the least counts: interruptions only ever add.
const ROUNDS: usize = 3;

struct Target {
    numbers: Vec<u64>,
    /// The numbers by their digit counts, those that enough of them have.
    by_length: Vec<Vec<u64>>,
    contestant: Contestant,
}

struct Targets {
    targets: Vec<Target>,
    iterations: u64,
}

/// Draws the numbers, and finds how many rounds of them are a batch.
pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    let mut targets = arms.iter().map(|arm| target(arm, setup.seed)).collect::<Result<Vec<_>, _>>()?;
    let mut batches: Vec<Timed> = targets.iter_mut().map(|target| target.batch()).collect();
    let iterations = batch::iterations(&mut batches);
    drop(batches);
    Ok(Box::new(Targets { targets, iterations }))
}

fn target(arm: &Arm, seed: u64) -> Result<Target, TargetError> {
    let failed = |reason: String| TargetError::Failed(format!("{arm}: {reason}"));
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let numbers: Option<Vec<u64>> = (0..NUMBERS).map(|_| draw(arm, &mut rng)).collect();
    let numbers = numbers.ok_or_else(|| failed("there are no such numbers".into()))?;
    let mut by_length: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for &number in &numbers {
        by_length.entry(number.checked_ilog10().unwrap_or(0)).or_default().push(number);
    }
    let by_length = by_length.into_values().filter(|numbers| numbers.len() >= LEAST_OF_A_LENGTH).collect();
    let contestant = contestant(&arm.variant).map_err(|error| failed(error.to_string()))?;
    Ok(Target { numbers, by_length, contestant })
}

impl Target {
    /// All numbers, as they were drawn.
    fn batch(&mut self) -> Timed<'_> {
        let Target { numbers, contestant, .. } = self;
        batch::timed(|| (contestant.each)(black_box(numbers)))
    }

    /// The time of a number of the digit count that takes longest, over that of the one that takes the least.
    fn spread(&mut self) -> f64 {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for numbers in &self.by_length {
            let mut round_ns = || {
                let start_ns = clock::now_ns();
                black_box((self.contestant.each)(black_box(numbers)));
                clock::now_ns() - start_ns
            };
            let least_ns = (0..ROUNDS).map(|_| round_ns()).min().unwrap_or(0);
            let time = least_ns.max(1) as f64 / numbers.len() as f64;
            (least, most) = (least.min(time), most.max(time));
        }
        most / least
    }
}

impl Session for Targets {
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let target = &mut self.targets[arm];
        check(&mut target.contestant, &target.numbers).map_err(TargetError::WrongAnswer)
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let target = &mut self.targets[arm];
        let numbers = (self.iterations * NUMBERS as u64) as f64;
        out.push(TIME, target.batch()(self.iterations) as f64 / numbers);
        out.push(SPREAD, target.spread());
        if let Some(bytes) = target.contestant.code_bytes {
            out.push(SIZE, bytes as f64);
        }
        Ok(())
    }
}
