//! The consumer, which pops items.

use std::fmt;
use std::sync::Arc;

use super::shared::Shared;
use crate::drop_all::drop_all;
use crate::event_count::{EventCount, SingleProducer, Version};
use crate::primitives::Instant;

/// Pops items in the order in which they were pushed. Dropping the consumer drops the items that are left in the ring.
pub struct Consumer<T: Send, P: EventCount = SingleProducer, C: EventCount = SingleProducer> {
    shared: Arc<Shared<T, P, C>>,
    /// The index of the next item to pop.
    next: Version,
    /// The number of items that the producer has pushed, as last read.
    pushed: Version,
    /// The producer's count of pushed items, as last read. A producer that is gone has added one more to this count, so
    /// the count is then one more than `pushed`.
    count: Version,
    /// Number of popped items that were not published yet, so the producer does not know that their slots are free. It
    /// is zero unless a batch is in use or was leaked. It is at most the capacity, because the producer cannot fill
    /// these slots again before it knows of them.
    untold: u32,
}

impl<T: Send, P: EventCount, C: EventCount> Consumer<T, P, C> {
    pub(super) fn new(shared: Arc<Shared<T, P, C>>, first: Version) -> Self {
        Self { shared, next: first, pushed: first, count: first, untold: 0 }
    }

    /// Returns the maximum number of items in the ring.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.capacity() as usize
    }

    /// Pops an item, if there is one.
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`], or [`PopError::Closed`] if no further item can come.
    #[inline]
    pub fn try_pop(&mut self) -> Result<T, PopError> {
        if self.known() == 0 {
            self.find_items()?;
        }
        Ok(self.take_one())
    }

    /// Pops an item, and waits for one if there is none.
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`] when the deadline has passed, [`PopError::Closed`] if no further item can come.
    #[inline]
    pub fn pop(&mut self, deadline: Option<Instant>) -> Result<T, PopError> {
        if self.known() == 0 {
            self.wait_for_items(deadline)?;
        }
        Ok(self.take_one())
    }

    /// Waits for an item if there is none. Returns how many items can certainly be popped; there may be more.
    ///
    /// # Errors
    ///
    /// Fails like [`pop`](Consumer::pop).
    pub fn wait_for_items(&mut self, deadline: Option<Instant>) -> Result<usize, PopError> {
        loop {
            match self.find_items() {
                Ok(()) => return Ok(self.known() as usize),
                Err(PopError::Empty) if self.shared.pushed.count().wait(self.count, deadline).is_some() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns an iterator over at most `max` of the current items. Dropping the iterator publishes how many items were
    /// taken from it; the others stay in the ring. If the iterator is leaked (`mem::forget`), the consumer publishes
    /// the number later: when it next reads the producer's count, or when it drops another iterator.
    ///
    /// ```
    /// use ascertain_sync::ring::{Consumer, Producer, ring};
    ///
    /// let (mut producer, mut consumer): (Producer<u32>, Consumer<u32>) = ring(8);
    /// assert_eq!(producer.push_batch(0..100), 8);
    /// assert_eq!(consumer.pop_batch(3).collect::<Vec<_>>(), [0, 1, 2]);
    /// assert_eq!(consumer.pop_batch(usize::MAX).sum::<u32>(), 3 + 4 + 5 + 6 + 7);
    /// ```
    pub fn pop_batch(&mut self, max: usize) -> PopBatch<'_, T, P, C> {
        if max > self.known() as usize {
            self.refresh();
        }
        let available = self.known();
        let left = u32::try_from(max).map_or(available, |max| max.min(available));
        PopBatch { consumer: self, left }
    }

    /// Returns whether the producer is gone. Items may be left in the ring.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.pushed.closed_at().is_some()
    }

    /// Returns the number of items that can be popped without reading the producer's count again.
    #[inline]
    fn known(&self) -> u32 {
        self.pushed.since(self.next)
    }

    #[cold]
    fn find_items(&mut self) -> Result<(), PopError> {
        let is_closed = self.refresh();
        match self.known() {
            0 if is_closed => Err(PopError::Closed),
            0 => Err(PopError::Empty),
            _ => Ok(()),
        }
    }

    /// Reads how many items have been pushed. Returns whether the producer is gone.
    fn refresh(&mut self) -> bool {
        // Publishes the items that a leaked batch took. The producer may be waiting for the slots of these items.
        self.tell();
        self.count = self.shared.pushed.count().snapshot();
        let closed_at = self.shared.pushed.closed_at();
        self.pushed = closed_at.unwrap_or(self.count);
        closed_at.is_some()
    }

    /// Reads the next item. There must be one.
    #[inline]
    fn read_next(&mut self) -> T {
        let slot = self.shared.slot(self.next);
        self.next = self.next.after(1);
        // SAFETY: `pushed` has passed the slot, and was read with acquire, so the slot is written. `next` has passed
        // the slot, so its item is taken once. The producer writes to the slot again only after the pop is published.
        slot.with(|slot| unsafe { (*slot).assume_init_read() })
    }

    #[inline]
    fn take_one(&mut self) -> T {
        let item = self.read_next();
        self.publish(1);
        item
    }

    /// Publishes how many items were popped in a batch, so that the producer knows that their slots are free.
    #[inline]
    fn tell(&mut self) {
        let count = std::mem::take(&mut self.untold);
        if count > 0 {
            self.publish(count);
        }
    }

    /// Publishes that the last `count` items were taken.
    #[inline]
    fn publish(&self, count: u32) {
        self.shared.popped.count().publish_after(self.next.before(count), count);
    }
}

impl<T: Send, P: EventCount, C: EventCount> Drop for Consumer<T, P, C> {
    fn drop(&mut self) {
        let closing = Closing(self);
        drop_all(closing.0.pop_batch(usize::MAX));
    }
}

/// Closes the ring when this is dropped, even if the destructor of an item panics.
struct Closing<'a, T: Send, P: EventCount, C: EventCount>(&'a mut Consumer<T, P, C>);

impl<T: Send, P: EventCount, C: EventCount> Drop for Closing<'_, T, P, C> {
    fn drop(&mut self) {
        self.0.shared.popped.close(self.0.next);
    }
}

/// The iterator over items that [`Consumer::pop_batch`] returns.
#[derive(Debug)]
pub struct PopBatch<'a, T: Send, P: EventCount, C: EventCount> {
    consumer: &'a mut Consumer<T, P, C>,
    left: u32,
}

impl<T: Send, P: EventCount, C: EventCount> Iterator for PopBatch<'_, T, P, C> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        self.consumer.untold += 1;
        Some(self.consumer.read_next())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl<T: Send, P: EventCount, C: EventCount> ExactSizeIterator for PopBatch<'_, T, P, C> {}

impl<T: Send, P: EventCount, C: EventCount> Drop for PopBatch<'_, T, P, C> {
    fn drop(&mut self) {
        self.consumer.tell();
    }
}

impl<T: Send, P: EventCount, C: EventCount> fmt::Debug for Consumer<T, P, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("next", &self.next).field("capacity", &self.capacity()).finish_non_exhaustive()
    }
}

/// The reason why no item was popped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PopError {
    /// There is no item yet: wait longer.
    Empty,
    /// There is no item, and the producer is gone.
    Closed,
}

impl fmt::Display for PopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the ring was empty until the deadline",
            Self::Closed => "the ring is empty and its producer is gone",
        })
    }
}

impl std::error::Error for PopError {}
