//! Event counts on this machine, each of them by the same rules.
#![cfg(not(any(model = "loom", model = "tso")))]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use ascertain_sync::event_count::{EventCount, MultiProducer, OneWord, Polled, TwoWord, Version};

/// The last version before the count wraps.
const LAST: u32 = (1 << 31) - 1;

/// Runs a generic function for each event count.
macro_rules! for_each {
    ($function:ident) => {
        $function::<OneWord>();
        $function::<TwoWord>();
        $function::<MultiProducer>();
        $function::<Polled>();
    };
}

/// Longer than anything here takes: what was lost is found by it.
fn patience() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(60))
}

#[test]
fn versions_count_modulo_2_to_the_31() {
    let last = Version::new(LAST);
    assert_eq!(Version::new(u32::MAX), last);
    assert_eq!(last.after(1).get(), 0);
    assert_eq!(last.after(3).since(last), 3);
    assert_eq!(last.since(last.after(1)), LAST);
}

#[test]
fn each_publication_is_a_new_version() {
    fn check<E: EventCount>() {
        for first in [0, 5, LAST - 2, LAST] {
            let first = Version::new(first);
            let count = E::starting_at(first);
            assert_eq!(count.snapshot(), first);
            assert_eq!(count.try_wait(first), None);
            count.publish();
            assert_eq!(count.try_wait(first), Some(first.after(1)));
            assert_eq!(count.wait(first, None), Some(first.after(1)));
            count.publish_many(3);
            assert_eq!(count.snapshot(), first.after(4));
            count.publish_many(0);
            assert_eq!(count.snapshot(), first.after(4));
            count.publish_many(LAST);
            assert_eq!(count.snapshot(), first.after(3));
        }
    }
    for_each!(check);
}

#[test]
fn a_deadline_ends_a_wait() {
    fn check<E: EventCount>() {
        let count = E::default();
        let version = count.snapshot();
        assert_eq!(count.wait(version, Some(Instant::now())), None);
        let begun = Instant::now();
        assert_eq!(count.wait(version, Some(begun + Duration::from_millis(5))), None);
        assert!(begun.elapsed() >= Duration::from_millis(5));
        // The flag that it left behind does no harm.
        count.publish();
        assert_eq!(count.wait(version, None), Some(version.after(1)));
    }
    for_each!(check);
}

#[test]
fn a_version_that_is_not_the_snapshot_ends_a_wait_at_once() {
    fn check<E: EventCount>() {
        let count = E::starting_at(Version::new(7));
        assert_eq!(count.wait(Version::new(6), None), Some(Version::new(7)));
        assert_eq!(count.wait(Version::new(8), None), Some(Version::new(7)));
    }
    for_each!(check);
}

/// Publishes after a while, so that the others sleep, and in which way depends on it.
fn wakes_after<E: EventCount + 'static>(while_: Duration, sleepers: usize, first: u32) {
    let count = Arc::new(E::starting_at(Version::new(first)));
    let sleepers: Vec<_> = (0..sleepers)
        .map(|_| {
            let count = count.clone();
            thread::spawn(move || count.wait(Version::new(first), patience()))
        })
        .collect();
    thread::sleep(while_);
    count.publish();
    for sleeper in sleepers {
        assert_eq!(sleeper.join().unwrap(), Some(Version::new(first).after(1)));
    }
    // Once nobody sleeps, nothing is left of it.
    count.publish();
    assert_eq!(count.snapshot(), Version::new(first).after(2));
}

#[test]
fn all_sleepers_are_woken() {
    fn check<E: EventCount + 'static>() {
        for first in [0, LAST - 1, LAST] {
            wakes_after::<E>(Duration::from_millis(20), 3, first);
        }
    }
    for_each!(check);
}

#[test]
fn also_those_who_have_slept_for_a_second() {
    let long = Duration::from_millis(1100);
    thread::scope(|scope| {
        scope.spawn(|| wakes_after::<OneWord>(long, 2, LAST));
        scope.spawn(|| wakes_after::<TwoWord>(long, 2, LAST));
        scope.spawn(|| wakes_after::<MultiProducer>(long, 2, LAST));
    });
}

#[test]
fn many_producers_lose_no_publication() {
    const EACH: u32 = if cfg!(miri) { 50 } else { 10_000 };
    let first = Version::new(LAST - EACH);
    let count = Arc::new(MultiProducer::starting_at(first));
    let producers = [(); 4].map(|()| {
        let count = count.clone();
        thread::spawn(move || (0..EACH).for_each(|_| count.publish()))
    });
    let mut seen = first;
    while seen.since(first) < 4 * EACH {
        seen = count.wait(seen, patience()).expect("a lost publication or wake-up");
    }
    producers.into_iter().for_each(|producer| producer.join().unwrap());
    assert_eq!(count.snapshot(), first.after(4 * EACH));
}

/// Two threads that each wait for the other's answer, so that both sleep again and again while the count wraps.
#[test]
fn ping_pong() {
    fn check<E: EventCount + 'static>() {
        const ROUNDS: u32 = if cfg!(miri) { 20 } else { 5_000 };
        let first = Version::new(LAST - ROUNDS / 2);
        let counts = Arc::new((E::starting_at(first), E::starting_at(first), AtomicU32::new(0)));
        let other = counts.clone();
        let other = thread::spawn(move || {
            for round in 0..ROUNDS {
                other.0.wait(first.after(round), patience()).expect("a lost wake-up");
                assert_eq!(other.2.load(Relaxed), round + 1);
                other.1.publish();
            }
        });
        for round in 0..ROUNDS {
            counts.2.store(round + 1, Relaxed);
            counts.0.publish();
            counts.1.wait(first.after(round), patience()).expect("a lost wake-up");
        }
        other.join().unwrap();
    }
    for_each!(check);
}
