//! Tests that explore every order of the steps of hazard pointers and epochs, on x86 with store buffers.

#[path = "../all/common/missing.rs"]
mod missing;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ascertain_sync::barrier::{Barrier, Fences, Ticket};
use ascertain_sync::hazard::Domain;
use ascertain_sync::{epoch, hazard};
use ascertain_tso::{self as tso, AtomicPtr, AtomicU32, Exploration, Failure, Quarantine, thread};

use super::is_full_depth;
use missing::Missing;

#[global_allocator]
static QUARANTINE: Quarantine = Quarantine;

/// A barrier with a heavy side that empties all store buffers, and a light side without instructions.
#[derive(Clone)]
struct Asymmetric;

// SAFETY: at the heavy side, everything before a light side is in memory, or the light side comes after the heavy side.
unsafe impl Barrier for Asymmetric {
    fn light(&self) {}

    fn ticket(&self) -> Ticket {
        tso::heavy();
        Ticket::passed()
    }
}

/// Another control: a fence on the heavy side only, and none on the light side.
#[derive(Clone)]
struct HalfFenced;

// SAFETY: this barrier does not give the guarantee, which the tests must detect. They read only memory that is never
// released.
unsafe impl Barrier for HalfFenced {
    fn light(&self) {}

    fn ticket(&self) -> Ticket {
        Fences.ticket()
    }
}

/// An object. If a thread uses the object after it was dropped, the model detects the use of the object's atomic.
struct Object(AtomicU32);

