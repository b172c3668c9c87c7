//! Panics that a test wants.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

/// Whether it panics.
pub fn is_refused(action: impl FnOnce()) -> bool {
    said_by(action).is_some()
}

/// What it panics with.
pub fn said_by(action: impl FnOnce()) -> Option<String> {
    say_them_plainly();
    let panic = catch_unwind(AssertUnwindSafe(action)).err()?;
    let literal = panic.downcast_ref::<&str>().map(|said| (*said).to_owned());
    Some(literal.or_else(|| panic.downcast_ref::<String>().cloned()).expect("a message"))
}

/// Under Miri the standard library's hook looks for the names of functions, which takes five seconds a panic.
#[allow(clippy::print_stderr)] // as the standard library's does
fn say_them_plainly() {
    if cfg!(miri) {
        set_hook(Box::new(|panic| eprintln!("{panic}")));
    }
}
