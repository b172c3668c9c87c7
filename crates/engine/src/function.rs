//! An experiment whose variants are functions of the user's program.

mod call;

use std::cell::{OnceCell, RefCell};
use std::fmt::Display;
use std::mem;

#[cfg(feature = "allocations")]
use ascertain_sys::allocations::{self, Allocations};
use ascertain_sys::machine::Machine;

use self::call::{Call, Plain, WithSetup, WithSetupRef};
use crate::batch;
#[cfg(feature = "allocations")]
use crate::block::Block;
use crate::experiment::{
    Accepts, Arm, ArmId, Better, Experiment, Factor, Level, Metric, Point, Samples, Session, Setup, Spec, TargetError,
    Trial, Unavailable, Variant,
};
use crate::names;
use crate::unit::Unit;

const TIME: usize = 0;
const THROUGHPUT: usize = 1;

/// The amount of work in one call of a function. The metric `throughput` states how much of it is done per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throughput {
    /// Number of bytes per call.
    Bytes(u64),
    /// Number of elements, events or operations per call.
    Elements(u64),
}

/// Functions that do the same work, for comparing their speed. Each input has its own comparison, whose reference is
/// the first function that was added at this input.
///
/// Functions are timed in batches of calls. At each input, all functions have the same number of calls per batch.
/// `time` is the mean over a batch, and quantiles and predicates are about these means. All functions run on the thread
/// that runs the trials.
///
/// ```
/// use ascertain_engine::experiment::Experiment;
/// use ascertain_engine::function::{Group, Throughput};
///
/// let inputs = [10, 1_000].map(|elements| (elements, vec![1_u64; elements]));
/// let mut group = Group::new("sums");
/// for (elements, ones) in &inputs {
///     group = group
///         .at("elements", elements)
///         .throughput(Throughput::Elements(*elements as u64))
///         .function_with_input("loop", ones, |ones| ones.iter().fold(0, |sum, one| sum + one))
///         .verify(|| ones.iter().sum::<u64>() == ones.len() as u64)
///         .function_with_input("length", ones, Vec::len)
///         .function_with_setup_ref("sort", || ones.clone(), |ones| ones.sort());
/// }
/// group.retain(|name| !name.starts_with("sort"));
/// assert_eq!(group.spec().variants.len(), 2);
/// assert_eq!(group.table_arms().len(), 4);
/// ```
pub struct Group<'a> {
    spec: Spec,
    /// The inputs. The field `current` is the index of the input at which new functions are added.
    inputs: Vec<Input>,
    current: usize,
    functions: Vec<Function<'a>>,
}

/// An input at which functions are measured: its parameters, and the amount of work in one call.
#[derive(Default)]
struct Input {
    point: Point,
    throughput: Option<Throughput>,
    /// Number of calls per batch, the same for all functions at this input. Determined when a session is first opened.
    iterations: OnceCell<u64>,
}

type Batch<'a> = Box<dyn Call + 'a>;
type Check<'a> = Box<dyn Fn() -> bool + 'a>;

struct Function<'a> {
    name: String,
    /// Index of the function's input in [`Group::inputs`].
    input: usize,
    batch: Batch<'a>,
    check: Option<Check<'a>>,
}

impl<'a> Group<'a> {
    /// Returns a group without functions. `name` is the id of the experiment.
    pub fn new(name: &str) -> Self {
        let spec = Spec {
            id: name.to_string(),
            title: format!("functions: {name}"),
            readme: README.to_string(),
            emulates: None,
            ..Spec::default()
        };
        Group { spec, inputs: vec![Input::default()], current: 0, functions: Vec::new() }.described()
    }

