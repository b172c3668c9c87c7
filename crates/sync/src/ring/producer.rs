//! The producer, which pushes items.

use std::fmt;
use std::mem::MaybeUninit;
use std::sync::Arc;

use super::shared::Shared;
use crate::event_count::{EventCount, SingleProducer, Version};
use crate::primitives::Instant;

/// Pushes items. After it is dropped, the consumer pops the items that are left and then gets the error that the ring
/// is closed.
pub struct Producer<T: Send, P: EventCount = SingleProducer, C: EventCount = SingleProducer> {
    shared: Arc<Shared<T, P, C>>,
    /// The index of the next item to push.
    next: Version,
    /// The number of items that the consumer has popped, as last read.
    popped: Version,
    capacity: u32,
}

impl<T: Send, P: EventCount, C: EventCount> Producer<T, P, C> {
    pub(super) fn new(shared: Arc<Shared<T, P, C>>, first: Version) -> Self {
        Self { capacity: shared.capacity(), shared, next: first, popped: first }
    }

    /// Returns the maximum number of items in the ring.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Pushes an item, if there is room.
    ///
    /// # Errors
    ///
    /// [`PushError::Full`], or [`PushError::Closed`] if the consumer is gone. The producer detects that the consumer is
    /// gone only when the room that it knows of is used up. Until then, up to [`capacity`](Producer::capacity) items
    /// are pushed that no consumer will pop; they are dropped with the ring.
    #[inline]
    pub fn try_push(&mut self, item: T) -> Result<(), PushError<T>> {
        if self.room() == 0
            && let Err(error) = self.find_room()
        {
            return Err(error.with(item));
        }
        self.put_one(item);
        Ok(())
    }

    /// Pushes an item, and waits for room if there is none.
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] when the deadline has passed; otherwise the errors of [`try_push`](Producer::try_push).
    #[inline]
    pub fn push(&mut self, item: T, deadline: Option<Instant>) -> Result<(), PushError<T>> {
        if self.room() == 0
            && let Err(error) = self.wait_for_room(deadline)
        {
            return Err(error.with(item));
        }
        self.put_one(item);
        Ok(())
    }

    /// Waits for room if there is none. Returns how many items can certainly be pushed; there may be more room.
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] when the deadline has passed, [`PushError::Closed`] if the consumer is gone.
    pub fn wait_for_room(&mut self, deadline: Option<Instant>) -> Result<usize, PushError<()>> {
        loop {
            match self.find_room() {
                Ok(()) => return Ok(self.room() as usize),
                // The ring is not closed, so `popped` equals the count that was read last.
                Err(PushError::Full(())) if self.shared.popped.count().wait(self.popped, deadline).is_some() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Pushes as many of `items` as there is room for, publishes them at once, and returns their number. Takes from the
    /// iterator only the items that it pushes. If the iterator is passed by value, its remaining items are dropped with
    /// it. To keep the remaining items, pass a `&mut` iterator.
    ///
    /// ```
    /// use ascertain_sync::ring::{Consumer, Producer, ring};
    ///
    /// let (mut producer, _consumer): (Producer<String>, Consumer<String>) = ring(2);
    /// let mut words = ["one", "two", "three"].map(String::from).into_iter();
    /// assert_eq!(producer.push_batch(&mut words), 2);
    /// assert_eq!(words.next().as_deref(), Some("three"));
    /// ```
    pub fn push_batch(&mut self, items: impl IntoIterator<Item = T>) -> usize {
        let mut items = items.into_iter();
        if items.size_hint().0.max(1) > self.room() as usize {
            self.refresh();
        }
        let mut batch = Batch { pushed: 0, producer: self };
        while batch.pushed < batch.producer.room() {
            let Some(item) = items.next() else { break };
            batch.producer.put(batch.pushed, item);
            batch.pushed += 1;
        }
        batch.pushed as usize
    }

    /// Returns whether the consumer is gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.popped.closed_at().is_some()
    }

    #[inline]
    fn room(&self) -> u32 {
        self.capacity - self.next.since(self.popped)
    }

    #[cold]
    fn find_room(&mut self) -> Result<(), PushError<()>> {
        let is_closed = self.refresh();
        match self.room() {
            _ if is_closed => Err(PushError::Closed(())),
            0 => Err(PushError::Full(())),
            _ => Ok(()),
        }
    }

    /// Reads how many items have been popped. Returns whether the consumer is gone.
    fn refresh(&mut self) -> bool {
        let count = self.shared.popped.count().snapshot();
        let closed_at = self.shared.popped.closed_at();
        // If the consumer is gone, `popped` is set so that there is no room. So every later push calls this again.
        self.popped = if closed_at.is_some() { self.next.before(self.capacity) } else { count };
        closed_at.is_some()
    }

    #[inline]
    fn put_one(&mut self, item: T) {
        self.put(0, item);
        self.publish(1);
    }

    #[inline]
    fn publish(&mut self, count: u32) {
        let before = self.next;
        self.next = before.after(count);
        self.shared.pushed.count().publish_after(before, count);
    }

    /// Writes an item into the slot `offset` places after `next`. There must be room, and the item is not published
    /// yet.
    #[inline]
    fn put(&mut self, offset: u32, item: T) {
        // SAFETY: `popped` has passed the last item of this slot, and was read with acquire. The consumer does not
        // access the slot before its new item is published.
        self.shared.slot(self.next.after(offset)).with_mut(|slot| unsafe { slot.write(MaybeUninit::new(item)) });
    }
}

/// Publishes the pushed items when this is dropped, even if the iterator has panicked.
struct Batch<'a, T: Send, P: EventCount, C: EventCount> {
    producer: &'a mut Producer<T, P, C>,
    pushed: u32,
}

impl<T: Send, P: EventCount, C: EventCount> Drop for Batch<'_, T, P, C> {
    fn drop(&mut self) {
        if self.pushed > 0 {
            self.producer.publish(self.pushed);
        }
    }
}

impl<T: Send, P: EventCount, C: EventCount> Drop for Producer<T, P, C> {
    fn drop(&mut self) {
        self.shared.pushed.close(self.next);
    }
}

impl<T: Send, P: EventCount, C: EventCount> fmt::Debug for Producer<T, P, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("next", &self.next).field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

/// The reason why an item was not pushed. It contains the item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushError<T> {
    /// There is no room: pop, or wait longer.
    Full(T),
    /// The consumer is gone: the item would never be popped.
    Closed(T),
}

impl PushError<()> {
    fn with<T>(self, item: T) -> PushError<T> {
        match self {
            Self::Full(()) => PushError::Full(item),
            Self::Closed(()) => PushError::Closed(item),
        }
    }
}

impl<T> fmt::Display for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the ring was full until the deadline: pop faster, or make the ring larger",
            Self::Closed(_) => "the ring's consumer is gone",
        })
    }
}

impl<T: fmt::Debug> std::error::Error for PushError<T> {}
