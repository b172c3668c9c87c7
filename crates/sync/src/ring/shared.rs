//! The data that the producer and the consumer share.

use std::iter;
use std::mem::MaybeUninit;
use std::sync::Arc;

use super::{Consumer, Producer};
use crate::drop_all::drop_all;
use crate::event_count::{EventCount, Version};
use crate::primitives::{AtomicU32, Ordering, UnsafeCell};

/// Maximum number of items in a ring. Indices count modulo 2^31, so a ring of 2^31 items would look empty when it is
/// full. 2^30 is the next smaller power of two.
const CAPACITY_MAX: usize = 1 << 30;
/// The value of `Side::closed_at` while the side is open. It is not a valid index.
const OPEN: u32 = u32::MAX;

pub(super) type Slot<T> = UnsafeCell<MaybeUninit<T>>;

/// The progress of one side of the ring: of the producer or of the consumer. No other thread writes to its cache line
/// or to the adjacent line, which processors fetch together.
#[repr(align(128))]
pub(super) struct Side<E> {
    /// Number of items that this side has pushed or popped. Closing the side adds one, to wake the other side.
    count: E,
    /// The number of items that this side had pushed or popped when it was closed, or [`OPEN`] until then.
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

    /// Returns the index at which the side was closed; `None` if it is open. Call this after reading the count: closing
    /// first writes this index, and then publishes the count plus one.
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

// SAFETY: one side at a time uses a slot. The producer may use a slot while it is empty, until the producer has pushed
// an item into it. Then the consumer may use the slot, until it has popped the item. The published indices pass the
// slot from one thread to the other.
unsafe impl<T: Send, P: EventCount, C: EventCount> Sync for Shared<T, P, C> {}
// SAFETY: the producer and the consumer never use a slot at the same time, as for `Sync`.
unsafe impl<T: Send, P: EventCount, C: EventCount> Send for Shared<T, P, C> {}

impl<T, P: EventCount, C: EventCount> Shared<T, P, C> {
    pub(super) fn capacity(&self) -> u32 {
        self.slots.len() as u32
    }

    #[inline]
    pub(super) fn slot(&self, index: Version) -> &Slot<T> {
        let mask = self.slots.len() - 1;
        // SAFETY: the length is a power of two, so the masked index is less.
        unsafe { self.slots.get_unchecked(index.get() as usize & mask) }
    }
}

impl<T, P: EventCount, C: EventCount> Drop for Shared<T, P, C> {
    fn drop(&mut self) {
        let (Some(mut first), Some(end)) = (self.popped.closed_at(), self.pushed.closed_at()) else {
            return; // a side panicked before the other side was created
        };
        drop_all(iter::from_fn(|| {
            let index = first;
            first = first.after(u32::from(index != end));
            // SAFETY: the item was pushed and not popped, both sides are gone, and each index occurs once.
            (index != end).then(|| self.slot(index).with(|slot| unsafe { (*slot).assume_init_read() }))
        }));
    }
}

/// Creates a ring in which one thread pushes items and another thread pops them. The ring has room for `capacity`
/// items, rounded up to a power of two.
///
/// The consumer waits on `P`, and the producer waits on `C` when the ring is full.
/// [`SingleProducer`](crate::event_count::SingleProducer) suits both in most programs. A function cannot have default
/// type parameters, so name the types of the producer and the consumer, which have defaults:
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

/// Creates a ring as [`ring`] does, as if `first` items had been pushed and popped already. This is for tests in which
/// indices wrap around.
///
/// # Panics
///
/// If `capacity` is more than 2^30.
#[must_use]
pub fn ring_starting_at<T: Send, P: EventCount, C: EventCount>(
    capacity: usize,
    first: Version,
) -> (Producer<T, P, C>, Consumer<T, P, C>) {
    assert!(capacity <= CAPACITY_MAX, "a ring of {capacity} items is too large: at most 2^30 are supported");
    let slots = (0..capacity.next_power_of_two()).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect();
    let shared = Arc::new(Shared { pushed: Side::starting_at(first), popped: Side::starting_at(first), slots });
    (Producer::new(shared.clone(), first), Consumer::new(shared, first))
}
