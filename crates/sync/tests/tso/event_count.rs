//! Tests that explore every execution of small programs with event counts and rings, on x86 with store buffers.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use ascertain_sync::event_count::{
    Awaitable, EventCount, Impatient, MultiProducer, OneWord, Polled, TwoWord, Version, VersionChange,
};
use ascertain_sync::ring::{PopError, ring_starting_at};
use ascertain_tso::{AtomicU32, Exploration, Failure, Futex, Instant, explore, thread};

/// The producer writes and publishes `publications` times. Each waiter waits until it has seen all publications.
fn hand_over<E: EventCount + 'static>(waiters: u32, publications: u32, first: u32) -> Result<Exploration, Failure> {
    explore(move || {
        let first = Version::new(first);
        let shared = Arc::new((AtomicU32::new(0), E::starting_at(first)));
        let wait = {
            let shared = shared.clone();
            move || {
                let (data, count) = &*shared;
                let mut seen = first;
                while seen.since(first) < publications {
                    let before = seen;
                    seen = count.wait(seen, None).expect("there is no deadline");
                    assert_ne!(seen, before, "nothing new");
                    // With two waiters that read the data too, there would be too many executions.
                    let is_written = waiters > 1 || data.load(Relaxed) >= seen.since(first);
                    assert!(is_written, "published before it was written");
                }
            }
        };
        let waiters: Vec<_> = (0..waiters).map(|_| thread::spawn(wait.clone())).collect();
        let (data, count) = &*shared;
        for value in 1..=publications {
            data.store(value, Relaxed);
            count.publish();
        }
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    })
}

#[allow(clippy::print_stdout)] // prints the number of executions, with --nocapture
fn say(what: &str, explored: Result<Exploration, Failure>) {
    let explored = explored.unwrap_or_else(|failure| panic!("{what}: {failure}"));
    println!("{what}: {} executions, {} redundant", explored.executions, explored.redundant);
}

#[test]
fn no_wake_up_is_lost() {
    say("hand_over::<OneWord>(1, 1, 0)", hand_over::<OneWord>(1, 1, 0));
    say("hand_over::<OneWord>(1, 2, 0)", hand_over::<OneWord>(1, 2, 0));
    say("hand_over::<TwoWord>(1, 1, 0)", hand_over::<TwoWord>(1, 1, 0));
    say("hand_over::<TwoWord>(1, 2, 0)", hand_over::<TwoWord>(1, 2, 0));
    say("hand_over::<MultiProducer>(1, 2, 0)", hand_over::<MultiProducer>(1, 2, 0));
    say("hand_over::<Polled>(1, 2, 0)", hand_over::<Polled>(1, 2, 0));
}

#[test]
fn nor_by_two_waiters() {
    say("hand_over::<OneWord>(2, 1, 0)", hand_over::<OneWord>(2, 1, 0));
    say("hand_over::<MultiProducer>(2, 1, 0)", hand_over::<MultiProducer>(2, 1, 0));
}

/// Runs a sleeper that finds a flag from the previous version. The publication that made the current version has not
/// cleared this flag yet. Meanwhile another thread sets the flag again and leaves.
macro_rules! come_late {
    ($count:ty) => {
        explore(|| {
            let count = Arc::new(<$count>::stalled_at(Version::new(1)));
            let sleeper = thread::spawn({
                let count = count.clone();
                move || count.wait(Version::new(1), None)
            });
            let passer = thread::spawn({
                let count = count.clone();
                move || drop(count.announce_in_passing(Version::new(1)))
            });
            count.go_on();
            count.publish();
            sleeper.join().unwrap();
            passer.join().unwrap();
        })
    };
}

/// Sleeper A finds the flag set and relies on it. The producer then clears the flag, and sleeper B sets it again. A
/// must not rely on B's flag, because the producer may overlook that flag for up to a second after B set it. A's own
/// second of short sleeps began before B set the flag, so A would stop checking too early.
#[test]
fn what_was_taken_back_does_not_stand_again() {
    let explored = explore(|| {
        let count = Arc::new(OneWord::stalled_at(Version::new(1)));
        let sleeper = thread::spawn({
            let count = count.clone();
            move || {
                let stands = count.announce_in_passing(Version::new(1));
                (stands(&count), stands)
            }
        });
        count.go_on();
        drop(count.announce_in_passing(Version::new(1)));
        let (stood, stands) = sleeper.join().unwrap();
        assert!(stood || !stands(&count));
    });
    say("what was taken back", explored);
}

