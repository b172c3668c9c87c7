//! A function that drops items whose destructors may panic.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

/// Drops every item, even after a destructor has panicked. Then resumes the first panic, unless this is called while
/// another panic unwinds. The messages of the other panics have been printed by then.
pub(crate) fn drop_all<T>(items: impl IntoIterator<Item = T>) {
    let mut items = items.into_iter();
    let mut drop_until_panic = || {
        for item in items.by_ref() {
            drop(item);
        }
    };
    let mut first = None;
    // An item leaves the iterator before it is dropped, so each round has fewer items.
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

/// Drops the payload of a panic. Its destructor may panic too; the payload of that panic is leaked.
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

    /// A payload that the tests throw; its destructor panics too.
    struct Thrown(u32);

    impl Drop for Thrown {
        fn drop(&mut self) {
            panic!("on purpose");
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
    #[cfg_attr(miri, ignore = "the test leaks memory on purpose")]
    fn what_is_thrown_may_panic_too() {
        let dropped = Cell::new(0);
        let items = [(); 3].map(|()| Item(&dropped));
        let thrown = catch_unwind(AssertUnwindSafe(|| drop_all(items))).unwrap_err();
        let thrown = mem::ManuallyDrop::new(thrown.downcast::<Thrown>().expect("an item's"));
        assert_eq!((thrown.0, dropped.get()), (1, 3));
    }
}
