//! Measuring: one slice for all arms of a size.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use ascertain_engine::batch::{self, Timed};
use ascertain_engine::black_box;
use ascertain_engine::experiment::{Arm, ArmId, Samples, Session, TargetError, Trial};
use ascertain_numeric::polynomial::{VARIANTS, fill};

use super::compiled;
use super::experiment::{ERROR, FILL, INSTRUCTIONS, THROUGHPUT, TIME, VALUES, WIDTH, elements};
use super::machine_code::{Loop, main_loop};

/// C, B and A of the source.
const COEFFICIENTS: [f64; 3] = [3.3, 2.2, 1.1];

type Fill = Rc<dyn Fn(&mut [f64])>;

/// One arm, ready.
struct Target {
    fill: Fill,
    slice: Rc<RefCell<Vec<f64>>>,
    timed: Timed<'static>,
    is_polynomial: bool,
    error: f64,
    code: Option<Loop>,
    iterations: u64,
}

struct Targets {
    targets: Vec<Target>,
}

/// Makes the slices, and finds how many fills are a batch: one number for each size.
pub fn open(arms: &[Arm]) -> Result<Box<dyn Session>, TargetError> {
    let mut slices: BTreeMap<u64, Rc<RefCell<Vec<f64>>>> = BTreeMap::new();
    let mut targets = Vec::new();
    for arm in arms {
        let elements =
            elements(arm).ok_or_else(|| TargetError::Failed(format!("{arm}: elements is a whole number")))?;
        let slice = slices.entry(elements).or_insert_with(|| Rc::new(RefCell::new(vec![0.0; elements as usize])));
        targets.push(target(arm, Rc::clone(slice))?);
    }
    for slice in slices.values() {
        let mut alike: Vec<&mut Target> = targets.iter_mut().filter(|t| Rc::ptr_eq(&t.slice, slice)).collect();
        let iterations = batch::iterations(alike.iter_mut().map(|target| &mut target.timed));
        alike.iter_mut().for_each(|target| target.iterations = iterations);
    }
    Ok(Box::new(Targets { targets }))
}

fn target(arm: &Arm, slice: Rc<RefCell<Vec<f64>>>) -> Result<Target, TargetError> {
    let ours = VARIANTS.iter().find(|variant| variant.name == arm.variant);
    let (fill, is_polynomial, code): (Fill, _, _) = match ours {
        Some(variant) => {
            let function = variant.function();
            let function = function.ok_or_else(|| TargetError::Failed(format!("{arm}: this machine can't run it")))?;
            (Rc::new(move |out: &mut [f64]| function(black_box(&COEFFICIENTS), out)), variant.is_polynomial, None)
        }
        None if arm.variant == FILL => (Rc::new(|out: &mut [f64]| fill(black_box(&COEFFICIENTS), out)), true, None),
        None => {
            let function = compiled::function(arm).map_err(|error| TargetError::Failed(error.to_string()))?;
            let name = arm.variant.trim_start_matches("c-");
            let code = main_loop(&function.library().object(), name);
            let fill = move |out: &mut [f64]| {
                function.call(&[], out);
            };
            (Rc::new(fill), true, code)
        }
    };
    let (timed_fill, timed_slice) = (Rc::clone(&fill), Rc::clone(&slice));
    let timed = batch::timed(move || {
        let mut out = timed_slice.borrow_mut();
        timed_fill(&mut out);
        black_box(&mut out[..]);
    });
    let mut target = Target { fill, slice, timed, is_polynomial, error: f64::NAN, code, iterations: 1 };
    target.error = target.greatest_error();
    Ok(target)
}

impl Target {
    /// The greatest relative error of all values, which are at least 3.3: nothing cancels.
    fn greatest_error(&self) -> f64 {
        let mut out = self.slice.borrow_mut();
        (self.fill)(&mut out);
        let exact = |i: usize| {
            let x = i as f64;
            (COEFFICIENTS[2] * x).mul_add(x, COEFFICIENTS[1].mul_add(x, COEFFICIENTS[0]))
        };
        out.iter().enumerate().map(|(i, value)| (value - exact(i)).abs() / exact(i)).fold(0.0, f64::max)
    }
}

impl Session for Targets {
    /// The running sums round off at every step: a millionth is far more, and a wrong step far beyond it.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let target = &self.targets[arm];
        let error = target.greatest_error();
        if target.is_polynomial && (error.is_nan() || error > 1e-6) {
            return Err(TargetError::WrongAnswer(format!("a value is off by {error:e} of itself")));
        }
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let target = &mut self.targets[arm];
        let values = (target.iterations * target.slice.borrow().len() as u64) as f64;
        let time_ns = (target.timed)(target.iterations) as f64 / values;
        out.push(TIME, time_ns);
        out.push(THROUGHPUT, 8.0 / time_ns * 1e9);
        if target.is_polynomial {
            out.push(ERROR, target.error);
        }
        if let Some(code) = target.code {
            out.push(WIDTH, f64::from(code.width_bits));
            out.push(INSTRUCTIONS, f64::from(code.instructions));
            out.push(VALUES, f64::from(code.values));
        }
        Ok(())
    }
}
