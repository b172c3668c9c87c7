//! A user's own functions as an experiment.

use std::mem;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use ascertain_sys::machine::Machine;

use crate::batch;
use crate::experiment::{
    Arm, ArmId, Better, Experiment, Metric, Samples, Session, Setup, Spec, TargetError, Trial, Unavailable, Variant,
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

/// Functions that do the same and are measured against each other; the first is the reference.
///
/// Each is timed in batches of calls, of which there are equally many for all: `time` is a batch's
/// mean, and so are its quantiles and what predicates speak of. All run on one thread, the one that
/// runs the trials.
///
/// ```
/// use ascertain_engine::experiment::Experiment;
/// use ascertain_engine::function::{Group, Throughput};
///
/// fn loops(n: u64) -> u64 {
///     (1..=n).fold(0, |sum, i| sum + i)
/// }
///
/// let mut group = Group::new("triangle")
///     .throughput(Throughput::Elements(1_000))
///     .function("loop", || loops(1_000))
///     .verify(|| loops(1_000) == 500_500)
///     .function("formula", || 1_000 * 1_001 / 2)
///     .function_with_setup("sum", || vec![1_u64; 1_000], |ones| ones.iter().sum::<u64>());
/// group.retain(|name| name != "sum");
/// assert_eq!(group.spec().variants.len(), 2);
/// ```
pub struct Group<'a> {
    spec: Spec,
    throughput: Option<Throughput>,
    functions: Vec<Function<'a>>,
    /// Calls a batch, the same for all. Found when a session is first opened.
    iterations: OnceLock<u64>,
}

type Batch<'a> = Box<dyn FnMut(u64) -> u64 + Send + 'a>;
type Check<'a> = Box<dyn FnMut() -> bool + Send + 'a>;

/// Several sessions may share a function. They take turns, so that nobody waits for the locks.
struct Function<'a> {
    batch: Mutex<Batch<'a>>,
    check: Option<Mutex<Check<'a>>>,
}

impl<'a> Group<'a> {
    /// A group without functions. Its name is the experiment's id.
    pub fn new(name: &str) -> Self {
        let spec = Spec {
            id: name.to_string(),
            title: format!("functions: {name}"),
            readme: README.to_string(),
            metrics: metrics(None),
            ..Spec::default()
        };
        Group { spec, throughput: None, functions: Vec::new(), iterations: OnceLock::new() }
    }

    /// Says how much a call gets done, which adds the metric `throughput`.
    #[must_use]
    pub fn throughput(mut self, throughput: Throughput) -> Self {
        self.throughput = Some(throughput);
        self.spec.metrics = metrics(self.throughput);
        self
    }

    /// Adds a function. What it returns is dropped within the time.
    ///
    /// A name that is taken gets a number: `sort`, `sort (2)`.
    #[must_use]
    pub fn function<T>(self, name: &str, mut f: impl FnMut() -> T + Send + 'a) -> Self {
        self.add(name, Box::new(move |iterations| batch::time_calls(&mut f, iterations)))
    }

    /// Adds a function that needs a fresh input for each call.
    ///
    /// The inputs of a batch are made beforehand, and what the calls return is dropped afterwards:
    /// neither is timed. To leave out the dropping of the input too, return it.
    #[must_use]
    pub fn function_with_setup<I, T>(
        self,
        name: &str,
        mut setup: impl FnMut() -> I + Send + 'a,
        mut f: impl FnMut(I) -> T + Send + 'a,
    ) -> Self {
        let batch = move |iterations| batch::time_calls_with_setup(&mut setup, &mut f, iterations);
        self.add(name, Box::new(batch))
    }

    /// Adds a check to the function that was added last: whether its answer is right. It is asked
    /// before the first trial, and now and then afterwards, never within the time.
    ///
    /// # Panics
    /// When no function was added before.
    #[must_use]
    pub fn verify(mut self, is_right: impl FnMut() -> bool + Send + 'a) -> Self {
        let last = self.functions.last_mut().expect("`verify` comes after the function it checks");
        last.check = Some(Mutex::new(Box::new(is_right)));
        self
    }

