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

#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
mod tests {
    use std::cell::Cell;
    use std::panic::panic_any;

    use super::*;

    /// What is thrown here, and panics when it is dropped, too.
    struct Thrown(u32);

    impl Drop for Thrown {
        fn drop(&mut self) {
            panic!("as the test wants it");
        }
    }

    struct Item<'a>(&'a Cell<u32>);

    impl Drop for Item<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            panic_any(Thrown(self.0.get()));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "it leaks, as it must")]
    fn what_is_thrown_may_panic_too() {
        let dropped = Cell::new(0);
        let items = [(); 3].map(|()| Item(&dropped));
        let thrown = catch_unwind(AssertUnwindSafe(|| drop_all(items))).unwrap_err();
        let thrown = mem::ManuallyDrop::new(thrown.downcast::<Thrown>().expect("an item's"));
        assert_eq!((thrown.0, dropped.get()), (1, 3));
    }
}
