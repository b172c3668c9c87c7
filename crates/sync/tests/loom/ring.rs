//! Tests of rings under loom, which explores every execution that Rust's memory model allows.

use ascertain_sync::event_count::{EventCount, MultiProducer, Polled, TwoWord, Version};
use ascertain_sync::ring::{PopError, PushError, ring, ring_starting_at};
use loom::thread;

use super::bounded;

fn pass_on<E: EventCount + 'static>(capacity: usize, items: u32) {
    bounded(move || {
        // The items are boxes, so that a lost or doubled item is a leak or a double free.
        let (mut producer, mut consumer) = ring_starting_at::<Box<u32>, E, E>(capacity, Version::new((1 << 31) - 1));
        let consumer = thread::spawn(move || {
            for expected in 0..items {
                assert_eq!(consumer.pop(None), Ok(Box::new(expected)));
            }
            assert_eq!(consumer.pop(None), Err(PopError::Closed));
        });
        for item in 0..items {
            producer.push(Box::new(item), None).unwrap();
        }
        drop(producer);
        consumer.join().unwrap();
    });
}

#[test]
fn a_ring_passes_on_every_item_once() {
    pass_on::<Polled>(1, 2);
    pass_on::<MultiProducer>(1, 2);
    pass_on::<TwoWord>(1, 1);
    pass_on::<TwoWord>(2, 2);
}

#[test]
fn a_producer_learns_that_nobody_will_pop() {
    bounded(|| {
        let (mut producer, consumer) = ring::<Box<u32>, MultiProducer, MultiProducer>(1);
        let consumer = thread::spawn(move || drop(consumer));
        let mut pushed = 0;
        while producer.push(Box::new(pushed), None) != Err(PushError::Closed(Box::new(pushed))) {
            pushed += 1;
        }
        assert!(pushed <= 2, "one in the ring and one that was dropped with it");
        consumer.join().unwrap();
    });
}
