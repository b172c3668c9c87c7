//! Everybody who protects what is read, behind one interface.

use std::ptr::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, compiler_fence};

use ascertain_engine::experiment::Unavailable;
use ascertain_sync::barrier::{Barrier, Fences, Method, Visitor, choose};
use ascertain_sync::epoch::Collector;
use ascertain_sync::hazard::{Domain, Published};

use super::{ours, peers};

pub const VARIANTS: [(&str, &str); 17] = [
    ("bare", "limit: a load, with nothing replaced: what reading costs anyway"),
    ("announced", "limit: bare, and what no protection goes without: a store before, a second look, a store after"),
    ("hazard-expedited", "sync::hazard over expedited membarrier"),
    ("hazard-interrupts", "sync::hazard over barrierd's interrupt generations"),
    ("hazard-plain", "sync::hazard over plain membarrier"),
    ("hazard-fences", "sync::hazard with a fence at each read"),
    ("epoch-expedited", "sync::epoch over expedited membarrier, pinned for each read"),
    ("epoch-interrupts", "sync::epoch over barrierd's interrupt generations, pinned for each read"),
    ("epoch-plain", "sync::epoch over plain membarrier, pinned for each read"),
    ("epoch-fences", "sync::epoch with a fence at each pin, pinned for each read"),
    ("epoch-default", "sync::epoch::pin(), the default collector, pinned for each read"),
    ("haphazard", "hazard pointers of the crate haphazard"),
    ("crossbeam-epoch", "epochs of the crate crossbeam-epoch, pinned for each read by a handle"),
    ("crossbeam-pin", "crossbeam_epoch::pin(), its default collector, pinned for each read"),
    ("seize", "the crate seize, entered for each read"),
    ("arc", "an Arc of the standard library, cloned and dropped for each read"),
    ("rwlock", "an RwLock of the standard library, locked for each read"),
];

/// What is read: the index of the next object, and a count of the dropped.
pub struct Object {
    pub next: usize,
    dropped: Arc<AtomicU64>,
}

/// Counts the objects it made that have been dropped.
#[derive(Default)]
pub struct Dropped(Arc<AtomicU64>);

impl Dropped {
    pub fn object(&self, next: usize) -> Object {
        Object { next, dropped: Arc::clone(&self.0) }
    }

    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::Release);
    }
}

/// Objects that are read. Each holds the index of another, so that they are one ring.
pub trait Readers {
    /// Reads each object once, and returns the sum of what they hold.
    fn each(&mut self) -> usize;

    /// Reads as many as there are, each where the one before leads to, and returns where the last leads to; none where
    /// an object can't be read without `unsafe`.
    fn chain(&mut self) -> Option<usize> {
        None
    }

    /// What frees what is replaced, where that can be told.
    fn reclaimer(&mut self) -> Option<&mut dyn Reclaimer> {
        None
    }
}

/// One that replaces objects.
pub trait Reclaimer {
    /// A reader begins and does not end until [`resume`](Self::resume).
    fn stall(&mut self);

    /// The stalled reader ends.
    fn resume(&mut self);

    /// Replaces an object, and frees when it likes.
    fn replace(&mut self);

    /// Replaces an object by one that is made of it, unless somebody else did so meanwhile, and else again.
    fn update(&mut self);

    /// Pins, and has an object dropped by a closure that is called later; false where there are no such closures.
    fn defer(&mut self) -> bool {
        false
    }

    /// Frees what can be freed, as soon as it can.
    fn hasten(&mut self);

    /// How many objects were replaced and not freed.
    fn waiting(&self) -> u64;
}

/// The scheme and the barrier of a variant of ours.
fn ours(variant: &str) -> Option<(bool, Method)> {
    let (scheme, barrier) = variant.split_once('-')?;
    let is_hazard = match scheme {
        "hazard" => true,
        "epoch" => false,
        _ => return None,
    };
    let method = match barrier {
        "expedited" => Method::Expedited,
        "interrupts" => Method::Interrupts,
        "plain" => Method::Global,
        "fences" => Method::Fences,
        _ => return None,
    };
    Some((is_hazard, method))
}

