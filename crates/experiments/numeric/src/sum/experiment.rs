//! Summation: speed and error of the ways to add up floating-point numbers, over size, type and accumulators. A few
//! arrays for each size and type are the same for every variant.

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

/// Summation.
pub struct Sum;

const TIME: usize = 0;
const THROUGHPUT: usize = 1;
const ERROR: usize = 2;

/// What a table shows: without and with enough of them for the claims.
const SHOWN_ACCUMULATORS: [u32; 2] = [1, 4];

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    // The names are the same for each type.
    let ours = f32::VARIANTS.iter().map(|v| (v.name, v.about));
    let dots = f32::DOT_VARIANTS.iter().map(|v| (v.name, v.about));
    Spec {
        title: "Adding up floating-point numbers: speed and error".into(),
        variants: ours.chain(DEFAULTS).chain(OTHERS).chain(dots).map(Variant::from).collect(),
        factors: vec![
            Factor::new("elements", "how many numbers", 187_500, Accepts::Integers { min: 1, max: 1 << 32 }),
            Factor::new(
                "type",
                "their type; each is summed into f64",
                "f32",
                Accepts::OneOf(vec!["f32".into(), "f64".into()]),
            ),
            Factor::new(
                "accumulators",
                "independent chains of additions; nothing to the plain calls, the peers and the dot products",
                1,
                Accepts::OneOf([1, 2, 4, 8].map(Level::from).to_vec()),
            ),
        ],
        plots: vec![sweep("throughput"), sweep("error"), Plot::sweep("throughput", "accumulators")],
        metrics: vec![
            Metric::time("time", "time of one sum or dot product: the mean of a batch"),
            Metric::new("throughput", "bytes read a second, over the same batch", Unit::BytePerSecond, Better::Higher),
            Metric::new(
                "error",
                "relative error against the exact sum: the mean over the arrays that the seed draws",
                Unit::One,
                Better::Lower,
            ),
        ],
        ..Spec::new("sum", include_str!("README.md"))
    }
});

/// A metric over the size, with the caches' ends marked.
fn sweep(metric: &str) -> Plot {
    let footprint = |name: &str, bytes_each| Footprint { at: Point::default().with("type", name), bytes_each };
    let footprints = vec![footprint("f32", 4.0), footprint("f64", 8.0)];
    Plot::Sweep { metric: metric.into(), factor: "elements".into(), footprints }
}

impl Experiment for Sum {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// One and four accumulators, of those that come with both, and of what comes with others only the fewest.
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
        let size = Size::of(arm).map_err(Unavailable::other)?;
        match size.double {
            false => contestant::<f32>(&arm.variant, size.accumulators).map(drop)?,
            true => contestant::<f64>(&arm.variant, size.accumulators).map(drop)?,
        }
        Ok(())
    }

    /// For each size and type an array and its reverse, which the dot products take; that small ones have several is
    /// little.
    fn memory_bytes(&self, arms: &[Arm]) -> u64 {
        let sizes = arms.iter().flat_map(Size::of).map(|size| ((size.elements, size.double), size.bytes()));
        let bytes: BTreeMap<(u64, bool), u64> = sizes.collect();
        bytes.values().map(|bytes| bytes.saturating_mul(2)).fold(0, u64::saturating_add)
    }

    /// Makes the arrays, and finds how many sums are a batch: one number for each size and type.
    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        let place = Place::default();
        let (mut singles, mut doubles) = (Arrays::new(&place), Arrays::new(&place));
        let target = |arm: &Arm| {
            let size = Size::of(arm)?;
            match size.double {
                false => target(arm, size, singles.get(&size, setup.seed, |x| x as f32)),
                true => target(arm, size, doubles.get(&size, setup.seed, |x| x)),
            }
        };
        let mut targets = arms.iter().map(target).collect::<Result<Vec<Target>, _>>()?;
        for index in 0..targets.len() {
            if targets[index].iterations == 0 {
                let size = targets[index].size;
                let mut alike: Vec<&mut Target> = targets.iter_mut().filter(|t| same_data(&t.size, &size)).collect();
                let iterations = batch::iterations(alike.iter_mut().map(|target| &mut target.timed));
                alike.iter_mut().for_each(|target| target.iterations = iterations);
            }
        }
        Ok(Box::new(Targets { targets, place }))
    }
}

