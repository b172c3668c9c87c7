//! Tests of the checker with programs whose outcomes are known (Sewell, Sarkar, Owens, Zappa Nardelli and Myreen, 2010,
//! and the manuals of Intel and AMD).

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ascertain_tso::{AtomicU32, Failure, Futex, Instant, explore, fence, heavy, spin_loop, thread};

type Words = [AtomicU32; 2];
type Outcome = Vec<u32>;
type Body = fn(&Words) -> Outcome;

/// Returns all outcomes over all executions: the values that the threads return, and the final values in memory.
fn outcomes<const N: usize>(bodies: [Body; N]) -> BTreeSet<Outcome> {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let record = seen.clone();
    let explored = explore(move || {
        let words: Arc<Words> = Arc::default();
        let threads = bodies.map(|body| {
            let words = words.clone();
            thread::spawn(move || body(&words))
        });
        let mut outcome = threads.map(|thread| thread.join().unwrap()).concat();
        outcome.extend(words.iter().map(|word| word.load(Relaxed)));
        record.lock().unwrap().insert(outcome);
    });
    let explored = explored.expect("nothing fails");
    assert!(explored.executions >= 1);
    seen.lock().unwrap().clone()
}

fn set(word: &AtomicU32, value: u32) {
    word.store(value, Relaxed);
}

fn get(word: &AtomicU32) -> u32 {
    word.load(Relaxed)
}

#[test]
fn stores_are_delayed_past_loads() {
    let seen = outcomes([
        |[x, y]| {
            set(x, 1);
            vec![get(y)]
        },
        |[x, y]| {
            set(y, 1);
            vec![get(x)]
        },
    ]);
    assert_eq!(seen, BTreeSet::from([vec![0, 0, 1, 1], vec![0, 1, 1, 1], vec![1, 0, 1, 1], vec![1, 1, 1, 1]]));
}

#[test]
fn stores_are_not_delayed_past_a_fence_a_lock_or_a_system_call() {
    let fenced: [Body; 4] = [
        |[x, y]| {
            set(x, 1);
            fence(SeqCst);
            vec![get(y)]
        },
        |[x, y]| {
            x.swap(1, Relaxed);
            vec![get(y)]
        },
        |[x, y]| {
            x.store(1, SeqCst);
            vec![get(y)]
        },
        |[x, y]| {
            set(x, 1);
            heavy();
            vec![get(y)]
        },
    ];
    for body in fenced {
        let seen = outcomes([body, |[x, y]| {
            set(y, 1);
            fence(SeqCst);
            vec![get(x)]
        }]);
        assert_eq!(seen, BTreeSet::from([vec![0, 1, 1, 1], vec![1, 0, 1, 1], vec![1, 1, 1, 1]]));
    }
}

#[test]
fn a_heavy_barrier_on_one_side_is_enough() {
    let seen = outcomes([
        |[x, y]| {
            set(x, 1);
            vec![get(y)]
        },
        |[x, y]| {
            set(y, 1);
            heavy();
            vec![get(x)]
        },
    ]);
    assert!(!seen.contains(&vec![0, 0, 1, 1]) && seen.len() == 3);
    // A fence instead of the barrier is not enough.
    let seen = outcomes([
        |[x, y]| {
            set(x, 1);
            vec![get(y)]
        },
        |[x, y]| {
            set(y, 1);
            fence(SeqCst);
            vec![get(x)]
        },
    ]);
    assert!(seen.contains(&vec![0, 0, 1, 1]) && seen.len() == 4);
}

#[test]
fn messages_pass_in_order() {
    let seen = outcomes([
        |[x, y]| {
            set(x, 1);
            set(y, 1);
            vec![]
        },
        |[x, y]| vec![get(y), get(x)],
    ]);
    assert_eq!(seen, BTreeSet::from([vec![0, 0, 1, 1], vec![0, 1, 1, 1], vec![1, 1, 1, 1]]));
}

#[test]
fn loads_are_not_delayed_past_stores() {
    let seen = outcomes([
        |[x, y]| {
            let saw = get(x);
            set(y, 1);
            vec![saw]
        },
        |[x, y]| {
            let saw = get(y);
            set(x, 1);
            vec![saw]
        },
    ]);
    assert_eq!(seen, BTreeSet::from([vec![0, 0, 1, 1], vec![0, 1, 1, 1], vec![1, 0, 1, 1]]));
}

