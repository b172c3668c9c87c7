//! Tests of a child made by fork(2) while a thread of its parent is freeing objects or advancing the epoch. That thread
//! does not exist in the child. Each test is alone in its process, so that no other thread holds a lock when the
//! process forks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

use ascertain_sync::barrier::{Barrier, Fences, Ticket};
use ascertain_sync::{epoch, hazard};

use ascertain_sys::testing::alone;

use crate::common::child::in_child;
use crate::common::reclaimed::Drops;

/// Number of objects that a test retires. It is larger than the number of objects that may stay waiting.
const MANY: usize = 3_000;

/// A gate that stops the first thread that reaches it, until the test opens the gate.
#[derive(Clone, Default)]
struct Gate(Arc<[AtomicBool; 3]>);

impl Gate {
    fn pass(&self) {
        let [is_taken, is_reached, is_open] = &*self.0;
        if is_taken.swap(true, SeqCst) {
            return;
        }
        is_reached.store(true, SeqCst);
        while !is_open.load(SeqCst) {
            thread::yield_now();
        }
    }

    /// Runs `body` in a child that is created while `work` is stopped at the gate, on another thread.
    fn fork_meanwhile(&self, work: impl FnOnce() + Send, body: impl FnOnce() -> bool) {
        let [_, is_reached, is_open] = &*self.0;
        thread::scope(|scope| {
            scope.spawn(work);
            while !is_reached.load(SeqCst) {
                thread::yield_now();
            }
            // A failure of the child is reported after the thread has ended.
            let message = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| in_child(body)));
            is_open.store(true, SeqCst);
            message.unwrap();
        });
    }
}

/// An object whose destructor stops at the gate.
struct Slow(Gate);

impl Drop for Slow {
    fn drop(&mut self) {
        self.0.pass();
    }
}

#[test]
fn what_is_left_in_a_child_is_freed_though_a_thread_of_its_parents_was_at_it() {
    alone(|| {
        let (gate, drops) = (Gate::default(), Drops::default());
        let domain = hazard::Domain::new(Fences);
        let leave = || drop(hazard::Published::new(Slow(gate.clone()), &domain));
        gate.fork_meanwhile(
            || (0..MANY).for_each(|_| leave()),
            || {
                (0..MANY).for_each(|value| drop(hazard::Published::new(drops.object(value), &domain)));
                drops.count() > 0
            },
        );

        let (gate, drops) = (Gate::default(), Drops::default());
        let collector = epoch::Collector::new(Fences);
        let leave = || drop(epoch::Published::new(Slow(gate.clone()), &collector));
        gate.fork_meanwhile(
            || (0..MANY).for_each(|_| leave()),
            || {
                (0..MANY).for_each(|value| drop(epoch::Published::new(drops.object(value), &collector)));
                drops.count() > 0
            },
        );
    });
}

/// A barrier of fences. The first fence stops at the gate.
#[derive(Clone, Default)]
struct SlowFences(Gate);

// SAFETY: both sides are fences.
unsafe impl Barrier for SlowFences {
    fn light(&self) {
        Fences.light();
    }

    fn ticket(&self) -> Ticket {
        self.0.pass();
        Fences.ticket()
    }
}

#[test]
fn a_child_advances_though_a_thread_of_its_parents_was_at_it() {
    alone(|| {
        let (barrier, drops) = (SlowFences::default(), Drops::default());
        let collector = epoch::Collector::new(barrier.clone());
        let [advancing, writing] = [collector.register(), collector.register()];
        let published = epoch::Published::new(drops.object(0), &collector);
        barrier.0.fork_meanwhile(
            move || advancing.collect(),
            || {
                published.replace(drops.object(1), &writing);
                writing.flush();
                drops.count() == 1 && collector.epoch() == 2
            },
        );
        published.replace(drops.object(2), &writing);
        writing.flush();
        assert_eq!(drops.count(), 1);
    });
}
