//! Tests of event counts under loom, which explores every execution that Rust's memory model allows.

use std::mem::ManuallyDrop;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use ascertain_sync::event_count::{Awaitable, EventCount, MultiProducer, OneWord, Polled, TwoWord, Version};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::sync::{Condvar, Mutex};
use loom::thread;

use super::bounded;

/// Each producer writes its data and publishes. The waiter waits until it has seen all publications, and then reads the
/// data.
fn hand_over<E: EventCount + 'static>(producers: u32, publications: u32, first: u32) {
    bounded(move || {
        let first = Version::new(first);
        let data: Vec<_> = (0..producers).map(|_| UnsafeCell::new(0)).collect();
        let shared = Arc::new((data, E::starting_at(first)));
        let producers: Vec<_> = (0..producers as usize)
            .map(|nth| {
                let shared = shared.clone();
                thread::spawn(move || {
                    // SAFETY: the waiter reads only after everything has been published.
                    shared.0[nth].with_mut(|data| unsafe { *data = 7 });
                    for _ in 0..publications {
                        shared.1.publish();
                    }
                })
            })
            .collect();
        let mut seen = first;
        while seen.since(first) < producers.len() as u32 * publications {
            seen = shared.1.wait(seen, None).expect("there is no deadline");
        }
        for data in &shared.0 {
            // SAFETY: no thread writes any more, because all publications were seen.
            assert_eq!(data.with(|data| unsafe { *data }), 7);
        }
        producers.into_iter().for_each(|producer| producer.join().unwrap());
    });
}

#[test]
fn no_wake_up_of_many_producers_is_lost() {
    hand_over::<MultiProducer>(2, 1, 0);
    hand_over::<MultiProducer>(1, 2, 0);
    hand_over::<MultiProducer>(2, 1, (1 << 31) - 1);
}

#[test]
fn no_wake_up_of_two_words_is_lost_where_time_is_a_fence() {
    hand_over::<TwoWord>(1, 1, 0);
    hand_over::<TwoWord>(1, 2, (1 << 31) - 1);
}

/// Under loom, the addition to the word is atomic, as on architectures other than x86-64.
#[test]
fn no_wake_up_of_one_word_is_lost() {
    hand_over::<OneWord>(1, 1, 0);
}

#[test]
fn what_is_polled_is_seen() {
    hand_over::<Polled>(1, 2, 0);
}

/// Runs two waiters, each of which waits for any new version. Each element of `publications` is the number of versions
/// that one call publishes.
fn wake_all<E: EventCount + 'static>(publications: &'static [u32]) {
    bounded(move || {
        let count = Arc::new(E::default());
        let waiters = [(); 2].map(|()| {
            let count = count.clone();
            thread::spawn(move || {
                count.wait(Version::new(0), None).expect("there is no deadline");
            })
        });
        publications.iter().for_each(|&publications| count.publish_many(publications));
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

#[test]
fn all_waiters_are_woken() {
    wake_all::<MultiProducer>(&[1]);
    wake_all::<MultiProducer>(&[1, 1]);
    wake_all::<MultiProducer>(&[0, 1]);
}

#[test]
fn all_waiters_on_one_word_are_woken() {
    wake_all::<OneWord>(&[1, 1]);
    wake_all::<OneWord>(&[0, 1]);
}

#[test]
fn all_waiters_on_two_words_are_woken() {
    wake_all::<TwoWord>(&[1, 1]);
    wake_all::<TwoWord>(&[0, 1]);
}

/// The control: a thread that takes the snapshot after the check of the data, not before it, sleeps for ever.
#[test]
#[should_panic(expected = "deadlock")]
fn a_snapshot_taken_too_late_is_fatal() {
    bounded(|| {
        let shared = Arc::new((AtomicU32::new(0), MultiProducer::default()));
        let producer = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.0.store(1, Relaxed);
                shared.1.publish();
            })
        };
        while shared.0.load(Relaxed) == 0 {
            shared.1.wait(shared.1.snapshot(), None);
        }
        producer.join().unwrap();
    });
}

/// A waker that wakes a sleeping thread. A wake-up before the sleep is not lost.
#[derive(Default)]
struct Alarm {
    rings: Mutex<bool>,
    rung: Condvar,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        *self.rings.lock().unwrap() = true;
        self.rung.notify_one();
    }
}

impl Alarm {
    fn sleep(&self) {
        let mut rings = self.rings.lock().unwrap();
        while !*rings {
            rings = self.rung.wait(rings).unwrap();
        }
        *rings = false;
    }
}

fn block_on<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let alarm = Arc::new(Alarm::default());
    let waker = Waker::from(alarm.clone());
    loop {
        if let Poll::Ready(output) = poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        alarm.sleep();
    }
}

/// Runs a task that waits until it has seen all publications and then reads the data. Optionally, a thread waits for
/// any publication, and another future is dropped after one poll.
fn wake_tasks(publications: u32, has_sleeper: bool, has_quitter: bool) {
    bounded(move || {
        let shared = Arc::new((UnsafeCell::new(0), Awaitable::default()));
        let task = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (data, count) = &*shared;
                let mut seen = Version::new(0);
                while seen.get() < publications {
                    let mut changed = pin!(count.changed(seen));
                    seen = block_on(|context| changed.as_mut().poll(context));
                }
                // SAFETY: no thread writes any more.
                assert_eq!(data.with(|data| unsafe { *data }), 7);
            })
        };
        let sleeper = has_sleeper.then(|| {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.1.wait(Version::new(0), None).expect("there is no deadline");
            })
        });
        let quitter = has_quitter.then(|| {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut changed = shared.1.changed(Version::new(0));
                let _ = Pin::new(&mut changed).poll(&mut Context::from_waker(Waker::noop()));
            })
        });
        // SAFETY: the task reads only after everything has been published.
        shared.0.with_mut(|data| unsafe { *data = 7 });
        (0..publications).for_each(|_| shared.1.publish());
        let others = [Some(task), sleeper, quitter];
        others.into_iter().flatten().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn no_wake_up_of_a_task_is_lost() {
    wake_tasks(1, false, false);
    wake_tasks(2, false, false);
}

#[test]
fn nor_beside_a_thread() {
    wake_tasks(1, true, false);
    wake_tasks(2, true, false);
}

#[test]
fn nor_beside_one_that_gives_up() {
    wake_tasks(1, false, true);
    wake_tasks(2, false, true);
}

#[test]
fn threads_are_woken_where_tasks_could_wait() {
    hand_over::<Awaitable>(2, 1, 0);
    wake_all::<Awaitable>(&[1]);
    wake_all::<Awaitable>(&[1, 1]);
}

/// The control: a task that adds its waker after the last check of the version sleeps for ever.
#[test]
#[should_panic(expected = "deadlock")]
fn a_waker_entered_too_late_is_fatal() {
    bounded(|| {
        let count = Arc::new(Awaitable::default());
        let producer = {
            let count = count.clone();
            thread::spawn(move || count.publish())
        };
        // The future is not dropped when the test fails, because the lock cannot be taken outside of a model.
        let mut changed = ManuallyDrop::new(count.changed(Version::new(0)));
        block_on(|context| changed.poll_hastily(context));
        producer.join().unwrap();
    });
}