/// An arm's point, read.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Size {
    elements: u64,
    double: bool,
    accumulators: u32,
}

impl Size {
    fn of(arm: &Arm) -> Result<Size, TargetError> {
        Ok(Size {
            elements: arm.integer("elements")?,
            double: arm.point.get("type") == Some(&"f64".into()),
            accumulators: arm.integer("accumulators")? as u32,
        })
    }

    /// Of one array.
    fn bytes(&self) -> u64 {
        self.elements * if self.double { 8 } else { 4 }
    }
}

/// One arm, ready.
struct Target {
    size: Size,
    timed: Timed<'static>,
    result: Rc<dyn Fn() -> f64>,
    /// What the result should be, for each array; none where nothing is summed.
    exact: Option<Rc<[f64]>>,
    error: f64,
    bytes: f64,
    iterations: u64,
}

struct Targets {
    targets: Vec<Target>,
    place: Place,
}

/// Arrays of a size up to [`PLACED_BYTES`]. The pages that an array happens to get decide which of its lines share a
/// set of L2, and its numbers which methods round them well: one alone would make a chance of the run's beginning look
/// like a property of a variant.
const PLACES: usize = 16;
/// More than any L2 holds.
const PLACED_BYTES: u64 = 4 << 20;

/// Which of the arrays the present trial takes.
type Place = Rc<Cell<usize>>;

fn same_data(a: &Size, b: &Size) -> bool {
    a.elements == b.elements && a.double == b.double
}

fn target<T: Element + Plain>(arm: &Arm, size: Size, array: Array<T>) -> Result<Target, TargetError> {
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
    Ok(Target {
        size,
        error,
        timed: batch::timed(move || again()),
        result,
        exact,
        bytes: arrays * size.bytes() as f64,
        iterations: 0,
    })
}

/// Numbers to sum, the same from the last to the first to multiply them with, and what should come out.
#[derive(Clone)]
struct Array<T> {
    data: Rc<[Vec<T>]>,
    reversed: Rc<[Vec<T>]>,
    place: Place,
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

/// The arrays of one type, by number of elements: arms of one size share theirs.
struct Arrays<T> {
    by_elements: BTreeMap<u64, Array<T>>,
    place: Place,
}

impl<T> Arrays<T> {
    fn new(place: &Place) -> Self {
        Self { by_elements: BTreeMap::new(), place: Rc::clone(place) }
    }
}

impl<T: Element> Arrays<T> {
    /// Positive numbers over 24 powers of two, so that sums of them lose low bits and never cancel.
    /// Numbers of one magnitude would not do: a double holds the sum of 100,000 such floats exactly.
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

impl Session for Targets {
    /// Far wider than any method's error bound, and far narrower than a dropped element.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let target = &self.targets[arm];
        let Some(exact) = &target.exact else { return Ok(()) };
        let exact = exact[self.place.get() % exact.len()];
        let seen = (target.result)();
        let tolerance = exact.abs() * f64::EPSILON * target.size.elements as f64;
        let is_near = (seen - exact).abs() <= tolerance;
        if !is_near {
            return Err(TargetError::WrongAnswer(format!("it says {seen}, and the exact result is {exact}")));
        }
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let target = &mut self.targets[arm];
        self.place.set(trial.seed as usize);
        // Into the caches: the last trial's place was another.
        black_box((target.result)());
        let elapsed_ns = (target.timed)(target.iterations);
        let time_ns = elapsed_ns as f64 / target.iterations as f64;
        out.push(TIME, time_ns);
        out.push(THROUGHPUT, target.bytes / time_ns * 1e9);
        if target.exact.is_some() {
            out.push(ERROR, target.error);
        }
        Ok(())
    }
}
