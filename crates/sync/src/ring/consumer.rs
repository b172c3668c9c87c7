//! The side that pops.

use std::fmt;
use std::sync::Arc;

use super::shared::Shared;
use crate::drop_all::drop_all;
use crate::event_count::{EventCount, SingleProducer, Version};
use crate::primitives::Instant;

/// Pops items in the order in which they were pushed. When it is dropped, so are the items that are left.
pub struct Consumer<T: Send, P: EventCount = SingleProducer, C: EventCount = SingleProducer> {
    shared: Arc<Shared<T, P, C>>,
    /// Where the next item comes from.
    next: Version,
    /// How many had been pushed when last looked at.
    pushed: Version,
    /// The count that the producer had published then: one more if it was gone.
    count: Version,
    /// How many of the last items were taken without the producer having been told: none, unless there is a batch, and
    /// never more than the ring holds, since the producer finds no room for others.
    untold: u32,
}

impl<T: Send, P: EventCount, C: EventCount> Consumer<T, P, C> {
    pub(super) fn new(shared: Arc<Shared<T, P, C>>, first: Version) -> Self {
        Self { shared, next: first, pushed: first, count: first, untold: 0 }
    }

    /// The most items that the ring holds.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.capacity() as usize
    }

    /// Pops if there is an item.
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`], or [`PopError::Closed`] if there never will be one.
    #[inline]
    pub fn try_pop(&mut self) -> Result<T, PopError> {
        if self.known() == 0 {
            self.find_items()?;
        }
        Ok(self.take_one())
    }

    /// Pops, and waits for an item if there is none.
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`] when the deadline has passed, [`PopError::Closed`] if there never will be one.
    #[inline]
    pub fn pop(&mut self, deadline: Option<Instant>) -> Result<T, PopError> {
        if self.known() == 0 {
            self.wait_for_items(deadline)?;
        }
        Ok(self.take_one())
    }

    /// Waits for an item, if there is none; how many can be popped at least.
    ///
    /// # Errors
    ///
    /// As [`pop`](Consumer::pop).
    pub fn wait_for_items(&mut self, deadline: Option<Instant>) -> Result<usize, PopError> {
        loop {
            match self.find_items() {
                Ok(()) => return Ok(self.known() as usize),
                Err(PopError::Empty) if self.shared.pushed.count().wait(self.count, deadline).is_some() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// At most `max` of the items that are there now. The producer learns once, when the iterator is dropped, that
    /// what was taken from it is gone; the rest stays in the ring. Of an iterator that was forgotten it learns when the
    /// consumer next looks for more than it knew of, or drops another.
    ///
    /// ```
    /// use ascertain_sync::ring::{Consumer, Producer, ring};
    ///
    /// let (mut producer, mut consumer): (Producer<u32>, Consumer<u32>) = ring(8);
    /// assert_eq!(producer.push_batch(0..100), 8);
    /// assert_eq!(consumer.pop_batch(3).collect::<Vec<_>>(), [0, 1, 2]);
    /// assert_eq!(consumer.pop_batch(usize::MAX).sum::<u32>(), 3 + 4 + 5 + 6 + 7);
    /// ```
    pub fn pop_batch(&mut self, max: usize) -> Popped<'_, T, P, C> {
        if max > self.known() as usize {
            self.look();
        }
        let available = self.known();
        let left = u32::try_from(max).map_or(available, |max| max.min(available));
        Popped { consumer: self, left }
    }

    /// Whether the producer is gone. There may be items left.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.pushed.closed_at().is_some()
    }

    /// Items that are there for sure.
    #[inline]
    fn known(&self) -> u32 {
        self.pushed.since(self.next)
    }

    #[cold]
    fn find_items(&mut self) -> Result<(), PopError> {
        let is_closed = self.look();
        match self.known() {
            0 if is_closed => Err(PopError::Closed),
            0 => Err(PopError::Empty),
            _ => Ok(()),
        }
    }

    /// Learns how many have been pushed, and whether the producer is gone.
    fn look(&mut self) -> bool {
        // Of a batch that was forgotten: the producer may be waiting for it.
        self.tell();
        self.count = self.shared.pushed.count().snapshot();
        let closed_at = self.shared.pushed.closed_at();
        self.pushed = closed_at.unwrap_or(self.count);
        closed_at.is_some()
    }

    /// Reads the next item. There is one.
    #[inline]
    fn take(&mut self) -> T {
        let slot = self.shared.slot(self.next);
        self.next = self.next.after(1);
        // SAFETY: `pushed` has passed it, and was read with acquire: it is written. `next` has passed it: it is taken
        // once. The producer writes there again only after it was told so.
        slot.with(|slot| unsafe { (*slot).assume_init_read() })
    }

    #[inline]
    fn take_one(&mut self) -> T {
        let item = self.take();
        self.publish(1);
        item
    }

    /// Says what was taken in a batch.
    #[inline]
    fn tell(&mut self) {
        let count = std::mem::take(&mut self.untold);
        if count > 0 {
            self.publish(count);
        }
    }

    /// Says that the last so many were taken.
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

/// Closes also when an item's destructor panics.
struct Closing<'a, T: Send, P: EventCount, C: EventCount>(&'a mut Consumer<T, P, C>);

impl<T: Send, P: EventCount, C: EventCount> Drop for Closing<'_, T, P, C> {
    fn drop(&mut self) {
        self.0.shared.popped.close(self.0.next);
    }
}

/// Items of [`Consumer::pop_batch`].
#[derive(Debug)]
pub struct Popped<'a, T: Send, P: EventCount, C: EventCount> {
    consumer: &'a mut Consumer<T, P, C>,
    left: u32,
}

impl<T: Send, P: EventCount, C: EventCount> Iterator for Popped<'_, T, P, C> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        self.consumer.untold += 1;
        Some(self.consumer.take())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl<T: Send, P: EventCount, C: EventCount> ExactSizeIterator for Popped<'_, T, P, C> {}

impl<T: Send, P: EventCount, C: EventCount> Drop for Popped<'_, T, P, C> {
    fn drop(&mut self) {
        self.consumer.tell();
    }
}

impl<T: Send, P: EventCount, C: EventCount> fmt::Debug for Consumer<T, P, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("next", &self.next).field("capacity", &self.capacity()).finish_non_exhaustive()
    }
}

/// Why no item was popped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PopError {
    /// There is none yet: wait for longer.
    Empty,
    /// There is none, and the producer is gone.
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