/// Runs two waiters. The second waiter gives up after `limit`, if there is a limit. Each element of `publications` is
/// the number of versions that one call publishes.
fn publish_each<E: EventCount + 'static>(
    publications: &'static [u32],
    limit: Option<Duration>,
) -> Result<Exploration, Failure> {
    explore(move || {
        let count = Arc::new(E::default());
        let waiter = |limit: Option<Duration>| {
            let count = count.clone();
            move || {
                let deadline = limit.map(|limit| Instant::now() + limit);
                count.wait(Version::new(0), deadline);
            }
        };
        let waiters = [None, limit].map(|limit| thread::spawn(waiter(limit)));
        publications.iter().for_each(|&publications| count.publish_many(publications));
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    })
}

macro_rules! say_each {
    ($function:ident($($argument:expr),*)) => {
        say(concat!(stringify!($function), " of one word"), $function::<OneWord>($($argument),*));
        say(concat!(stringify!($function), " of two words"), $function::<TwoWord>($($argument),*));
        say(concat!(stringify!($function), " of many producers"), $function::<MultiProducer>($($argument),*));
        say(concat!(stringify!($function), " polled"), $function::<Polled>($($argument),*));
    };
}

#[test]
fn nor_by_who_comes_late() {
    say("come_late to one word", come_late!(OneWord));
    say("come_late to many producers", come_late!(MultiProducer));
}

#[test]
fn nor_by_empty_publications() {
    say_each!(publish_each(&[0, 1], Some(Duration::ZERO)));
    say_each!(publish_each(&[0, 1], Some(Duration::from_millis(1))));
    say_each!(publish_each(&[0, 0, 1], Some(Duration::ZERO)));
}

#[test]
fn nor_by_two_waiters_of_two_publications() {
    say_each!(publish_each(&[1, 1], Some(Duration::ZERO)));
    say("two waiters without a deadline, one word", publish_each::<OneWord>(&[1, 1], None));
    say("two waiters without a deadline, many producers", publish_each::<MultiProducer>(&[1, 1], None));
    say("two waiters without a deadline, polled", publish_each::<Polled>(&[1, 1], None));
}

fn give_up<E: EventCount + 'static>() {
    const LIMIT: Duration = Duration::from_millis(1);
    let explored = explore(|| {
        let (count, start) = (E::default(), Instant::now());
        assert_eq!(count.wait(Version::new(0), Some(start + LIMIT)), None);
        assert_eq!(start.elapsed(), LIMIT);
    });
    say("give_up", explored);
}

/// A wait ends at its deadline, however long the next sleep would be.
#[test]
fn a_deadline_is_met() {
    give_up::<OneWord>();
    give_up::<TwoWord>();
    give_up::<MultiProducer>();
    give_up::<Awaitable>();
}

#[test]
fn nor_when_the_count_wraps() {
    for first in [(1 << 31) - 2, (1 << 31) - 1] {
        hand_over::<OneWord>(1, 2, first).unwrap();
        hand_over::<TwoWord>(1, 2, first).unwrap();
        hand_over::<MultiProducer>(1, 2, first).unwrap();
    }
}

#[test]
fn a_flag_that_is_overwritten_is_fatal_to_the_impatient() {
    for failure in [hand_over::<Impatient<OneWord>>(1, 1, 0), hand_over::<Impatient<TwoWord>>(1, 1, 0)] {
        let failure = failure.expect_err("it sleeps for ever");
        assert!(failure.what.contains("thread 1 sleeps"), "{failure}");
        assert!(failure.schedule.iter().any(|line| line.contains("reaches memory")), "{failure}");
    }
}

struct Alarm(Futex);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.store(1, Release);
        self.0.wake_all();
    }
}