#[test]
fn all_see_independent_writes_in_one_order() {
    let seen = outcomes([
        |[x, _]| {
            set(x, 1);
            vec![]
        },
        |[_, y]| {
            set(y, 1);
            vec![]
        },
        |[x, y]| vec![get(x), get(y)],
        |[x, y]| vec![get(y), get(x)],
    ]);
    assert!(!seen.contains(&vec![1, 0, 1, 0, 1, 1]));
    assert_eq!(seen.len(), 15);
}

/// Program n6 of the paper on x86-TSO: a thread sees its own store before others do.
#[test]
fn a_thread_sees_its_own_store_early() {
    let seen = outcomes([
        |[x, y]| {
            set(x, 1);
            vec![get(x), get(y)]
        },
        |[x, y]| {
            set(y, 2);
            set(x, 2);
            vec![]
        },
    ]);
    assert!(seen.contains(&vec![1, 0, 1, 2]));
}

/// Program n7 of the paper on x86-TSO: two threads see their own stores first. The manuals once called this program a
/// test of causality.
#[test]
fn two_threads_see_their_own_stores_first() {
    let seen = outcomes([
        |[x, y]| {
            set(x, 1);
            vec![get(x), get(y)]
        },
        |[x, y]| {
            set(y, 1);
            vec![get(y), get(x)]
        },
    ]);
    assert!(seen.contains(&vec![1, 0, 1, 0, 1, 1]));
    assert!(seen.iter().all(|outcome| outcome[0] == 1 && outcome[2] == 1));
}

/// Program n5 of the paper on x86-TSO, whose outcome must not occur: each thread overwrites the other's store and still
/// sees it.
#[test]
fn two_stores_to_one_place_have_one_order() {
    let seen = outcomes([
        |[x, _]| {
            set(x, 1);
            vec![get(x)]
        },
        |[x, _]| {
            set(x, 2);
            vec![get(x)]
        },
    ]);
    assert!(!seen.iter().any(|outcome| outcome[..2] == [2, 1]));
    assert!(seen.contains(&vec![1, 2, 1, 0]) && seen.contains(&vec![1, 2, 2, 0]));
}

#[test]
fn unlocked_additions_overwrite_and_locked_ones_do_not() {
    let add: Body = |[x, _]| {
        x.add_unlocked(1);
        vec![]
    };
    assert_eq!(outcomes([add, add]), BTreeSet::from([vec![1, 0], vec![2, 0]]));
    let locked: Body = |[x, _]| {
        x.fetch_add(1, Relaxed);
        vec![]
    };
    assert_eq!(outcomes([locked, locked]), BTreeSet::from([vec![2, 0]]));
    assert_eq!(outcomes([add, locked]), BTreeSet::from([vec![1, 0], vec![2, 0]]));
}

#[test]
fn an_addition_is_one_instruction_to_a_heavy_barrier() {
    // If the addition of 1 has not reached memory when the barrier ends, the addition loads its value after the
    // barrier. So it sees the 10, and the 10 is not lost.
    let seen = outcomes([
        |[x, _]| {
            x.add_unlocked(1);
            vec![]
        },
        |[x, _]| {
            x.fetch_add(10, Relaxed);
            heavy();
            vec![get(x)]
        },
    ]);
    assert!(seen.iter().all(|outcome| outcome[0] != 10 || outcome[1] == 11), "{seen:?}");
}

fn failure(program: fn()) -> Failure {
    explore(program).expect_err("it can fail")
}

#[test]
fn a_lost_wake_up_is_found() {
    let sleeper = |checks: fn(&Futex)| {
        let word = Arc::new(Futex::new(0));
        let other = word.clone();
        let sleeper = thread::spawn(move || checks(&other));
        word.store(1, Relaxed);
        word.wake_all();
        sleeper.join().unwrap();
    };
    explore(move || sleeper(|word| word.wait(0, None))).expect("comparing and falling asleep are one step");
    let failure = explore(move || {
        sleeper(|word| {
            // The second load may return another value than the one that the decision is based on.
            if word.load(Relaxed) == 0 {
                word.wait(word.load(Relaxed), None);
            }
        });
    });
    let failure = failure.expect_err("the second load may see 1");
    assert!(failure.what.contains("thread 1 sleeps"), "{failure}");
    assert!(failure.schedule.iter().any(|line| line.contains("Wake")), "{failure}");
}

