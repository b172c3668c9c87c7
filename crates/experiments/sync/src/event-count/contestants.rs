//! The event counts of `sync`, alone and as a ring's write index, and what others have for the purpose.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use ascertain_engine::black_box;
use ascertain_sync::event_count::{Awaitable, EventCount, MultiProducer, OneWord, Polled, TwoWord};
use ascertain_sync::ring::{Consumer, Producer, ring};
use event_listener::{Event, Listener};

use super::waiters::{Tasks, tasks};

/// Items of the ring, all of them in L1d.
pub const ITEMS: u64 = 1_024;

/// What can be published, and waited for.
pub trait Signal: Send + Sync {
    /// Publishes so many times.
    fn publish(&self, times: u64);

    /// Calls `ready`, and returns after a publication that comes later.
    fn wait(&self, ready: &mut dyn FnMut());

    /// How often has been published, where that is known.
    fn published(&self) -> Option<u64>;
}

/// A ring that one thread fills and drains.
pub trait Ring {
    /// Pushes [`ITEMS`] numbers, from 0.
    fn fill(&mut self);

    /// Pops them; their sum.
    fn drain(&mut self) -> u64;

    /// Pushes and pops one after the other; their sum.
    fn pass(&mut self) -> u64;
}

/// A way to publish.
pub struct Variant {
    pub name: &'static str,
    pub about: &'static str,
    pub signal: fn() -> Arc<dyn Signal>,
    /// None for what counts nothing.
    pub ring: Option<fn() -> Box<dyn Ring>>,
    /// None for what only threads can wait for.
    pub tasks: Option<fn() -> Box<dyn Tasks>>,
}

pub const VARIANTS: &[Variant] = &[
    Variant {
        name: "polled",
        about: "limit: a release store; whoever waits looks again and again",
        signal: || Arc::new(Counted(Polled::default())),
        ring: Some(indexed::<Polled>),
        tasks: None,
    },
    Variant {
        name: "one-word",
        about: "for one producer: addition to memory without LOCK, and one branch",
        signal: || Arc::new(Counted(OneWord::default())),
        ring: Some(indexed::<OneWord>),
        tasks: None,
    },
    Variant {
        name: "two-word",
        about: "for one producer: a store, and a flag in another word",
        signal: || Arc::new(Counted(TwoWord::default())),
        ring: Some(indexed::<TwoWord>),
        tasks: None,
    },
    Variant {
        name: "multi-producer",
        about: "for any number of producers: atomic addition",
        signal: || Arc::new(Counted(MultiProducer::default())),
        ring: Some(indexed::<MultiProducer>),
        tasks: None,
    },
    Variant {
        name: "awaitable",
        about: "as multi-producer, and tasks can wait, too",
        signal: || Arc::new(Counted(Awaitable::default())),
        ring: Some(indexed::<Awaitable>),
        tasks: Some(tasks::<Awaitable>),
    },
    Variant {
        name: "event-listener",
        about: "the crate event-listener: notify all",
        signal: || Arc::new(Event::<()>::new()),
        ring: None,
        tasks: Some(tasks::<Event>),
    },
    Variant {
        name: "condvar",
        about: "the standard library: a count under a mutex, and notify all",
        signal: || Arc::new((Mutex::new(0), Condvar::new())),
        ring: None,
        tasks: None,
    },
];

struct Counted<E>(E);

impl<E: EventCount> Signal for Counted<E> {
    fn publish(&self, times: u64) {
        // Each by itself: plain stores could be made one.
        (0..times).for_each(|_| black_box(&self.0).publish());
    }

    fn wait(&self, ready: &mut dyn FnMut()) {
        let seen = self.0.snapshot();
        ready();
        self.0.wait(seen, None);
    }

    fn published(&self) -> Option<u64> {
        Some(self.0.snapshot().get().into())
    }
}

impl Signal for Event {
    fn publish(&self, times: u64) {
        for _ in 0..times {
            self.notify(usize::MAX);
        }
    }

    fn wait(&self, ready: &mut dyn FnMut()) {
        let listener = self.listen();
        ready();
        listener.wait();
    }

    fn published(&self) -> Option<u64> {
        None
    }
}

fn count((count, _): &(Mutex<u64>, Condvar)) -> MutexGuard<'_, u64> {
    count.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Signal for (Mutex<u64>, Condvar) {
    fn publish(&self, times: u64) {
        for _ in 0..times {
            *count(self) += 1;
            self.1.notify_all();
        }
    }

    fn wait(&self, ready: &mut dyn FnMut()) {
        let seen = *count(self);
        ready();
        drop(self.1.wait_while(count(self), |count| *count == seen));
    }

    fn published(&self) -> Option<u64> {
        Some(*count(self))
    }
}

struct Indexed<E: EventCount> {
    producer: Producer<u64, E, Polled>,
    consumer: Consumer<u64, E, Polled>,
}

fn indexed<E: EventCount + 'static>() -> Box<dyn Ring> {
    let (producer, consumer) = ring::<u64, E, Polled>(ITEMS as usize);
    Box::new(Indexed { producer, consumer })
}

impl<E: EventCount> Ring for Indexed<E> {
    fn fill(&mut self) {
        for item in 0..ITEMS {
            // It was drained, and the consumer lives: there is room.
            let _ = black_box(self.producer.try_push(item));
        }
    }

    fn drain(&mut self) -> u64 {
        self.consumer.pop_batch(usize::MAX).sum()
    }

    fn pass(&mut self) -> u64 {
        let one = |item| {
            let _ = self.producer.try_push(item);
            self.consumer.try_pop().unwrap_or(u64::MAX)
        };
        (0..ITEMS).map(one).fold(0, u64::wrapping_add)
    }
}
