//! Tests of rings on this machine: the order of items, limits, closing, and passing many items from thread to thread.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ascertain_sync::event_count::{EventCount, MultiProducer, OneWord, Polled, SingleProducer, TwoWord, Version};
use ascertain_sync::ring::{Consumer, PopError, Producer, PushError, ring, ring_starting_at};
use ascertain_sys::testing::deadline;
use proptest::prelude::*;

const LAST: u32 = (1 << 31) - 1;

/// Returns the deadline at which a wake-up counts as lost.
fn patience() -> Option<Instant> {
    Some(deadline())
}

/// An action of a program on a ring.
#[derive(Clone, Debug)]
enum Action {
    Push,
    PushBatch(usize),
    Pop,
    PopBatch { max: usize, take: usize },
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        Just(Action::Push),
        (0..10_usize).prop_map(Action::PushBatch),
        Just(Action::Pop),
        (0..10_usize, 0..10_usize).prop_map(|(max, take)| Action::PopBatch { max, take }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(miri, ignore = "generating inputs takes minutes under Miri")]
    fn as_a_queue_with_an_end(
        capacity in 0..9_usize,
        first in prop_oneof![Just(0), LAST - 20..=LAST],
        actions in prop::collection::vec(action(), 0..60),
    ) {
        let first = Version::new(first);
        let (mut producer, mut consumer) = ring_starting_at::<Box<u32>, OneWord, TwoWord>(capacity, first);
        let capacity = capacity.next_power_of_two();
        prop_assert_eq!((producer.capacity(), consumer.capacity()), (capacity, capacity));
        let mut queue = VecDeque::new();
        let mut next = 0..;
        for action in actions {
            match action {
                Action::Push => {
                    let item = next.next().unwrap();
                    let expected = if queue.len() < capacity {
                        queue.push_back(item);
                        Ok(())
                    } else {
                        Err(PushError::Full(Box::new(item)))
                    };
                    prop_assert_eq!(producer.try_push(Box::new(item)), expected);
                }
                Action::PushBatch(count) => {
                    let items: Vec<_> = next.by_ref().take(count).collect();
                    let mut rest = items.iter().map(|&item| Box::new(item));
                    let pushed = producer.push_batch(&mut rest);
                    prop_assert_eq!(pushed, count.min(capacity - queue.len()));
                    prop_assert_eq!(rest.len(), count - pushed, "it takes only what it pushes");
                    queue.extend(&items[..pushed]);
                }
                Action::Pop => prop_assert_eq!(consumer.try_pop().ok().map(|item| *item), queue.pop_front()),
                Action::PopBatch { max, take } => {
                    let popped = consumer.pop_batch(max);
                    prop_assert_eq!(popped.len(), max.min(queue.len()));
                    for item in popped.take(take) {
                        prop_assert_eq!(Some(*item), queue.pop_front());
                    }
                }
            }
        }
        drop(producer);
        for item in queue {
            prop_assert_eq!(consumer.pop(None), Ok(Box::new(item)));
        }
        prop_assert_eq!(consumer.pop(None), Err(PopError::Closed));
    }
}

fn simple<T: Send>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    ring(capacity)
}

/// `push_batch` must find free slots even if the `size_hint` of the iterator does not show that the iterator has items.
#[test]
fn a_batch_of_unknown_length_finds_the_room_that_there_is() {
    let (mut producer, mut consumer): (Producer<u32>, Consumer<u32>) = ring(2);
    assert_eq!(producer.push_batch(0..2), 2);
    assert_eq!(consumer.pop_batch(2).count(), 2);
    assert_eq!(producer.push_batch((0..9).filter(|item| item % 2 == 1)), 2);
    assert_eq!(consumer.pop_batch(2).collect::<Vec<_>>(), [1, 3]);
}

