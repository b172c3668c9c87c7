//! Floating-point summation: its speed and error, by array size, number type and number of accumulators. Each size and
//! type has one or more arrays, which all variants share.

mod contestants;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::LazyLock;

use ascertain_engine::batch::{self, Timed};
use ascertain_engine::black_box;
use ascertain_engine::experiment::{
    Accepts, Arm, ArmId, Better, Experiment, Factor, Footprint, Level, Metric, Plot, Point, Samples, Session, Setup,
    Spec, TargetError, Trial, Unavailable, Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_numeric::sum::{self, Element};
use ascertain_sys::compiled::Plain;
use ascertain_sys::machine::Machine;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use contestants::{Contestant, DEFAULTS, OTHERS, contestant};

/// The experiment `sum`: floating-point summation.
pub struct Sum;

const TIME: usize = 0;
const THROUGHPUT: usize = 1;
const ERROR: usize = 2;

/// The levels of the factor `accumulators` in the default table: 1, and the level that the claims use.
const SHOWN_ACCUMULATORS: [u32; 2] = [1, 4];

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    // The names are the same for both types.
    let ours = f32::VARIANTS.iter().map(|v| (v.name, v.about));
    let dots = f32::DOT_VARIANTS.iter().map(|v| (v.name, v.about));
    Spec {
        title: "Adding up floating-point numbers: speed and error".into(),
        variants: ours.chain(DEFAULTS).chain(OTHERS).chain(dots).map(Variant::from).collect(),
        factors: vec![
            Factor::integer("elements", "number of values to add up", 187_500, 1..=1 << 32),
            Factor::one_of(
                "type",
                "type of the numbers; numbers of either type are summed into an f64",
                ["f32", "f64"],
            ),
            Factor::new(
                "accumulators",
                "number of independent chains of additions; ignored by `sum`, `exact`, the dot products and the \
                 methods of \
                 other projects",
                1,
                Accepts::OneOf([1, 2, 4, 8].map(Level::from).to_vec()),
            ),
        ],
        plots: vec![sweep("throughput"), sweep("error"), Plot::sweep("throughput", "accumulators")],
        metrics: vec![
            Metric::time("time", "time of one sum or dot product: the mean of a batch"),
            Metric::new(
                "throughput",
                "bytes read per second, over the same batch",
                Unit::BytePerSecond,
                Better::Higher,
            ),
            Metric::new(
                "error",
                "error relative to the exact sum: the mean over the arrays that the seed draws",
                Unit::One,
                Better::Lower,
            ),
        ],
        ..Spec::new("sum", include_str!("README.md"))
    }
});

/// Returns a plot of a metric over the size of the array, with the cache sizes marked.
fn sweep(metric: &str) -> Plot {
    let footprint = |name: &str, bytes_each| Footprint { at: Point::default().with("type", name), bytes_each };
    let footprints = vec![footprint("f32", 4.0), footprint("f64", 8.0)];
    Plot::Sweep { metric: metric.into(), factor: "elements".into(), footprints }
}

impl Experiment for Sum {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// Returns, for each variant, an arm with one accumulator and an arm with four, as far as the variant supports
    /// them. A variant that supports neither has an arm with its smallest number of accumulators.
    fn table_arms(&self) -> Vec<Arm> {
        let arm = |name: &str, accumulators: u32| {
            let point = SPEC.default_point().with("accumulators", u64::from(accumulators));
            Arm { variant: name.into(), point }
        };
        let of_variant = |variant: &Variant| -> Vec<Arm> {
            let comes_with = f32::variant(&variant.name).map_or(&[1][..], |ours| ours.accumulators);
            let shown = comes_with.iter().filter(|accumulators| SHOWN_ACCUMULATORS.contains(accumulators));
            let shown: Vec<Arm> = shown.map(|&accumulators| arm(&variant.name, accumulators)).collect();
            if shown.is_empty() { vec![arm(&variant.name, comes_with[0])] } else { shown }
        };
        SPEC.variants.iter().flat_map(of_variant).collect()
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        let size = Size::from_arm(arm).map_err(Unavailable::other)?;
        match size.double {
            false => contestant::<f32>(&arm.variant, size.accumulators).map(drop)?,
            true => contestant::<f64>(&arm.variant, size.accumulators).map(drop)?,
        }
        Ok(())
    }

