//! The side that pushes.

use std::fmt;
use std::mem::MaybeUninit;
use std::sync::Arc;

use super::shared::Shared;
use crate::event_count::{EventCount, SingleProducer, Version};
use crate::primitives::Instant;

/// Pushes items. When it is dropped, the consumer pops what is left and then learns that the ring is closed.
pub struct Producer<T: Send, P: EventCount = SingleProducer, C: EventCount = SingleProducer> {
    shared: Arc<Shared<T, P, C>>,
    /// Where the next item goes.
    next: Version,
    /// How many had been popped when last looked at.
    popped: Version,
    capacity: u32,
}

impl<T: Send, P: EventCount, C: EventCount> Producer<T, P, C> {
    pub(super) fn new(shared: Arc<Shared<T, P, C>>, first: Version) -> Self {
        Self { capacity: shared.capacity(), shared, next: first, popped: first }
    }

    /// The most items that the ring holds.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Pushes if there is room.
    ///
    /// # Errors
    ///
    /// [`PushError::Full`], or [`PushError::Closed`] if the consumer is gone. The producer learns of that when what it
    /// knew to be free is used up: until then up to [`capacity`](Producer::capacity) items are pushed for nobody, and
    /// dropped with the ring.
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

    /// Pushes, and waits for room if there is none.
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] when the deadline has passed, else as [`try_push`](Producer::try_push).
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

    /// Waits for room, if there is none; how many items can be pushed at least.
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] when the deadline has passed, [`PushError::Closed`] if the consumer is gone.
    pub fn wait_for_room(&mut self, deadline: Option<Instant>) -> Result<usize, PushError<()>> {
        loop {
            match self.find_room() {
                Ok(()) => return Ok(self.room() as usize),
                // It is not closed, and so `popped` is what the count was.
                Err(PushError::Full(())) if self.shared.popped.count().wait(self.popped, deadline).is_some() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Pushes as many of `items` as there is room for, and says so to the consumer once; how many. Takes no item from
    /// the iterator that it does not push, but the iterator ends here, and with it the rest of a `Vec`: pass `&mut` of
    /// one to keep the rest.
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
            self.look();
        }
        let mut batch = Batch { pushed: 0, producer: self };
        while batch.pushed < batch.producer.room() {
            let Some(item) = items.next() else { break };
            batch.producer.put(batch.pushed, item);
            batch.pushed += 1;
        }
        batch.pushed as usize
    }

    /// Whether the consumer is gone.
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
        let is_closed = self.look();
        match self.room() {
            _ if is_closed => Err(PushError::Closed(())),
            0 => Err(PushError::Full(())),
            _ => Ok(()),
        }
    }

    /// Learns how many have been popped, and whether the consumer is gone.
    fn look(&mut self) -> bool {
        let count = self.shared.popped.count().snapshot();
        let closed_at = self.shared.popped.closed_at();
        // To a consumer that is gone, there is never room.
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

    /// Writes an item that far behind the last. There is room, and nobody knows of it yet.
    #[inline]
    fn put(&mut self, offset: u32, item: T) {
        // SAFETY: `popped` has passed this slot's last item, and was read with acquire; the consumer does not look at
        // it before it is published.
        self.shared.slot(self.next.after(offset)).with_mut(|slot| unsafe { slot.write(MaybeUninit::new(item)) });
    }
}

/// Publishes what was pushed, also when the iterator panics.
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

/// Why an item was not pushed. It is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushError<T> {
    /// There is no room: pop, or wait for longer.
    Full(T),
    /// The consumer is gone: nobody will ever pop it.
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
            Self::Full(_) => "the ring was full until the deadline: pop faster, or make it larger",
            Self::Closed(_) => "the ring's consumer is gone",
        })
    }
}

impl<T: fmt::Debug> std::error::Error for PushError<T> {}