/// The consumer publishes later that the slots of a leaked batch are free, together with the slots of the items popped
/// since. It must publish no other slots as free.
#[test]
fn a_forgotten_batch_is_told_of_later() {
    fn check<C: EventCount>() {
        let (mut producer, mut consumer) = ring::<usize, OneWord, C>(8);
        let mut expected = 0..;
        for round in 0..20 {
            assert_eq!(producer.push_batch(8 * round..), 8);
            let mut batch = consumer.pop_batch(4);
            assert!((&mut batch).eq(expected.by_ref().take(4)));
            std::mem::forget(batch);
            match round % 4 {
                0 => assert!(consumer.pop_batch(2).eq(expected.by_ref().take(2))),
                1 => assert_eq!(consumer.try_pop(), Ok(expected.next().unwrap())),
                2 => {
                    let mut another = consumer.pop_batch(1);
                    assert_eq!(another.next(), expected.next());
                    std::mem::forget(another);
                }
                _ => {}
            }
            while let Ok(item) = consumer.try_pop() {
                assert_eq!(Some(item), expected.next());
            }
        }
        assert_eq!(expected.next(), Some(8 * 20));
        // The batch takes everything, including the last item of the ring. So no later pop can publish it.
        assert_eq!(producer.push_batch(0..), 8);
        let mut batch = consumer.pop_batch(8);
        assert_eq!(batch.by_ref().count(), 8);
        std::mem::forget(batch);
        assert_eq!(producer.try_push(0), Err(PushError::Full(0)));
        assert_eq!(consumer.try_pop(), Err(PopError::Empty));
        assert_eq!(producer.push_batch(0..), 8);
    }
    check::<OneWord>();
    check::<TwoWord>();
    check::<Polled>();
    check::<MultiProducer>();
}

#[test]
fn what_is_left_is_dropped_whoever_goes_first() {
    for producer_first in [true, false] {
        let item = Arc::new(());
        let (mut producer, mut consumer) = simple(4);
        assert_eq!(producer.push_batch([(); 3].map(|()| item.clone())), 3);
        drop(consumer.pop(None).unwrap());
        assert_eq!(Arc::strong_count(&item), 3);
        if producer_first {
            drop(producer);
            assert!(consumer.is_closed());
            drop(consumer);
        } else {
            drop(consumer);
            assert_eq!(Arc::strong_count(&item), 1, "dropped with the consumer");
            assert!(producer.is_closed());
            // The ring accepts items that no consumer will pop, as long as the producer does not know that the consumer
            // is gone.
            let pushed = (0..).take_while(|_| producer.try_push(item.clone()).is_ok()).count();
            assert!(pushed <= producer.capacity());
            assert!(matches!(producer.push(item.clone(), None), Err(PushError::Closed(_))));
            drop(producer);
        }
        assert_eq!(Arc::strong_count(&item), 1);
    }
}

#[test]
fn deadlines_of_both_ends() {
    let (mut producer, mut consumer) = simple(1);
    let soon = || Some(Instant::now() + Duration::from_millis(2));
    assert_eq!(consumer.pop(soon()), Err(PopError::Empty));
    assert_eq!(consumer.wait_for_items(soon()), Err(PopError::Empty));
    producer.push(1, None).unwrap();
    assert_eq!(consumer.wait_for_items(None), Ok(1));
    assert_eq!(producer.push(2, soon()), Err(PushError::Full(2)));
    assert_eq!(producer.wait_for_room(soon()), Err(PushError::Full(())));
    assert_eq!(consumer.pop(None), Ok(1));
    assert_eq!(producer.wait_for_room(None), Ok(1));
    drop(consumer);
    assert_eq!(producer.wait_for_room(None), Err(PushError::Closed(())));
}

#[test]
fn an_iterator_that_panics_has_pushed_what_it_gave() {
    let (mut producer, mut consumer) = simple(4);
    let items = (0..4).map(|item| if item == 2 { panic!("on purpose") } else { item });
    catch_unwind(AssertUnwindSafe(|| producer.push_batch(items))).unwrap_err();
    producer.push(9, None).unwrap();
    assert_eq!(consumer.pop_batch(usize::MAX).collect::<Vec<_>>(), [0, 1, 9]);
}

