//! Tests of per-CPU data on known CPUs: the threads of these tests are pinned.

use std::sync::Barrier;
#[cfg(all(target_os = "linux", not(miri)))]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
#[cfg(all(target_os = "linux", not(miri)))]
use std::time::Instant;

use ascertain_sync::per_cpu::{BEST_FIRST, Counter, FreeList, Lock, Method, Revoked};
#[cfg(all(target_os = "linux", not(miri)))]
use ascertain_sys::testing::deadline;
use ascertain_sys::testing::{left_out, or_left_out, wait_until};

use crate::common::cpus::{NOT_PINNED, available, cpus, pin};
#[cfg(all(target_os = "linux", not(miri)))]
use crate::common::over::Over;

#[test]
fn a_free_list_gives_the_latest_back_first_and_holds_any_number() {
    for method in available() {
        let list = FreeList::with_method(1, method).unwrap();
        assert_eq!(list.pop(), None);
        if !pin(cpus()[0]) {
            return left_out(NOT_PINNED);
        }
        (0..100).for_each(|number| list.push(Box::new(number)));
        let mut back: Vec<u32> = std::iter::from_fn(|| list.pop()).map(|number| *number).collect();
        assert_eq!(back[0], 15, "{method}: a stack of 16, and the rest shared");
        back.sort_unstable();
        assert!(back.into_iter().eq(0..100), "{method}");
        let nothing_in_it = FreeList::with_method(8, method).unwrap();
        (0..20).for_each(|_| nothing_in_it.push(Box::new(())));
        assert_eq!(std::iter::from_fn(|| nothing_in_it.pop()).count(), 20);
    }
}

/// Boxes that one thread returned on its CPU reach another thread on another CPU.
#[test]
fn an_empty_cpu_steals_from_the_others() {
    let (first, last) = (cpus()[0], *cpus().last().unwrap());
    for method in available() {
        let list = FreeList::with_method(16, method).unwrap();
        let (given, taken) = (
            0..16,
            thread::scope(|scope| {
                scope.spawn(|| {
                    pin(first);
                    (0..16).for_each(|number| list.push(Box::new(number)));
                });
                // The first thread may still be running. The second thread, whichever shard it uses, searches until it
                // has found all boxes.
                scope
                    .spawn(|| {
                        pin(last);
                        let mut taken = Vec::new();
                        wait_until("all boxes are stolen", || {
                            taken.extend(std::iter::from_fn(|| list.pop()).map(|it| *it));
                            taken.len() >= 16
                        });
                        taken.sort_unstable();
                        taken
                    })
                    .join()
                    .unwrap()
            }),
        );
        assert!(taken.into_iter().eq(given), "{method}");
    }
}

#[test]
fn who_acquires_takes_the_lock_away() {
    for method in available() {
        let lock = Lock::with_method(method).unwrap();
        if !pin(cpus()[0]) {
            return left_out(NOT_PINNED);
        }
        let mut first = lock.acquire();
        first.store(0, 1).unwrap();
        let mut second = lock.acquire();
        assert_eq!(first.store(0, 2), Err(Revoked), "{method}");
        second.store(0, second.load(0) + 10).unwrap();
        assert_eq!(lock.words().map(|words| words[0]).sum::<u64>(), 11, "{method}");
    }
}

/// A holder that was moved to another CPU can store nothing, even after it has come back.
#[test]
fn a_holder_that_was_moved_has_lost_the_lock() {
    let (first, last) = (cpus()[0], *cpus().last().unwrap());
    let Some(lock) = or_left_out(Lock::with_method(Method::Restartable)) else { return };
    if first == last {
        return left_out("there is only one CPU");
    }
    if !pin(first) {
        return left_out(NOT_PINNED);
    }
    let mut held = lock.acquire();
    held.store(0, 1).unwrap();
    pin(last);
    assert_eq!(held.store(0, 2), Err(Revoked));
    pin(first);
    assert_eq!(held.store(0, 3), Err(Revoked));
    assert_eq!(lock.words().map(|words| words[0]).sum::<u64>(), 1);
}

/// The number of signals that were handled so far.
#[cfg(all(target_os = "linux", not(miri)))]
static SIGNALS: AtomicU64 = AtomicU64::new(0);

