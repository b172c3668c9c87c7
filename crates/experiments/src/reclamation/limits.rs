//! Reads that nothing protects: what schemes are held against. Nobody replaces these objects.

use std::ptr::from_ref;
use std::sync::atomic::{AtomicUsize, Ordering, compiler_fence};

use ascertain_sync::barrier::Fences;
use ascertain_sync::hazard::{Domain, Published};

use super::contestants::{Dropped, Object, Readers};

/// A load of the pointer and one of the object.
pub struct Bare(Vec<Published<Object, Fences>>);

impl Bare {
    pub fn new(ring: &[usize]) -> Self {
        let (domain, dropped) = (Domain::new(Fences), Dropped::default());
        Self(ring.iter().map(|&next| Published::new(dropped.object(next), &domain)).collect())
    }
}

impl Readers for Bare {
    fn each(&mut self) -> usize {
        self.0.iter_mut().map(|published| published.get().next).sum()
    }

    fn sum(&mut self) -> usize {
        (0..self.0.len()).sum()
    }

    fn chain(&mut self) -> Option<usize> {
        Some((0..self.0.len()).fold(0, |at, _| self.0[at].get().next))
    }
}

/// The same, and beside it the stores and the second load of a hazard pointer or a pin: without a fence, without asking
/// whose they are, and without a way to go on where the second look shows something else.
pub struct Announced {
    /// Each with its address, at which the second look is: the pointer itself is read only once.
    objects: Vec<(Published<Object, Fences>, AtomicUsize)>,
    announced: AtomicUsize,
}

impl Announced {
    pub fn new(ring: &[usize]) -> Self {
        let Bare(objects) = Bare::new(ring);
        let with_address = |mut object: Published<Object, Fences>| {
            let address = from_ref(object.get()).addr();
            (object, AtomicUsize::new(address))
        };
        Self { objects: objects.into_iter().map(with_address).collect(), announced: AtomicUsize::new(0) }
    }
}

#[inline(always)]
fn next((object, second_look): &mut (Published<Object, Fences>, AtomicUsize), announced: &AtomicUsize) -> usize {
    let object = object.get();
    let address = from_ref(object).addr();
    announced.store(address, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    if second_look.load(Ordering::Acquire) != address {
        return usize::MAX;
    }
    let next = object.next;
    announced.store(0, Ordering::Release);
    next
}

impl Readers for Announced {
    fn each(&mut self) -> usize {
        let Self { objects, announced } = self;
        objects.iter_mut().map(|object| next(object, announced)).fold(0, usize::wrapping_add)
    }

    fn sum(&mut self) -> usize {
        (0..self.objects.len()).sum()
    }

    fn chain(&mut self) -> Option<usize> {
        let Self { objects, announced } = self;
        (0..objects.len()).try_fold(0, |at, _| Some(next(objects.get_mut(at)?, announced)))
    }
}
