//! What producer and consumer share.

use std::iter;
use std::mem::MaybeUninit;
use std::sync::Arc;

use super::{Consumer, Producer};
use crate::drop_all::drop_all;
use crate::event_count::{EventCount, Version};
use crate::primitives::{AtomicU32, Ordering, UnsafeCell};

/// The most that a ring holds: a full one must not look empty, and indices count modulo 2^31.
const CAPACITY_MAX: usize = 1 << 30;
/// No index.
const OPEN: u32 = u32::MAX;

pub(super) type Slot<T> = UnsafeCell<MaybeUninit<T>>;

/// One side's index, of which nobody else's writes share the cache line or the one fetched beside it.
#[repr(align(128))]
pub(super) struct Side<E> {
    /// How many items have been pushed, or popped; and one more when the side is closed, to wake the other.
    count: E,
    /// How many they were in the end.
    closed_at: AtomicU32,
}

impl<E: EventCount> Side<E> {
    fn starting_at(first: Version) -> Self {
        Self { count: E::starting_at(first), closed_at: AtomicU32::new(OPEN) }
    }

    #[inline]
    pub(super) fn count(&self) -> &E {
        &self.count
    }

    pub(super) fn close(&self, at: Version) {
        self.closed_at.store(at.get(), Ordering::Release);
        self.count.publish();
    }

    /// Where the side was closed. To be asked after its count was read: a count that has the one too many has been
    /// published after this.
    #[inline]
    pub(super) fn closed_at(&self) -> Option<Version> {
        let at = self.closed_at.load(Ordering::Acquire);
        (at != OPEN).then(|| Version::new(at))
    }
}

pub(super) struct Shared<T, P: EventCount, C: EventCount> {
    pub(super) pushed: Side<P>,
    pub(super) popped: Side<C>,
    slots: Box<[Slot<T>]>,
}

// SAFETY: a slot is used by the producer from when its item has been popped until it has pushed the next, else by the
// consumer; the indices hand it over. So items move from one thread to another and are never used by two.
unsafe impl<T: Send, P: EventCount, C: EventCount> Sync for Shared<T, P, C> {}
// SAFETY: as above.
unsafe impl<T: Send, P: EventCount, C: EventCount> Send for Shared<T, P, C> {}

impl<T, P: EventCount, C: EventCount> Shared<T, P, C> {
    pub(super) fn capacity(&self) -> u32 {
        self.slots.len() as u32
    }

    #[inline]
    pub(super) fn slot(&self, index: Version) -> &Slot<T> {
        let mask = self.slots.len() - 1;
        // SAFETY: the length is a power of two, so that the masked index is less.
        unsafe { self.slots.get_unchecked(index.get() as usize & mask) }
    }
}

impl<T, P: EventCount, C: EventCount> Drop for Shared<T, P, C> {
    fn drop(&mut self) {
        let (Some(mut first), Some(end)) = (self.popped.closed_at(), self.pushed.closed_at()) else {
            return; // a side that panicked before it was made
        };
        drop_all(iter::from_fn(|| {
            let index = first;
            first = first.after(u32::from(index != end));
            // SAFETY: it was pushed and not popped, both sides are gone, and each index comes once.
            (index != end).then(|| self.slot(index).with(|slot| unsafe { (*slot).assume_init_read() }))
        }));
    }
}

/// A ring for at least `capacity` items, rounded up to a power of two: one thread pushes, another pops.
///
/// `P` is what the consumer waits on, `C` what the producer waits on when the ring is full; both are
/// [`SingleProducer`](crate::event_count::SingleProducer) unless there is a reason. The ends' types say so, since a
/// function has no parameters that can be left out:
///
/// ```
/// use ascertain_sync::ring::{Consumer, Producer, ring};
///
/// let (mut producer, mut consumer): (Producer<u64>, Consumer<u64>) = ring(4);
/// producer.try_push(7)?;
/// assert_eq!(consumer.try_pop(), Ok(7));
/// # Ok::<(), ascertain_sync::ring::PushError<u64>>(())
/// ```
///
/// # Panics
///
/// If `capacity` is more than 2^30.
#[must_use]
pub fn ring<T: Send, P: EventCount, C: EventCount>(capacity: usize) -> (Producer<T, P, C>, Consumer<T, P, C>) {
    ring_starting_at(capacity, Version::new(0))
}

/// As [`ring`], as if so many items had been pushed and popped already: for tests of what happens when indices wrap.
///
/// # Panics
///
/// If `capacity` is more than 2^30.
#[must_use]
pub fn ring_starting_at<T: Send, P: EventCount, C: EventCount>(
    capacity: usize,
    first: Version,
) -> (Producer<T, P, C>, Consumer<T, P, C>) {
    assert!(capacity <= CAPACITY_MAX, "a ring of {capacity} items: 2^30 is the most");
    let slots = (0..capacity.next_power_of_two()).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect();
    let shared = Arc::new(Shared { pushed: Side::starting_at(first), popped: Side::starting_at(first), slots });
    (Producer::new(shared.clone(), first), Consumer::new(shared, first))
}
