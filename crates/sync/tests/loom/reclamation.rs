//! Tests of hazard pointers and epochs with fences, under loom, which explores every execution that Rust's memory model
//! allows.

use std::sync::{Arc, Mutex};

use ascertain_sync::barrier::{Barrier, Fences, Ticket};
use ascertain_sync::epoch::{self, Collector, Guard, Handle};
use ascertain_sync::hazard::{self, Domain, Hazard, Retirer};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use loom::thread::{self, ThreadId};

use super::bounded;
use super::missing::Missing;

/// An object. Freeing it writes to it, so that loom detects a free that is not ordered after a read. For that write,
/// the memory of the object stays allocated.
type Object = UnsafeCell<u32>;

const FREED: u32 = 0;

/// # Safety
/// `object` is an [`Object`] that lives as long as the execution.
unsafe fn free(object: *mut ()) {
    // SAFETY: the caller ensures that the object lives. Loom checks that no thread reads the object meanwhile.
    unsafe { (*object.cast::<Object>()).with_mut(|value| *value = FREED) };
}

fn read(object: &Object) -> u32 {
    // SAFETY: loom checks that no thread writes to the object meanwhile.
    object.with(|value| unsafe { *value })
}

/// Two objects that live as long as the execution, and a pointer to the first one.
struct Shared {
    objects: [Object; 2],
    source: AtomicPtr<Object>,
}

// SAFETY: loom checks the accesses to the cells.
unsafe impl Sync for Shared {}
// SAFETY: loom checks the accesses to the cells.
unsafe impl Send for Shared {}

impl Shared {
    fn new() -> Arc<Self> {
        let mut shared = Arc::new(Self {
            objects: [UnsafeCell::new(1), UnsafeCell::new(2)],
            source: AtomicPtr::new(std::ptr::null_mut()),
        });
        let first = shared.object(0);
        Arc::get_mut(&mut shared).unwrap().source = AtomicPtr::new(first);
        shared
    }

    fn object(&self, index: usize) -> *mut Object {
        (&raw const self.objects[index]).cast_mut()
    }

    /// Writes the second object, and publishes it in place of the first one.
    fn replace(&self) -> *mut () {
        // SAFETY: no pointer leads to the object yet.
        self.objects[1].with_mut(|value| unsafe { *value = 3 });
        self.source.swap(self.object(1), Ordering::AcqRel).cast()
    }
}

/// A barrier that gives only the guarantee of [`Barrier`], and no other ordering. It stands for barriers whose light
/// side has no instructions, also on machines that order less than x86 does. Each thread that executes light sides has
/// a word, which its light sides and all heavy sides change. If a heavy side changes the word after a light side, it
/// sees everything that the light side's thread did before, and vice versa. Light sides of different threads are not
/// ordered among themselves. A fence in this barrier would hide an ordering that is missing elsewhere.
#[derive(Clone)]
struct Exchange {
    words: Arc<[AtomicU32; 3]>,
    /// The threads that execute light sides. The index of a thread is also the index of its word.
    threads: Arc<Mutex<Vec<ThreadId>>>,
}

impl Exchange {
    fn new() -> Self {
        Self { words: Arc::default(), threads: Arc::default() }
    }
}

// SAFETY: of a light and a heavy side, one comes first in the modification order of the light side's word, and the
// other one acquires it.
unsafe impl Barrier for Exchange {
    fn light(&self) {
        let (this, mut threads) = (thread::current().id(), self.threads.lock().unwrap());
        let word = threads.iter().position(|&thread| thread == this).unwrap_or_else(|| {
            threads.push(this);
            threads.len() - 1
        });
        drop(threads);
        self.words[word].fetch_add(1, Ordering::AcqRel);
    }

    fn ticket(&self) -> Ticket {
        for word in &*self.words {
            word.fetch_add(1, Ordering::AcqRel);
        }
        Ticket::passed()
    }
}

/// Runs a thread that reads with a hazard pointer, while this thread replaces the first object and frees it.
fn against_a_retirer<B: Barrier>(barrier: B, read: impl FnOnce(Hazard<B>, &Shared) + 'static) {
    let shared = Shared::new();
    let domain = Domain::new(barrier);
    let (hazard, mut retirer) = (domain.hazard(), domain.retirer());
    let reader = thread::spawn({
        let shared = shared.clone();
        move || read(hazard, &shared)
    });
    // SAFETY: the only pointer that led to the object has been replaced.
    unsafe { retirer.retire_with(shared.replace(), free) };
    retirer.flush();
    reader.join().unwrap();
}

