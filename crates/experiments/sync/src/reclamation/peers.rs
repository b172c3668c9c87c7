//! The methods of other crates. With `crossbeam-epoch` and `seize`, only `unsafe` code can read an object through its
//! pointer. For these two crates, the objects are therefore in an array, and the address in the pointer gives the
//! object's index.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use haphazard::HazardPointer;
use seize::Guard;

use super::contestants::{Object, ObjectCounter, Read, Readers, Reclaimer};

/// Reads with one hazard pointer of the crate `haphazard`.
pub fn haphazard(ring: &[usize]) -> impl Readers + use<> {
    let (counter, mut hazard) = (ObjectCounter::default(), HazardPointer::new());
    let objects = ring.iter().map(|&next| haphazard::AtomicPtr::from(Box::new(counter.object(next))));
    Read::new(objects, move |object: &mut haphazard::AtomicPtr<Object>| next(object.safe_load(&mut hazard)))
}

/// Returns the index that an object holds. The pointer is never null.
fn next(object: Option<&Object>) -> usize {
    object.map_or(usize::MAX, |object| object.next)
}

/// Returns the objects as an array.
fn objects(ring: &[usize], counter: &ObjectCounter) -> Vec<Object> {
    ring.iter().map(|&next| counter.object(next)).collect()
}

/// Returns the index that an object in the array holds. `pointer` points to the object.
fn next_at(objects: &[Object], pointer: *const Object) -> usize {
    next(objects.get(pointer.addr().wrapping_sub(objects.as_ptr().addr()) / size_of::<Object>()))
}

pub struct CrossbeamEpoch<P> {
    objects: Vec<Object>,
    pointers: Vec<crossbeam_epoch::Atomic<Object>>,
    pin: P,
    another: crossbeam_epoch::LocalHandle,
    stalled: Option<crossbeam_epoch::Guard>,
    counter: ObjectCounter,
}

/// Reads objects with the crate `crossbeam-epoch`. A handle of a separate collector pins the thread.
pub fn crossbeam_epoch_by_handle(ring: &[usize]) -> CrossbeamEpoch<impl Fn() -> crossbeam_epoch::Guard + use<>> {
    let collector = crossbeam_epoch::Collector::new();
    let handle = collector.register();
    CrossbeamEpoch::new(ring, move || handle.pin(), collector.register())
}

/// Reads objects with the crate `crossbeam-epoch`. The thread is pinned in the default collector.
pub fn crossbeam_epoch_by_default(ring: &[usize]) -> CrossbeamEpoch<impl Fn() -> crossbeam_epoch::Guard + use<>> {
    CrossbeamEpoch::new(ring, crossbeam_epoch::pin, crossbeam_epoch::default_collector().register())
}

impl<P: Fn() -> crossbeam_epoch::Guard> CrossbeamEpoch<P> {
    fn new(ring: &[usize], pin: P, another: crossbeam_epoch::LocalHandle) -> Self {
        let counter = ObjectCounter::default();
        let objects = objects(ring, &counter);
        let pointers = objects.iter().map(|object| crossbeam_epoch::Atomic::from(&raw const *object)).collect();
        Self { objects, pointers, pin, another, stalled: None, counter }
    }
}

impl<P: Fn() -> crossbeam_epoch::Guard> Readers for CrossbeamEpoch<P> {
    fn read_all(&mut self) -> usize {
        let Self { objects, pointers, pin, .. } = self;
        let read = |pointer: &crossbeam_epoch::Atomic<Object>| {
            let guard = pin();
            next_at(objects, pointer.load(Ordering::Acquire, &guard).as_raw())
        };
        pointers.iter().map(read).sum()
    }

    fn reclaimer(&mut self) -> Option<&mut dyn Reclaimer> {
        Some(self)
    }
}

impl<P: Fn() -> crossbeam_epoch::Guard> Reclaimer for CrossbeamEpoch<P> {
    fn stall(&mut self) {
        self.stalled = Some(self.another.pin());
    }

    fn resume(&mut self) {
        self.stalled = None;
    }

    /// Defers the drop of a new object that is never read. The new object waits as long as a replaced object would.
    fn replace(&mut self) {
        self.defer();
    }

    /// Stores the same pointer again. Defers the drop of a new object in place of the old one, because only `unsafe`
    /// code could take the old object.
    fn update(&mut self) {
        let guard = (self.pin)();
        let pointer = &self.pointers[0];
        let mut current = pointer.load(Ordering::Acquire, &guard);
        loop {
            let next = next_at(&self.objects, current.as_raw());
            let object = Box::new(self.counter.object(next));
            match pointer.compare_exchange(current, current, Ordering::Release, Ordering::Acquire, &guard) {
                Ok(_) => {
                    guard.defer(move || drop(object));
                    break;
                }
                Err(changed) => current = changed.current,
            }
        }
    }

    fn defer(&mut self) -> bool {
        let object = Box::new(self.counter.object(0));
        (self.pin)().defer(move || drop(object));
        true
    }

    fn hasten(&mut self) {
        // Each call advances by one epoch at most, and an object needs two epochs. A call also frees at most eight bags
        // of objects.
        for _ in 0..1_000 {
            if self.waiting() == 0 {
                break;
            }
            (self.pin)().flush();
        }
    }

    fn waiting(&self) -> usize {
        self.counter.count() - self.objects.len()
    }
}

pub struct Seize {
    objects: Vec<Object>,
    pointers: Vec<AtomicPtr<Object>>,
    collector: seize::Collector,
}

impl Seize {
    pub fn new(ring: &[usize]) -> Self {
        let mut objects = objects(ring, &ObjectCounter::default());
        let pointers = objects.iter_mut().map(|object| AtomicPtr::new(&raw mut *object)).collect();
        Self { objects, pointers, collector: seize::Collector::new() }
    }
}

impl Readers for Seize {
    fn read_all(&mut self) -> usize {
        let Self { objects, pointers, collector } = self;
        let read = |pointer: &AtomicPtr<Object>| {
            let guard = collector.enter();
            next_at(objects, guard.protect(pointer, Ordering::Acquire))
        };
        pointers.iter().map(read).sum()
    }
}

pub fn arcs(ring: &[usize]) -> impl Readers + use<> {
    let counter = ObjectCounter::default();
    let objects = ring.iter().map(|&next| Arc::new(counter.object(next)));
    Read::new(objects, |object: &mut Arc<Object>| Arc::clone(object).next)
}

pub fn rw_locks(ring: &[usize]) -> impl Readers + use<> {
    let counter = ObjectCounter::default();
    let objects = ring.iter().map(|&next| RwLock::new(counter.object(next)));
    Read::new(objects, |object: &mut RwLock<Object>| object.read().unwrap_or_else(PoisonError::into_inner).next)
}