    /// Selects the input at which functions are added from now on. It is the current input with a new level for one
    /// parameter, such as the size. All other parameters keep their levels.
    #[must_use]
    pub fn at(mut self, parameter: &str, level: impl Display) -> Self {
        let level = level.to_string();
        let level = level.parse().map_or(Level::Text(level), Level::Integer);
        let point = self.inputs[self.current].point.clone().with(parameter, level);
        let known = self.inputs.iter().position(|input| input.point == point);
        self.current = known.unwrap_or_else(|| {
            self.inputs.push(Input { point, ..Input::default() });
            self.inputs.len() - 1
        });
        self
    }

    /// Sets how much work each function does per call at the current input. The group then has the metric `throughput`.
    ///
    /// # Panics
    /// If one input has its amount of work in bytes and another in elements.
    #[must_use]
    pub fn throughput(mut self, throughput: Throughput) -> Self {
        let mut others = self.inputs.iter().filter_map(|input| input.throughput);
        let is_alike = others.all(|other| mem::discriminant(&other) == mem::discriminant(&throughput));
        assert!(
            is_alike,
            "`{}` has a throughput in bytes at one input and in elements at another; use two groups",
            self.spec.id
        );
        self.inputs[self.current].throughput = Some(throughput);
        self.described()
    }

    /// Adds a function at the current input. The measured time includes dropping the function's return value.
    ///
    /// If the input already has a function of this name, a number is appended to the name: `sort (2)`.
    #[must_use]
    pub fn function<T>(self, name: &str, f: impl FnMut() -> T + 'a) -> Self {
        self.add(name, Box::new(Plain(RefCell::new(f))))
    }

    /// Adds a function that gets the same input, by reference, in all calls. The input goes through
    /// [`black_box`](crate::black_box), so that the compiler cannot use its value to remove calls.
    #[must_use]
    pub fn function_with_input<I: ?Sized, T>(
        self,
        name: &str,
        input: &'a I,
        mut f: impl FnMut(&'a I) -> T + 'a,
    ) -> Self {
        self.function(name, move || f(crate::black_box(input)))
    }

    /// Adds a function that consumes a fresh input in each call.
    ///
    /// The inputs are made before the timed calls: at most 1,024, and only as many as can be made in 10 ms. Return
    /// values are dropped after the timed calls. The measured time includes moving each input into the function, and
    /// dropping the input unless the function returns it. To exclude both, use
    /// [`function_with_setup_ref`](Self::function_with_setup_ref).
    #[must_use]
    pub fn function_with_setup<I, T>(
        self,
        name: &str,
        setup: impl FnMut() -> I + 'a,
        f: impl FnMut(I) -> T + 'a,
    ) -> Self {
        self.add(name, Box::new(WithSetup(RefCell::new((setup, f)))))
    }

    /// Adds a function that gets a mutable reference to a fresh input in each call. Inputs are made before the timed
    /// calls, and dropped after them together with the return values. Neither step is part of the measured time, and
    /// inputs are not moved.
    #[must_use]
    pub fn function_with_setup_ref<I, T>(
        self,
        name: &str,
        setup: impl FnMut() -> I + 'a,
        f: impl FnMut(&mut I) -> T + 'a,
    ) -> Self {
        self.add(name, Box::new(WithSetupRef(RefCell::new((setup, f)))))
    }

    /// Adds a check to the function that was added last. The check returns whether the function computes the right
    /// answer. It runs before the first trial, and later at random times, but never within the measured time.
    ///
    /// # Panics
    /// If the group has no function yet.
    #[must_use]
    pub fn verify(mut self, is_right: impl FnMut() -> bool + 'a) -> Self {
        let last = self.functions.last_mut().expect("call `verify` after adding the function that it checks");
        let is_right = RefCell::new(is_right);
        last.check = Some(Box::new(move || (is_right.borrow_mut())()));
        self
    }

    /// Appends a number to the group's name if another group has this name: `sort (2)`.
    pub fn rename_if(&mut self, is_taken: impl Fn(&str) -> bool) {
        self.spec.id = names::unused(&self.spec.id, is_taken);
    }

    /// Keeps only the functions for which `keep` returns `true`. The argument of `keep` is the function's name with the
    /// input, as in tables: `sort (elements=100)`.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        let inputs = &self.inputs;
        self.functions.retain(|function| keep(&function.arm(inputs).to_string()));
        self.describe();
    }