fn hazard_model<B: Barrier>(barrier: fn() -> B) {
    loom::model(move || {
        against_a_retirer(barrier(), |mut hazard, shared| {
            // SAFETY: only this domain's retirer frees the object, after it was replaced.
            let guard = unsafe { hazard.protect(&shared.source) };
            assert_ne!(guard.map(|object| read(&object)), Some(FREED));
        });
    });
}

/// Reads while pinned, and returns the guard. If the caller forgets the guard, only dropping the handle ends the pin.
fn read_pinned<'h, B: Barrier>(reading: &'h Handle<B>, shared: &Shared) -> Guard<'h, B> {
    let guard = reading.pin();
    // SAFETY: only this collector frees the object, after it was replaced.
    let object = unsafe { guard.load(&shared.source) };
    assert_ne!(object.map(read), Some(FREED));
    guard
}

/// Spawns a thread that reads once, while pinned.
fn spawn_reader<B: Barrier>(reading: Handle<B>, shared: &Arc<Shared>) -> thread::JoinHandle<()> {
    let shared = shared.clone();
    thread::spawn(move || drop(read_pinned(&reading, &shared)))
}

/// A function that replaces the first object, and retires it.
type Retire<B> = fn(&Arc<Shared>, &Handle<B>);

fn by_a_function<B: Barrier>(shared: &Arc<Shared>, handle: &Handle<B>) {
    // SAFETY: the only pointer that led to the object has been replaced.
    unsafe { handle.retire_with(shared.replace(), free) };
}

fn by_a_closure<B: Barrier>(shared: &Arc<Shared>, handle: &Handle<B>) {
    shared.replace();
    let shared = shared.clone();
    // SAFETY: the only pointer that led to the object has been replaced.
    handle.pin().defer(move || unsafe { free(shared.object(0).cast()) });
}

/// Runs a thread that reads with a handle, while this thread replaces the first object and frees it two epochs later.
fn against_a_writer<B: Barrier>(barrier: B, retire: Retire<B>, read: impl FnOnce(Handle<B>, &Shared) + 'static) {
    let shared = Shared::new();
    let collector = Collector::new(barrier);
    let (reading, writing) = (collector.register(), collector.register());
    let reader = thread::spawn({
        let shared = shared.clone();
        move || read(reading, &shared)
    });
    retire(&shared, &writing);
    writing.collect();
    writing.collect();
    reader.join().unwrap();
}

fn epoch_model<B: Barrier>(barrier: fn() -> B, retire: Retire<B>) {
    loom::model(move || {
        against_a_writer(barrier(), retire, |reading, shared| drop(read_pinned(&reading, shared)));
    });
}

/// An advance also waits for a reader that registers while an epoch is ending.
#[test]
fn who_comes_late_is_waited_for() {
    bounded(|| {
        let shared = Shared::new();
        let collector = Collector::new(Exchange::new());
        let writing = collector.register();
        let reader = thread::spawn({
            let shared = shared.clone();
            move || {
                let reading = collector.register();
                drop(read_pinned(&reading, &shared));
            }
        });
        by_a_function(&shared, &writing);
        writing.collect();
        writing.collect();
        reader.join().unwrap();
    });
}

/// One thread takes out an object and labels it with the current epoch, another advances the epoch twice, and a third
/// reads. If the third thread is pinned in an epoch after the label, it must not find the object.
fn label_model<B: Barrier>(barrier: fn() -> B) {
    bounded(move || {
        let shared = Shared::new();
        let collector = Collector::new(barrier());
        let [reading, advancing, writing] = [(); 3].map(|()| collector.register());
        let reader = spawn_reader(reading, &shared);
        let advancer = thread::spawn(move || {
            advancing.collect();
            advancing.collect();
        });
        by_a_function(&shared, &writing);
        writing.collect();
        advancer.join().unwrap();
        reader.join().unwrap();
    });
}

#[test]
fn hazard_pointers_protect() {
    hazard_model(|| Fences);
    hazard_model(Exchange::new);
}

#[test]
#[should_panic]
fn hazard_pointers_without_a_barrier_do_not() {
    hazard_model(|| Missing);
}

#[test]
fn epochs_protect() {
    epoch_model(|| Fences, by_a_function);
    epoch_model(Exchange::new, by_a_function);
}

#[test]
#[should_panic]
fn epochs_without_a_barrier_do_not() {
    epoch_model(|| Missing, by_a_function);
}

#[test]
fn closures_wait_for_who_is_pinned() {
    epoch_model(|| Fences, by_a_closure);
}

#[test]
#[should_panic]
fn closures_without_a_barrier_do_not() {
    epoch_model(|| Missing, by_a_closure);
}

/// A published object. Loom detects a read of the object that is not ordered after its initial write.
struct Number(UnsafeCell<u32>);

