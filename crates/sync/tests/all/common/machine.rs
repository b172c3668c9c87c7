//! A lock for tests that need all CPUs of the machine: only one such test runs at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ascertain_sys::testing;

/// Acquires the lock of tests that keep several CPUs busy, or that need a quiet machine.
pub fn whole_machine() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the body of a test [alone](testing::alone) in its process, while it holds the lock that [`whole_machine`]
/// acquires.
#[track_caller]
pub fn alone_on_the_machine<Body: FnOnce()>(body: Body) {
    let _machine = whole_machine();
    testing::alone(body);
}
