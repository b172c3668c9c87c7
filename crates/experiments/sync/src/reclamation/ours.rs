//! The variants of `sync::hazard` and `sync::epoch`.

use ascertain_sync::barrier::{Barrier, ExpeditedOrFences};
use ascertain_sync::{epoch, hazard};

use super::contestants::{Object, ObjectCounter, Readers, Reclaimer};

pub struct Hazards<B: Barrier> {
    objects: Vec<hazard::Published<Object, B>>,
    hazard: hazard::Hazard<B>,
    domain: hazard::Domain<B>,
    retirer: hazard::Retirer<B>,
    stalled: Option<hazard::OwnedGuard<Object, B>>,
    counter: ObjectCounter,
}

impl<B: Barrier> Hazards<B> {
    pub fn new(barrier: B, ring: &[usize]) -> Self {
        let (domain, counter) = (hazard::Domain::new(barrier), ObjectCounter::default());
        let objects = ring.iter().map(|&next| hazard::Published::new(counter.object(next), &domain)).collect();
        let (hazard, retirer) = (domain.hazard(), domain.retirer());
        Self { objects, hazard, domain, retirer, stalled: None, counter }
    }
}

impl<B: Barrier> Readers for Hazards<B> {
    fn read_all(&mut self) -> usize {
        let Self { objects, hazard, .. } = self;
        objects.iter().map(|published| published.load(hazard).next).sum()
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
        self.objects[0].replace(self.counter.object(next), &mut self.retirer);
    }

    fn update(&mut self) {
        let Self { objects, hazard, retirer, counter, .. } = self;
        objects[0].update(hazard, retirer, |object| Some(counter.object(object.next)));
    }

    fn hasten(&mut self) {
        self.retirer.flush();
    }

    fn waiting(&self) -> usize {
        self.counter.count() - self.objects.len()
    }
}

/// A source of pins, which protect the objects that a reader reads in an epoch. Implemented by the handle of a
/// collector, and by [`ThisThread`], which uses the default collector.
pub trait Participant {
    type Barrier: Barrier;

    fn pin(&self) -> epoch::Guard<'_, Self::Barrier>;

    fn collector(&self) -> &epoch::Collector<Self::Barrier>;

    fn flush(&self);
}

impl<B: Barrier> Participant for epoch::Handle<B> {
    type Barrier = B;

    #[inline(always)]
    fn pin(&self) -> epoch::Guard<'_, B> {
        self.pin()
    }

    fn collector(&self) -> &epoch::Collector<B> {
        self.collector()
    }

    fn flush(&self) {
        self.flush();
    }
}

pub struct ThisThread;

impl Participant for ThisThread {
    type Barrier = ExpeditedOrFences;

    #[inline(always)]
    fn pin(&self) -> epoch::Guard<'_> {
        epoch::pin()
    }

    fn collector(&self) -> &epoch::Collector<ExpeditedOrFences> {
        epoch::default_collector()
    }

    fn flush(&self) {
        // Each flush lets one epoch begin, and an object is freed two epochs after it was replaced.
        epoch::pin().flush();
        epoch::pin().flush();
    }
}

pub struct Epochs<P: Participant> {
    objects: Vec<epoch::Published<Object, P::Barrier>>,
    participant: P,
    stalled: Option<epoch::OwnedGuard<P::Barrier>>,
    counter: ObjectCounter,
}

impl<P: Participant> Epochs<P> {
    pub fn new(participant: P, ring: &[usize]) -> Self {
        let (collector, counter) = (participant.collector(), ObjectCounter::default());
        let objects = ring.iter().map(|&next| epoch::Published::new(counter.object(next), collector)).collect();
        Self { objects, participant, stalled: None, counter }
    }
}

impl<P: Participant> Readers for Epochs<P> {
    fn read_all(&mut self) -> usize {
        let Self { objects, participant, .. } = self;
        objects.iter().map(|published| published.load(&participant.pin()).next).sum()
    }

    fn chain(&mut self) -> Option<usize> {
        let Self { objects, participant, .. } = self;
        Some((0..objects.len()).fold(0, |at, _| objects[at].load(&participant.pin()).next))
    }

    fn reclaimer(&mut self) -> Option<&mut dyn Reclaimer> {
        Some(self)
    }
}

impl<P: Participant> Reclaimer for Epochs<P> {
    fn stall(&mut self) {
        self.stalled = Some(self.participant.collector().register().into_pinned());
    }

    fn resume(&mut self) {
        self.stalled = None;
    }

    fn replace(&mut self) {
        let next = self.objects[0].get().next;
        self.objects[0].replace(self.counter.object(next), &self.participant.pin());
    }

    fn update(&mut self) {
        let Self { objects, participant, counter, .. } = self;
        objects[0].update(&participant.pin(), |object| Some(counter.object(object.next)));
    }

    fn defer(&mut self) -> bool {
        let object = Box::new(self.counter.object(0));
        self.participant.pin().defer(move || drop(object));
        true
    }

    fn hasten(&mut self) {
        self.participant.flush();
    }

    fn waiting(&self) -> usize {
        self.counter.count() - self.objects.len()
    }
}