/// Whether this machine has the variant's barrier.
pub fn is_available(variant: &str) -> Result<(), Unavailable> {
    let method = ours(variant).map_or(Method::Fences, |(_, method)| method);
    method.is_available().map_err(Unavailable::other)
}

/// The variant with a ring of objects: the first leads to `ring[0]`, and so on.
///
/// # Errors
/// What this machine lacks for it.
pub fn contestant(variant: &str, ring: &[usize]) -> Result<Box<dyn Readers>, Unavailable> {
    is_available(variant)?;
    if let Some((is_hazard, method)) = ours(variant) {
        return Ok(choose(&[method], Ours { is_hazard, ring }));
    }
    Ok(match variant {
        "bare" => Box::new(bare(ring)),
        "announced" => Box::new(announced(ring)),
        "haphazard" => Box::new(peers::haphazard(ring)),
        "epoch-default" => Box::new(ours::Epochs::new(ours::ThisThread, ring)),
        "crossbeam-epoch" => Box::new(peers::crossbeam_epoch_by_handle(ring)),
        "crossbeam-pin" => Box::new(peers::crossbeam_epoch_by_default(ring)),
        "seize" => Box::new(peers::Seize::new(ring)),
        "arc" => Box::new(peers::arcs(ring)),
        "rwlock" => Box::new(peers::rw_locks(ring)),
        _ => return Err(Unavailable::Variant),
    })
}

struct Ours<'a> {
    is_hazard: bool,
    ring: &'a [usize],
}

impl Visitor for Ours<'_> {
    type Output = Box<dyn Readers>;

    fn visit<B: Barrier>(self, barrier: B) -> Box<dyn Readers> {
        match self.is_hazard {
            true => Box::new(ours::Hazards::new(barrier, self.ring)),
            false => Box::new(ours::Epochs::new(Collector::new(barrier).register(), self.ring)),
        }
    }
}

/// Objects that are only read, each by the same few steps.
pub struct Read<T, F> {
    objects: Vec<T>,
    next: F,
}

impl<T, F: FnMut(&mut T) -> usize> Read<T, F> {
    /// `next` reads an object: the index of the next one, or one that is none where that can't be told.
    pub fn new(objects: impl Iterator<Item = T>, next: F) -> Self {
        Self { objects: objects.collect(), next }
    }
}

impl<T, F: FnMut(&mut T) -> usize> Readers for Read<T, F> {
    fn each(&mut self) -> usize {
        self.objects.iter_mut().map(&mut self.next).fold(0, usize::wrapping_add)
    }

    fn chain(&mut self) -> Option<usize> {
        let Self { objects, next } = self;
        (0..objects.len()).try_fold(0, |at, _| Some(next(objects.get_mut(at)?)))
    }
}

/// Nobody replaces these objects.
fn published(ring: &[usize]) -> impl Iterator<Item = Published<Object, Fences>> {
    let (domain, dropped) = (Domain::new(Fences), Dropped::default());
    ring.iter().map(move |&next| Published::new(dropped.object(next), &domain))
}

/// A load of the pointer and one of the object: what schemes are held against.
fn bare(ring: &[usize]) -> impl Readers + use<> {
    Read::new(published(ring), |object| object.get().next)
}

/// The same, and beside it the stores and the second load of a hazard pointer or a pin: without a fence, without asking
/// whose they are, and without a way to go on where the second look shows something else.
fn announced(ring: &[usize]) -> impl Readers + use<> {
    // Each with its address, at which the second look is: the pointer itself is read only once.
    let with_address = published(ring).map(|mut object| {
        let address = from_ref(object.get()).addr();
        (object, AtomicUsize::new(address))
    });
    let announced = AtomicUsize::new(0);
    Read::new(with_address, move |(object, second_look)| {
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
    })
}
