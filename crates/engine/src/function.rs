//! A user's own functions as an experiment.

use std::cell::{OnceCell, RefCell};
use std::fmt::Display;
use std::mem;

#[cfg(feature = "allocations")]
use ascertain_sys::allocations::{self, Allocations};
use ascertain_sys::clock;
use ascertain_sys::machine::Machine;

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

/// A function with what makes its inputs. What changes is inside of it, so that a group of a longer life may stand
/// beside one of a shorter. Several sessions may share it: they take turns.
trait Call {
    /// Calls the function `iterations` times, and returns the time in nanoseconds.
    fn time(&self, iterations: u64) -> u64;

    /// Calls it once, and returns what it allocated.
    #[cfg(feature = "allocations")]
    fn count(&self) -> Allocations;
}

struct Plain<F>(RefCell<F>);

impl<T, F: FnMut() -> T> Call for Plain<F> {
    fn time(&self, iterations: u64) -> u64 {
        batch::time_calls(&mut *self.0.borrow_mut(), iterations)
    }

    #[cfg(feature = "allocations")]
    fn count(&self) -> Allocations {
        allocations::count(&mut *self.0.borrow_mut())
    }
}

struct WithSetup<S, F>(RefCell<(S, F)>);

impl<I, T, S: FnMut() -> I, F: FnMut(I) -> T> Call for WithSetup<S, F> {
    fn time(&self, iterations: u64) -> u64 {
        let (setup, f) = &mut *self.0.borrow_mut();
        batch::time_calls_with_setup(&clock::now_ns, setup, f, iterations)
    }

    #[cfg(feature = "allocations")]
    fn count(&self) -> Allocations {
        let (setup, f) = &mut *self.0.borrow_mut();
        let input = setup();
        allocations::count(|| f(crate::black_box(input)))
    }
}

struct WithSetupRef<S, F>(RefCell<(S, F)>);

impl<I, T, S: FnMut() -> I, F: FnMut(&mut I) -> T> Call for WithSetupRef<S, F> {
    fn time(&self, iterations: u64) -> u64 {
        let (setup, f) = &mut *self.0.borrow_mut();
        batch::time_calls_with_setup_ref(&clock::now_ns, setup, f, iterations)
    }

    #[cfg(feature = "allocations")]
    fn count(&self) -> Allocations {
        let (setup, f) = &mut *self.0.borrow_mut();
        let mut input = setup();
        allocations::count(|| f(crate::black_box(&mut input)))
    }
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

/// What is counted of a call outside of the time.
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
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;
    use crate::experiment::Sample;

