//! Hazard pointers and epochs with fences, on every execution that the language's memory model allows.

use std::sync::{Arc, Mutex};

use ascertain_sync::barrier::{Barrier, Fences, Ticket};
use ascertain_sync::epoch::{self, Collector, Guard, Handle};
use ascertain_sync::hazard::{self, Domain, Hazard, Retirer};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use loom::thread::{self, ThreadId};

use super::bounded;
use super::missing::Missing;

/// Freeing it writes to it, which loom finds not to come after a read. Its memory stays for that.
type Object = UnsafeCell<u32>;

const FREED: u32 = 0;

/// # Safety
/// An object, which lives as long as the execution.
unsafe fn free(object: *mut ()) {
    // SAFETY: by the contract, and that nobody reads it meanwhile is what loom checks.
    unsafe { (*object.cast::<Object>()).with_mut(|value| *value = FREED) };
}

fn read(object: &Object) -> u32 {
    // SAFETY: that nobody writes to it meanwhile is what loom checks.
    object.with(|value| unsafe { *value })
}

/// Two objects that live as long as the execution, and a pointer to the first.
struct Shared {
    objects: [Object; 2],
    source: AtomicPtr<Object>,
}

// SAFETY: loom checks who uses the cells when.
unsafe impl Sync for Shared {}
// SAFETY: as above.
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

    /// Writes the second, and puts it in the first's place.
    fn replace(&self) -> *mut () {
        // SAFETY: nothing leads to it yet.
        self.objects[1].with_mut(|value| unsafe { *value = 3 });
        self.source.swap(self.object(1), Ordering::AcqRel).cast()
    }
}

/// What a barrier promises and nothing else, as with light sides that are nothing: on machines with fewer orders than
/// x86 too. Each thread that takes light sides has a word; of one of them and a heavy side, that which comes second on
/// the word has seen what the other's thread did before. Light sides of different threads order nothing among
/// themselves. A fence would make up for an ordering that is missing elsewhere.
#[derive(Clone)]
struct Exchange {
    words: Arc<[AtomicU32; 3]>,
    /// Whose they are.
    threads: Arc<Mutex<Vec<ThreadId>>>,
}

impl Exchange {
    fn new() -> Self {
        Self { words: Arc::default(), threads: Arc::default() }
    }
}

// SAFETY: of a light and a heavy side one comes first in the modification order of the light side's word, and the other
// acquires it.
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

/// A thread reads with a hazard pointer, while the first object is replaced here and freed.
fn against_a_retirer<B: Barrier>(barrier: B, read: impl FnOnce(Hazard<B>, &Shared) + 'static) {
    let shared = Shared::new();
    let domain = Domain::new(barrier);
    let (hazard, mut retirer) = (domain.hazard(), domain.retirer());
    let reader = thread::spawn({
        let shared = shared.clone();
        move || read(hazard, &shared)
    });
    // SAFETY: it was taken out of the only place that leads to it.
    unsafe { retirer.retire_with(shared.replace(), free) };
    retirer.flush();
    reader.join().unwrap();
}

fn hazard_model<B: Barrier>(barrier: fn() -> B) {
    loom::model(move || {
        against_a_retirer(barrier(), |mut hazard, shared| {
            // SAFETY: what it leads to is freed by this domain's retirer alone, after it was replaced.
            let guard = unsafe { hazard.protect(&shared.source) };
            assert_ne!(guard.map(|object| read(&object)), Some(FREED));
        });
    });
}

/// Reads while it is pinned. Forgetting the guard, which is returned, leaves its end to the handle.
fn read_pinned<'h, B: Barrier>(reading: &'h Handle<B>, shared: &Shared) -> Guard<'h, B> {
    let guard = reading.pin();
    // SAFETY: what it leads to is freed by this collector alone, after it was replaced.
    let object = unsafe { guard.load(&shared.source) };
    assert_ne!(object.map(read), Some(FREED));
    guard
}

/// Reads once, pinned.
fn spawn_reader<B: Barrier>(reading: Handle<B>, shared: &Arc<Shared>) -> thread::JoinHandle<()> {
    let shared = shared.clone();
    thread::spawn(move || drop(read_pinned(&reading, &shared)))
}

/// Replaces the first object, and has it freed.
type Retire<B> = fn(&Arc<Shared>, &Handle<B>);

fn by_a_function<B: Barrier>(shared: &Arc<Shared>, handle: &Handle<B>) {
    // SAFETY: it was taken out of the only place that leads to it.
    unsafe { handle.retire_with(shared.replace(), free) };
}

fn by_a_closure<B: Barrier>(shared: &Arc<Shared>, handle: &Handle<B>) {
    shared.replace();
    let shared = shared.clone();
    // SAFETY: as above.
    handle.pin().defer(move || unsafe { free(shared.object(0).cast()) });
}

