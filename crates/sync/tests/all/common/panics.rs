//! Helpers for tests that expect panics.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

/// Returns whether the action panics.
pub fn is_refused(action: impl FnOnce()) -> bool {
    panic_message(action).is_some()
}

/// Returns the message of the panic, if the action panics.
pub fn panic_message(action: impl FnOnce()) -> Option<String> {
    say_them_plainly();
    let panic = catch_unwind(AssertUnwindSafe(action)).err()?;
    let literal = panic.downcast_ref::<&str>().map(|message| (*message).to_owned());
    Some(literal.or_else(|| panic.downcast_ref::<String>().cloned()).expect("a message"))
}

/// Replaces the standard library's panic hook, which under Miri searches for the names of functions for five seconds
/// per panic.
#[allow(clippy::print_stderr)] // as the standard library's does
fn say_them_plainly() {
    if cfg!(miri) {
        set_hook(Box::new(|panic| eprintln!("{panic}")));
    }
}
