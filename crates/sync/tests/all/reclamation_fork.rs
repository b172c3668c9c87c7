//! A child made by fork(2) while a thread of its parent's, which it does not have, was freeing or advancing. Each test
//! is alone in its process, whose other threads hold no locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

use ascertain_sync::barrier::{Barrier, Fences, Ticket};
use ascertain_sync::{epoch, hazard};

use ascertain_sys::testing::alone;

use crate::common::child::in_child;
use crate::common::reclaimed::Drops;

/// More than are left to wait.
const MANY: usize = 3_000;

/// Holds the first thread that comes until it may go on.
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

    /// Runs `body` in a child made while `work` is held, on a thread of its own.
    fn fork_meanwhile(&self, work: impl FnOnce() + Send, body: impl FnOnce() -> bool) {
        let [_, is_reached, is_open] = &*self.0;
        thread::scope(|scope| {
            scope.spawn(work);
            while !is_reached.load(SeqCst) {
                thread::yield_now();
            }
            // A child that says no is told when the thread is through.
            let said = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| in_child(body)));
            is_open.store(true, SeqCst);
            said.unwrap();
        });
    }
}

/// An object whose end takes its time, the first of all.
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

/// Fences, the first of which take their time.
#[derive(Clone, Default)]
struct SlowFences(Gate);

// SAFETY: they are fences.
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
