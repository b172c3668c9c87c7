//! Tests of destructors that panic: all other objects must be dropped nevertheless, and the first panic is resumed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use ascertain_sync::barrier::Fences;
use ascertain_sync::per_cpu::{BEST_FIRST, FreeList};
use ascertain_sync::ring::{Consumer, Producer, ring};
use ascertain_sync::{epoch, hazard};

use crate::common::panics::panic_message;

/// An item that panics if its number is odd. After the first panic, the other items must still be dropped, and a second
/// panic must not end the process.
struct Item {
    number: u32,
    drops: Arc<AtomicU32>,
}

impl Drop for Item {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Relaxed);
        assert!(self.number.is_multiple_of(2), "number {}", self.number);
    }
}

#[derive(Default)]
struct Drops(Arc<AtomicU32>);

impl Drops {
    fn item(&self, number: u32) -> Item {
        Item { number, drops: self.0.clone() }
    }

    /// Returns the number of items dropped while `action` runs, and the message of its panic.
    fn count_during(&self, action: impl FnOnce()) -> (u32, Option<String>) {
        let before = self.0.load(Relaxed);
        let message = panic_message(action);
        (self.0.load(Relaxed) - before, message)
    }
}

const ALL: (u32, Option<&str>) = (10, Some("number 1"));

fn assert_all((count, message): (u32, Option<String>)) {
    assert_eq!((count, message.as_deref()), ALL);
}

#[test]
fn free_lists_drop_what_is_left() {
    const ITEMS: u32 = 40; // more than one stack holds
    for method in BEST_FIRST.into_iter().filter(|method| method.is_available().is_ok()) {
        // Some boxes are on a stack and some in the shared list.
        let drops = Drops::default();
        let list = FreeList::with_method(4, method).unwrap();
        (0..ITEMS).for_each(|number| list.push(Box::new(drops.item(number))));
        let (count, message) = drops.count_during(|| drop(list));
        assert_eq!((count, message.is_some()), (ITEMS, true), "{method}");
    }
}

#[test]
fn rings_drop_what_is_left_with_the_consumer() {
    let drops = Drops::default();
    let (mut producer, consumer): (Producer<Item>, Consumer<Item>) = ring(16);
    assert_eq!(producer.push_batch((0..10).map(|number| drops.item(number))), 10);
    assert_all(drops.count_during(|| drop(consumer)));
    assert!(producer.is_closed());
    assert_eq!(drops.count_during(|| drop(producer)), (0, None));
}

#[test]
fn rings_drop_what_was_left_in_a_batch() {
    let drops = Drops::default();
    let (mut producer, mut consumer): (Producer<Item>, Consumer<Item>) = ring(16);
    assert_eq!(producer.push_batch((0..10).map(|number| drops.item(number))), 10);
    assert_eq!(drops.count_during(|| consumer.pop_batch(8).for_each(drop)), (2, Some("number 1".into())));
    let (count, message) = drops.count_during(|| drop(consumer));
    assert_eq!((count, message.as_deref()), (8, Some("number 3")));
}

#[test]
fn hazard_pointers_free_the_others() {
    let drops = Drops::default();
    let domain = hazard::Domain::new(Fences);
    let mut retirer = domain.retirer();
    let published = hazard::Published::new(drops.item(0), &domain);
    (1..=10).for_each(|number| published.replace(drops.item(number), &mut retirer));
    assert_all(drops.count_during(|| retirer.flush()));
    assert_eq!(retirer.waiting(), 0);
}

#[test]
fn epochs_free_the_others() {
    let drops = Drops::default();
    let collector = epoch::Collector::new(Fences);
    let handle = collector.register();
    let published = epoch::Published::new(drops.item(0), &collector);
    for number in 1..=10 {
        published.replace(drops.item(number), &handle);
        if number == 5 {
            handle.collect(); // so that there are two labels
        }
    }
    // These objects have two labels. The objects with the second label could not be freed yet when destructors of the
    // first objects panicked.
    assert_eq!(drops.count_during(|| handle.flush()), (5, Some("number 1".into())));
    assert_eq!(drops.count_during(|| handle.flush()), (5, Some("number 5".into())));
    assert_eq!(handle.waiting(), 0);
}

#[test]
fn what_was_left_behind_is_dropped_with_the_domain() {
    let drops = Drops::default();
    let domain = hazard::Domain::new(Fences);
    for number in 0..10 {
        // SAFETY: the object is allocated in a box, and no pointer leads to it.
        unsafe { domain.retirer().retire(Box::into_raw(Box::new(drops.item(number)))) };
    }
    let (count, message) = drops.count_during(|| drop(domain));
    assert_eq!((count, message.is_some()), (10, true));
    let collector = epoch::Collector::new(Fences);
    for number in 0..10 {
        // SAFETY: the object is allocated in a box, and no pointer leads to it.
        unsafe { collector.register().retire(Box::into_raw(Box::new(drops.item(number)))) };
    }
    let (count, message) = drops.count_during(|| drop(collector));
    assert_eq!((count, message.is_some()), (10, true));
}

#[test]
fn a_panic_that_is_under_way_goes_on() {
    struct First(Option<Consumer<Item>>);
    impl Drop for First {
        fn drop(&mut self) {
            self.0.take();
        }
    }
    let drops = Drops::default();
    let (mut producer, consumer): (Producer<Item>, Consumer<Item>) = ring(16);
    assert_eq!(producer.push_batch((0..10).map(|number| drops.item(number))), 10);
    let (count, message) = drops.count_during(|| {
        let _consumer = First(Some(consumer));
        panic!("number {}", drops.0.load(Relaxed));
    });
    assert_eq!((count, message.as_deref()), (10, Some("number 0")));
}

#[test]
fn deferred_closures_are_all_called() {
    let drops = Drops::default();
    let collector = epoch::Collector::new(Fences);
    let handle = collector.register();
    for number in 0..10 {
        let item = drops.item(number);
        handle.defer(move || drop(item));
    }
    assert_all(drops.count_during(|| handle.flush()));
    assert_eq!(handle.waiting(), 0);
    handle.defer({
        let item = drops.item(1);
        move || drop(item)
    });
    drop(handle);
    assert_eq!(drops.count_during(|| drop(collector)), (1, Some("number 1".into())));
}
