//! Others' ways. Where only `unsafe` code may read an object by its pointer, as with two of them, its address says
//! which it is of those in a row.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use haphazard::HazardPointer;
use seize::Guard;

use super::contestants::{Dropped, Object, Read, Readers, Reclaimer};

/// By one hazard pointer.
pub fn haphazard(ring: &[usize]) -> impl Readers + use<> {
    let (dropped, mut hazard) = (Dropped::default(), HazardPointer::new());
    let objects = ring.iter().map(|&next| haphazard::AtomicPtr::from(Box::new(dropped.object(next))));
    Read::new(objects, move |object: &mut haphazard::AtomicPtr<Object>| next(object.safe_load(&mut hazard)))
}

/// What a pointer that is never null leads to.
fn next(object: Option<&Object>) -> usize {
    object.map_or(usize::MAX, |object| object.next)
}

/// In a row.
fn objects(ring: &[usize], dropped: &Dropped) -> Vec<Object> {
    ring.iter().map(|&next| dropped.object(next)).collect()
}

/// What a pointer to one of them leads to.
fn next_at(objects: &[Object], pointer: *const Object) -> usize {
    next(objects.get(pointer.addr().wrapping_sub(objects.as_ptr().addr()) / size_of::<Object>()))
}

pub struct CrossbeamEpoch<P> {
    objects: Vec<Object>,
    pointers: Vec<crossbeam_epoch::Atomic<Object>>,
    pin: P,
    another: crossbeam_epoch::LocalHandle,
    stalled: Option<crossbeam_epoch::Guard>,
    dropped: Dropped,
    replaced: u64,
}

/// Pinned by a handle.
pub fn crossbeam_epoch_by_handle(ring: &[usize]) -> CrossbeamEpoch<impl Fn() -> crossbeam_epoch::Guard + use<>> {
    let collector = crossbeam_epoch::Collector::new();
    let handle = collector.register();
    CrossbeamEpoch::new(ring, move || handle.pin(), collector.register())
}

/// Pinned by what each thread has of the default collector.
pub fn crossbeam_epoch_by_default(ring: &[usize]) -> CrossbeamEpoch<impl Fn() -> crossbeam_epoch::Guard + use<>> {
    CrossbeamEpoch::new(ring, crossbeam_epoch::pin, crossbeam_epoch::default_collector().register())
}

impl<P: Fn() -> crossbeam_epoch::Guard> CrossbeamEpoch<P> {
    fn new(ring: &[usize], pin: P, another: crossbeam_epoch::LocalHandle) -> Self {
        let dropped = Dropped::default();
        let objects = objects(ring, &dropped);
        let pointers = objects.iter().map(|object| crossbeam_epoch::Atomic::from(&raw const *object)).collect();
        Self { objects, pointers, pin, another, stalled: None, dropped, replaced: 0 }
    }
}

impl<P: Fn() -> crossbeam_epoch::Guard> Readers for CrossbeamEpoch<P> {
    fn each(&mut self) -> usize {
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

    /// An object that nobody has read waits as long as one that somebody has.
    fn replace(&mut self) {
        self.defer();
    }

    /// The new object is the one that is freed later: the old one could be had by `unsafe` code alone, and its pointer
    /// stays.
    fn update(&mut self) {
        let guard = (self.pin)();
        let pointer = &self.pointers[0];
        let mut current = pointer.load(Ordering::Acquire, &guard);
        loop {
            let next = next_at(&self.objects, current.as_raw());
            let object = Box::new(self.dropped.object(next));
            match pointer.compare_exchange(current, current, Ordering::Release, Ordering::Acquire, &guard) {
                Ok(_) => {
                    guard.defer(move || drop(object));
                    break;
                }
                Err(changed) => current = changed.current,
            }
        }
        self.replaced += 1;
    }

    fn defer(&mut self) -> bool {
        let object = Box::new(self.dropped.object(0));
        (self.pin)().defer(move || drop(object));
        self.replaced += 1;
        true
    }

    fn hasten(&mut self) {
        // Each time goes on by an epoch at most. Two are enough for an object, and eight bags of objects go at once.
        for _ in 0..1_000 {
            if self.waiting() == 0 {
                break;
            }
            (self.pin)().flush();
        }
    }

    fn waiting(&self) -> u64 {
        self.replaced - self.dropped.count()
    }
}

pub struct Seize {
    objects: Vec<Object>,
    pointers: Vec<AtomicPtr<Object>>,
    collector: seize::Collector,
}

impl Seize {
    pub fn new(ring: &[usize]) -> Self {
        let mut objects = objects(ring, &Dropped::default());
        let pointers = objects.iter_mut().map(|object| AtomicPtr::new(&raw mut *object)).collect();
        Self { objects, pointers, collector: seize::Collector::new() }
    }
}

impl Readers for Seize {
    fn each(&mut self) -> usize {
        let Self { objects, pointers, collector } = self;
        let read = |pointer: &AtomicPtr<Object>| {
            let guard = collector.enter();
            next_at(objects, guard.protect(pointer, Ordering::Acquire))
        };
        pointers.iter().map(read).sum()
    }
}

pub fn arcs(ring: &[usize]) -> impl Readers + use<> {
    let dropped = Dropped::default();
    let objects = ring.iter().map(|&next| Arc::new(dropped.object(next)));
    Read::new(objects, |object: &mut Arc<Object>| Arc::clone(object).next)
}

pub fn rw_locks(ring: &[usize]) -> impl Readers + use<> {
    let dropped = Dropped::default();
    let objects = ring.iter().map(|&next| RwLock::new(dropped.object(next)));
    Read::new(objects, |object: &mut RwLock<Object>| object.read().unwrap_or_else(PoisonError::into_inner).next)
}