    /// Keeps only the functions whose names pass: a filter on the command line.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        let variants = mem::take(&mut self.spec.variants).into_iter();
        let both = variants.zip(mem::take(&mut self.functions));
        (self.spec.variants, self.functions) = both.filter(|(variant, _)| keep(&variant.name)).unzip();
    }

    /// Calls each function once, untimed, and says of each whether its answer is right: what a test of benches
    /// does. One without a check is right.
    pub fn call_each_once(&self) -> impl Iterator<Item = (&str, bool)> {
        self.spec.variants.iter().zip(&self.functions).map(|(variant, function)| {
            lock(&function.batch)(1);
            (variant.name.as_str(), function.check.as_ref().is_none_or(|check| lock(check)()))
        })
    }

    fn add(mut self, name: &str, batch: Batch<'a>) -> Self {
        let name = names::unused(name, |name| self.index(name).is_some());
        self.spec.variants.push(Variant { name, about: String::new() });
        self.functions.push(Function { batch: Mutex::new(batch), check: None });
        self
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.spec.variants.iter().position(|variant| variant.name == name)
    }

    fn find_iterations(&self) -> u64 {
        let mut batches: Vec<_> = self.functions.iter().map(|function| lock(&function.batch)).collect();
        batch::iterations(batches.iter_mut().map(|batch| &mut **batch))
    }
}

const README: &str = "\
Functions of a program, measured against each other by that program. Each observation is a batch of \
calls, equally many for every function: `time` is the mean of the batch, and quantiles and predicates \
speak of such means.";

fn metrics(throughput: Option<Throughput>) -> Vec<Metric> {
    let time = Metric::new("time", "time of one call: the mean of a batch", Unit::Nanosecond, Better::Lower);
    let (unit, about) = match throughput {
        None => return vec![time],
        Some(Throughput::Bytes(_)) => (Unit::BytePerSecond, "bytes a second, over the same batch"),
        Some(Throughput::Elements(_)) => (Unit::PerSecond, "elements a second, over the same batch"),
    };
    vec![time, Metric::new("throughput", about, unit, Better::Higher)]
}

/// A function that panicked is the program's end; its lock says nothing more.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Experiment for Group<'_> {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        let known = self.index(&arm.variant).map(|_| ());
        known.ok_or_else(|| Unavailable::other(format!("`{}` has no function `{}`", self.spec.id, arm.variant)))
    }

    fn open(&self, arms: &[Arm], _: &Setup) -> Result<Box<dyn Session + '_>, TargetError> {
        let function = |arm: &Arm| {
            let index = self.index(&arm.variant);
            let missing = || TargetError::Failed(format!("there is no function `{}`", arm.variant));
            Ok(&self.functions[index.ok_or_else(missing)?])
        };
        let functions = arms.iter().map(function).collect::<Result<_, _>>()?;
        let iterations = *self.iterations.get_or_init(|| self.find_iterations());
        Ok(Box::new(Calls { functions, iterations, throughput: self.throughput }))
    }
}

/// Functions ready to be timed, in the order of the arms.
struct Calls<'g, 'a> {
    functions: Vec<&'g Function<'a>>,
    iterations: u64,
    throughput: Option<Throughput>,
}

impl Session for Calls<'_, '_> {
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        match &self.functions[arm].check {
            Some(check) if !lock(check)() => Err(TargetError::WrongAnswer("its own check says so".into())),
            _ => Ok(()),
        }
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let elapsed_ns = lock(&self.functions[arm].batch)(self.iterations);
        // A function that was optimised away may take no step of the clock.
        let time_ns = elapsed_ns.max(1) as f64 / self.iterations as f64;
        out.push(TIME, time_ns);
        if let Some(Throughput::Bytes(amount) | Throughput::Elements(amount)) = self.throughput {
            out.push(THROUGHPUT, amount as f64 / time_ns * 1e9);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;
    use crate::experiment::{Point, Sample};

    fn arms(group: &Group) -> Vec<Arm> {
        let variants = group.spec().variants.iter();
        variants.map(|variant| Arm { variant: variant.name.clone(), point: Point::default() }).collect()
    }

    fn open<'g>(group: &'g Group) -> Box<dyn Session + 'g> {
        group.open(&arms(group), &Setup { seed: 0, ..Setup::default() }).unwrap()
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
        assert!(calls > 1);
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
        assert_eq!(group.call_each_once().collect::<Vec<_>>(), [("unchecked", true), ("wrong", false)]);
        assert_eq!(calls.load(Relaxed), 2);
    }

    #[test]
    fn a_filter_keeps_functions_with_their_names() {
        let calls = AtomicU64::new(0);
        let mut group =
            Group::new("filter").function("a", || 1).function("b", || calls.fetch_add(1, Relaxed)).function("b", || 1);
        let names = |group: &Group| arms(group).into_iter().map(|arm| arm.variant).collect::<Vec<_>>();
        assert_eq!(names(&group), ["a", "b", "b (2)"]);
        group.retain(|name| name != "a" && name != "b (2)");
        assert_eq!(names(&group), ["b"]);
        measure(&mut *open(&group), 0);
        assert!(calls.load(Relaxed) > 0);
        let gone = Arm { variant: "a".into(), point: Point::default() };
        assert!(group.open(&[gone], &Setup { seed: 0, ..Setup::default() }).is_err());
    }
}
