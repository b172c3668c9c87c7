//! Tests of children made by fork(2) while threads of the parent take tickets of `Global`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use ascertain_sync::barrier::{Barrier, Global, Ticket};

use ascertain_sys::testing::{alone, deadline, left_out, or_left_out};

#[test]
fn a_child_waits_for_no_lock_of_its_parents_threads() {
    alone(|| {
        let Some(barrier) = or_left_out(Global::new()) else { return };
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
        assert!(statuses.iter().all(|&status| status == 0), "14 is SIGALRM: a child waited too long: {statuses:?}");
    });
}

/// Returns the status of a child that has process ID 1 in its own namespace; 77 if the user may not create one.
fn first_of_a_namespace(child: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the arguments are numbers. For the child see `status_of_child`.
    unsafe {
        if libc::unshare(libc::CLONE_NEWPID) != 0 {
            return 77;
        }
        let pid = libc::fork();
        if pid == 0 {
            // This limit is longer than the waits of the descendants, which can then report their failure.
            libc::alarm(600);
            libc::_exit(child());
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
        if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { status }
    }
}

/// The parent and the child are in different PID namespaces, and each of them has process ID 1. The child therefore
/// cannot tell from its ID that it is another process. The threads of the parent do not exist in the child.
#[test]
fn a_child_with_its_parents_number_waits_for_no_thread_of_its_parents() {
    alone(|| {
        let Some(barrier) = or_left_out(Global::new()) else { return };
        let passes = |ticket: &Ticket| {
            let deadline = deadline();
            while !ticket.is_passed() && Instant::now() < deadline {
                thread::yield_now();
            }
            ticket.is_passed()
        };
        let grandchild = |ticket: Ticket| i32::from(!passes(&ticket)) + 2 * i32::from(!passes(&barrier.ticket()));
        for _ in 0..10 {
            // A thread can create a namespace for its children only once, so each round has a new thread.
            let status = thread::scope(|scope| {
                let child = scope.spawn(|| {
                    first_of_a_namespace(|| {
                        let ticket = barrier.ticket();
                        first_of_a_namespace(|| grandchild(ticket))
                    })
                });
                child.join().unwrap()
            });
            match status {
                0 => {}
                77 => return left_out("this user may not create PID namespaces"),
                status => {
                    panic!("status {status}; 1: the parent's ticket never passed, 2: the child's own ticket did not")
                }
            }
        }
    });
}

/// Returns the status of a child that waits for a ticket, for at most two minutes.
fn status_of_child(barrier: &Global) -> i32 {
    // SAFETY: the child has one thread. It takes locks and memory that the C library or `Global` keeps usable after a
    // fork, and ends by `_exit` or a signal.
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