/// A thread reads with a handle, while the first object is replaced here, and freed two epochs later.
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

/// A reader that registers while an epoch is being left is waited for like those who were there before.
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

/// One labels, another goes two epochs on, a third reads: who is pinned after that finds the object no more.
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

/// A published object of which loom finds out when it is read without having been written before.
struct Number(UnsafeCell<u32>);

// SAFETY: loom checks who uses the cell when.
unsafe impl Sync for Number {}
// SAFETY: as above.
unsafe impl Send for Number {}

impl Number {
    fn new(value: u32) -> Self {
        let number = Self(UnsafeCell::new(0));
        // SAFETY: nobody else has it.
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

/// Two that each add one to the same number.
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

/// A guard is forgotten: what its hazard pointer protects next lets go of the object.
#[test]
fn what_was_read_comes_before_the_next_in_its_slot() {
    loom::model(|| {
        against_a_retirer(Exchange::new(), |mut hazard, shared| {
            for _ in 0..2 {
                // SAFETY: what it leads to is freed by this domain's retirer alone, after it was replaced.
                let guard = unsafe { hazard.protect(&shared.source) }.expect("it is never null");
                assert_ne!(read(&guard), FREED);
                std::mem::forget(guard);
            }
            std::mem::forget(hazard);
        });
    });
}

/// An object that is taken out in an epoch whose heavy side is over: who is pinned in the next finds it no more, which
/// only the epoch tells.
#[test]
fn with_an_epoch_comes_what_was_taken_out_before_it() {
    loom::model(|| {
        let shared = Shared::new();
        let collector = Collector::new(Exchange::new());
        let [reading, writing, pinned] = [(); 3].map(|()| collector.register());
        let guard = pinned.pin();
        writing.collect();
        // The next heavy side is over, and the epoch waits for the guard.
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

/// A reader that is pinned again and again: that it is pinned in the present epoch tells that it has read what it read
/// before.
#[test]
fn what_was_read_comes_before_being_pinned_anew() {
    bounded(|| {
        against_a_writer(Exchange::new(), by_a_function, |reading, shared| {
            (0..2).for_each(|_| drop(read_pinned(&reading, shared)));
        });
    });
}

/// A guard is forgotten: its end is that of the handle.
#[test]
fn what_was_read_comes_before_the_end_of_a_handle() {
    loom::model(|| {
        against_a_writer(Exchange::new(), by_a_function, |reading, shared| {
            std::mem::forget(read_pinned(&reading, shared));
        });
    });
}

/// A place that one reader gives back and another takes: that the second is pinned in the present epoch tells that the
/// first has read.
#[test]
fn what_was_read_comes_before_the_next_in_its_place() {
    loom::model(|| {
        let shared = Shared::new();
        let collector = Collector::new(Exchange::new());
        let (reading, writing) = (collector.register(), collector.register());
        let reader = spawn_reader(reading, &shared);
        by_a_function(&shared, &writing);
        // The label's fence comes before the place is taken: it would acquire what taking it does not.
        writing.collect();
        let next = collector.register();
        let guard = next.pin();
        writing.collect();
        drop(guard);
        reader.join().unwrap();
    });
}

/// A guard with its hazard pointer lets go of the object, and the hazard pointer stays.
#[test]
fn what_was_read_comes_before_the_end_of_an_owned_guard() {
    loom::model(|| {
        against_a_retirer(Exchange::new(), |hazard, shared| {
            // SAFETY: what it leads to is freed by this domain's retirer alone, after it was replaced.
            let guard = unsafe { hazard.protect_owned(&shared.source) }.expect("it is never null");
            assert_ne!(read(&guard), FREED);
            std::mem::forget(guard.into_hazard());
        });
    });
}

/// One thread writes an object and leaves it behind, another frees it.
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
                // SAFETY: nothing leads to it any more, and nobody else has it.
                unsafe { (*object.cast::<Object>()).with_mut(|value| *value = 7) };
                // SAFETY: it was taken out of the only place that leads to it.
                unsafe { leaving.retire_with(object, free) };
            }
        });
        // Loom begins with the executions in which the other is first, and does not find them all by itself.
        thread::yield_now();
        freeing.flush();
        leaver.join().unwrap();
    });
}

/// An object that is written when it is made, and when it is freed.
struct Written(Object);

// SAFETY: loom checks who uses the cell when.
unsafe impl Sync for Written {}

impl Written {
    fn new(value: u32) -> Self {
        let object = UnsafeCell::new(FREED);
        // SAFETY: nobody else has it.
        object.with_mut(|now| unsafe { *now = value });
        Self(object)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        // SAFETY: as of `free`.
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

/// Two replace it one after the other: the second frees what the first wrote.
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