impl Object {
    fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }

    fn read(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

/// Leaves the destructors of finished objects out of the model, because they would only multiply its executions.
fn leave<T>(what: T) {
    std::mem::forget(what);
}

fn assert_right(explored: Result<Exploration, Failure>) {
    let explored = explored.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(explored.executions > 10, "{explored:?}");
}

fn assert_freed_early(explored: Result<Exploration, Failure>) {
    let failure = explored.unwrap_err();
    assert!(failure.what.contains("used after it was dropped"), "{failure}");
}

/// Runs a reader, and a writer that replaces the object once and frees it.
fn hazard_model(barrier: impl Barrier) -> Result<Exploration, Failure> {
    tso::explore(move || {
        let domain = Domain::new(barrier.clone());
        let published = Arc::new(hazard::Published::new(Object::new(1), &domain));
        let (mut hazard, mut retirer) = (domain.hazard(), domain.retirer());
        let reader = thread::spawn({
            let published = published.clone();
            move || {
                let value = published.load(&mut hazard).read();
                assert!(value == 1 || value == 2);
            }
        });
        published.replace(Object::new(2), &mut retirer);
        retirer.flush();
        reader.join().unwrap();
    })
}

#[test]
fn hazard_pointers_protect() {
    assert_right(hazard_model(Asymmetric));
    assert_right(hazard_model(Fences));
}

#[test]
fn hazard_pointers_without_a_barrier_do_not() {
    assert_freed_early(hazard_model(Missing));
    assert_freed_early(hazard_model(HalfFenced));
}

/// The reader creates its slot while the writer scans the slots, and reads twice with the slot.
#[test]
fn a_slot_that_is_made_during_a_scan() {
    assert_right(tso::explore(|| {
        let domain = Domain::new(Asymmetric);
        let published = Arc::new(hazard::Published::new(Object::new(1), &domain));
        let mut retirer = domain.retirer();
        let reader = thread::spawn({
            let published = published.clone();
            move || {
                let mut hazard = domain.hazard();
                published.load(&mut hazard).read();
                published.load(&mut hazard).read();
                leave((published, hazard, domain));
            }
        });
        published.replace(Object::new(2), &mut retirer);
        retirer.flush();
        leave((published, retirer));
        reader.join().unwrap();
    }));
}

/// The first and the second load of the reader may each find an object that is replaced and retired.
#[test]
fn an_object_that_was_replaced_between_two_looks_is_not_read() {
    assert_right(tso::explore(|| {
        let domain = Domain::new(Asymmetric);
        let published = Arc::new(hazard::Published::new(Object::new(1), &domain));
        let (mut hazard, mut retirer) = (domain.hazard(), domain.retirer());
        let reader = thread::spawn({
            let published = published.clone();
            move || {
                published.load(&mut hazard).read();
                leave((published, hazard));
            }
        });
        published.replace(Object::new(2), &mut retirer);
        published.replace(Object::new(3), &mut retirer);
        retirer.flush();
        leave((published, retirer, domain));
        reader.join().unwrap();
    }));
}

/// Two threads take a slot at the same time, and one slot was released before: each thread gets its own slot.
#[test]
fn a_slot_that_was_given_back_is_taken_by_one() {
    assert_right(tso::explore(|| {
        let domain = Domain::new(Asymmetric);
        drop(domain.hazard());
        let other = thread::spawn({
            let domain = domain.clone();
            move || domain.hazard()
        });
        let hazard = domain.hazard();
        let other = other.join().unwrap();
        assert_eq!(domain.slots(), 2);
        leave((hazard, other, domain));
    }));
}

/// Two threads create two slots each at the same time: no slot is lost.
#[test]
fn what_two_make_at_once_is_there() {
    assert_right(tso::explore(|| {
        let domain = Domain::new(Asymmetric);
        let other = thread::spawn({
            let domain = domain.clone();
            move || [domain.hazard(), domain.hazard()]
        });
        let hazards = [domain.hazard(), domain.hazard()];
        let other = other.join().unwrap();
        assert_eq!(domain.slots(), 4);
        leave((hazards, other, domain));
    }));
}

/// Two threads leave an object each to the domain at the same time: no object is lost, and both are freed.
#[test]
fn what_two_leave_behind_at_once_is_there() {
    assert_right(tso::explore(|| {
        let collector = epoch::Collector::new(Asymmetric);
        let [one, other] = [1, 2].map(|value| epoch::Published::new(Object::new(value), &collector));
        let other = thread::spawn(|| drop(other));
        drop(one);
        other.join().unwrap();
        let handle = collector.register();
        handle.flush();
        assert_eq!(handle.waiting(), 0);
        leave((handle, collector));
    }));
}

/// One thread takes objects while another thread is leaving them to the domain.
#[test]
fn what_is_left_behind_is_counted_before_it_is_taken() {
    assert_right(tso::explore(|| {
        let domain = Domain::new(Asymmetric);
        let two = [1, 2].map(|value| hazard::Published::new(Object::new(value), &domain));
        let mut retirer = domain.retirer();
        let leaver = thread::spawn(move || drop(two));
        retirer.flush();
        let waiting = retirer.waiting();
        assert!(waiting <= 2, "{waiting}");
        leave((retirer, domain));
        leaver.join().unwrap();
    }));
}

/// A writer ends before it could free any object, and another one continues its work.
#[test]
fn what_a_writer_leaves_behind_is_protected_too() {
    assert_right(tso::explore(|| {
        let domain = Domain::new(Asymmetric);
        let published = Arc::new(hazard::Published::new(Object::new(1), &domain));
        let (mut hazard, mut retirer) = (domain.hazard(), domain.retirer());
        let writer = thread::spawn({
            let published = published.clone();
            move || {
                published.replace(Object::new(2), &mut domain.retirer());
                leave((published, domain));
            }
        });
        let reader = thread::spawn(move || {
            published.load(&mut hazard).read();
            leave((published, hazard));
        });
        retirer.flush();
        leave(retirer);
        writer.join().unwrap();
        reader.join().unwrap();
    }));
}

/// Runs a reader and a writer. The writer replaces the object, advances the epoch twice, and frees the old object.
fn epoch_model(barrier: impl Barrier, first: u64) -> Result<Exploration, Failure> {
    tso::explore(move || {
        let collector = epoch::Collector::starting_at(first, barrier.clone());
        let published = Arc::new(epoch::Published::new(Object::new(1), &collector));
        let (reading, writing) = (collector.register(), collector.register());
        let reader = thread::spawn({
            let published = published.clone();
            move || {
                let value = published.load(&reading.pin()).read();
                assert!(value == 1 || value == 2);
                leave((published, reading));
            }
        });
        published.replace(Object::new(2), &writing);
        writing.collect();
        writing.collect();
        leave((published, writing, collector));
        reader.join().unwrap();
    })
}

#[test]
fn epochs_protect() {
    assert_right(epoch_model(Asymmetric, 0));
    assert_right(epoch_model(Fences, 0));
}

#[test]
fn epochs_protect_when_0_comes_after_the_last() {
    assert_right(epoch_model(Asymmetric, u64::MAX / 2));
}

#[test]
fn epochs_without_a_barrier_do_not() {
    assert_freed_early(epoch_model(Missing, 0));
    assert_freed_early(epoch_model(HalfFenced, 0));
}

/// Runs two threads that each add one to the same number; one of them frees the replaced objects.
fn epoch_sum(
    add: fn(&epoch::Published<Object, Asymmetric>, &epoch::Handle<Asymmetric>),
) -> Result<Exploration, Failure> {
    tso::explore(move || {
        let collector = epoch::Collector::new(Asymmetric);
        let published = Arc::new(epoch::Published::new(Object::new(1), &collector));
        let (one, other) = (collector.register(), collector.register());
        let adder = thread::spawn({
            let published = published.clone();
            move || {
                add(&published, &one);
                leave((published, one));
            }
        });
        add(&published, &other);
        other.collect();
        other.collect();
        adder.join().unwrap();
        assert_eq!(published.load(&other.pin()).read(), 3);
        leave((published, other, collector));
    })
}

fn hazard_sum(
    add: fn(&hazard::Published<Object, Asymmetric>, &mut hazard::Hazard<Asymmetric>, &mut hazard::Retirer<Asymmetric>),
) -> Result<Exploration, Failure> {
    tso::explore(move || {
        let domain = Domain::new(Asymmetric);
        let published = Arc::new(hazard::Published::new(Object::new(1), &domain));
        let [(mut hazard, mut retirer), (mut mine, mut my_own)] = [(); 2].map(|()| (domain.hazard(), domain.retirer()));
        let adder = thread::spawn({
            let published = published.clone();
            move || {
                add(&published, &mut hazard, &mut retirer);
                leave((published, hazard, retirer));
            }
        });
        add(&published, &mut mine, &mut my_own);
        my_own.flush();
        adder.join().unwrap();
        assert_eq!(published.load(&mut mine).read(), 3);
        leave((published, mine, my_own, domain));
    })
}

#[test]
fn no_update_is_lost() {
    fn plus_one(object: &Object) -> Option<Object> {
        Some(Object::new(object.read() + 1))
    }
    assert_right(epoch_sum(|published, handle| assert!(published.update(handle, plus_one))));
    if !is_full_depth("two updates with hazard pointers") {
        return;
    }
    assert_right(hazard_sum(|published, hazard, retirer| assert!(published.update(hazard, retirer, plus_one))));
}

#[test]
fn reading_and_replacing_loses_some() {
    let epochs = epoch_sum(|published, handle| {
        let sum = published.load(&handle.pin()).read() + 1;
        published.replace(Object::new(sum), handle);
    });
    let hazards = hazard_sum(|published, hazard, retirer| {
        let sum = published.load(hazard).read() + 1;
        published.replace(Object::new(sum), retirer);
    });
    for failure in [epochs, hazards].map(Result::unwrap_err) {
        assert!(failure.what.contains("right: 3"), "{failure}");
    }
}

/// The writer leaves its object to another writer, which advances the epoch.
#[test]
fn two_writers() {
    assert_right(tso::explore(|| {
        let collector = epoch::Collector::new(Asymmetric);
        let published = Arc::new(epoch::Published::new(Object::new(1), &collector));
        let (reading, one, other) = (collector.register(), collector.register(), collector.register());
        let writer = thread::spawn({
            let published = published.clone();
            move || {
                published.replace(Object::new(2), &one);
                one.collect();
                leave((published, one));
            }
        });
        let reader = thread::spawn(move || {
            published.load(&reading.pin()).read();
            leave((published, reading));
        });
        other.collect();
        leave((other, collector));
        writer.join().unwrap();
        reader.join().unwrap();
    }));
}

/// A writer makes its object unreachable by storing a null pointer. This store may still be in the writer's buffer when
/// other threads have advanced the epoch twice. So the object must be labelled with the epoch that is current when the
/// store leaves the buffer, or with a later one.
#[test]
fn a_label_comes_after_what_was_taken_out() {
    if !is_full_depth("a label that is set while others advance") {
        return;
    }
    assert_right(tso::explore(|| {
        let collector = epoch::Collector::new(Fences);
        let source = Arc::new(AtomicPtr::new(Box::into_raw(Box::new(Object::new(1)))));
        let [reading, advancing, writing] = [(); 3].map(|()| collector.register());
        let reader = thread::spawn({
            let source = source.clone();
            move || {
                let guard = reading.pin();
                // SAFETY: `source` is null or leads to a box, which only this collector frees.
                if let Some(object) = unsafe { guard.load(&source) } {
                    object.read();
                }
                drop(guard);
                leave((source, reading));
            }
        });
        let advancer = thread::spawn(move || {
            advancing.collect();
            advancing.collect();
            leave(advancing);
        });
        let object = source.load(Relaxed);
        source.store(std::ptr::null_mut(), Relaxed);
        // SAFETY: the object is allocated in a box, and no pointer leads to it any more.
        unsafe { writing.retire(object) };
        writing.collect();
        leave((source, writing, collector));
        advancer.join().unwrap();
        reader.join().unwrap();
    }));
}

/// A slot must be cleared before it is released to its next owner. In the other order, the clearing could erase the
/// object that the next owner protects.
#[test]
fn a_hazard_pointer_lets_go_before_it_gives_its_place_back() {
    assert_right(tso::explore(|| {
        let domain = Domain::new(Asymmetric);
        let published = Arc::new(hazard::Published::new(Object::new(1), &domain));
        let mut retirer = domain.retirer();
        let old = domain.hazard();
        let reader = thread::spawn({
            let published = published.clone();
            move || {
                let mut hazard = domain.hazard();
                published.load(&mut hazard).read();
                leave((published, hazard, domain));
            }
        });
        drop(old);
        published.replace(Object::new(2), &mut retirer);
        retirer.flush();
        leave((published, retirer));
        reader.join().unwrap();
    }));
}

#[test]
fn a_handle_unpins_before_it_gives_its_place_back() {
    assert_right(tso::explore(|| {
        let collector = epoch::Collector::new(Asymmetric);
        let published = Arc::new(epoch::Published::new(Object::new(1), &collector));
        let writing = collector.register();
        let old = collector.register();
        let reader = thread::spawn({
            let published = published.clone();
            move || {
                let handle = collector.register();
                let guard = handle.pin();
                published.load(&guard).read();
                leave(guard);
                leave((published, handle, collector));
            }
        });
        drop(old);
        published.replace(Object::new(2), &writing);
        writing.flush();
        leave((published, writing));
        reader.join().unwrap();
    }));
}
