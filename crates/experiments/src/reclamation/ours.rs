//! `sync::hazard` and `sync::epoch`.

use ascertain_sync::barrier::Barrier;
use ascertain_sync::{epoch, hazard};

use super::contestants::{Dropped, Object, Readers, Reclaimer};

pub struct Hazards<B: Barrier> {
    objects: Vec<hazard::Published<Object, B>>,
    hazard: hazard::Hazard<B>,
    domain: hazard::Domain<B>,
    retirer: hazard::Retirer<B>,
    stalled: Option<hazard::OwnedGuard<Object, B>>,
    dropped: Dropped,
    replaced: u64,
}

impl<B: Barrier> Hazards<B> {
    pub fn new(barrier: B, ring: &[usize]) -> Self {
        let (domain, dropped) = (hazard::Domain::new(barrier), Dropped::default());
        let objects = ring.iter().map(|&next| hazard::Published::new(dropped.object(next), &domain)).collect();
        let (hazard, retirer) = (domain.hazard(), domain.retirer());
        Self { objects, hazard, domain, retirer, stalled: None, dropped, replaced: 0 }
    }
}

impl<B: Barrier> Readers for Hazards<B> {
    fn each(&mut self) -> usize {
        let Self { objects, hazard, .. } = self;
        objects.iter().map(|published| published.load(hazard).next).sum()
    }

    fn sum(&mut self) -> usize {
        (0..self.objects.len()).sum()
    }

    fn chain(&mut self) -> Option<usize> {
        let Self { objects, hazard, .. } = self;
        Some((0..objects.len()).fold(0, |at, _| objects[at].load(hazard).next))
    }

    fn reclaimer(&mut self) -> Option<&mut dyn Reclaimer> {
        Some(self)
    }
}

impl<B: Barrier> Reclaimer for Hazards<B> {
    fn stall(&mut self) {
        self.stalled = Some(self.objects[0].load_owned(self.domain.hazard()));
    }

    fn resume(&mut self) {
        self.stalled = None;
    }

    fn replace(&mut self) {
        let next = self.objects[0].get().next;
        self.objects[0].replace(self.dropped.object(next), &mut self.retirer);
        self.replaced += 1;
    }

    fn hasten(&mut self) {
        self.retirer.flush();
    }

    fn waiting(&self) -> u64 {
        self.replaced - self.dropped.count()
    }
}

pub struct Epochs<B: Barrier> {
    objects: Vec<epoch::Published<Object, B>>,
    handle: epoch::Handle<B>,
    stalled: Option<epoch::OwnedGuard<B>>,
    dropped: Dropped,
    replaced: u64,
}

impl<B: Barrier> Epochs<B> {
    pub fn new(barrier: B, ring: &[usize]) -> Self {
        let (collector, dropped) = (epoch::Collector::new(barrier), Dropped::default());
        let objects = ring.iter().map(|&next| epoch::Published::new(dropped.object(next), &collector)).collect();
        Self { objects, handle: collector.register(), stalled: None, dropped, replaced: 0 }
    }
}

impl<B: Barrier> Readers for Epochs<B> {
    fn each(&mut self) -> usize {
        let Self { objects, handle, .. } = self;
        objects.iter().map(|published| published.load(&handle.pin()).next).sum()
    }

    fn sum(&mut self) -> usize {
        (0..self.objects.len()).sum()
    }

    fn chain(&mut self) -> Option<usize> {
        let Self { objects, handle, .. } = self;
        Some((0..objects.len()).fold(0, |at, _| objects[at].load(&handle.pin()).next))
    }

    fn reclaimer(&mut self) -> Option<&mut dyn Reclaimer> {
        Some(self)
    }
}

impl<B: Barrier> Reclaimer for Epochs<B> {
    fn stall(&mut self) {
        self.stalled = Some(self.handle.collector().register().into_pinned());
    }

    fn resume(&mut self) {
        self.stalled = None;
    }

    fn replace(&mut self) {
        let next = self.objects[0].get().next;
        self.objects[0].replace(self.dropped.object(next), &self.handle);
        self.replaced += 1;
    }

    fn hasten(&mut self) {
        self.handle.flush();
    }

    fn waiting(&self) -> u64 {
        self.replaced - self.dropped.count()
    }
}