    /// Makes the function of this name the reference, at each input that has it. Returns `false` if no input has it.
    pub fn put_first(&mut self, name: &str) -> bool {
        let is_known = self.functions.iter().any(|function| function.name == name);
        if is_known {
            self.functions.sort_by_key(|function| (function.input, function.name != name));
            self.describe();
        }
        is_known
    }

    /// Calls each function once without timing, for tests of benchmarks. Returns each arm, with `false` if the
    /// function's check rejects the answer.
    pub fn call_each_once(&self) -> impl Iterator<Item = (Arm, bool)> {
        self.functions.iter().map(|function| {
            function.batch.time(1);
            (function.arm(&self.inputs), function.is_right())
        })
    }

    fn add(mut self, name: &str, batch: Batch<'a>) -> Self {
        let is_taken =
            |name: &str| self.functions.iter().any(|known| known.name == name && known.input == self.current);
        let name = names::unused(name, is_taken);
        self.functions.push(Function { name, input: self.current, batch, check: None });
        self.described()
    }

    fn described(mut self) -> Self {
        self.describe();
        self
    }

    /// Updates the spec. Call it after functions or inputs were added or removed.
    fn describe(&mut self) {
        let Spec { variants, factors, metrics, .. } = &mut self.spec;
        (*variants, *factors) = (Vec::new(), Vec::new());
        for function in &self.functions {
            if !variants.iter().any(|variant| variant.name == function.name) {
                variants.push(Variant { name: function.name.clone(), about: String::new() });
            }
            for (name, level) in &self.inputs[function.input].point.0 {
                match factors.iter_mut().find(|factor| factor.name == *name) {
                    Some(Factor { accepts: Accepts::OneOf(levels), .. }) if !levels.contains(level) => {
                        levels.push(level.clone());
                    }
                    Some(_) => {}
                    None => {
                        let (default, accepts) = (level.clone(), Accepts::OneOf(vec![level.clone()]));
                        factors.push(Factor { name: name.clone(), about: String::new(), default, accepts });
                    }
                }
            }
        }
        *metrics = self::metrics(self.inputs.iter().find_map(|input| input.throughput));
        #[cfg(feature = "allocations")]
        if allocations::is_installed() {
            metrics.extend(counts());
        }
    }

    fn find(&self, arm: &Arm) -> Option<&Function<'a>> {
        let is_meant = |known: &&Function| known.name == arm.variant && self.inputs[known.input].point == arm.point;
        self.functions.iter().find(is_meant)
    }

    fn iterations(&self, input: usize) -> u64 {
        *self.inputs[input].iterations.get_or_init(|| {
            let at_input = self.functions.iter().filter(|function| function.input == input);
            let mut batches: Vec<_> = at_input.map(|function| |calls| function.batch.time(calls)).collect();
            batch::iterations(&mut batches)
        })
    }
}

impl Function<'_> {
    fn arm(&self, inputs: &[Input]) -> Arm {
        Arm { variant: self.name.clone(), point: inputs[self.input].point.clone() }
    }

    fn is_right(&self) -> bool {
        self.check.as_ref().is_none_or(|check| check())
    }
}

const README: &str = "\
A program measures some of its own functions, and compares them with each other. Each observation is a batch of calls. \
The batches of all functions at an input have the same number of calls. `time` is the mean of a batch. Quantiles and \
predicates are about these means.";

fn metrics(throughput: Option<Throughput>) -> Vec<Metric> {
    let time = Metric::time("time", "time of one call: the mean of a batch");
    let (unit, about) = match throughput {
        None => return vec![time],
        Some(Throughput::Bytes(_)) => (Unit::BytePerSecond, "bytes per second, over the same batch"),
        Some(Throughput::Elements(_)) => (Unit::PerSecond, "elements per second, over the same batch"),
    };
    vec![time, Metric::new("throughput", about, unit, Better::Higher)]
}