// SAFETY: loom checks the accesses to the cell.
unsafe impl Sync for Number {}
// SAFETY: loom checks the accesses to the cell.
unsafe impl Send for Number {}

impl Number {
    fn new(value: u32) -> Self {
        let number = Self(UnsafeCell::new(0));
        // SAFETY: no other thread has the object.
        number.0.with_mut(|number| unsafe { *number = value });
        number
    }

    fn value(&self) -> u32 {
        read(&self.0)
    }

    fn plus_one(&self) -> Option<Self> {
        Some(Self::new(self.value() + 1))
    }
}

/// Runs two threads that each add one to the same number.
fn epoch_sum(add: fn(&epoch::Published<Number, Fences>, &Handle<Fences>)) {
    loom::model(move || {
        let collector = Collector::new(Fences);
        let number = Arc::new(epoch::Published::new(Number::new(1), &collector));
        let (one, other) = (collector.register(), collector.register());
        let adder = thread::spawn({
            let number = number.clone();
            move || add(&number, &one)
        });
        add(&number, &other);
        adder.join().unwrap();
        assert_eq!(number.load(&other.pin()).value(), 3);
    });
}

fn hazard_sum(add: fn(&hazard::Published<Number, Fences>, &mut Hazard<Fences>, &mut Retirer<Fences>)) {
    loom::model(move || {
        let domain = Domain::new(Fences);
        let number = Arc::new(hazard::Published::new(Number::new(1), &domain));
        let [(mut hazard, mut retirer), (mut mine, mut my_own)] = [(); 2].map(|()| (domain.hazard(), domain.retirer()));
        let adder = thread::spawn({
            let number = number.clone();
            move || add(&number, &mut hazard, &mut retirer)
        });
        add(&number, &mut mine, &mut my_own);
        adder.join().unwrap();
        assert_eq!(number.load(&mut mine).value(), 3);
    });
}

#[test]
fn no_update_is_lost() {
    epoch_sum(|number, handle| assert!(number.update(handle, Number::plus_one)));
    hazard_sum(|number, hazard, retirer| assert!(number.update(hazard, retirer, Number::plus_one)));
}

#[test]
#[should_panic(expected = "right: 3")]
fn reading_and_replacing_loses_some_with_epochs() {
    epoch_sum(|number, handle| {
        let sum = number.load(&handle.pin()).plus_one();
        number.replace(sum.unwrap(), handle);
    });
}

#[test]
#[should_panic(expected = "right: 3")]
fn reading_and_replacing_loses_some_with_hazard_pointers() {
    hazard_sum(|number, hazard, retirer| {
        let sum = number.load(hazard).plus_one();
        number.replace(sum.unwrap(), retirer);
    });
}

#[test]
fn a_label_is_no_older_than_what_it_is_put_on() {
    label_model(|| Fences);
    label_model(Exchange::new);
}

/// A forgotten guard keeps its object in the slot until the next protection. The reads before this protection must
/// happen before the object is freed.
#[test]
fn what_was_read_comes_before_the_next_in_its_slot() {
    loom::model(|| {
        against_a_retirer(Exchange::new(), |mut hazard, shared| {
            for _ in 0..2 {
                // SAFETY: only this domain's retirer frees the object, after it was replaced.
                let guard = unsafe { hazard.protect(&shared.source) }.expect("it is never null");
                assert_ne!(read(&guard), FREED);
                std::mem::forget(guard);
            }
            std::mem::forget(hazard);
        });
    });
}

/// An object is taken out of the shared data after the heavy side of the barrier in the current epoch is complete. A
/// reader that is pinned in the next epoch must not find the object. Only the acquire and release operations on the
/// epoch ensure that.
#[test]
fn with_an_epoch_comes_what_was_taken_out_before_it() {
    loom::model(|| {
        let shared = Shared::new();
        let collector = Collector::new(Exchange::new());
        let [reading, writing, pinned] = [(); 3].map(|()| collector.register());
        let guard = pinned.pin();
        writing.collect();
        // After this, the next heavy side is complete, and the epoch waits only for the guard.
        writing.collect();
        assert_eq!(collector.epoch(), 1);
        let reader = spawn_reader(reading, &shared);
        by_a_function(&shared, &writing);
        drop(guard);
        writing.collect();
        writing.collect();
        reader.join().unwrap();
    });
}

/// A reader is pinned twice. The writer may see only the second pin, which is in the present epoch. Even then, the
/// reads during the first pin must happen before objects are freed.
#[test]
fn what_was_read_comes_before_being_pinned_anew() {
    bounded(|| {
        against_a_writer(Exchange::new(), by_a_function, |reading, shared| {
            (0..2).for_each(|_| drop(read_pinned(&reading, shared)));
        });
    });
}

