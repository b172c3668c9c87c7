//! Tests of the default collector: pinning without a handle, and the objects that a thread leaves when it ends. A
//! process has only one such collector, and these tests count the objects that wait in it. Any other test that uses the
//! default collector must therefore be alone in its process.

use std::cell::RefCell;
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use ascertain_sync::epoch::{self, Guard, Published, default_collector};

use ascertain_sys::testing::alone;

use crate::common::child::in_child;
use crate::common::reclaimed::Drops;

/// Returns a lock that each test holds, because the tests share the collector and count the objects that wait in it.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Frees everything that can be freed. Returns the number of objects that are left.
fn waiting_after_flush() -> usize {
    let handle = default_collector().register();
    handle.flush();
    handle.waiting()
}

/// Runs `body` on a thread and joins it, so that the destructors of its thread-locals have run too. The end of a scope
/// would not wait for them.
fn on_a_thread(body: impl FnOnce() + Send) {
    thread::scope(|scope| scope.spawn(body).join().unwrap());
}

/// Defers a closure that drops an object.
fn defer(drops: &Drops) {
    let object = drops.object(0);
    epoch::pin().defer(move || drop(object));
}

#[test]
fn what_is_found_while_pinned_is_kept() {
    let _one = one_at_a_time();
    let drops = Drops::default();
    let published: Published<_> = Published::new(drops.object(0), default_collector());
    let guard = epoch::pin();
    let object = published.load(&guard);
    on_a_thread(|| published.replace(drops.object(1), &epoch::pin()));
    defer(&drops);
    // The count includes the object that the ended thread left, and this thread's own one.
    assert_eq!((waiting_after_flush(), guard.waiting(), drops.count(), object.value), (1, 2, 0, 0));
    drop(guard);
    assert_eq!((waiting_after_flush(), drops.count()), (0, 1));
    // A guard delays the next epoch until the guard ends.
    epoch::pin().flush();
    epoch::pin().flush();
    assert_eq!(drops.count(), 2);
    drop(published);
    assert_eq!((waiting_after_flush(), drops.count()), (0, 3));
}

#[test]
fn guards_of_a_thread_are_of_one_handle() {
    let _one = one_at_a_time();
    let participants = default_collector().participants();
    for _ in 0..10 {
        on_a_thread(|| drop([epoch::pin(), epoch::pin()]));
    }
    assert!(default_collector().participants() <= participants + 1);
}

/// A value that uses the collector when its thread ends.
struct AtEnd(Drops);

impl Drop for AtEnd {
    fn drop(&mut self) {
        let published = Published::new(self.0.object(0), default_collector());
        let guard = epoch::pin();
        let nested = epoch::pin();
        assert_eq!(published.load(&guard).value, 0);
        assert!(published.update(&guard, |object| Some(self.0.object(object.value + 1))));
        defer(&self.0);
        drop((guard, nested));
    }
}

/// The test uses two thread-local variables. One is destroyed before the thread's handle and the other one after it,
/// whichever order the system uses.
#[test]
fn threads_may_pin_until_their_very_end() {
    thread_local! {
        static FIRST: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
        static LAST: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
    }
    let _one = one_at_a_time();
    let drops = Drops::default();
    let mut participants = 0;
    for round in 0..4 {
        on_a_thread(|| {
            FIRST.set(Some(AtEnd(drops.clone())));
            // In the second half of the rounds, a destructor creates the handle.
            if round < 2 {
                defer(&drops);
            }
            LAST.set(Some(AtEnd(drops.clone())));
        });
        if round == 0 {
            participants = default_collector().participants();
        }
    }
    assert_eq!(waiting_after_flush(), 0);
    assert_eq!((drops.count(), default_collector().participants()), (2 + 4 * 2 * 3, participants));
}

#[test]
fn a_guard_may_outlast_its_handle() {
    struct Kept {
        guard: Guard<'static>,
        drops: Drops,
    }
    impl Drop for Kept {
        fn drop(&mut self) {
            assert_eq!(self.drops.count(), 0, "freed while it is pinned");
            let object = self.drops.object(0);
            self.guard.defer(move || drop(object));
        }
    }
    thread_local! {
        static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
    }
    let _one = one_at_a_time();
    for is_first in [false, true] {
        let drops = Drops::default();
        on_a_thread(|| {
            // This decides which destructor is registered first.
            if is_first {
                KEPT.set(None);
            }
            let kept = Kept { guard: epoch::pin(), drops: drops.clone() };
            drop(epoch::pin());
            KEPT.set(Some(kept));
            defer(&drops);
        });
        // If the guard still existed, objects would be waiting.
        assert_eq!((waiting_after_flush(), drops.count()), (0, 2), "{is_first}");
    }
}

#[test]
fn the_end_of_a_thread_runs_no_destructors() {
    const MANY: usize = 1_024;
    let _one = one_at_a_time();
    let drops = Drops::default();
    let ((deferred, is_deferred), (end, may_end)) = (channel(), channel::<()>());
    let thread = thread::spawn({
        let drops = drops.clone();
        move || {
            defer(&drops);
            deferred.send(()).unwrap();
            may_end.recv().unwrap();
        }
    });
    is_deferred.recv().unwrap();
    for value in 1..MANY {
        drop(Published::new(drops.object(value), default_collector()));
    }
    end.send(()).unwrap();
    thread.join().unwrap();
    assert_eq!((drops.count(), default_collector().register().waiting()), (0, MANY));
    // The next thread that retires frees these objects. But that thread is pinned, so only one epoch can begin.
    defer(&drops);
    let handle = default_collector().register();
    handle.flush();
    assert_eq!((drops.count(), handle.waiting()), (MANY, 0));
    epoch::pin().flush();
    epoch::pin().flush();
    assert_eq!(drops.count(), MANY + 1);
}

/// Thousands of threads each defer one closure and end without a flush, as in a server with a thread for each request.
/// The number of waiting objects must stay limited.
#[test]
#[cfg_attr(miri, ignore = "thousands of threads")]
fn threads_that_end_leave_a_bounded_number() {
    let _one = one_at_a_time();
    let drops = Drops::default();
    let handle = default_collector().register();
    for deferred in 1..=15_000 {
        on_a_thread(|| defer(&drops));
        assert_eq!(handle.waiting() + drops.count(), deferred);
        assert!(handle.waiting() <= 4 * 1_024, "{} after {deferred}", handle.waiting());
    }
    assert_eq!(waiting_after_flush(), 0);
}

#[test]
fn a_child_process_goes_on() {
    alone(|| {
        let _one = one_at_a_time();
        let drops = Drops::default();
        let published = Published::new(drops.object(0), default_collector());
        defer(&drops);
        in_child(|| {
            published.replace(drops.object(1), &epoch::pin());
            epoch::pin().flush();
            epoch::pin().flush();
            let is_found = published.load(&epoch::pin()).value == 1;
            // This also works on threads of the child.
            on_a_thread(|| published.replace(drops.object(2), &epoch::pin()));
            is_found && waiting_after_flush() == 0 && drops.count() == 3
        });
        assert_eq!(drops.count(), 0);
        epoch::pin().flush();
        epoch::pin().flush();
        assert_eq!(drops.count(), 1);
        drop(published);
        assert_eq!(waiting_after_flush(), 0);
    });
}
