//! Tests of event counts on this machine. Most tests check the same properties for each type of event count.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use ascertain_sync::event_count::{Awaitable, EventCount, MultiProducer, OneWord, Polled, TwoWord, Version};
use ascertain_sys::testing::deadline;

/// The last version before the count wraps.
const LAST: u32 = (1 << 31) - 1;

/// Runs a generic function for each event count.
macro_rules! for_each {
    ($function:ident) => {
        $function::<OneWord>();
        $function::<TwoWord>();
        $function::<MultiProducer>();
        $function::<Awaitable>();
        $function::<Polled>();
    };
}

/// Returns the deadline at which a wake-up counts as lost.
fn patience() -> Option<Instant> {
    Some(deadline())
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
        // The flag that this wait left behind does no harm.
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

/// Publishes when the sleepers have waited for the time `while_`. Depending on this time, the sleepers sleep briefly
/// and check again, or sleep without a limit. They must be woken in both cases.
fn wakes_after<E: EventCount + 'static>(while_: Duration, sleepers: usize, first: u32) {
    let count = Arc::new(E::starting_at(Version::new(first)));
    let begun = Arc::new(Barrier::new(sleepers + 1));
    let sleepers: Vec<_> = (0..sleepers)
        .map(|_| {
            let (count, begun) = (count.clone(), begun.clone());
            thread::spawn(move || {
                begun.wait();
                count.wait(Version::new(first), patience())
            })
        })
        .collect();
    begun.wait();
    thread::sleep(while_);
    count.publish();
    for sleeper in sleepers {
        assert_eq!(sleeper.join().unwrap(), Some(Version::new(first).after(1)));
    }
    // When no thread sleeps any more, the flag is not set.
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
    many_producers::<MultiProducer>();
    many_producers::<Awaitable>();
}

fn many_producers<E: EventCount + 'static>() {
    const EACH: u32 = if cfg!(miri) { 50 } else { 10_000 };
    let first = Version::new(LAST - EACH);
    let count = Arc::new(E::starting_at(first));
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

/// Two threads wait for each other's answer in turn, so both sleep repeatedly while the count wraps around.
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

/// A waker that calls a function.
struct Call<F>(F);

impl<F: Fn() + Send + Sync> Wake for Call<F> {
    fn wake(self: Arc<Self>) {
        self.0();
    }
}

fn calling(function: impl Fn() + Send + Sync + 'static) -> Waker {
    Waker::from(Arc::new(Call(function)))
}

/// Returns a waker that counts how often it is used.
fn counting() -> (Waker, Arc<AtomicU32>) {
    let wakes = Arc::new(AtomicU32::new(0));
    let counted = wakes.clone();
    let waker = calling(move || {
        counted.fetch_add(1, Relaxed);
    });
    (waker, wakes)
}

fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let thread = thread::current();
    let waker = calling(move || thread.unpark());
    loop {
        if let Poll::Ready(output) = poll(&mut future, &waker) {
            return output;
        }
        let deadline = deadline();
        thread::park_timeout(deadline.saturating_duration_since(Instant::now()));
        assert!(Instant::now() < deadline, "a lost wake-up");
    }
}

/// Runs `program`, and fails if it does not end. A faulty program would wait for itself for ever.
fn ends(program: impl FnOnce() + Send + 'static) {
    let (sender, end) = mpsc::channel();
    thread::spawn(move || {
        program();
        sender.send(()).unwrap();
    });
    let left = deadline().saturating_duration_since(Instant::now());
    end.recv_timeout(left).expect("it panics, or waits for itself");
}

#[test]
fn a_future_is_woken_once_and_has_the_version() {
    for first in [0, LAST] {
        let first = Version::new(first);
        let count = Awaitable::starting_at(first);
        let (waker, wakes) = counting();
        let mut future = count.changed(first);
        assert_eq!(poll(&mut future, &waker), Poll::Pending);
        count.publish_many(0);
        assert_eq!(wakes.load(Relaxed), 0);
        count.publish();
        assert_eq!(wakes.load(Relaxed), 1);
        count.publish();
        assert_eq!(wakes.load(Relaxed), 1, "it did not ask again");
        assert_eq!(poll(&mut future, &waker), Poll::Ready(first.after(2)));
        // If the version has already changed, there is no wait.
        assert_eq!(poll(&mut count.changed(first), &waker), Poll::Ready(first.after(2)));
    }
}

#[test]
fn the_last_waker_is_woken_and_the_others_forgotten() {
    let count = Awaitable::default();
    let [(first, first_wakes), (last, last_wakes)] = [counting(), counting()];
    let mut future = count.changed(count.snapshot());
    for waker in [&first, &last, &last] {
        assert_eq!(poll(&mut future, waker), Poll::Pending);
    }
    drop(first);
    assert_eq!(Arc::strong_count(&first_wakes), 1, "its waker is kept");
    count.publish();
    assert_eq!((first_wakes.load(Relaxed), last_wakes.load(Relaxed)), (0, 1));
}

#[test]
fn a_future_that_is_dropped_leaves_nothing_and_takes_nothing() {
    let count = Awaitable::default();
    let [(dropped, dropped_wakes), (kept, kept_wakes)] = [counting(), counting()];
    let seen = count.snapshot();
    let (mut before, mut between, mut after) = (count.changed(seen), count.changed(seen), count.changed(seen));
    assert_eq!(poll(&mut before, &dropped), Poll::Pending);
    assert_eq!(poll(&mut between, &kept), Poll::Pending);
    assert_eq!(poll(&mut after, &dropped), Poll::Pending);
    drop((before, after, dropped));
    assert_eq!(Arc::strong_count(&dropped_wakes), 1, "its waker is kept");
    count.publish();
    assert_eq!((dropped_wakes.load(Relaxed), kept_wakes.load(Relaxed)), (0, 1));
}