    fn open<'g>(group: &'g Group) -> Box<dyn Session + 'g> {
        group.open(&group.table_arms(), &Setup { seed: 0, ..Setup::default() }).unwrap()
    }

    fn names(group: &Group) -> Vec<String> {
        group.table_arms().iter().map(Arm::to_string).collect()
    }

    fn measure(session: &mut dyn Session, arm: ArmId) -> Vec<Sample> {
        let mut samples = Samples::default();
        session.measure(arm, &Trial { number: 0, seed: 0 }, &mut samples).unwrap();
        samples.0
    }

    #[test]
    fn functions_that_borrow_are_called_equally_often_a_batch() {
        let counts = [const { AtomicU64::new(0) }; 3];
        let data = vec![1_u64; 300];
        let group = Group::new("count")
            .function("nothing", || counts[0].fetch_add(1, Relaxed))
            .function("sum", || {
                counts[1].fetch_add(1, Relaxed);
                std::hint::black_box(&data).iter().sum::<u64>()
            })
            .function_with_setup(
                "sum of a copy",
                || data.clone(),
                |copy| {
                    counts[2].fetch_add(1, Relaxed);
                    copy.iter().sum::<u64>()
                },
            );
        let mut session = open(&group);
        let seen = |counts: &[AtomicU64; 3]| counts.each_ref().map(|count| count.load(Relaxed));
        let before = seen(&counts);
        for arm in [2, 0, 1] {
            let samples = measure(&mut *session, arm);
            assert_eq!(samples.len(), 1);
            assert!(samples[0].value > 0.0);
        }
        let after = seen(&counts);
        let calls = after[0] - before[0];
        assert!(calls > 0);
        assert_eq!(after, before.map(|count| count + calls));
        // Another session takes the same number, and calls nothing to find it.
        let mut again = open(&group);
        assert_eq!(seen(&counts), after);
        measure(&mut *again, 1);
        assert_eq!(seen(&counts)[1], after[1] + calls);
    }

    #[test]
    fn throughput_is_of_the_same_batch_as_the_time() {
        for (throughput, unit, amount) in
            [(Throughput::Bytes(800), Unit::BytePerSecond, 800.0), (Throughput::Elements(100), Unit::PerSecond, 100.0)]
        {
            let group = Group::new("sum").function("one", || 1).throughput(throughput);
            assert_eq!(group.spec().metrics[THROUGHPUT].unit, unit);
            let samples = measure(&mut *open(&group), 0);
            let expected = amount / (samples[TIME].value / 1e9);
            assert!((samples[THROUGHPUT].value / expected - 1.0).abs() < 1e-12);
        }
        assert_eq!(Group::new("sum").spec().metrics.len(), 1);
    }

    #[test]
    fn a_wrong_answer_is_an_error() {
        let group = Group::new("check")
            .function("unchecked", || 1)
            .function("right", || 1)
            .verify(|| true)
            .function("wrong", || 1)
            .verify(|| false);
        let mut session = open(&group);
        session.verify(0).unwrap();
        session.verify(1).unwrap();
        assert!(matches!(session.verify(2), Err(TargetError::WrongAnswer(_))));
    }

    #[test]
    fn each_is_called_once_where_nothing_is_timed() {
        let calls = AtomicU64::new(0);
        let group = Group::new("once")
            .function("unchecked", || calls.fetch_add(1, Relaxed))
            .function_with_setup("wrong", || 1, |one| calls.fetch_add(one, Relaxed))
            .verify(|| false);
        let answers = group.call_each_once().map(|(arm, is_right)| (arm.variant, is_right));
        assert_eq!(answers.collect::<Vec<_>>(), [("unchecked".into(), true), ("wrong".into(), false)]);
        assert_eq!(calls.load(Relaxed), 2);
    }

    #[test]
    fn a_name_that_another_group_has_gets_a_number() {
        let mut group = Group::new("g");
        group.rename_if(|name| name == "f");
        assert_eq!(group.spec().id, "g");
        group.rename_if(|name| name == "g");
        assert_eq!(group.spec().id, "g (2)");
    }

    #[test]
    fn a_filter_keeps_functions_with_their_names() {
        let calls = AtomicU64::new(0);
        let mut group =
            Group::new("filter").function("a", || 1).function("b", || calls.fetch_add(1, Relaxed)).function("b", || 1);
        assert_eq!(names(&group), ["a", "b", "b (2)"]);
        group.retain(|name| name != "a" && name != "b (2)");
        assert_eq!(names(&group), ["b"]);
        measure(&mut *open(&group), 0);
        assert!(calls.load(Relaxed) > 0);
        let gone = Arm { variant: "a".into(), point: Point::default() };
        assert!(group.open(&[gone], &Setup { seed: 0, ..Setup::default() }).is_err());
    }

    #[test]
    fn each_input_has_its_own_batches_and_throughput() {
        let calls = [const { AtomicU64::new(0) }; 4];
        let inputs = [1_u64, 1_000];
        let mut group = Group::new("inputs");
        for (index, elements) in inputs.iter().enumerate() {
            let count = |counter: &AtomicU64, elements: &u64| {
                counter.fetch_add(1, Relaxed);
                (0..*elements).fold(0, |sum, i| std::hint::black_box(sum + i))
            };
            let (loops, twice) = (&calls[2 * index], &calls[2 * index + 1]);
            group = group
                .at("elements", elements)
                .throughput(Throughput::Elements(*elements))
                .function_with_input("loop", elements, move |elements| count(loops, elements))
                .function_with_input("twice", elements, move |elements| {
                    count(twice, elements) + count(twice, elements)
                });
        }
        assert_eq!(
            names(&group),
            ["loop (elements=1)", "twice (elements=1)", "loop (elements=1000)", "twice (elements=1000)"]
        );
        let factor = &group.spec().factors[0];
        assert_eq!((&*factor.name, &factor.default), ("elements", &Level::Integer(1)));
        assert_eq!(factor.accepts, Accepts::OneOf(inputs.map(Level::Integer).to_vec()));
        let seen = || calls.each_ref().map(|count| count.load(Relaxed));
        drop(group.open(&group.table_arms()[..1], &Setup { seed: 0, ..Setup::default() }).unwrap());
        assert!(seen()[..2].iter().all(|calls| *calls > 0) && seen()[2..] == [0, 0], "a batch is of one input");
        let mut session = open(&group);
        let before = seen();
        for (arm, elements) in [(0, 1.0), (1, 1.0), (2, 1_000.0), (3, 1_000.0)] {
            let samples = measure(&mut *session, arm);
            let expected = elements / (samples[TIME].value / 1e9);
            assert!((samples[THROUGHPUT].value / expected - 1.0).abs() < 1e-12);
        }
        let batches: Vec<u64> = calls.iter().zip(before).map(|(count, before)| count.load(Relaxed) - before).collect();
        assert_eq!((batches[1], batches[3]), (2 * batches[0], 2 * batches[2]), "as many for all at an input");
        drop(session);
        group.retain(|name| name != "loop (elements=1)" && !name.contains("1000"));
        assert_eq!(names(&group), ["twice (elements=1)"]);
        assert_eq!(group.spec().factors[0].accepts, Accepts::OneOf(vec![Level::Integer(1)]));
    }

    #[test]
    fn parameters_stay_until_they_are_set_again() {
        let group = Group::new("grid").at("type", "f32").at("n", 1).function("f", || 1).at("n", 2).function("f", || 2);
        let group = group.at("type", "f64").function("f", || 3).at("type", "f32").function("f", || 4);
        assert_eq!(names(&group), ["f (n=1 type=f32)", "f (n=2 type=f32)", "f (n=2 type=f64)", "f (2) (n=2 type=f32)"]);
    }

    #[test]
    fn functions_may_stay_on_their_thread() {
        let calls = std::rc::Rc::new(std::cell::Cell::new(0));
        let theirs = calls.clone();
        let group = Group::new("here").function("count", move || theirs.set(theirs.get() + 1));
        measure(&mut *open(&group), 0);
        assert!(calls.get() > 0);
    }

    #[test]
    fn groups_stand_together_whatever_each_borrows() {
        let one = 1;
        let first = Group::new("first").function_with_input("f", &one, |one| *one);
        let two = 2;
        let second = Group::new("second").function_with_input("f", &two, |two| *two);
        let lives_longer: &'static u64 = &3;
        let third = Group::new("third").function_with_input("f", lives_longer, |three| *three);
        assert_eq!([first, second, third].map(|group| group.table_arms().len()), [1; 3]);
    }

    #[test]
    #[should_panic(expected = "`mixed` has bytes a second at one input and elements at another")]
    fn one_metric_has_one_unit() {
        _ = Group::new("mixed").throughput(Throughput::Bytes(1)).at("n", 2).throughput(Throughput::Elements(1));
    }
}
