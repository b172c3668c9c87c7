//! Measuring: the same numbers for everybody.

use std::cell::RefCell;
use std::rc::Rc;

use ascertain::batch::{self, Timed};
use ascertain::black_box;
use ascertain::experiment::{Arm, ArmId, Samples, Session, Setup, TargetError, Trial};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::contestants::{Each, contestant};
use super::distribution::draw;
use super::experiment::{SIZE, TIME};

/// As many as the source's.
const NUMBERS: usize = 10_000;

struct Target {
    numbers: Rc<[u64]>,
    each: Rc<RefCell<Each>>,
    timed: Timed<'static>,
    code_bytes: Option<usize>,
    is_nothing: bool,
}

struct Targets {
    targets: Vec<Target>,
    iterations: u64,
}

/// Draws the numbers, and finds how many rounds of them are a batch.
pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    let mut targets = arms.iter().map(|arm| target(arm, setup.seed)).collect::<Result<Vec<_>, _>>()?;
    let iterations = batch::iterations(targets.iter_mut().map(|target| &mut target.timed));
    Ok(Box::new(Targets { targets, iterations }))
}

fn target(arm: &Arm, seed: u64) -> Result<Target, TargetError> {
    let failed = |reason: String| TargetError::Failed(format!("{arm}: {reason}"));
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let numbers: Option<Rc<[u64]>> = (0..NUMBERS).map(|_| draw(arm, &mut rng)).collect();
    let numbers = numbers.ok_or_else(|| failed("there is no such distribution".into()))?;
    let contestant = contestant(&arm.variant).map_err(|error| failed(error.to_string()))?;
    let each = Rc::new(RefCell::new(contestant.each));
    let (timed_numbers, timed_each) = (Rc::clone(&numbers), Rc::clone(&each));
    let timed = batch::timed(move || (timed_each.borrow_mut())(black_box(&timed_numbers)));
    let is_nothing = arm.variant == "nothing";
    Ok(Target { numbers, each, timed, code_bytes: contestant.code_bytes, is_nothing })
}

impl Session for Targets {
    /// The bytes of all texts together. That each text is right is tested where its method is.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let target = &self.targets[arm];
        let expected: usize = target.numbers.iter().map(|number| number.to_string().len()).sum();
        let seen = (target.each.borrow_mut())(&target.numbers);
        if seen != expected && !target.is_nothing {
            return Err(TargetError::WrongAnswer(format!("{seen} bytes of text instead of {expected}")));
        }
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let target = &mut self.targets[arm];
        let numbers = (self.iterations * NUMBERS as u64) as f64;
        out.push(TIME, (target.timed)(self.iterations) as f64 / numbers);
        if let Some(bytes) = target.code_bytes {
            out.push(SIZE, bytes as f64);
        }
        Ok(())
    }
}