/// Wakers are called, cloned and dropped while no lock is held.
#[test]
fn a_waker_may_do_anything() {
    /// A waker that polls, publishes to and waits on the event count, both when it wakes and when it is dropped.
    struct Meddle(Arc<Awaitable>);

    impl Meddle {
        fn meddle(&self) {
            let count = &self.0;
            let (waker, wakes) = counting();
            let seen = count.snapshot();
            let (mut kept, mut dropped) = (count.changed(seen), count.changed(seen));
            assert_eq!(poll(&mut kept, &waker), Poll::Pending);
            assert_eq!(poll(&mut dropped, &waker), Poll::Pending);
            drop(dropped);
            count.publish();
            assert_eq!(count.wait(seen, patience()), Some(seen.after(1)));
            assert_eq!(wakes.load(Relaxed), 1);
        }
    }

    impl Wake for Meddle {
        fn wake(self: Arc<Self>) {
            self.meddle();
        }
    }

    impl Drop for Meddle {
        fn drop(&mut self) {
            self.meddle();
        }
    }

    ends(|| {
        let count = Arc::new(Awaitable::default());
        // Each waker has no other reference, so the last holder drops it.
        let meddling = || Waker::from(Arc::new(Meddle(count.clone())));
        let other = Waker::noop();

        let seen = count.snapshot();
        let mut replaced = count.changed(seen);
        assert_eq!(poll(&mut replaced, &meddling()), Poll::Pending);
        assert_eq!(
            poll(&mut replaced, other),
            Poll::Ready(seen.after(1)),
            "the replaced waker published when it was dropped"
        );

        let seen = count.snapshot();
        let mut woken = count.changed(seen);
        assert_eq!(poll(&mut woken, &meddling()), Poll::Pending);
        count.publish();
        assert_eq!(
            poll(&mut woken, other),
            Poll::Ready(seen.after(3)),
            "the waker published when it was used and when it was dropped"
        );

        let seen = count.snapshot();
        let mut dropped = count.changed(seen);
        assert_eq!(poll(&mut dropped, &meddling()), Poll::Pending);
        drop(dropped);
        assert_eq!(count.snapshot(), seen.after(1));
    });
}

#[test]
fn wakers_that_panic_keep_no_one_asleep() {
    let count = Awaitable::default();
    let (waker, wakes) = counting();
    let panicking = |number: u32| calling(move || panic!("number {number}"));
    let wakers = [&waker, &panicking(1), &waker, &panicking(2), &waker];
    let seen = count.snapshot();
    let mut futures = wakers.map(|_| count.changed(seen));
    for (future, waker) in futures.iter_mut().zip(wakers) {
        assert_eq!(poll(future, waker), Poll::Pending);
    }
    let panic = catch_unwind(AssertUnwindSafe(|| count.publish())).expect_err("the first panic goes on");
    assert_eq!(panic.downcast_ref::<String>().map(String::as_str), Some("number 1"));
    assert_eq!(wakes.load(Relaxed), 3);
    // The count works as before.
    for future in &mut futures {
        assert_eq!(poll(future, &waker), Poll::Ready(seen.after(1)));
    }
    let mut future = count.changed(count.snapshot());
    assert_eq!(poll(&mut future, &waker), Poll::Pending);
    count.publish();
    assert_eq!(wakes.load(Relaxed), 4);
}

#[test]
fn ping_pong_of_tasks() {
    const ROUNDS: u32 = if cfg!(miri) { 20 } else { 5_000 };
    let first = Version::new(LAST - ROUNDS / 2);
    let counts = Arc::new((Awaitable::starting_at(first), Awaitable::starting_at(first)));
    let other = counts.clone();
    let other = thread::spawn(move || {
        block_on(async {
            for round in 0..ROUNDS {
                other.0.changed(first.after(round)).await;
                other.1.publish();
            }
        });
    });
    block_on(async {
        for round in 0..ROUNDS {
            counts.0.publish();
            counts.1.changed(first.after(round)).await;
        }
    });
    other.join().unwrap();
}

/// Runs threads, tasks, a task with many futures, and futures that are dropped early, until everything has been
/// published.
#[test]
fn tasks_and_threads_wait_together() {
    const EACH: u32 = if cfg!(miri) { 20 } else { 5_000 };
    const TOTAL: u32 = 2 * EACH;
    let first = Version::new(LAST - EACH);
    let count = Awaitable::starting_at(first);
    let (count, more) = (&count, move |seen: Version| seen.since(first) < TOTAL);
    let sleep = || {
        let mut seen = first;
        while more(seen) {
            seen = count.wait(seen, patience()).expect("a lost wake-up");
        }
    };
    let task = || async {
        let mut seen = first;
        while more(seen) {
            seen = count.changed(seen).await;
        }
    };
    let many = || {
        let mut tasks: Vec<_> = (0..10).map(|_| Box::pin(task())).collect();
        poll_fn(move |context| {
            tasks.retain_mut(|task| task.as_mut().poll(context).is_pending());
            if tasks.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
    };
    let fickle = || {
        let (waker, _) = counting();
        let mut seen = first;
        while more(seen) {
            match poll(&mut count.changed(seen), &waker) {
                Poll::Ready(version) => seen = version,
                Poll::Pending => thread::yield_now(),
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(sleep);
        scope.spawn(sleep);
        scope.spawn(|| block_on(task()));
        scope.spawn(|| block_on(many()));
        scope.spawn(fickle);
        for _ in 0..2 {
            scope.spawn(|| (0..EACH).for_each(|_| count.publish()));
        }
    });
    assert_eq!(count.snapshot(), first.after(TOTAL));
}
