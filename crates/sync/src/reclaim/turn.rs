//! What one thread at a time does, and nobody waits for.

use crate::primitives::{AtomicBool, Ordering};

/// A flag that is set, until this is dropped: also when what is done meanwhile panics. Who comes next panics too then, and
/// does not go on in silence with nothing ever freed.
pub(crate) struct Turn<'a>(&'a AtomicBool);

impl<'a> Turn<'a> {
    /// None if somebody else is at it.
    pub(crate) fn take(is_busy: &'a AtomicBool) -> Option<Self> {
        (!is_busy.swap(true, Ordering::Acquire)).then(|| Self(is_busy))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
