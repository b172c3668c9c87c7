//! Strength reduction: polynomials by multiplications and by additions, in Rust and in C at every level. All arms of a
//! size fill one slice.

mod compiled;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::LazyLock;

use ascertain_engine::batch::{self, Timed};
use ascertain_engine::black_box;
use ascertain_engine::experiment::{
    Accepts, Arm, ArmId, Better, Experiment, Factor, Footprint, Metric, Plot, Point, Samples, Session, Setup, Spec,
    TargetError, Trial, Unavailable, Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_numeric::polynomial::{VARIANTS, fill};
use ascertain_sys::machine::Machine;

use compiled::{LEVELS, LOOPS, Loop, function, main_loop};

/// Filling a slice with a quadratic.
pub struct Polynomial;

const TIME: usize = 0;
const THROUGHPUT: usize = 1;
const ERROR: usize = 2;
const WIDTH: usize = 3;
const INSTRUCTIONS: usize = 4;
const VALUES: usize = 5;

/// The call for everybody, under its name.
const FILL: &str = "fill";

/// The levels that the source tells figures of.
const SOURCE_LEVELS: [&str; 3] = ["O0", "O1", "O3"];

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    let words = |words: &[&str]| Accepts::OneOf(words.iter().map(|&word| word.into()).collect());
    let fill = (FILL, "the call for everybody: the first of direct-… that the CPU has");
    let ours = VARIANTS.iter().map(|variant| (variant.name, variant.about));
    Spec {
        title: "A quadratic at 0, 1, 2 …: multiplications against additions".into(),
        variants: LOOPS.into_iter().chain([fill]).chain(ours).map(Variant::from).collect(),
        factors: vec![
            Factor::new("elements", "how many values", 1_000_000, Accepts::Integers { min: 1, max: 1 << 30 }),
            Factor::new(
                "compiler",
                "what compiles the loops in C; nothing to the others",
                "gcc",
                words(&["gcc", "clang"]),
            ),
            Factor::new("level", "its options; nothing to the others", "O3", words(&LEVELS.map(|(name, _)| name))),
        ],
        metrics: vec![
            Metric::time("time", "time of one value: the mean of a batch"),
            Metric::new(
                "throughput",
                "bytes written a second, over the same batch",
                Unit::BytePerSecond,
                Better::Higher,
            ),
            Metric::new("error", "greatest relative error of a value; no chance in it", Unit::One, Better::Lower),
            Metric::new("width", "bits of the widest register that the loop calculates in", Unit::One, Better::Higher),
            Metric::new(
                "instructions",
                "instructions of the loop, however many values it writes",
                Unit::One,
                Better::Lower,
            ),
            Metric::new("values", "values that one turn of the loop writes", Unit::One, Better::Higher),
        ],
        plots: vec![Plot::Sweep {
            metric: "throughput".into(),
            factor: "elements".into(),
            footprints: vec![Footprint { at: Point::default(), bytes_each: 8.0 }],
        }],
        ..Spec::new("polynomial", include_str!("README.md"))
    }
});

impl Experiment for Polynomial {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// The loops in C as the source compiles them, and the others, to which that is nothing, once.
    fn table_arms(&self) -> Vec<Arm> {
        let arm =
            |name: &str, level: &str| Arm { variant: name.into(), point: SPEC.default_point().with("level", level) };
        let in_c = LOOPS.iter().flat_map(|(name, _)| SOURCE_LEVELS.map(|level| arm(name, level)));
        let ours = [FILL].into_iter().chain(VARIANTS.iter().map(|variant| variant.name));
        in_c.chain(ours.map(|name| arm(name, "O3"))).collect()
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        match VARIANTS.iter().find(|variant| variant.name == arm.variant) {
            Some(variant) => variant.is_available().map_err(Unavailable::feature),
            None if arm.variant == FILL => Ok(()),
            None => function(arm).map(drop),
        }
    }

    /// One slice for each size.
    fn memory_bytes(&self, arms: &[Arm]) -> u64 {
        let sizes: BTreeSet<u64> = arms.iter().filter_map(|arm| arm.integer("elements").ok()).collect();
        sizes.iter().map(|elements| elements.saturating_mul(8)).fold(0, u64::saturating_add)
    }

    /// Makes the slices, and finds how many fills are a batch: one number for each size.
    fn open(&self, arms: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        let mut slices: BTreeMap<u64, Rc<RefCell<Vec<f64>>>> = BTreeMap::new();
        let mut targets = Vec::new();
        for arm in arms {
            let elements = arm.integer("elements")?;
            let slice = slices.entry(elements).or_insert_with(|| Rc::new(RefCell::new(vec![0.0; elements as usize])));
            targets.push(target(arm, Rc::clone(slice))?);
        }
        for slice in slices.values() {
            let mut alike: Vec<&mut Target> = targets.iter_mut().filter(|t| Rc::ptr_eq(&t.slice, slice)).collect();
            let iterations = batch::iterations(alike.iter_mut().map(|target| &mut target.timed));
            alike.iter_mut().for_each(|target| target.iterations = iterations);
        }
        Ok(Box::new(Targets(targets)))
    }
}

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

struct Targets(Vec<Target>);

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
            let function = function(arm).map_err(|error| TargetError::Failed(error.to_string()))?;
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
    fn greatest_error(&self) -> f64 {
        let mut out = self.slice.borrow_mut();
        (self.fill)(&mut out);
        greatest_error(&out)
    }
}

/// The greatest relative error of all values, which are at least 3.3: nothing cancels. NaN where one is.
fn greatest_error(values: &[f64]) -> f64 {
    let exact = |i: usize| {
        let x = i as f64;
        (COEFFICIENTS[2] * x).mul_add(x, COEFFICIENTS[1].mul_add(x, COEFFICIENTS[0]))
    };
    let errors = values.iter().enumerate().map(|(i, value)| (value - exact(i)).abs() / exact(i));
    // `f64::max` would drop a NaN.
    errors.fold(0.0, |most: f64, error| if most.is_nan() || most >= error { most } else { error })
}

impl Session for Targets {
    /// The running sums round off at every step: a millionth is far more, and a wrong step far beyond it.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let target = &self.0[arm];
        let error = target.greatest_error();
        if target.is_polynomial && (error.is_nan() || error > 1e-6) {
            return Err(TargetError::WrongAnswer(format!("a value is off by {error:e} of itself")));
        }
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let target = &mut self.0[arm];
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_no_number_is_an_error() {
        assert_eq!(greatest_error(&[3.3, 6.6]), 0.0);
        assert!(greatest_error(&[f64::NAN, 6.6]).is_nan() && greatest_error(&[3.3, f64::INFINITY]).is_infinite());
    }
}
