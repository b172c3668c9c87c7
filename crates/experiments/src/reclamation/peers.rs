//! Others' ways. Where only `unsafe` code may read an object by its pointer, as with two of them, its address says which it is
//! of those in a row.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use haphazard::HazardPointer;
use seize::Guard;

use super::contestants::{Dropped, Object, Readers, Reclaimer};

pub struct Haphazard {
    objects: Vec<haphazard::AtomicPtr<Object>>,
    hazard: HazardPointer<'static>,
}

impl Haphazard {
    pub fn new(ring: &[usize]) -> Self {
        let dropped = Dropped::default();
        let objects = ring.iter().map(|&next| haphazard::AtomicPtr::from(Box::new(dropped.object(next)))).collect();
        Self { objects, hazard: HazardPointer::new() }
    }
}

/// What a pointer that is never null leads to.
fn next(object: Option<&Object>) -> usize {
    object.map_or(usize::MAX, |object| object.next)
}

impl Readers for Haphazard {
    fn each(&mut self) -> usize {
        let Self { objects, hazard } = self;
        objects.iter().map(|object| next(object.safe_load(hazard))).sum()
    }

    fn sum(&mut self) -> usize {
        (0..self.objects.len()).sum()
    }

    fn chain(&mut self) -> Option<usize> {
        let Self { objects, hazard } = self;
        Some((0..objects.len()).fold(0, |at, _| next(objects[at].safe_load(hazard))))
    }
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

    fn sum(&mut self) -> usize {
        (0..self.objects.len()).sum()
    }

    fn chain(&mut self) -> Option<usize> {
        None
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

    /// The new object is the one that is freed later: the old one could be had by `unsafe` code alone, and its pointer stays.
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

    fn sum(&mut self) -> usize {
        (0..self.objects.len()).sum()
    }

    fn chain(&mut self) -> Option<usize> {
        None
    }
}

pub struct Arcs(Vec<Arc<Object>>);

impl Arcs {
    pub fn new(ring: &[usize]) -> Self {
        let dropped = Dropped::default();
        Self(ring.iter().map(|&next| Arc::new(dropped.object(next))).collect())
    }
}

impl Readers for Arcs {
    fn each(&mut self) -> usize {
        self.0.iter().map(|object| Arc::clone(object).next).sum()
    }

    fn sum(&mut self) -> usize {
        (0..self.0.len()).sum()
    }

    fn chain(&mut self) -> Option<usize> {
        Some((0..self.0.len()).fold(0, |at, _| Arc::clone(&self.0[at]).next))
    }
}

pub struct RwLocks(Vec<RwLock<Object>>);

impl RwLocks {
    pub fn new(ring: &[usize]) -> Self {
        let dropped = Dropped::default();
        Self(ring.iter().map(|&next| RwLock::new(dropped.object(next))).collect())
    }
}

fn locked(object: &RwLock<Object>) -> usize {
    object.read().unwrap_or_else(PoisonError::into_inner).next
}

impl Readers for RwLocks {
    fn each(&mut self) -> usize {
        self.0.iter().map(locked).sum()
    }

    fn sum(&mut self) -> usize {
        (0..self.0.len()).sum()
    }

    fn chain(&mut self) -> Option<usize> {
        Some((0..self.0.len()).fold(0, |at, _| locked(&self.0[at])))
    }
}
