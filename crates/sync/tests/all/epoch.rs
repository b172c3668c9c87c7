//! Tests of when epochs free objects, and when they do not.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread;

use ascertain_sync::barrier::{Barrier, Fences};
use ascertain_sync::epoch::{Collector, Handle, Published};

use crate::common::child::in_child;
use crate::common::panics::is_refused;
use crate::common::reclaimed::{Counted, Drops};

fn who_is_pinned_is_waited_for<B: Barrier>(barrier: B) {
    let drops = Drops::default();
    let collector = Collector::new(barrier);
    let published = Published::new(drops.object(0), &collector);
    let (reading, writing) = (collector.register(), collector.register());
    let guard = reading.pin();
    let object = published.load(&guard);
    published.replace(drops.object(1), &writing);
    writing.flush();
    assert_eq!((object.value, drops.count(), writing.waiting()), (0, 0, 1));
    drop(guard);
    writing.flush();
    assert_eq!((drops.count(), writing.waiting()), (1, 0));
    assert_eq!(published.load(&reading.pin()).value, 1);
    drop((published, reading, writing, collector));
    assert_eq!(drops.count(), 2);
}
with_each_barrier!(who_is_pinned_is_waited_for);

/// A participant registers while an epoch is ending. The test does this for each step at which the advancing thread can
/// stop.
#[test]
fn who_comes_late_is_waited_for() {
    for steps in 0..4 {
        let drops = Drops::default();
        let collector = Collector::new(Fences);
        let published = Published::new(drops.object(0), &collector);
        let (early, writing) = (collector.register(), collector.register());
        let early = early.pin();
        // The first step reaches the next epoch. At the later steps the heavy side is complete, and the writer waits
        // for the early participant.
        (0..steps).for_each(|_| writing.collect());
        assert_eq!(collector.epoch(), steps.min(1));
        let late = collector.register();
        let late = late.pin();
        let object = published.load(&late);
        published.replace(drops.object(1), &writing);
        drop(early);
        (0..4).for_each(|_| writing.collect());
        assert_eq!((object.value, drops.count(), writing.waiting()), (0, 0, 1), "after {steps} steps");
        drop(late);
        writing.flush();
        assert_eq!(drops.count(), 1);
    }
}

#[test]
fn what_was_retired_later_is_not_freed_with_what_was_before() {
    let drops = Drops::default();
    let collector = Collector::new(Fences);
    let published = Published::new(drops.object(0), &collector);
    let (reading, writing) = (collector.register(), collector.register());
    published.replace(drops.object(1), &writing);
    writing.collect();
    let guard = reading.pin();
    let object = published.load(&guard);
    published.replace(drops.object(2), &writing);
    writing.collect();
    // The first object was retired two epochs ago; the second one is being read.
    assert_eq!((object.value, drops.count(), collector.epoch()), (1, 1, 2));
}