#[test]
fn a_batch_that_is_forgotten_pops_nothing_twice() {
    let (mut producer, mut consumer) = simple(4);
    producer.push_batch((0..4).map(Box::new));
    let mut popped = consumer.pop_batch(usize::MAX);
    assert_eq!((popped.next(), popped.next()), (Some(Box::new(0)), Some(Box::new(1))));
    std::mem::forget(popped);
    assert_eq!(consumer.try_pop(), Ok(Box::new(2)));
    assert_eq!(consumer.try_pop(), Ok(Box::new(3)));
    assert_eq!(consumer.try_pop(), Err(PopError::Empty));
    // The slots of the two items that the forgotten batch took may never become free for the producer.
    assert!(producer.push_batch((4..8).map(Box::new)) >= 2);
}

#[test]
fn a_destructor_that_panics_still_closes() {
    struct Bad;
    impl Drop for Bad {
        fn drop(&mut self) {
            panic!("on purpose");
        }
    }
    let (mut producer, consumer) = simple(1);
    assert!(producer.try_push(Some(Bad)).is_ok());
    catch_unwind(AssertUnwindSafe(|| drop(consumer))).unwrap_err();
    assert!(matches!(producer.push(None, None), Err(PushError::Closed(None))));
}

#[test]
#[should_panic(expected = "at most 2^30 are supported")]
fn too_large() {
    let _ = simple::<u8>((1 << 30) + 1);
}

#[test]
fn items_without_size() {
    let (mut producer, mut consumer) = simple(2);
    assert_eq!(producer.push_batch([(); 3]), 2);
    assert_eq!(consumer.pop_batch(usize::MAX).count(), 2);
}

/// Returns the next pseudo-random number, for random stalls, and updates `state`.
fn noise(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Stalls in one of `one_in` calls on average, long enough for the other thread to sleep.
fn stall(state: &mut u64, one_in: u64) {
    if noise(state).is_multiple_of(one_in) {
        thread::sleep(Duration::from_micros(noise(state) % 100));
    }
}

/// Passes `items` items through a ring of `capacity` slots, while both threads stall at random. No item may be lost,
/// duplicated or reordered, and neither thread may sleep for ever.
fn hand_over<P: EventCount + 'static, C: EventCount + 'static>(capacity: usize, items: u64, stalls: u64) {
    let first = Version::new(LAST - (items / 2) as u32 % LAST);
    let (mut producer, mut consumer) = ring_starting_at::<u64, P, C>(capacity, first);
    let one_in = items / stalls;
    let sender = thread::spawn(move || {
        let mut state = 1;
        let mut item = 0;
        while item < items {
            producer.wait_for_room(patience()).expect("the producer sleeps for ever");
            let size = noise(&mut state) % 4 + 1;
            item += producer.push_batch((item..items).take(size as usize)) as u64;
            stall(&mut state, one_in);
        }
    });
    let mut state = 2;
    for expected in 0..items {
        assert_eq!(consumer.pop(patience()), Ok(expected));
        stall(&mut state, one_in);
    }
    assert_eq!(consumer.pop(patience()), Err(PopError::Closed));
    sender.join().unwrap();
}

#[test]
fn a_million_hand_overs() {
    const ITEMS: u64 = if cfg!(miri) { 100 } else { 250_000 };
    const STALLS: u64 = if cfg!(miri) { 10 } else { 200 };
    hand_over::<SingleProducer, SingleProducer>(64, ITEMS, STALLS);
    hand_over::<TwoWord, TwoWord>(16, ITEMS, STALLS);
    hand_over::<MultiProducer, MultiProducer>(16, ITEMS, STALLS);
    hand_over::<Polled, OneWord>(4, ITEMS, STALLS);
}

/// Passes as many items through a ring as the environment variable `HAND_OVERS` requests. The default is 10⁹.
#[test]
#[ignore = "a minute or two in a release build"]
fn very_many_hand_overs() {
    let items = std::env::var("HAND_OVERS").map_or(1_000_000_000, |items| items.parse().expect("a number"));
    hand_over::<SingleProducer, SingleProducer>(1024, items, 100_000);
}
