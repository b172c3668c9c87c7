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

pub struct CrossbeamEpoch {
    objects: Vec<Object>,
    pointers: Vec<crossbeam_epoch::Atomic<Object>>,
    handle: crossbeam_epoch::LocalHandle,
    another: crossbeam_epoch::LocalHandle,
    stalled: Option<crossbeam_epoch::Guard>,
    dropped: Dropped,
    replaced: u64,
}

impl CrossbeamEpoch {
    pub fn new(ring: &[usize]) -> Self {
        let (collector, dropped) = (crossbeam_epoch::Collector::new(), Dropped::default());
        let objects = objects(ring, &dropped);
        let pointers = objects.iter().map(|object| crossbeam_epoch::Atomic::from(&raw const *object)).collect();
        let [handle, another] = [(); 2].map(|()| collector.register());
        Self { objects, pointers, handle, another, stalled: None, dropped, replaced: 0 }
    }
}

impl Readers for CrossbeamEpoch {
    fn each(&mut self) -> usize {
        let Self { objects, pointers, handle, .. } = self;
        let read = |pointer: &crossbeam_epoch::Atomic<Object>| {
            let guard = handle.pin();
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

impl Reclaimer for CrossbeamEpoch {
    fn stall(&mut self) {
        self.stalled = Some(self.another.pin());
    }

    fn resume(&mut self) {
        self.stalled = None;
    }

    /// An object that nobody has read waits as long as one that somebody has.
    fn replace(&mut self) {
        let object = Box::new(self.dropped.object(0));
        self.handle.pin().defer(move || drop(object));
        self.replaced += 1;
    }

    fn hasten(&mut self) {
        // Each time goes on by an epoch at most. Two are enough for an object, and eight bags of objects go at once.
        for _ in 0..1_000 {
            if self.waiting() == 0 {
                break;
            }
            self.handle.pin().flush();
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
