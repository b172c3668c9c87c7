//! The variants: the event counts of `sync`, by themselves and as a ring's write index, and the equivalents of other
//! projects.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use ascertain_engine::black_box;
use ascertain_sync::event_count::{Awaitable, EventCount, MultiProducer, OneWord, Polled, TwoWord};
use ascertain_sync::ring::{Consumer, Producer, ring};
use event_listener::{Event, Listener};

use super::waiters::{BareWaker, Tasks, tasks};

/// Number of items in a ring. All of them fit into the L1 data cache.
pub const ITEMS: u64 = 1_024;

/// A signal that threads can publish and wait for.
pub trait Signal: Send + Sync {
    /// Publishes the signal the given number of times.
    fn publish(&self, times: u64);

    /// Waits for the signal. Calls `ready` once every publication from then on will be noticed, and returns after such
    /// a publication.
    fn wait(&self, ready: &mut dyn FnMut());

    /// Returns the number of publications so far, or `None` if the method does not count them.
    fn published(&self) -> Option<u64>;
}

/// A ring that a single thread fills and drains.
pub trait Ring {
    /// Pushes [`ITEMS`] numbers, starting from 0.
    fn fill(&mut self);

    /// Pops all numbers, and returns their sum.
    fn drain(&mut self) -> u64;

    /// Pushes and pops [`ITEMS`] numbers alternately, and returns the sum of the popped numbers.
    fn pass(&mut self) -> u64;
}

/// One method of publishing a signal.
pub struct Variant {
    pub name: &'static str,
    pub about: &'static str,
    pub signal: fn() -> Arc<dyn Signal>,
    /// Creates a ring that uses the event count's number of publications as its write index. `None` if the method does
    /// not count publications.
    pub ring: Option<fn() -> Box<dyn Ring>>,
    /// Creates tasks that wait for the signal; `None` if only threads can wait.
    pub tasks: Option<fn() -> Box<dyn Tasks>>,
}

pub const VARIANTS: &[Variant] = &[
    counted::<Polled>("polled", "the limit on speed: a publication is one release store, and waiters poll"),
    counted::<OneWord>("one-word", "for one producer: an addition to memory without LOCK, and one branch"),
    counted::<TwoWord>("two-word", "for one producer: a store, and a flag in another word"),
    counted::<MultiProducer>("multi-producer", "for any number of producers: an atomic addition"),
    Variant {
        tasks: Some(tasks::<Awaitable>),
        ..counted::<Awaitable>("awaitable", "as multi-producer, and tasks can wait too")
    },
    Variant {
        name: "bare-waker",
        about: "the limit on speed for tasks: a count, and the waker of a single task under a mutex",
        signal: || Arc::new((Mutex::new(0), Condvar::new())),
        ring: None,
        tasks: Some(tasks::<BareWaker>),
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

/// Returns the variant of an event count of `sync` that only threads can wait for.
const fn counted<E: EventCount + Default + 'static>(name: &'static str, about: &'static str) -> Variant {
    let signal = || Arc::new(CountedSignal(E::default())) as Arc<dyn Signal>;
    Variant { name, about, signal, ring: Some(indexed::<E>), tasks: None }
}

struct CountedSignal<E>(E);

impl<E: EventCount> Signal for CountedSignal<E> {
    fn publish(&self, times: u64) {
        // Makes each publication opaque, because the compiler could merge plain stores.
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

struct IndexedRing<E: EventCount> {
    producer: Producer<u64, E, Polled>,
    consumer: Consumer<u64, E, Polled>,
}

fn indexed<E: EventCount + 'static>() -> Box<dyn Ring> {
    let (producer, consumer) = ring::<u64, E, Polled>(ITEMS as usize);
    Box::new(IndexedRing { producer, consumer })
}

impl<E: EventCount> Ring for IndexedRing<E> {
    fn fill(&mut self) {
        for item in 0..ITEMS {
            // The ring has been drained and the consumer lives, so there is room.
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