/// Returns the metrics about allocations. A separate call counts the allocations, outside of the measured time.
#[cfg(feature = "allocations")]
fn counts() -> [Metric; 2] {
    let count = |name: &str, about: &str, unit| Metric::new(name, about, unit, Better::Lower);
    [
        count("allocations", "number of allocations in one call", Unit::One),
        count("allocated_bytes", "memory that one call allocates", Unit::Byte),
    ]
}

/// Number of trials in which each function is called once more to count its allocations. Three calls are enough to show
/// whether a function allocates the same amount in every call, as most do.
#[cfg(feature = "allocations")]
const COUNTED_TRIALS: u64 = 3;

impl Experiment for Group<'_> {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        let known = self.find(arm).map(|_| ());
        known.ok_or_else(|| Unavailable::other(format!("`{}` has no function `{arm}`", self.spec.id)))
    }

    fn table_arms(&self) -> Vec<Arm> {
        self.functions.iter().map(|function| function.arm(&self.inputs)).collect()
    }

    fn open(&self, arms: &[Arm], _: &Setup) -> Result<Box<dyn Session + '_>, TargetError> {
        let call = |arm: &Arm| {
            let missing = || TargetError::Failed(format!("there is no function `{arm}`"));
            let function = self.find(arm).ok_or_else(missing)?;
            let throughput = self.inputs[function.input].throughput;
            Ok(Measured {
                function,
                iterations: self.iterations(function.input),
                throughput,
                #[cfg(feature = "allocations")]
                counted_as: self.spec.metric("allocations"),
                #[cfg(feature = "allocations")]
                counted_trials: 0,
            })
        };
        Ok(Box::new(Calls(arms.iter().map(call).collect::<Result<_, _>>()?)))
    }
}

/// A session that measures functions. Its elements are in the order of the arms with which it was opened.
struct Calls<'g, 'a>(Vec<Measured<'g, 'a>>);

struct Measured<'g, 'a> {
    function: &'g Function<'a>,
    iterations: u64,
    throughput: Option<Throughput>,
    /// Index of the metric `allocations`; the metric `allocated_bytes` has the next index. `None` if the program's
    /// allocator does not count allocations.
    #[cfg(feature = "allocations")]
    counted_as: Option<usize>,
    #[cfg(feature = "allocations")]
    counted_trials: u64,
}

#[cfg(feature = "allocations")]
impl Measured<'_, '_> {
    /// Calls the function once more to count its allocations, in the first [`COUNTED_TRIALS`] trials after the warm-up.
    fn count_allocations(&mut self, trial: &Trial, out: &mut Samples) {
        let Some(metric) = self.counted_as else { return };
        if self.counted_trials < COUNTED_TRIALS && trial.number != Block::WARM_UP {
            self.counted_trials += 1;
            let Allocations { allocations, bytes } = self.function.batch.count();
            out.push(metric, allocations as f64);
            out.push(metric + 1, bytes as f64);
        }
    }
}

impl Session for Calls<'_, '_> {
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        match self.0[arm].function.is_right() {
            true => Ok(()),
            false => Err(TargetError::WrongAnswer("the function's check rejected its answer".into())),
        }
    }

    #[cfg_attr(not(feature = "allocations"), allow(unused_variables))]
    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let Measured { function, iterations, throughput, .. } = &self.0[arm];
        let elapsed_ns = function.batch.time(*iterations);
        // At least 1 ns: calls that the compiler optimised away may finish within one step of the clock.
        let time_ns = elapsed_ns.max(1) as f64 / *iterations as f64;
        out.push(TIME, time_ns);
        if let Some(Throughput::Bytes(amount) | Throughput::Elements(amount)) = throughput {
            out.push(THROUGHPUT, *amount as f64 / time_ns * 1e9);
        }
        #[cfg(feature = "allocations")]
        self.0[arm].count_allocations(trial, out);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