/// A store that a signal interrupted starts again, and no other thread gets the lock.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn a_holder_that_was_stopped_still_has_the_lock() {
    extern "C" fn count(_signal: i32) {
        SIGNALS.fetch_add(1, Relaxed);
    }
    let Some(lock) = or_left_out(Lock::with_method(Method::Restartable)) else { return };
    if !pin(cpus()[0]) {
        return left_out(NOT_PINNED);
    }
    // SAFETY: the handler adds to an atomic, and no other code uses this signal here.
    unsafe { libc::signal(libc::SIGUSR2, count as *const () as libc::sighandler_t) };
    // SAFETY: the call only returns the identity of this thread. It is stored as a number, which threads may share,
    // because with musl it is a pointer.
    let holder = unsafe { libc::pthread_self() } as usize;
    let is_over = AtomicBool::new(false);
    let is_held = thread::scope(|scope| {
        scope.spawn(|| {
            pin(*cpus().last().unwrap());
            while !is_over.load(Relaxed) {
                let handled = SIGNALS.load(Relaxed);
                // SAFETY: the holder lives as long as this thread.
                unsafe { libc::pthread_kill(holder as libc::pthread_t, libc::SIGUSR2) };
                // Only one signal is sent at a time: if the next one came before a store ended, the store would start
                // again for ever. The thread spins, because on a busy machine each yield would cost it the CPU.
                while SIGNALS.load(Relaxed) == handled && !is_over.load(Relaxed) {
                    std::hint::spin_loop();
                }
                (0..200).for_each(|_| std::hint::spin_loop());
            }
        });
        let _over = Over(&is_over);
        let (mut held, mut is_held) = (lock.acquire(), true);
        let deadline = deadline();
        while is_held && SIGNALS.load(Relaxed) < 2_000 {
            is_held = (0..100).all(|value| held.store(0, value).is_ok());
            assert!(Instant::now() < deadline, "too few signals came");
        }
        is_held
    });
    assert!(is_held);
}

/// Each holder stores until a store is refused. After `revoke` has returned, no word changes any more.
#[test]
fn nothing_is_stored_after_revocation() {
    const ENOUGH: u64 = 1_000;
    for method in available() {
        for _ in 0..if cfg!(miri) { 2 } else { 30 } {
            let lock = Lock::with_method(method).unwrap();
            let (begun, stores) = (Barrier::new(cpus().len() + 1), AtomicU64::new(0));
            thread::scope(|scope| {
                for &cpu in cpus() {
                    let (lock, begun, stores) = (&lock, &begun, &stores);
                    scope.spawn(move || {
                        pin(cpu);
                        let mut held = lock.acquire();
                        begun.wait();
                        let mut value = 0;
                        while held.store(0, value).is_ok() {
                            value += 1;
                            stores.fetch_add(1, Relaxed);
                        }
                        // Another thread may have taken the lock from this holder early. This addition then ends the
                        // wait for enough stores.
                        stores.fetch_add(ENOUGH, Relaxed);
                    });
                }
                begun.wait();
                if !cfg!(miri) {
                    wait_until("words are stored", || stores.load(Relaxed) >= ENOUGH);
                }
                // An old kernel, or a filter of system calls, may not support `revoke`. A store may then still be in
                // progress.
                if or_left_out(lock.revoke()).is_some() {
                    let before: Vec<_> = lock.words().collect();
                    for _ in 0..if cfg!(miri) { 10 } else { 1_000 } {
                        assert!(lock.words().eq(before.iter().copied()), "{method}");
                    }
                }
            });
        }
    }
}

#[test]
fn the_best_method_is_there_and_says_its_name() {
    assert!(Method::best().is_available().is_ok());
    assert_eq!(Method::Sharded.is_available(), Ok(()));
    let names: Vec<String> = BEST_FIRST.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["restartable sequences", "sharded atomics"]);
    if let Err(reason) = Method::Restartable.is_available() {
        assert_eq!(Counter::with_method(Method::Restartable).unwrap_err(), reason);
        assert!(
            reason.to_string().contains("restartable sequences") || reason.to_string().contains("rseq"),
            "{reason}"
        );
    }
    let both = [Counter::default(), Counter::new()];
    both.iter().for_each(|counter| counter.add(1));
    assert_eq!(both.map(|counter| counter.sum()), [1, 1]);
}
