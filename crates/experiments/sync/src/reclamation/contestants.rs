//! All methods of protecting objects while they are read, behind one interface.

use std::sync::Arc;

use ascertain_engine::experiment::Unavailable;
use ascertain_sync::barrier::{Barrier, Method, Visitor, choose};
use ascertain_sync::epoch::Collector;

use super::{limits, ours, peers};

pub const VARIANTS: [(&str, &str); 20] = [
    ("bare", "speed limit: a plain load of an object that is never replaced, the minimum cost of reading"),
    ("announced", "speed limit: `bare`, plus the least work of any protection (a store, a second load, another store)"),
    ("limit-hazard", "speed limit of a hazard pointer: `announced`, and a check of the object's owner"),
    (
        "limit-epoch",
        "speed limit of a pin by a handle: `bare`, a check of the object's owner, and three loads and two stores, the \
         least for pins that may be nested",
    ),
    (
        "limit-pin",
        "speed limit of a pin without a handle: `limit-epoch`, by a thread-local variable, with a fence on demand",
    ),
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
    ("crossbeam-epoch", "epochs of the crate crossbeam-epoch; a handle pins the thread for each read"),
    ("crossbeam-pin", "crossbeam_epoch::pin(), its default collector, pinned for each read"),
    ("seize", "the crate seize, with a guard for each read"),
    ("arc", "an Arc of the standard library, cloned and dropped for each read"),
    ("rwlock", "an RwLock of the standard library, locked for each read"),
];

/// An object in the ring that readers go through. It holds the index of the next object. Its counter is shared with
/// [`ObjectCounter`], which thus knows how many objects have not been dropped.
pub struct Object {
    pub next: usize,
    _counted: Arc<()>,
}

/// Makes objects, and counts those that have not been dropped.
#[derive(Default)]
pub struct ObjectCounter(Arc<()>);

impl ObjectCounter {
    pub fn object(&self, next: usize) -> Object {
        Object { next, _counted: Arc::clone(&self.0) }
    }

    pub fn count(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}

/// A ring of objects, read by one of the compared methods. Each object holds the index of the next one.
pub trait Readers {
    /// Reads each object once, and returns the sum of the indices that they hold.
    fn read_all(&mut self) -> usize;

    /// Reads as many objects as the ring has, each one at the index that the previous object holds. Returns the index
    /// that the last object holds, or `None` if objects cannot be read without `unsafe`.
    fn chain(&mut self) -> Option<usize> {
        None
    }

    /// Returns the part of the method that replaces and frees objects. Returns `None` if the experiment cannot observe
    /// when this method frees an object.
    fn reclaimer(&mut self) -> Option<&mut dyn Reclaimer> {
        None
    }
}

/// A writer that replaces objects, and a reader that can be stalled.
pub trait Reclaimer {
    /// Starts a read that does not end until [`resume`](Self::resume).
    fn stall(&mut self);

    /// Ends the stalled read.
    fn resume(&mut self);

    /// Replaces an object. Replaced objects may be freed at any time.
    fn replace(&mut self);

    /// Replaces an object by a changed copy. Tries again if another thread has replaced the object in the meantime.
    fn update(&mut self);

    /// Pins the thread, and defers a closure that drops an object. Returns `false` if the method does not support such
    /// closures.
    fn defer(&mut self) -> bool {
        false
    }

    /// Frees every object that can be freed, as soon as possible.
    fn hasten(&mut self);

    /// Returns the number of objects that were replaced and are still to be freed.
    fn waiting(&self) -> usize;
}

/// Splits the name of a variant of `sync`. Returns `true` for hazard pointers or `false` for epochs, and the barrier.
/// Returns `None` for other variants.
fn own_variant(variant: &str) -> Option<(bool, Method)> {
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

/// Checks whether this machine supports the variant's barrier.
pub fn is_available(variant: &str) -> Result<(), Unavailable> {
    let method = own_variant(variant).map_or(Method::Fences, |(_, method)| method);
    method.is_available().map_err(Unavailable::other)
}

/// Returns the method of a variant, with a ring of objects in which object `i` leads to object `ring[i]`.
///
/// # Errors Returns the reason if this machine does not support the variant.
pub fn contestant(variant: &str, ring: &[usize]) -> Result<Box<dyn Readers>, Unavailable> {
    is_available(variant)?;
    if let Some((is_hazard, method)) = own_variant(variant) {
        return Ok(choose(&[method], Ours { is_hazard, ring }));
    }
    Ok(match variant {
        "bare" => Box::new(limits::bare(ring)),
        "announced" => Box::new(limits::announced(ring)),
        "limit-hazard" => Box::new(limits::hazard(ring)),
        "limit-epoch" => Box::new(limits::epoch(ring)),
        "limit-pin" => Box::new(limits::pin(ring)),
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

/// A ring of objects that are only read and never replaced. The same function reads each object.
pub struct Read<T, F> {
    objects: Vec<T>,
    next: F,
}

impl<T, F: FnMut(&mut T) -> usize> Read<T, F> {
    /// Creates the ring. `next` reads an object and returns the index to which the object leads, or an invalid index if
    /// that is unknown.
    pub fn new(objects: impl Iterator<Item = T>, next: F) -> Self {
        Self { objects: objects.collect(), next }
    }
}

impl<T, F: FnMut(&mut T) -> usize> Readers for Read<T, F> {
    fn read_all(&mut self) -> usize {
        self.objects.iter_mut().map(&mut self.next).fold(0, usize::wrapping_add)
    }

    fn chain(&mut self) -> Option<usize> {
        let Self { objects, next } = self;
        (0..objects.len()).try_fold(0, |at, _| Some(next(objects.get_mut(at)?)))
    }
}
