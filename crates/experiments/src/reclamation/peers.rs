//! Others' ways. Where only `unsafe` code may read an object, as with two of them, its address stands for it.

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

pub struct CrossbeamEpoch {
    objects: Vec<crossbeam_epoch::Atomic<Object>>,
    handle: crossbeam_epoch::LocalHandle,
    another: crossbeam_epoch::LocalHandle,
    stalled: Option<crossbeam_epoch::Guard>,
    dropped: Dropped,
    replaced: u64,
}

impl CrossbeamEpoch {
    pub fn new(ring: &[usize]) -> Self {
        let (collector, dropped) = (crossbeam_epoch::Collector::new(), Dropped::default());
        let objects = ring.iter().map(|&next| crossbeam_epoch::Atomic::new(dropped.object(next))).collect();
        let [handle, another] = [(); 2].map(|()| collector.register());
        Self { objects, handle, another, stalled: None, dropped, replaced: 0 }
    }
}

impl Readers for CrossbeamEpoch {
    fn each(&mut self) -> usize {
        let Self { objects, handle, .. } = self;
        let address = |object: &crossbeam_epoch::Atomic<Object>| {
            object.load(Ordering::Acquire, &handle.pin()).as_raw().addr()
        };
        objects.iter().map(address).fold(0, usize::wrapping_add)
    }

    fn sum(&mut self) -> usize {
        let guard = self.handle.pin();
        let addresses = self.objects.iter().map(|object| object.load(Ordering::SeqCst, &guard).as_raw().addr());
        addresses.fold(0, usize::wrapping_add)
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
        let mut before = u64::MAX;
        // As long as that helps, and at least for the two epochs that an object waits.
        for _ in 0..4 {
            while self.waiting() < before {
                before = self.waiting();
                self.handle.pin().flush();
            }
            self.handle.pin().flush();
        }
    }

    fn waiting(&self) -> u64 {
        self.replaced - self.dropped.count()
    }
}

pub struct Seize {
    objects: Vec<AtomicPtr<Object>>,
    _owned: Vec<Box<Object>>,
    collector: seize::Collector,
}