#[test]
fn a_sleep_may_time_out_and_time_passes_then() {
    explore(|| {
        let word = Futex::new(0);
        let begun = Instant::now();
        word.wait(0, Some(Duration::from_millis(5)));
        assert_eq!(begun.elapsed(), Duration::from_millis(5));
    })
    .expect("nobody wakes it");
}

#[test]
fn no_store_stays_in_a_buffer_for_a_second() {
    // Pairs of two values. The first is 1 if the sleeper sees the store. The second is 0 if the store was issued before
    // the sleep, and 1 if it may have been issued later.
    let seen_after = |timeout| {
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let record = seen.clone();
        let program = move || {
            let words: Arc<(Futex, AtomicU32, AtomicU32)> = Arc::default();
            let other = words.clone();
            let other = thread::spawn(move || {
                set(&other.1, 1);
                get(&other.2)
            });
            words.2.swap(1, Relaxed);
            words.0.wait(0, Some(timeout));
            let saw = get(&words.1);
            let was_late = other.join().unwrap();
            record.lock().unwrap().insert((saw, was_late));
        };
        explore(program).expect("nothing fails");
        seen.lock().unwrap().clone()
    };
    assert_eq!(seen_after(Duration::from_millis(999)).len(), 4);
    assert_eq!(seen_after(Duration::from_millis(1000)), BTreeSet::from([(0, 1), (1, 0), (1, 1)]));
}

#[test]
fn what_waits_for_itself_is_found() {
    let failure = failure(|| {
        let word = AtomicU32::new(0);
        while get(&word) == 0 {
            spin_loop();
        }
    });
    assert!(failure.what.contains("thread 0 spins"), "{failure}");
}

#[test]
fn what_has_no_end_is_found() {
    let failure = failure(|| {
        let word = AtomicU32::new(0);
        while get(&word) == 0 {}
    });
    assert!(failure.what.contains("does not end"), "{}", failure.what);
}

#[test]
fn what_was_dropped_is_not_used() {
    let failure = failure(|| {
        let words: Arc<Mutex<Option<Arc<AtomicU32>>>> = Arc::new(Mutex::new(Some(Arc::default())));
        let word = words.lock().unwrap().take().unwrap();
        let pointer = Arc::as_ptr(&word).expose_provenance();
        let other = thread::spawn(move || {
            // SAFETY: the model keeps the memory in its place; see `QUARANTINE`.
            get(unsafe { &*std::ptr::with_exposed_provenance::<AtomicU32>(pointer) });
        });
        drop(word);
        other.join().unwrap();
    });
    assert!(failure.what.contains("dropped") && failure.what.contains("created at"), "{failure}");
}

#[global_allocator]
static QUARANTINE: ascertain_tso::Quarantine = ascertain_tso::Quarantine;

#[test]
fn a_panic_is_told_with_what_led_to_it() {
    let failure = failure(|| {
        let word: Arc<AtomicU32> = Arc::default();
        let other = word.clone();
        let other = thread::spawn(move || set(&other, 1));
        assert_eq!(get(&word), 0, "the other was first");
        other.join().unwrap();
    });
    assert!(failure.what.contains("the other was first"), "{failure}");
    let steps: Vec<_> = failure.schedule.iter().filter(|line| line.contains(file!())).collect();
    assert!(steps.len() >= 3, "{failure}");
}

#[test]
fn a_program_that_changes_is_refused() {
    static RUNS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let failure = failure(|| {
        let words: Arc<Words> = Arc::default();
        let other = words.clone();
        let other = thread::spawn(move || set(&other[0], 1));
        if RUNS.fetch_add(1, Relaxed) == 0 {
            set(&words[0], 2);
        }
        drop(words);
        other.join().unwrap();
    });
    assert!(failure.what.contains("takes different steps"), "{failure}");
}
