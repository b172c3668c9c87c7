//! Children made by fork(2) while threads of the parent take tickets of `Global`: in a process of its own.
#![cfg(all(target_os = "linux", not(any(miri, model = "loom", model = "tso"))))]
#![allow(missing_docs)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ascertain_sync::barrier::{Barrier, Global};

#[test]
fn a_child_waits_for_no_lock_of_its_parents_threads() {
    let Ok(barrier) = Global::new() else { return };
    let is_over = AtomicBool::new(false);
    let statuses: Vec<i32> = thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let _ = barrier.ticket();
                }
            });
        }
        let statuses = (0..20).map(|_| status_of_child(&barrier)).collect();
        is_over.store(true, Ordering::Relaxed);
        statuses
    });
    assert!(statuses.iter().all(|&status| status == 0), "14 is an alarm that rang in vain: {statuses:?}");
}

/// Of a child that waits for a ticket, or for two minutes.
fn status_of_child(barrier: &Global) -> i32 {
    // SAFETY: the child has one thread, which takes locks and memory that the C library or `Global` keeps usable after
    // a fork, and ends by `_exit` or a signal.
    let child = unsafe {
        match libc::fork() {
            0 => {
                libc::alarm(120);
                barrier.ticket().wait();
                libc::_exit(0)
            }
            child => child,
        }
    };
    let mut status = -1;
    // SAFETY: `status` may be written to.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    status
}
