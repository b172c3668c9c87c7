//! Hazard pointers and epochs with fences, in every execution that Rust's memory model allows:
//! `RUSTFLAGS='--cfg model="loom"' cargo test --release -p ascertain-sync --test reclamation_loom`.
#![cfg(model = "loom")]
#![allow(missing_docs)]

#[path = "reclaimed/missing.rs"]
mod missing;

use std::sync::Arc;

use ascertain_sync::barrier::{Barrier, Fences};
use ascertain_sync::epoch::{Collector, Handle};
use ascertain_sync::hazard::Domain;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicPtr, Ordering};
use loom::thread;

use missing::Missing;

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

    /// Puts the second in the first's place.
    fn replace(&self) -> *mut () {
        self.source.swap(self.object(1), Ordering::AcqRel).cast()
    }
}

fn hazard_model(barrier: impl Barrier) {
    loom::model(move || {
        let shared = Shared::new();
        let domain = Domain::new(barrier.clone());
        let (mut hazard, mut retirer) = (domain.hazard(), domain.retirer());
        let reader = thread::spawn({
            let shared = shared.clone();
            move || {
                // SAFETY: what it leads to is freed by this domain's retirer alone, after it was replaced.
                let guard = unsafe { hazard.protect(&shared.source) };
                assert_ne!(guard.map(|object| read(&object)), Some(FREED));
            }
        });
        // SAFETY: it was taken out of the only place that leads to it.
        unsafe { retirer.retire_with(shared.replace(), free) };
        retirer.flush();
        reader.join().unwrap();
    });
}

/// Reads once, pinned.
fn spawn_reader<B: Barrier>(reading: Handle<B>, shared: &Arc<Shared>) -> thread::JoinHandle<()> {
    let shared = shared.clone();
    thread::spawn(move || {
        let guard = reading.pin();
        // SAFETY: what it leads to is freed by this collector alone, after it was replaced.
        let object = unsafe { guard.load(&shared.source) };
        assert_ne!(object.map(read), Some(FREED));
    })
}

fn epoch_model(barrier: impl Barrier) {
    loom::model(move || {
        let shared = Shared::new();
        let collector = Collector::new(barrier.clone());
        let (reading, writing) = (collector.register(), collector.register());
        let reader = spawn_reader(reading, &shared);
        // SAFETY: it was taken out of the only place that leads to it.
        unsafe { writing.retire_with(shared.replace(), free) };
        writing.collect();
        writing.collect();
        reader.join().unwrap();
    });
}

/// One labels, another goes two epochs on, a third reads: who is pinned after that finds the object no more.
fn label_model(barrier: impl Barrier) {
    let mut builder = loom::model::Builder::new();
    // Of all there are too many.
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let shared = Shared::new();
        let collector = Collector::new(barrier.clone());
        let [reading, advancing, writing] = [(); 3].map(|()| collector.register());
        let reader = spawn_reader(reading, &shared);
        let advancer = thread::spawn(move || {
            advancing.collect();
            advancing.collect();
        });
        // SAFETY: as in `epoch_model`.
        unsafe { writing.retire_with(shared.replace(), free) };
        writing.collect();
        advancer.join().unwrap();
        reader.join().unwrap();
    });
}

#[test]
fn hazard_pointers_protect() {
    hazard_model(Fences);
}

#[test]
#[should_panic]
fn hazard_pointers_without_a_barrier_do_not() {
    hazard_model(Missing);
}

#[test]
fn epochs_protect() {
    epoch_model(Fences);
}

#[test]
#[should_panic]
fn epochs_without_a_barrier_do_not() {
    epoch_model(Missing);
}

#[test]
fn a_label_is_no_older_than_what_it_is_put_on() {
    label_model(Fences);
}
