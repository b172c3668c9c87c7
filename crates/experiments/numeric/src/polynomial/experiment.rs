//! Strength reduction: evaluates a polynomial with multiplications or with additions. The loops are in Rust, and in C
//! at every optimisation level. All arms of one size fill the same slice.

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

/// The experiment `polynomial`: filling a slice with a quadratic polynomial.
pub struct Polynomial;

const TIME: usize = 0;
const THROUGHPUT: usize = 1;
const ERROR: usize = 2;
const WIDTH: usize = 3;
const INSTRUCTIONS: usize = 4;
const VALUES: usize = 5;

/// Name of the variant that calls [`fill`]. That function chooses a method itself.
const FILL: &str = "fill";

/// The optimisation levels for which the publication that the README cites gives figures.
const SOURCE_LEVELS: [&str; 3] = ["O0", "O1", "O3"];

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    let words = |words: &[&str]| Accepts::OneOf(words.iter().map(|&word| word.into()).collect());
    let fill = (FILL, "polynomial::fill: a direct method with the best instructions that the CPU supports");
    let ours = VARIANTS.iter().map(|variant| (variant.name, variant.about));
    Spec {
        title: "A quadratic at 0, 1, 2 …: multiplications against additions".into(),
        variants: LOOPS.into_iter().chain([fill]).chain(ours).map(Variant::from).collect(),
        factors: vec![
            Factor::integer("elements", "number of values", 1_000_000, 1..=1 << 30),
            Factor::new(
                "compiler",
                "compiler of the loops in C; no effect on the other variants",
                "gcc",
                words(&["gcc", "clang"]),
            ),
            Factor::new(
                "level",
                "optimisation level of the loops in C; no effect on the other variants",
                "O3",
                words(&LEVELS.map(|(name, _)| name)),
            ),
        ],
        metrics: vec![
            Metric::time("time", "time of one value: the mean of a batch"),
            Metric::new(
                "throughput",
                "bytes written per second, over the same batch",
                Unit::BytePerSecond,
                Better::Higher,
            ),
            Metric::new(
                "error",
                "greatest relative error of a value, the same in each trial",
                Unit::One,
                Better::Lower,
            ),
            Metric::new(
                "width",
                "width in bits of the widest register in which the loop calculates",
                Unit::One,
                Better::Higher,
            ),
            Metric::new(
                "instructions",
                "number of instructions of the loop, which may write several values",
                Unit::One,
                Better::Lower,
            ),
            Metric::new("values", "number of values that one iteration of the loop writes", Unit::One, Better::Higher),
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

    /// Returns an arm for each loop in C at each of the publication's levels. Every other variant has a single arm,
    /// because the level has no effect on it.
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

    /// Returns the total size of the slices in bytes. There is one slice for each number of elements.
    fn memory_bytes(&self, arms: &[Arm]) -> u64 {
        let sizes: BTreeSet<u64> = arms.iter().filter_map(|arm| arm.integer("elements").ok()).collect();
        sizes.iter().map(|elements| elements.saturating_mul(8)).fold(0, u64::saturating_add)
    }

    /// Creates the slices, and determines for each number of elements how many fills make a batch.
    fn open(&self, arms: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        let mut slices: BTreeMap<u64, Rc<RefCell<Vec<f64>>>> = BTreeMap::new();
        let mut fills = Vec::new();
        for arm in arms {
            let elements = arm.integer("elements")?;
            let slice = slices.entry(elements).or_insert_with(|| Rc::new(RefCell::new(vec![0.0; elements as usize])));
            fills.push(slice_fill(arm, Rc::clone(slice))?);
        }
        for slice in slices.values() {
            let mut alike: Vec<&mut SliceFill> = fills.iter_mut().filter(|t| Rc::ptr_eq(&t.slice, slice)).collect();
            let iterations = batch::iterations(alike.iter_mut().map(|fill| &mut fill.timed));
            alike.iter_mut().for_each(|fill| fill.iterations = iterations);
        }
        Ok(Box::new(FillSession(fills)))
    }
}

/// The coefficients C, B and A, in this order, as in the publication that the README cites.
const COEFFICIENTS: [f64; 3] = [3.3, 2.2, 1.1];

type Fill = Rc<dyn Fn(&mut [f64])>;

/// One variant with the slice that it fills: the state of one arm.
struct SliceFill {
    fill: Fill,
    slice: Rc<RefCell<Vec<f64>>>,
    timed: Timed<'static>,
    is_polynomial: bool,
    error: f64,
    code: Option<Loop>,
    iterations: u64,
}

struct FillSession(Vec<SliceFill>);

fn slice_fill(arm: &Arm, slice: Rc<RefCell<Vec<f64>>>) -> Result<SliceFill, TargetError> {
    let ours = VARIANTS.iter().find(|variant| variant.name == arm.variant);
    let (fill, is_polynomial, code): (Fill, _, _) = match ours {
        Some(variant) => {
            let function = variant.function();
            let function =
                function.ok_or_else(|| TargetError::Failed(format!("{arm}: this machine can't run this variant")))?;
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
    let mut fill = SliceFill { fill, slice, timed, is_polynomial, error: f64::NAN, code, iterations: 1 };
    fill.error = fill.greatest_error();
    Ok(fill)
}

impl SliceFill {
    fn greatest_error(&self) -> f64 {
        let mut out = self.slice.borrow_mut();
        (self.fill)(&mut out);
        greatest_error(&out)
    }
}

/// Returns the greatest relative error of all values, or NaN if a value is NaN. The true values are computed in
/// doubles. All terms are positive, so nothing cancels, and these values are accurate enough.
fn greatest_error(values: &[f64]) -> f64 {
    let exact = |i: usize| {
        let x = i as f64;
        (COEFFICIENTS[2] * x).mul_add(x, COEFFICIENTS[1].mul_add(x, COEFFICIENTS[0]))
    };
    let errors = values.iter().enumerate().map(|(i, value)| (value - exact(i)).abs() / exact(i));
    // `f64::max` would drop a NaN.
    errors.fold(0.0, |most: f64, error| if most.is_nan() || most >= error { most } else { error })
}

impl Session for FillSession {
    /// Checks that the greatest relative error is at most a millionth. The rounding of the running sums causes far
    /// smaller errors, and a wrong step causes far larger ones.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let fill = &self.0[arm];
        let error = fill.greatest_error();
        if fill.is_polynomial && (error.is_nan() || error > 1e-6) {
            return Err(TargetError::WrongAnswer(format!("a value has a relative error of {error:e}")));
        }
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let fill = &mut self.0[arm];
        let values = (fill.iterations * fill.slice.borrow().len() as u64) as f64;
        let time_ns = (fill.timed)(fill.iterations) as f64 / values;
        out.push(TIME, time_ns);
        out.push(THROUGHPUT, 8.0 / time_ns * 1e9);
        if fill.is_polynomial {
            out.push(ERROR, fill.error);
        }
        if let Some(code) = fill.code {
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
