//! Tests that protected objects are not freed. A writer poisons each object that it frees, and no reader may find
//! poison.
//!
//! Each run makes some millions of reads. Controls without a barrier must find poison. To make 10⁹ reads for each
//! scheme, run `cargo test --release -p ascertain-sync --test all reclamation_stress -- --ignored --nocapture`.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::thread;

use ascertain_sync::barrier::{Barrier, Expedited, Fences};
use ascertain_sync::epoch::Collector;
use ascertain_sync::hazard::Domain;

use ascertain_sys::testing::{left_out, or_left_out};

use crate::common::machine::whole_machine;
use crate::common::missing::Missing;
use crate::common::store_buffers::must_show;

const ALIVE: u64 = 0x1111_1111_1111_1111;
const POISON: u64 = 0xdead_dead_dead_dead;
/// Number of objects. It is so large that a freed object stays poisoned for a long time.
const OBJECTS: usize = 4_096;
const READS: u64 = if cfg!(miri) { 500 } else { 1_000_000 };

/// An object. Its memory is never released, so a thread that reads a freed object finds poison.
#[repr(align(64))]
struct Object(AtomicU64);

/// # Safety
/// The object is in an arena that still exists.
unsafe fn poison(object: *mut ()) {
    // SAFETY: the caller ensures that the arena of the object still exists.
    unsafe { &*object.cast::<Object>() }.0.store(POISON, Ordering::Relaxed);
}

struct Arena {
    objects: Vec<Object>,
    source: AtomicPtr<Object>,
    /// `true` once the writer has replaced the first object.
    is_begun: AtomicBool,
    is_over: AtomicBool,
}

/// The counts of one run.
#[derive(Debug)]
struct Outcome {
    poisoned: u64,
    replaced: u64,
}

impl Arena {
    fn new() -> Self {
        let objects: Vec<_> = (0..OBJECTS).map(|_| Object(AtomicU64::new(POISON))).collect();
        objects[0].0.store(ALIVE, Ordering::Relaxed);
        let first = (&raw const objects[0]).cast_mut();
        let [is_begun, is_over] = [const { AtomicBool::new(false) }; 2];
        Self { objects, source: AtomicPtr::new(first), is_begun, is_over }
    }

    /// Replaces the object repeatedly, until the readers have ended. If there is no free object, calls `retire` with
    /// `None`, which frees as many objects as possible.
    fn replace(&self, mut retire: impl FnMut(Option<*mut ()>)) -> u64 {
        let mut replaced = 0;
        for object in self.objects.iter().cycle().skip(1) {
            if self.is_over.load(Ordering::Relaxed) {
                break;
            }
            if object.0.load(Ordering::Relaxed) != POISON {
                retire(None);
                continue;
            }
            object.0.store(ALIVE, Ordering::Relaxed);
            let old = self.source.swap((&raw const *object).cast_mut(), Ordering::AcqRel);
            retire(Some(old.cast()));
            replaced += 1;
            self.is_begun.store(true, Ordering::Relaxed);
        }
        replaced
    }

    /// Runs readers against a writer: `reader` creates the read function of a reader, and `writer` creates the retiring
    /// function.
    fn run<R, W>(
        &self,
        readers: u64,
        reads: u64,
        reader: impl Fn() -> R + Sync,
        writer: impl FnOnce() -> W + Send,
    ) -> Outcome
    where
        R: FnMut(&AtomicPtr<Object>, Delay) -> u64,
        W: FnMut(Option<*mut ()>),
    {
        let read = || {
            let mut read = reader();
            let mut cold = Cold::new();
            let mut poisoned = 0;
            // The readers continue until the writer has begun, which may not get a CPU at once.
            let is_reading = |nth: &u64| *nth < reads / readers || !self.is_begun.load(Ordering::Relaxed);
            for nth in (0..).take_while(is_reading) {
                let delay = Delay(nth % 64 == 0);
                if delay.0 {
                    cold.store();
                }
                poisoned += u64::from(read(&self.source, delay) != ALIVE);
            }
            poisoned
        };
        thread::scope(|scope| {
            let readers: Vec<_> = (0..readers).map(|_| scope.spawn(read)).collect();
            let writing = scope.spawn(|| self.replace(writer()));
            let poisoned = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
            self.is_over.store(true, Ordering::Relaxed);
            Outcome { poisoned, replaced: writing.join().unwrap() }
        })
    }
}

/// Memory that is in no cache. Stores to this memory are slow, so a later store has to wait in the store buffer.
struct Cold {
    memory: Vec<u8>,
    at: usize,
}

impl Cold {
    fn new() -> Self {
        Self { memory: vec![0; if cfg!(miri) { 4_096 } else { 1 << 26 }], at: 0 }
    }

    fn store(&mut self) {
        for _ in 0..40 {
            self.at = (self.at + 4_160) % self.memory.len();
            self.memory[self.at] = 1;
        }
        black_box(&mut self.memory);
    }
}

