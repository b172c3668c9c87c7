//! Tests of per-CPU data, while threads are stopped in the middle of operations and moved from CPU to CPU.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;

use ascertain_sync::per_cpu::{Counter, FreeList, Held, Lock, Method, Revoked};
use ascertain_sys::testing::alone;

use crate::common::cpus::{available, cpus, on_all_cpus};

/// Returns a number of threads that exceeds the number of CPUs, so that threads are stopped in the middle of
/// operations.
fn threads() -> usize {
    if cfg!(miri) { 3 } else { 4 * cpus().len() }
}

/// Number of additions of each thread.
const ADDITIONS: u64 = if cfg!(miri) { 100 } else { 300_000 };

fn count(counter: &Counter, additions: u64) -> u64 {
    thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(|| (0..additions).for_each(|_| counter.add(1)));
        }
    });
    threads() as u64 * additions
}

#[test]
fn counters_are_exact_under_preemption() {
    alone(|| {
        for method in available() {
            let counter = Counter::with_method(method).unwrap();
            let added = on_all_cpus(|| count(&counter, ADDITIONS));
            assert_eq!(counter.sum(), added, "{method}");
        }
    });
}

#[test]
#[ignore = "a minute: 10^9 additions and more"]
fn counters_are_exact_under_preemption_for_long() {
    alone(|| {
        for method in available() {
            let counter = Counter::with_method(method).unwrap();
            let added = on_all_cpus(|| count(&counter, 1_200_000_000 / threads() as u64));
            assert_eq!(counter.sum(), added, "{method}");
        }
    });
}

#[test]
fn counters_wrap_around() {
    for method in available() {
        let counter = Counter::with_method(method).unwrap();
        counter.add(u64::MAX - 1);
        thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(|| counter.add(1)))));
        assert_eq!(counter.sum(), 1, "{method}");
        counter.add(3_u64.wrapping_neg());
        assert_eq!(counter.sum().cast_signed(), -2, "{method}");
    }
}

/// An item with a flag, by which the test detects that two threads have the item at the same time.
struct Numbered {
    number: usize,
    is_taken: AtomicBool,
    alive: Arc<AtomicUsize>,
}

impl Drop for Numbered {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Relaxed);
    }
}

/// Gives the list `boxes` boxes. Returns the number of live boxes.
fn fill(list: &FreeList<Numbered>, boxes: usize) -> Arc<AtomicUsize> {
    let alive = Arc::new(AtomicUsize::new(boxes));
    let one = |number| Numbered { number, is_taken: AtomicBool::new(false), alive: Arc::clone(&alive) };
    (0..boxes).for_each(|number| list.push(Box::new(one(number))));
    alive
}

fn pass_around(list: &FreeList<Numbered>, rounds: usize) {
    thread::scope(|scope| {
        for thread in 0..threads() {
            scope.spawn(move || {
                let mut held = Vec::new();
                for round in 0..rounds {
                    // Some threads take more than they return for a while.
                    if (round / 64 + thread) % 2 == 0 || held.len() < 3 {
                        held.extend(list.pop().inspect(|it| assert!(!it.is_taken.swap(true, Relaxed), "twice")));
                    }
                    if (round / 64 + thread) % 2 == 1 || held.len() > 40 {
                        let given: Option<Box<Numbered>> = held.pop();
                        given.into_iter().for_each(|it| {
                            assert!(it.is_taken.swap(false, Relaxed), "not ours");
                            list.push(it);
                        });
                    }
                }
                for it in held {
                    it.is_taken.store(false, Relaxed);
                    list.push(it);
                }
            });
        }
    });
}

fn no_box_is_lost_or_doubled(method: Method, rounds: usize) {
    let boxes = if cfg!(miri) { 20 } else { 200 };
    let list = FreeList::with_method(16, method).unwrap();
    let alive = fill(&list, boxes);
    on_all_cpus(|| pass_around(&list, rounds));
    assert_eq!(alive.load(Relaxed), boxes, "{method}: freed early");

    let mut taken: Vec<Box<Numbered>> = std::iter::from_fn(|| list.pop()).collect();
    taken.sort_by_key(|it| it.number);
    assert!(taken.iter().map(|it| it.number).eq(0..boxes), "{method}: {} of {boxes}", taken.len());
    // Boxes that are still in the list are dropped with it.
    taken.drain(boxes / 2..).for_each(|it| list.push(it));
    drop(taken);
    assert_eq!(alive.load(Relaxed), boxes - boxes / 2, "{method}");
    drop(list);
    assert_eq!(alive.load(Relaxed), 0, "{method}");
}

#[test]
fn no_box_of_a_free_list_is_lost_or_doubled() {
    alone(|| {
        available().for_each(|method| no_box_is_lost_or_doubled(method, if cfg!(miri) { 150 } else { 60_000 }));
    });
}

#[test]
#[ignore = "a minute"]
fn no_box_of_a_free_list_is_lost_or_doubled_for_long() {
    alone(|| {
        available().for_each(|method| no_box_is_lost_or_doubled(method, 20_000_000));
    });
}

/// Increments word 0 under the lock, in three steps, and checks that no other thread has the lock. The caller counts
/// the increments that were committed.
fn increment(held: &mut Held) -> Result<(), Revoked> {
    let value = held.load(0);
    held.store(1, value)?;
    // If another thread came in between, the word has another value.
    if held.load(1) != value && held.store(2, held.load(2) + 1).is_ok() {
        panic!("two threads hold the lock");
    }
    held.store(0, value + 1)
}

#[test]
fn increments_under_a_revocable_lock_are_exact() {
    alone(|| {
        for method in available() {
            let lock = Lock::with_method(method).unwrap();
            let committed = AtomicU64::new(0);
            on_all_cpus(|| {
                thread::scope(|scope| {
                    for _ in 0..threads() {
                        scope.spawn(|| {
                            let once = |_: &u64| increment(&mut lock.acquire()).is_ok();
                            let mine = (0..ADDITIONS / 3).filter(once).count();
                            committed.fetch_add(mine as u64, Relaxed);
                        });
                    }
                });
            });
            let counted: u64 = lock.words().map(|words| words[0]).sum();
            assert_eq!(counted, committed.load(Relaxed), "{method}");
            assert!(counted > 0 && lock.words().all(|words| words[2] == 0), "{method}");
        }
    });
}
