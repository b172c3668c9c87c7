//! Panics that a test wants.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

/// Whether it panics.
pub fn is_refused(action: impl FnOnce()) -> bool {
    say_them_plainly();
    catch_unwind(AssertUnwindSafe(action)).is_err()
}

/// Under Miri the standard library's hook looks for the names of functions, which takes five seconds a panic.
#[allow(clippy::print_stderr)] // as the standard library's does
pub fn say_them_plainly() {
    if cfg!(miri) {
        set_hook(Box::new(|panic| eprintln!("{panic}")));
    }
}