fn block_on(mut poll: impl FnMut(&mut Context<'_>) -> Poll<Version>) -> Version {
    let alarm = Arc::new(Alarm(Futex::new(0)));
    let waker = Waker::from(alarm.clone());
    loop {
        if let Poll::Ready(version) = poll(&mut Context::from_waker(&waker)) {
            return version;
        }
        alarm.0.wait(0, None);
        alarm.0.swap(0, Relaxed);
    }
}

/// Runs a task that waits until it has seen all publications, using `poll`. Optionally, a thread waits for the first
/// publication.
fn wake_task(
    publications: u32,
    has_sleeper: bool,
    poll: fn(&mut VersionChange<'_>, &mut Context<'_>) -> Poll<Version>,
) -> Result<Exploration, Failure> {
    explore(move || {
        let count = Arc::new(Awaitable::default());
        let task = {
            let count = count.clone();
            move || {
                let mut seen = Version::new(0);
                while seen.get() < publications {
                    let mut changed = count.changed(seen);
                    seen = block_on(|context| poll(&mut changed, context));
                }
            }
        };
        let sleeper = {
            let count = count.clone();
            move || {
                count.wait(Version::new(0), None);
            }
        };
        let task = thread::spawn(task);
        let sleeper = has_sleeper.then(|| thread::spawn(sleeper));
        (0..publications).for_each(|_| count.publish());
        [Some(task), sleeper].into_iter().flatten().for_each(|thread| thread.join().unwrap());
    })
}

fn poll(changed: &mut VersionChange<'_>, context: &mut Context<'_>) -> Poll<Version> {
    Pin::new(changed).poll(context)
}

#[test]
fn no_task_sleeps_for_ever() {
    say("a task and a publication", wake_task(1, false, poll));
    say("a task and two publications", wake_task(2, false, poll));
    say("hand_over::<Awaitable>(1, 1, 0)", hand_over::<Awaitable>(1, 1, 0));
}

#[test]
fn a_waker_entered_too_late_is_fatal() {
    let failure =
        wake_task(1, false, |changed, context| changed.poll_hastily(context)).expect_err("it sleeps for ever");
    assert!(failure.what.contains("thread 1 sleeps"), "{failure}");
}

/// Passes `items` items, one at a time, through a ring of `capacity` slots, and then closes the ring.
fn pass_on<E: EventCount + 'static>(capacity: usize, items: u32, first: u32) -> Result<Exploration, Failure> {
    explore(move || {
        let (mut producer, mut consumer) = ring_starting_at::<u32, E, E>(capacity, Version::new(first));
        let consumer = thread::spawn(move || {
            for expected in 0..items {
                assert_eq!(consumer.pop(None), Ok(expected));
            }
            assert_eq!(consumer.pop(None), Err(PopError::Closed));
        });
        for item in 0..items {
            producer.push(item, None).unwrap();
        }
        drop(producer);
        consumer.join().unwrap();
    })
}

#[test]
fn a_ring_blocks_and_closes() {
    say("pass_on::<Polled>(1, 1, 0)", pass_on::<Polled>(1, 1, 0));
    say("pass_on::<MultiProducer>(1, 1, 0)", pass_on::<MultiProducer>(1, 1, 0));
    say("pass_on::<OneWord>(1, 1, (1 << 31) - 1)", pass_on::<OneWord>(1, 1, (1 << 31) - 1));
}

#[test]
#[ignore = "two minutes"]
fn more_of_each() {
    say("a task, a thread, and a publication", wake_task(1, true, poll));
    say("hand_over::<Awaitable>(1, 2, 0)", hand_over::<Awaitable>(1, 2, 0));
    say("hand_over::<TwoWord>(2, 1, 0)", hand_over::<TwoWord>(2, 1, 0));
    say("hand_over::<OneWord>(1, 3, 0)", hand_over::<OneWord>(1, 3, 0));
    say("pass_on::<Polled>(1, 2, 0)", pass_on::<Polled>(1, 2, 0));
    say("pass_on::<MultiProducer>(1, 2, 0)", pass_on::<MultiProducer>(1, 2, 0));
    say("pass_on::<TwoWord>(1, 1, 0)", pass_on::<TwoWord>(1, 1, 0));
}