    /// Returns the memory for all arrays in bytes. Each size and type has an array and, for the dot products, the same
    /// array in reverse order. Sizes up to `PLACED_BYTES` have several such pairs of arrays. Only one pair is counted,
    /// because all of them are small.
    fn memory_bytes(&self, arms: &[Arm]) -> u64 {
        let sizes = arms.iter().flat_map(Size::from_arm).map(|size| ((size.elements, size.double), size.bytes()));
        let bytes: BTreeMap<(u64, bool), u64> = sizes.collect();
        bytes.values().map(|bytes| bytes.saturating_mul(2)).fold(0, u64::saturating_add)
    }

    /// Creates the arrays, and determines for each size and type how many sums make a batch.
    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        let place = ArrayIndex::default();
        let (mut singles, mut doubles) = (Arrays::new(&place), Arrays::new(&place));
        let summation = |arm: &Arm| {
            let size = Size::from_arm(arm)?;
            match size.double {
                false => summation(arm, size, singles.get(&size, setup.seed, |x| x as f32)),
                true => summation(arm, size, doubles.get(&size, setup.seed, |x| x)),
            }
        };
        let mut summations = arms.iter().map(summation).collect::<Result<Vec<Summation>, _>>()?;
        for index in 0..summations.len() {
            if summations[index].iterations == 0 {
                let size = summations[index].size;
                let mut alike: Vec<&mut Summation> =
                    summations.iter_mut().filter(|t| same_data(&t.size, &size)).collect();
                let iterations = batch::iterations(alike.iter_mut().map(|summation| &mut summation.timed));
                alike.iter_mut().for_each(|summation| summation.iterations = iterations);
            }
        }
        Ok(Box::new(SumSession { summations, place }))
    }
}

/// The levels of an arm's factors. Two of them determine the arm's array: `elements`, and `double`, which is `true` if
/// the type is `f64`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Size {
    elements: u64,
    double: bool,
    accumulators: u32,
}

impl Size {
    fn from_arm(arm: &Arm) -> Result<Size, TargetError> {
        Ok(Size {
            elements: arm.integer("elements")?,
            double: arm.point.get("type") == Some(&"f64".into()),
            accumulators: arm.integer("accumulators")? as u32,
        })
    }

    /// Returns the size of one array in bytes.
    fn bytes(&self) -> u64 {
        self.elements * if self.double { 8 } else { 4 }
    }
}

/// One variant with its array and expected results: the state of one arm.
struct Summation {
    size: Size,
    timed: Timed<'static>,
    result: Rc<dyn Fn() -> f64>,
    /// Expected result for each array, computed exactly; `None` for variants that compute neither a sum nor a dot
    /// product.
    exact: Option<Rc<[f64]>>,
    error: f64,
    bytes: f64,
    iterations: u64,
}

struct SumSession {
    summations: Vec<Summation>,
    place: ArrayIndex,
}

/// Number of different arrays for a size up to [`PLACED_BYTES`]. With a single array, the effects of its pages and its
/// numbers would look like properties of a variant. The pages decide which cache lines of the array share a set of L2,
/// and the numbers decide which methods round well.
const PLACES: usize = 16;
/// Largest size in bytes for which there are [`PLACES`] arrays instead of one. It is larger than any L2.
const PLACED_BYTES: u64 = 4 << 20;

/// The index of the array that the present trial uses.
type ArrayIndex = Rc<Cell<usize>>;

fn same_data(a: &Size, b: &Size) -> bool {
    a.elements == b.elements && a.double == b.double
}

fn summation<T: Element + Plain>(arm: &Arm, size: Size, array: Array<T>) -> Result<Summation, TargetError> {
    let found = contestant::<T>(&arm.variant, size.accumulators);
    let (sums, dots, place) = (Rc::clone(&array.sums), Rc::clone(&array.dots), Rc::clone(&array.place));
    let of_two = |function: fn(&[T], &[T]) -> f64| -> Rc<dyn Fn() -> f64> {
        let array = array.clone();
        Rc::new(move || function(black_box(array.forward()), black_box(array.backward())))
    };
    let (result, exact, arrays): (Rc<dyn Fn() -> f64>, _, _) =
        match found.map_err(|error| TargetError::Failed(format!("{arm}: {error}")))? {
            Contestant::Sum(function) => (Rc::new(move || function(black_box(array.forward()))), Some(sums), 1.0),
            Contestant::Limit(function) => (Rc::new(move || function(black_box(array.forward()))), None, 1.0),
            Contestant::Dot(function) => (of_two(function), Some(dots), 2.0),
            Contestant::LimitOfDot(function) => (of_two(function), None, 2.0),
        };
    let error_at = |(at, exact): (usize, &f64)| {
        place.set(at);
        ((result() - exact) / exact).abs()
    };
    let mean = |exact: &Rc<[f64]>| exact.iter().enumerate().map(error_at).sum::<f64>() / exact.len() as f64;
    let error = exact.as_ref().map_or(f64::NAN, mean);
    let again = Rc::clone(&result);
    Ok(Summation {
        size,
        error,
        timed: batch::timed(move || again()),
        result,
        exact,
        bytes: arrays * size.bytes() as f64,
        iterations: 0,
    })
}

