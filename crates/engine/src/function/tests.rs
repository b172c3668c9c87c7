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
    // A second session uses the number of calls that the first one determined, and makes no calls when it is opened.
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
            .function_with_input("twice", elements, move |elements| count(twice, elements) + count(twice, elements));
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
    assert!(seen()[..2].iter().all(|calls| *calls > 0) && seen()[2..] == [0, 0], "a batch has a single input");
    let mut session = open(&group);
    let before = seen();
    for (arm, elements) in [(0, 1.0), (1, 1.0), (2, 1_000.0), (3, 1_000.0)] {
        let samples = measure(&mut *session, arm);
        let expected = elements / (samples[TIME].value / 1e9);
        assert!((samples[THROUGHPUT].value / expected - 1.0).abs() < 1e-12);
    }
    let batches: Vec<u64> = calls.iter().zip(before).map(|(count, before)| count.load(Relaxed) - before).collect();
    assert_eq!(
        (batches[1], batches[3]),
        (2 * batches[0], 2 * batches[2]),
        "with one input, each function gets the same number of calls"
    );
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
#[should_panic(expected = "`mixed` has a throughput in bytes at one input and in elements at another")]
fn one_metric_has_one_unit() {
    _ = Group::new("mixed").throughput(Throughput::Bytes(1)).at("n", 2).throughput(Throughput::Elements(1));
}