#[test]
fn guards_nest_and_end_in_any_order() {
    let drops = Drops::default();
    let collector = Collector::new(Fences);
    let published = Published::new(drops.object(0), &collector);
    let (reading, writing) = (collector.register(), collector.register());
    let (first, second) = (reading.pin(), reading.pin());
    drop(first);
    let object = published.load(&second);
    published.replace(drops.object(1), &writing);
    writing.flush();
    assert_eq!((object.value, drops.count()), (0, 0));
    drop(second);
    writing.flush();
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_guard_can_be_kept_and_sent() {
    let drops = Drops::default();
    let collector = Collector::new(Fences);
    let published = Published::new(drops.object(7), &collector);
    let writing = collector.register();
    let pinned = collector.register().into_pinned();
    published.replace(drops.object(8), &writing);
    let pinned = thread::spawn(move || {
        // This guard is nested; the owned guard outlives it.
        drop(pinned.pin());
        pinned
    });
    let pinned = pinned.join().unwrap();
    writing.flush();
    assert_eq!(drops.count(), 0);
    assert_eq!(published.load(&pinned.pin()).value, 8);
}

#[test]
fn an_owned_guard_ends_with_its_value_or_gives_the_handle_back() {
    let drops = Drops::default();
    let collector = Collector::new(Fences);
    let published = Published::new(drops.object(0), &collector);
    let writing = collector.register();
    let pinned = collector.register().into_pinned();
    published.replace(drops.object(1), &writing);
    let handle = pinned.into_handle();
    writing.flush();
    assert_eq!(drops.count(), 1);
    let pinned = handle.into_pinned();
    published.replace(drops.object(2), &writing);
    writing.flush();
    assert_eq!(drops.count(), 1);
    drop(pinned);
    writing.flush();
    assert_eq!(drops.count(), 2);
}

#[test]
fn a_stalled_reader_stalls_everything_until_it_goes_on() {
    const REPLACED: usize = if cfg!(miri) { 500 } else { 20_000 };
    let drops = Drops::default();
    let collector = Collector::new(Fences);
    let published = Published::new(drops.object(0), &collector);
    let (reading, writing) = (collector.register(), collector.register());
    let stalled = reading.pin();
    (1..=REPLACED).for_each(|value| published.replace(drops.object(value), &writing));
    assert_eq!((drops.count(), writing.waiting()), (0, REPLACED));
    drop(stalled);
    writing.flush();
    assert_eq!((drops.count(), writing.waiting()), (REPLACED, 0));
}

#[test]
fn without_readers_little_waits() {
    const REPLACED: usize = if cfg!(miri) { 500 } else { 20_000 };
    let drops = Drops::default();
    let collector = Collector::new(Fences);
    let published = Published::new(drops.object(0), &collector);
    let writing = collector.register();
    for value in 1..=REPLACED {
        published.replace(drops.object(value), &writing);
        assert!(value - drops.count() <= 3 * 64, "{value} {}", drops.count());
    }
}

fn a_slow_barrier_is_waited_for(barrier: impl Barrier) {
    const REPLACED: usize = if cfg!(miri) { 500 } else { 20_000 };
    let drops = Drops::default();
    let collector = Collector::new(barrier);
    let published = Published::new(drops.object(0), &collector);
    let writing = collector.register();
    let replace = |value| {
        published.replace(drops.object(value), &writing);
        writing.waiting()
    };
    let most = (1..=REPLACED).map(replace).max();
    // An object waits for two epochs, and each of them may begin one batch of objects later.
    assert!(most <= Some(1_024 + 2 * 64), "{most:?}");
}
with_each_barrier!(a_slow_barrier_is_waited_for);

#[test]
fn after_the_last_epoch_comes_0() {
    const LAST: u64 = u64::MAX / 2;
    let drops = Drops::default();
    let collector = Collector::starting_at(LAST - 2, Fences);
    let published = Published::new(drops.object(0), &collector);
    let (reading, writing) = (collector.register(), collector.register());
    let mut seen = Vec::new();
    for value in 1..=6 {
        let guard = reading.pin();
        let object = published.load(&guard);
        published.replace(drops.object(value), &writing);
        writing.collect();
        // The reader is pinned in this epoch or the previous one, so two epochs do not pass while it reads.
        assert_eq!((object.value, drops.count() < value), (value - 1, true));
        seen.push(collector.epoch());
        drop(guard);
        writing.flush();
        assert_eq!(drops.count(), value);
    }
    assert!(seen.contains(&LAST) || seen.contains(&0), "{seen:?}");
    assert!(seen.iter().any(|&epoch| epoch < 20), "{seen:?}");
}

#[test]
fn places_are_used_again() {
    let collector = Collector::new(Fences);
    for _ in 0..100 {
        thread::scope(|scope| {
            scope.spawn(|| drop([(); 3].map(|()| collector.register())));
        });
    }
    assert_eq!(collector.participants(), 3);
}

#[test]
fn the_end_of_the_collector_frees_everything() {
    let drops = Drops::default();
    let collector = Collector::new(Fences);
    let published = Published::new(drops.object(0), &collector);
    let pinned = collector.register().into_pinned();
    let writing = collector.register();
    (1..500).for_each(|value| published.replace(drops.object(value), &writing));
    drop((published, writing, collector));
    assert_eq!(drops.count(), 0);
    drop(pinned);
    assert_eq!(drops.count(), 500);
}

#[test]
fn pointers_of_ones_own() {
    let drops = Drops::default();
    let collector = Collector::new(Fences);
    let handle = collector.register();
    let source = AtomicPtr::new(ptr::null_mut::<Counted>());
    let guard = handle.pin();
    // SAFETY: the pointer is null.
    assert!(unsafe { guard.load(&source) }.is_none());
    source.store(Box::into_raw(Box::new(drops.object(5))), Ordering::Release);
    // SAFETY: the pointer leads to a box, which only this collector frees.
    let object = unsafe { guard.load(&source) }.unwrap();
    // SAFETY: the object is allocated in a box, and only `source` led to it.
    unsafe { handle.retire(source.swap(ptr::null_mut(), Ordering::AcqRel)) };
    handle.flush();
    assert_eq!((object.value, drops.count()), (5, 0));
    drop(guard);
    handle.flush();
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_destructor_may_retire_and_panic() {
    thread_local! {
        static HANDLE: Handle<Fences> = Collector::new(Fences).register();
    }
    struct Node {
        next: Option<Box<Node>>,
        _counted: Counted,
    }
    impl Drop for Node {
        fn drop(&mut self) {
            if let Some(next) = self.next.take() {
                // SAFETY: `next` is a box that no other code has.
                HANDLE.with(|handle| unsafe { handle.retire(Box::into_raw(next)) });
            }
        }
    }
    let drops = Drops::default();
    let list = (0..5).fold(None, |next, value| {
        let counted = if value == 2 { drops.object_that_panics() } else { drops.object(value) };
        Some(Box::new(Node { next, _counted: counted }))
    });
    HANDLE.with(|handle| {
        // SAFETY: no other code has the list.
        unsafe { handle.retire(Box::into_raw(list.unwrap())) };
        let mut panics = 0;
        while handle.waiting() > 0 {
            panics += usize::from(is_refused(|| handle.flush()));
        }
        assert_eq!((drops.count(), panics), (5, 1));
    });
}

#[test]
fn a_forgotten_guard_stalls_until_its_handle_ends() {
    let drops = Drops::default();
    let collector = Collector::new(Fences);
    let published = Published::new(drops.object(0), &collector);
    let (reading, writing) = (collector.register(), collector.register());
    std::mem::forget(reading.pin());
    published.replace(drops.object(1), &writing);
    writing.flush();
    assert_eq!(drops.count(), 0);
    drop(reading);
    writing.flush();
    assert_eq!(drops.count(), 1);
}

#[test]
#[cfg_attr(miri, ignore = "the test leaks memory on purpose")]
fn a_thread_that_ends_with_a_guard_stalls_for_ever() {
    let drops = Drops::default();
    let collector = Collector::new(Fences);
    let published = Published::new(drops.object(0), &collector);
    thread::scope(|scope| {
        scope.spawn(|| std::mem::forget(collector.register().into_pinned()));
    });
    let writing = collector.register();
    (1..100).for_each(|value| published.replace(drops.object(value), &writing));
    writing.flush();
    assert_eq!((drops.count(), writing.waiting()), (0, 99));
}

fn a_child_process_goes_on<B: Barrier>(barrier: B) {
    let drops = Drops::default();
    let collector = Collector::new(barrier);
    let published = Published::new(drops.object(0), &collector);
    let (reading, writing) = (collector.register(), collector.register());
    in_child(|| {
        published.replace(drops.object(1), &writing);
        writing.flush();
        published.load(&reading.pin()).value == 1 && drops.count() == 1
    });
    // This guard stands for a guard of a thread that does not exist in the child. The objects that the child retires
    // wait for ever, and are not freed too early.
    let elsewhere = collector.register().into_pinned();
    in_child(|| {
        published.replace(drops.object(1), &writing);
        writing.flush();
        published.load(&reading.pin()).value == 1 && drops.count() == 0 && writing.waiting() == 1
    });
    drop(elsewhere);
    assert_eq!(drops.count(), 0);
}
with_each_barrier!(a_child_process_goes_on, ascertain_sys::testing::alone);

fn dropped_published_are_counted_and_freed(barrier: impl Barrier) {
    const MANY: usize = if cfg!(miri) { 1_100 } else { 3_000 };
    let (drops, collector) = (Drops::default(), Collector::new(barrier));
    let handle = collector.register();
    for value in 0..MANY {
        drop(Published::new(drops.object(value), &collector));
        assert_eq!(handle.waiting() + drops.count(), value + 1);
        assert!(handle.waiting() <= 1_024, "the bound holds although the handle is idle");
    }
    // Nothing is freed while a participant is pinned, but the objects are counted.
    handle.flush();
    let guard = handle.pin();
    (0..MANY).for_each(|value| drop(Published::new(drops.object(value), &collector)));
    assert_eq!((handle.waiting(), drops.count()), (MANY, MANY));
    drop(guard);
    handle.flush();
    assert_eq!((handle.waiting(), drops.count()), (0, 2 * MANY));
}

with_each_barrier!(dropped_published_are_counted_and_freed);

fn closures_wait_for_who_is_pinned(barrier: impl Barrier) {
    let (drops, collector) = (Drops::default(), Collector::new(barrier));
    let (reading, writing) = (collector.register(), collector.register());
    let guard = reading.pin();
    // The closures have different sizes, including zero, and one of them defers another closure.
    let large = [drops.object(0), drops.object(1), drops.object(2)];
    writing.defer(move || drop(large));
    writing.pin().defer(|| ());
    writing.defer({
        let (collector, object) = (collector.clone(), drops.object(3));
        move || collector.register().defer(move || drop(object))
    });
    writing.flush();
    assert_eq!((drops.count(), writing.waiting()), (0, 3));
    // The closures do not wait for participants that are pinned later.
    let later = collector.register().into_pinned();
    drop(guard);
    writing.flush();
    assert_eq!((drops.count(), writing.waiting()), (3, 1));
    drop(later);
    writing.flush();
    assert_eq!((drops.count(), writing.waiting()), (4, 0));
}
with_each_barrier!(closures_wait_for_who_is_pinned);

#[test]
fn closures_of_who_never_flushes_are_bounded() {
    let (drops, collector) = (Drops::default(), Collector::new(Fences));
    let handle = collector.register();
    for value in 1..=if cfg!(miri) { 500 } else { 20_000 } {
        let object = drops.object(value);
        handle.pin().defer(move || drop(object));
        assert_eq!(handle.waiting(), value - drops.count());
        assert!(handle.waiting() <= 3 * 64, "{} of {value}", handle.waiting());
    }
}