/// The arrays of one size and type, the same arrays in reverse order for dot products, and the expected results.
#[derive(Clone)]
struct Array<T> {
    data: Rc<[Vec<T>]>,
    reversed: Rc<[Vec<T>]>,
    place: ArrayIndex,
    sums: Rc<[f64]>,
    dots: Rc<[f64]>,
}

impl<T> Array<T> {
    fn forward(&self) -> &[T] {
        &self.data[self.place.get() % self.data.len()]
    }

    fn backward(&self) -> &[T] {
        &self.reversed[self.place.get() % self.reversed.len()]
    }
}

/// The arrays of one type, by number of elements. Arms with the same number of elements share them.
struct Arrays<T> {
    by_elements: BTreeMap<u64, Array<T>>,
    place: ArrayIndex,
}

impl<T> Arrays<T> {
    fn new(place: &ArrayIndex) -> Self {
        Self { by_elements: BTreeMap::new(), place: Rc::clone(place) }
    }
}

impl<T: Element> Arrays<T> {
    /// Returns the array of this size, which is created if needed. Its numbers are positive and span 24 powers of two,
    /// so that their sums lose low bits and never cancel. With floats of similar size, many methods would make no
    /// error: a double holds the sum of 100,000 such floats exactly.
    fn get(&mut self, size: &Size, seed: u64, from: fn(f64) -> T) -> Array<T> {
        let make = || {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut number = || from(rng.random::<f64>() * 2_f64.powi(rng.random_range(-12..=12)));
            let places = if size.bytes() <= PLACED_BYTES { PLACES } else { 1 };
            let mut numbers = || -> Vec<T> { (0..size.elements).map(|_| number()).collect() };
            let data: Rc<[Vec<T>]> = (0..places).map(|_| numbers()).collect();
            let reversed: Rc<[Vec<T>]> = data.iter().map(|data| data.iter().rev().copied().collect()).collect();
            let dot =
                |(data, reversed): (&Vec<T>, &Vec<T>)| sum::dot_of(data.iter().copied(), reversed.iter().copied());
            let dots = data.iter().zip(reversed.iter()).map(dot).collect();
            let sums = data.iter().map(|data| sum::exact(data)).collect();
            Array { data, reversed, place: Rc::clone(&self.place), sums, dots }
        };
        self.by_elements.entry(size.elements).or_insert_with(make).clone()
    }
}

impl Session for SumSession {
    /// Compares the result with the exact one. The tolerance is far above the error bound of every method, and far
    /// below the change that a missing element would cause.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let summation = &self.summations[arm];
        let Some(exact) = &summation.exact else { return Ok(()) };
        let exact = exact[self.place.get() % exact.len()];
        let seen = (summation.result)();
        let tolerance = exact.abs() * f64::EPSILON * summation.size.elements as f64;
        let is_near = (seen - exact).abs() <= tolerance;
        if !is_near {
            return Err(TargetError::WrongAnswer(format!("the result is {seen}, but the exact result is {exact}")));
        }
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let summation = &mut self.summations[arm];
        self.place.set(trial.seed as usize);
        // Loads the array into the caches, because the previous trial used another array.
        black_box((summation.result)());
        let elapsed_ns = (summation.timed)(summation.iterations);
        let time_ns = elapsed_ns as f64 / summation.iterations as f64;
        out.push(TIME, time_ns);
        out.push(THROUGHPUT, summation.bytes / time_ns * 1e9);
        if summation.exact.is_some() {
            out.push(ERROR, summation.error);
        }
        Ok(())
    }
}
