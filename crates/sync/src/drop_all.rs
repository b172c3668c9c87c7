//! Destructors that panic.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

/// Drops every item, also after a destructor has panicked; then the first panic goes on, unless one is under way that
/// led here. The others' messages have been printed by then.
pub(crate) fn drop_all<T>(items: impl IntoIterator<Item = T>) {
    let mut items = items.into_iter();
    let mut drop_until_panic = || {
        for item in items.by_ref() {
            drop(item);
        }
    };
    let mut first = None;
    // An item is out of the iterator before it is dropped, so that each round has fewer.
    while let Err(panic) = catch_unwind(AssertUnwindSafe(&mut drop_until_panic)) {
        if first.is_none() {
            first = Some(panic);
        } else {
            discard(panic);
        }
    }
    match first {
        Some(panic) if thread::panicking() => discard(panic),
        Some(panic) => resume_unwind(panic),
        None => {}
    }
}

/// Drops what was thrown, which may have a destructor that panics, too: what that throws is kept for ever.
fn discard(panic: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        mem::forget(again);
    }
}