/// The delay of a read: `true` if the object is read some time after it was protected.
#[derive(Clone, Copy)]
struct Delay(bool);

impl Delay {
    #[inline(always)]
    fn read(self, object: &Object) -> u64 {
        // The product is zero. But the processor knows that only after all multiplications, and cannot read the object
        // before.
        let mut nothing = 0;
        if self.0 {
            nothing = black_box(nothing);
            for _ in 0..150 {
                nothing *= black_box(3);
            }
        }
        // SAFETY: `nothing` is zero, so the address is that of the object.
        unsafe { (*(&raw const *object).byte_add(nothing)).0.load(Ordering::Relaxed) }
    }
}

fn hazard_pointers<B: Barrier>(barrier: B, readers: u64, reads: u64) -> Outcome {
    let arena = Arena::new();
    let domain = Domain::new(barrier);
    let reader = || {
        let mut hazard = domain.hazard();
        move |source: &AtomicPtr<Object>, delay: Delay| {
            // SAFETY: the arena outlives the readers, and only this domain frees the objects that are taken out of the
            // source.
            let guard = unsafe { hazard.protect(source) };
            guard.map_or(0, |object| delay.read(&object))
        }
    };
    let writer = || {
        let mut retirer = domain.retirer();
        let mut retired = 0_u64;
        move |object: Option<*mut ()>| {
            if let Some(object) = object {
                // SAFETY: the only pointer that led to the object has been replaced.
                unsafe { retirer.retire_with(object, poison) };
            }
            retired += 1;
            // Half of the objects are freed at once, so that the time between retiring and freeing is as short as
            // possible.
            if retired.is_multiple_of(2) {
                retirer.flush();
            }
        }
    };
    arena.run(readers, reads, reader, writer)
}

fn epochs<B: Barrier>(barrier: B, readers: u64, reads: u64) -> Outcome {
    let arena = Arena::new();
    let collector = Collector::new(barrier);
    let reader = || {
        let handle = collector.register();
        move |source: &AtomicPtr<Object>, delay: Delay| {
            let guard = handle.pin();
            // SAFETY: the arena outlives the readers, and only this collector frees the objects that are taken out of
            // the source.
            let object = unsafe { guard.load(source) };
            object.map_or(0, |object| delay.read(object))
        }
    };
    let writer = || {
        let handle = collector.register();
        move |object: Option<*mut ()>| {
            if let Some(object) = object {
                // SAFETY: the only pointer that led to the object has been replaced.
                unsafe { handle.retire_with(object, poison) };
            }
            handle.flush();
        }
    };
    arena.run(readers, reads, reader, writer)
}

fn assert_right(outcome: &Outcome) {
    assert!(outcome.poisoned == 0 && outcome.replaced > 0, "{outcome:?}");
}

#[test]
fn hazard_pointers_with_fences() {
    assert_right(&hazard_pointers(Fences, 2, READS));
}

#[test]
fn epochs_with_fences() {
    assert_right(&epochs(Fences, 2, READS));
}

#[test]
#[cfg_attr(miri, ignore = "no system calls")]
fn hazard_pointers_with_membarrier() {
    if let Some(barrier) = or_left_out(Expedited::new()) {
        assert_right(&hazard_pointers(barrier, 2, READS));
    }
}

#[test]
#[cfg_attr(miri, ignore = "no system calls")]
fn epochs_with_membarrier() {
    if let Some(barrier) = or_left_out(Expedited::new()) {
        assert_right(&epochs(barrier, 2, READS));
    }
}

const MANY: u64 = 1_000_000_000;

#[test]
#[ignore = "10⁹ reads"]
fn hazard_pointers_for_long() {
    let outcome = Expedited::new().map(|barrier| hazard_pointers(barrier, 2, MANY)).unwrap();
    println!("{outcome:?}");
    assert_right(&outcome);
}

#[test]
#[ignore = "10⁹ reads"]
fn epochs_for_long() {
    let outcome = Expedited::new().map(|barrier| epochs(barrier, 2, MANY)).unwrap();
    println!("{outcome:?}");
    assert_right(&outcome);
}

/// Asserts that a control fails: without a barrier some read finds poison. On two busy CPUs this took 1 to 35 runs.
fn assert_wrong(outcome: impl Fn() -> Outcome) {
    if !cfg!(target_arch = "x86_64") {
        return left_out("other architectures, such as aarch64, may keep a release store and an acquire load in order");
    }
    if cfg!(model = "portable") {
        return left_out("ThreadSanitizer takes a lock for each store, which empties the store buffer");
    }
    let _machine = whole_machine();
    must_show(1_000, || outcome().poisoned > 0);
}

#[test]
#[cfg_attr(miri, ignore = "no store buffers")]
fn hazard_pointers_without_a_barrier_fail() {
    assert_wrong(|| hazard_pointers(Missing, 1, READS));
}

#[test]
#[cfg_attr(miri, ignore = "no store buffers")]
fn epochs_without_a_barrier_fail() {
    assert_wrong(|| epochs(Missing, 1, READS));
}