/// The protection of a forgotten guard ends with the handle. The reads must happen before objects are freed.
#[test]
fn what_was_read_comes_before_the_end_of_a_handle() {
    loom::model(|| {
        against_a_writer(Exchange::new(), by_a_function, |reading, shared| {
            std::mem::forget(read_pinned(&reading, shared));
        });
    });
}

/// One reader releases a record, and a second reader takes it. The writer may see only the second reader's pin, which
/// is in the present epoch. Even then, the first reader's reads must happen before objects are freed.
#[test]
fn what_was_read_comes_before_the_next_in_its_place() {
    loom::model(|| {
        let shared = Shared::new();
        let collector = Collector::new(Exchange::new());
        let (reading, writing) = (collector.register(), collector.register());
        let reader = spawn_reader(reading, &shared);
        by_a_function(&shared, &writing);
        // The object gets its label before the second reader takes the record. So the ordering of the label cannot
        // stand in for the acquire with which the record is taken.
        writing.collect();
        let next = collector.register();
        let guard = next.pin();
        writing.collect();
        drop(guard);
        reader.join().unwrap();
    });
}

/// The guard is converted back into its hazard pointer, which no longer protects the object. The reads must happen
/// before the object is freed.
#[test]
fn what_was_read_comes_before_the_end_of_an_owned_guard() {
    loom::model(|| {
        against_a_retirer(Exchange::new(), |hazard, shared| {
            // SAFETY: only this domain's retirer frees the object, after it was replaced.
            let guard = unsafe { hazard.protect_owned(&shared.source) }.expect("it is never null");
            assert_ne!(read(&guard), FREED);
            std::mem::forget(guard.into_hazard());
        });
    });
}

/// One thread writes an object and leaves it to the domain, and another thread frees it.
#[test]
fn what_is_left_behind_comes_with_what_was_written() {
    loom::model(|| {
        let shared = Shared::new();
        let domain = Domain::new(Exchange::new());
        let (mut leaving, mut freeing) = (domain.retirer(), domain.retirer());
        let leaver = thread::spawn({
            let shared = shared.clone();
            move || {
                let object = shared.replace();
                // SAFETY: no pointer leads to the object any more, and no other thread has it.
                unsafe { (*object.cast::<Object>()).with_mut(|value| *value = 7) };
                // SAFETY: the only pointer that led to the object has been replaced.
                unsafe { leaving.retire_with(object, free) };
            }
        });
        // The yield makes loom begin with the executions in which the other thread is first. Without it, loom does not
        // find all of these.
        thread::yield_now();
        freeing.flush();
        leaver.join().unwrap();
    });
}

/// An object that is written when it is created, and when it is freed.
struct Written(Object);

// SAFETY: loom checks the accesses to the cell.
unsafe impl Sync for Written {}

impl Written {
    fn new(value: u32) -> Self {
        let object = UnsafeCell::new(FREED);
        // SAFETY: no other thread has the object.
        object.with_mut(|now| unsafe { *now = value });
        Self(object)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        // SAFETY: the destructor has exclusive access. Loom checks that no thread reads the object meanwhile.
        self.0.with_mut(|value| unsafe { *value = FREED });
    }
}

#[test]
fn what_is_published_is_read_as_it_was_written() {
    loom::model(|| {
        let domain = Domain::new(Exchange::new());
        let published = Arc::new(hazard::Published::new(Written::new(1), &domain));
        let (mut hazard, mut retirer) = (domain.hazard(), domain.retirer());
        let reader = thread::spawn({
            let published = published.clone();
            move || assert_ne!(read(&published.load(&mut hazard).0), FREED)
        });
        published.replace(Written::new(2), &mut retirer);
        reader.join().unwrap();
    });
    loom::model(|| {
        let collector = Collector::new(Exchange::new());
        let published = Arc::new(epoch::Published::new(Written::new(1), &collector));
        let (reading, writing) = (collector.register(), collector.register());
        let reader = thread::spawn({
            let published = published.clone();
            move || assert_ne!(read(&published.load(&reading.pin()).0), FREED)
        });
        published.replace(Written::new(2), &writing);
        reader.join().unwrap();
    });
}

/// Two threads replace the object one after the other: the second one frees the object that the first one wrote.
#[test]
fn what_another_published_is_freed_after_it_was_written() {
    loom::model(|| {
        let domain = Domain::new(Exchange::new());
        let published = Arc::new(hazard::Published::new(Written::new(1), &domain));
        let (mut one, mut other) = (domain.retirer(), domain.retirer());
        let first = thread::spawn({
            let published = published.clone();
            move || {
                published.replace(Written::new(2), &mut one);
                one
            }
        });
        published.replace(Written::new(3), &mut other);
        other.flush();
        drop(first.join().unwrap());
    });
}
