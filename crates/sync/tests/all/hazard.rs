//! Tests of when hazard pointers free objects, and when they do not.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread;

use ascertain_sync::barrier::{Barrier, Fences};
use ascertain_sync::hazard::{Domain, Hazard, Published};

use crate::common::child::in_child;
use crate::common::panics::{is_refused, panic_message};
use crate::common::reclaimed::{Counted, Drops};

fn protected_objects_are_kept<B: Barrier>(barrier: B) {
    let drops = Drops::default();
    let domain = Domain::new(barrier);
    let published = Published::new(drops.object(1), &domain);
    let (mut one, mut other, mut retirer) = (domain.hazard(), domain.hazard(), domain.retirer());
    // One thread protects two different objects at the same time.
    let first = published.load(&mut one);
    published.replace(drops.object(2), &mut retirer);
    let second = published.load(&mut other);
    published.replace(drops.object(3), &mut retirer);
    retirer.flush();
    assert_eq!((first.value, second.value, drops.count(), retirer.waiting()), (1, 2, 0, 2));
    drop(first);
    retirer.flush();
    assert_eq!((second.value, drops.count(), retirer.waiting()), (2, 1, 1));
    drop(second);
    retirer.flush();
    assert_eq!((drops.count(), retirer.waiting()), (2, 0));
    assert_eq!(published.load(&mut one).value, 3);
    drop((published, one, other, retirer, domain));
    assert_eq!(drops.count(), 3);
}
with_each_barrier!(protected_objects_are_kept);

fn a_guard_can_be_kept_and_sent<B: Barrier>(barrier: B) {
    let drops = Drops::default();
    let domain = Domain::new(barrier);
    let published = Published::new(drops.object(7), &domain);
    let mut retirer = domain.retirer();
    let guard = published.load_owned(domain.hazard());
    published.replace(drops.object(8), &mut retirer);
    let hazard = thread::spawn(move || {
        assert_eq!(guard.value, 7);
        guard.into_hazard()
    });
    let mut hazard = hazard.join().unwrap();
    retirer.flush();
    assert_eq!((drops.count(), published.load(&mut hazard).value), (1, 8));
}
with_each_barrier!(a_guard_can_be_kept_and_sent);

#[test]
fn a_stalled_reader_holds_one_object_and_no_more() {
    const REPLACED: usize = if cfg!(miri) { 500 } else { 100_000 };
    let drops = Drops::default();
    let domain = Domain::new(Fences);
    let published = Published::new(drops.object(0), &domain);
    let (mut hazard, mut retirer) = (domain.hazard(), domain.retirer());
    let stalled = published.load(&mut hazard);
    for value in 1..=REPLACED {
        published.replace(drops.object(value), &mut retirer);
        // A batch is 64 objects plus two for the slot. One more object is protected.
        assert!(value - drops.count() <= 64 + 2 + 1);
    }
    assert_eq!(stalled.value, 0);
    retirer.flush();
    assert_eq!(drops.count(), REPLACED - 1);
}

fn a_slow_barrier_is_waited_for<B: Barrier>(barrier: B) {
    const REPLACED: usize = if cfg!(miri) { 500 } else { 100_000 };
    let drops = Drops::default();
    let domain = Domain::new(barrier);
    let published = Published::new(drops.object(0), &domain);
    let (_hazard, mut retirer) = (domain.hazard(), domain.retirer());
    let replace = |value| {
        published.replace(drops.object(value), &mut retirer);
        retirer.waiting()
    };
    let most = (1..=REPLACED).map(replace).max();
    assert!(most <= Some(32 * (64 + 2)), "{most:?}");
}
with_each_barrier!(a_slow_barrier_is_waited_for);

#[test]
fn slots_are_used_again() {
    let domain = Domain::new(Fences);
    for _ in 0..100 {
        let hazards: Vec<Hazard<_>> = (0..3).map(|_| domain.hazard()).collect();
        drop(hazards);
    }
    assert_eq!(domain.slots(), 3);
}

#[test]
fn the_end_of_the_domain_frees_everything() {
    let drops = Drops::default();
    let domain = Domain::new(Fences);
    let published = Published::new(drops.object(0), &domain);
    let mut retirer = domain.retirer();
    (1..50).for_each(|value| published.replace(drops.object(value), &mut retirer));
    // A guard outlives the published object it was read from, and keeps the domain alive.
    let guard = published.load_owned(domain.hazard());
    drop((published, retirer, domain));
    assert_eq!((guard.value, drops.count()), (49, 0));
    drop(guard);
    assert_eq!(drops.count(), 50);
}

