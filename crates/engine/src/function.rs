//! A user's own functions as an experiment.

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

/// How much one call of a function gets done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throughput {
    /// So many bytes.
    Bytes(u64),
    /// So many elements, events or operations.
    Elements(u64),
}

/// Functions that do the same and are measured against each other, input by input; the first at an input is the
/// reference there.
///
/// Each is timed in batches of calls, of which there are equally many for all at an input: `time` is a batch's
/// mean, and so are its quantiles and what predicates speak of. All run on one thread, the one that
/// runs the trials.
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
    /// What functions are called at; those that are added are at the `current` one.
    inputs: Vec<Input>,
    current: usize,
    functions: Vec<Function<'a>>,
}

/// What the functions are called at.
#[derive(Default)]
struct Input {
    point: Point,
    throughput: Option<Throughput>,
    /// Calls a batch, the same for all. Found when a session is first opened.
    iterations: OnceCell<u64>,
}

type Batch<'a> = Box<dyn Call + 'a>;
type Check<'a> = Box<dyn Fn() -> bool + 'a>;

struct Function<'a> {
    name: String,
    /// Index into the group's inputs.
    input: usize,
    batch: Batch<'a>,
    check: Option<Check<'a>>,
}

impl<'a> Group<'a> {
    /// A group without functions. Its name is the experiment's id.
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

    /// Sets a parameter of the input that the functions from here on are called with: its size, its kind. Other
    /// parameters stay as they are.
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

    /// Says how much a call of any function gets done at this input, which adds the metric `throughput`.
    ///
    /// # Panics
    /// When it is in bytes at one input of the group and in elements at another.
    #[must_use]
    pub fn throughput(mut self, throughput: Throughput) -> Self {
        let mut others = self.inputs.iter().filter_map(|input| input.throughput);
        let is_alike = others.all(|other| mem::discriminant(&other) == mem::discriminant(&throughput));
        assert!(
            is_alike,
            "`{}` has bytes a second at one input and elements at another: take two groups",
            self.spec.id
        );
        self.inputs[self.current].throughput = Some(throughput);
        self.described()
    }

    /// Adds a function. What it returns is dropped within the time.
    ///
    /// A name that is taken at this input gets a number: `sort`, `sort (2)`.
    #[must_use]
    pub fn function<T>(self, name: &str, f: impl FnMut() -> T + 'a) -> Self {
        self.add(name, Box::new(Plain(RefCell::new(f))))
    }

    /// Adds a function of an input that all calls share. It goes through [`black_box`](crate::black_box), so that no
    /// call is saved for its input being known.
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
    /// Inputs are made beforehand, at most 1,024 at once and no more than are made in 10 ms, and what the calls return
    /// is dropped afterwards: neither is timed. Moving the input is, and dropping it where it is not returned:
    /// [`function_with_setup_ref`](Self::function_with_setup_ref) times neither.
    #[must_use]
    pub fn function_with_setup<I, T>(
        self,
        name: &str,
        setup: impl FnMut() -> I + 'a,
        f: impl FnMut(I) -> T + 'a,
    ) -> Self {
        self.add(name, Box::new(WithSetup(RefCell::new((setup, f)))))
    }

    /// Adds a function that changes a fresh input in each call, which it gets by reference: the input is made
    /// beforehand, stays where it is, and is dropped afterwards with what the calls return.
    #[must_use]
    pub fn function_with_setup_ref<I, T>(
        self,
        name: &str,
        setup: impl FnMut() -> I + 'a,
        f: impl FnMut(&mut I) -> T + 'a,
    ) -> Self {
        self.add(name, Box::new(WithSetupRef(RefCell::new((setup, f)))))
    }

    /// Adds a check to the function that was added last: whether its answer is right. It is asked
    /// before the first trial, and now and then afterwards, never within the time.
    ///
    /// # Panics
    /// When no function was added before.
    #[must_use]
    pub fn verify(mut self, is_right: impl FnMut() -> bool + 'a) -> Self {
        let last = self.functions.last_mut().expect("`verify` comes after the function it checks");
        let is_right = RefCell::new(is_right);
        last.check = Some(Box::new(move || (is_right.borrow_mut())()));
        self
    }

    /// Adds a number to the group's name if the name is taken: `sort`, `sort (2)`.
    pub fn rename_if(&mut self, is_taken: impl Fn(&str) -> bool) {
        self.spec.id = names::unused(&self.spec.id, is_taken);
    }

    /// Keeps only the functions whose names pass, as tables have them, with their input: `sort (elements=100)`.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        let inputs = &self.inputs;
        self.functions.retain(|function| keep(&function.arm(inputs).to_string()));
        self.describe();
    }

    /// Makes this function the first at each input that has it, and so the reference there. Returns whether the group
    /// has it at any.
    pub fn put_first(&mut self, name: &str) -> bool {
        let is_known = self.functions.iter().any(|function| function.name == name);
        if is_known {
            self.functions.sort_by_key(|function| (function.input, function.name != name));
            self.describe();
        }
        is_known
    }

    /// Calls each function once, untimed, and says of each whether its answer is right: what a test of benches
    /// does. One without a check is right.
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

    /// Brings the description in line with functions and inputs.
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
Functions of a program, measured against each other by that program. Each observation is a batch of \
calls, equally many for every function at an input: `time` is the mean of the batch, and quantiles and predicates \
speak of such means.";

fn metrics(throughput: Option<Throughput>) -> Vec<Metric> {
    let time = Metric::time("time", "time of one call: the mean of a batch");
    let (unit, about) = match throughput {
        None => return vec![time],
        Some(Throughput::Bytes(_)) => (Unit::BytePerSecond, "bytes a second, over the same batch"),
        Some(Throughput::Elements(_)) => (Unit::PerSecond, "elements a second, over the same batch"),
    };
    vec![time, Metric::new("throughput", about, unit, Better::Higher)]
}

/// The counts of one call, which is outside of the measured time.
#[cfg(feature = "allocations")]
fn counts() -> [Metric; 2] {
    let count = |name: &str, about: &str, unit| Metric::new(name, about, unit, Better::Lower);
    [
        count("allocations", "how often one call requests memory", Unit::One),
        count("allocated_bytes", "how much memory one call requests", Unit::Byte),
    ]
}

/// Number of trials in which each function is called once more to count its allocations. Most functions allocate the
/// same in each call, and three calls show which do not.
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

/// Functions ready to be timed, in the order of the arms.
struct Calls<'g, 'a>(Vec<Measured<'g, 'a>>);

struct Measured<'g, 'a> {
    function: &'g Function<'a>,
    iterations: u64,
    throughput: Option<Throughput>,
    /// The index of the metric `allocations`, which `allocated_bytes` follows; `None` if the allocator does not count.
    #[cfg(feature = "allocations")]
    counted_as: Option<usize>,
    #[cfg(feature = "allocations")]
    counted_trials: u64,
}

#[cfg(feature = "allocations")]
impl Measured<'_, '_> {
    /// Counts the allocations of one more call, in the first trials that count.
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
            false => Err(TargetError::WrongAnswer("its own check says so".into())),
        }
    }

    #[cfg_attr(not(feature = "allocations"), allow(unused_variables))]
    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let Measured { function, iterations, throughput, .. } = &self.0[arm];
        let elapsed_ns = function.batch.time(*iterations);
        // A function that was optimised away may take no step of the clock.
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