#[test]
fn pointers_of_ones_own() {
    let drops = Drops::default();
    let domain = Domain::new(Fences);
    let source = AtomicPtr::new(ptr::null_mut::<Counted>());
    let (mut hazard, mut retirer) = (domain.hazard(), domain.retirer());
    // SAFETY: the pointer is null, here and below.
    assert!(unsafe { hazard.protect(&source) }.is_none());
    // SAFETY: the pointer is null.
    let hazard = unsafe { hazard.protect_owned(&source) }.unwrap_err();
    source.store(Box::into_raw(Box::new(drops.object(5))), Ordering::Release);
    // SAFETY: the pointer leads to a box, which only this domain frees.
    let guard = unsafe { hazard.protect_owned(&source) }.unwrap();
    let object = source.swap(ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: the object is allocated in a box, and only `source` led to it.
    unsafe { retirer.retire(object) };
    retirer.flush();
    assert_eq!((guard.value, drops.count()), (5, 0));
    drop(guard);
    retirer.flush();
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_way_of_ones_own_to_free() {
    /// # Safety
    /// The object is from `Box<[Counted; 2]>`.
    unsafe fn free_pair(object: *mut ()) {
        // SAFETY: the caller ensures that the object is such a box.
        drop(unsafe { Box::from_raw(object.cast::<[Counted; 2]>()) });
    }
    let drops = Drops::default();
    let domain = Domain::new(Fences);
    let pair = Box::into_raw(Box::new([drops.object(1), drops.object(2)]));
    // SAFETY: no other code has the object, and it is such a pair.
    unsafe { domain.retirer().retire_with(pair.cast(), free_pair) };
    drop(domain);
    assert_eq!(drops.count(), 2);
}

#[test]
fn a_destructor_that_panics_does_not_keep_the_others() {
    let drops = Drops::default();
    let domain = Domain::new(Fences);
    let published = Published::new(drops.object(0), &domain);
    let mut retirer = domain.retirer();
    published.replace(drops.object_that_panics(), &mut retirer);
    (2..10).for_each(|value| published.replace(drops.object(value), &mut retirer));
    assert!(is_refused(|| retirer.flush()));
    retirer.flush();
    assert_eq!((drops.count(), retirer.waiting()), (9, 0));
}

/// Tests that a handle of another domain is refused, in the cases that do not exist for epochs.
#[test]
fn what_is_of_another_domain_is_refused() {
    let (domain, another) = (Domain::new(Fences), Domain::new(Fences));
    let published = Published::new(1, &domain);
    let ways: [&dyn Fn(); 2] = [&|| drop(published.load_owned(another.hazard())), &|| {
        published.update(&mut domain.hazard(), &mut another.retirer(), |_| None);
    }];
    for way in ways {
        let message = panic_message(way).unwrap_or_default();
        assert!(message.contains("different domains or collectors"), "{message:?}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "the test leaks memory on purpose")]
fn a_thread_that_ends_with_a_guard_keeps_its_object_alone() {
    let drops = Drops::default();
    let domain = Domain::new(Fences);
    let published = Published::new(drops.object(0), &domain);
    thread::scope(|scope| {
        scope.spawn(|| std::mem::forget(published.load_owned(domain.hazard())));
    });
    let mut retirer = domain.retirer();
    (1..100).for_each(|value| published.replace(drops.object(value), &mut retirer));
    retirer.flush();
    assert_eq!((drops.count(), retirer.waiting()), (98, 1));
    drop((published, retirer, domain));
    // The forgotten guard keeps the domain, and so the objects that are left in it, for ever.
    assert_eq!(drops.count(), 98);
}

#[test]
fn a_forgotten_guard_protects_until_its_hazard_pointer_protects_something_else() {
    let drops = Drops::default();
    let domain = Domain::new(Fences);
    let published = Published::new(drops.object(0), &domain);
    let (mut hazard, mut retirer) = (domain.hazard(), domain.retirer());
    std::mem::forget(published.load(&mut hazard));
    published.replace(drops.object(1), &mut retirer);
    retirer.flush();
    assert_eq!(drops.count(), 0);
    drop(published.load(&mut hazard));
    retirer.flush();
    assert_eq!(drops.count(), 1);
}

fn a_child_process_goes_on<B: Barrier>(barrier: B) {
    let drops = Drops::default();
    let domain = Domain::new(barrier);
    let published = Published::new(drops.object(0), &domain);
    let (mut hazard, mut retirer) = (domain.hazard(), domain.retirer());
    // This guard stands for a guard of a thread that does not exist in the child.
    let elsewhere = published.load_owned(domain.hazard());
    in_child(|| {
        published.replace(drops.object(1), &mut retirer);
        published.replace(drops.object(2), &mut retirer);
        retirer.flush();
        // The object that the other thread protected is kept, and the others are freed.
        published.load(&mut hazard).value == 2 && drops.count() == 1 && retirer.waiting() == 1
    });
    assert_eq!((elsewhere.value, drops.count()), (0, 0));
}
with_each_barrier!(a_child_process_goes_on, ascertain_sys::testing::alone);

fn dropped_published_are_counted_and_freed(barrier: impl Barrier) {
    const MANY: usize = if cfg!(miri) { 1_100 } else { 3_000 };
    let (drops, domain) = (Drops::default(), Domain::new(barrier));
    let (mut hazard, retirer) = (domain.hazard(), domain.retirer());
    let first = Published::new(drops.object(7), &domain);
    let guard = first.load(&mut hazard);
    drop(first);
    for value in 1..MANY {
        drop(Published::new(drops.object(value), &domain));
        assert_eq!(retirer.waiting() + drops.count(), value + 1);
        assert!(retirer.waiting() <= 1_026, "the bound holds although the retirer is idle");
    }
    assert_eq!(guard.value, 7);
    drop((guard, retirer));
    drop(hazard);
    drop(domain);
    assert_eq!(drops.count(), MANY);
}

with_each_barrier!(dropped_published_are_counted_and_freed);

/// Drops a long linked list. Each node retires so many objects that the thread has to free some of them.
#[test]
fn dropped_published_are_not_freed_within_one_another() {
    struct Node {
        _next: Option<Published<Node, Fences>>,
        _leaves: Vec<Published<u32, Fences>>,
    }
    const DEPTH: u32 = if cfg!(miri) { 3 } else { 300 };
    let domain = Domain::new(Fences);
    let mut list = None;
    for _ in 0..DEPTH {
        let leaves = (0..1_100_u32).map(|leaf| Published::new(leaf, &domain)).collect();
        list = Some(Published::new(Node { _next: list, _leaves: leaves }, &domain));
    }
    let dropping = std::thread::Builder::new().stack_size(1 << 17).spawn(move || drop(list));
    dropping.unwrap().join().unwrap();
    let mut retirer = domain.retirer();
    retirer.flush();
    assert_eq!(retirer.waiting(), 0);
}
