//! What one thread at a time does, and nobody waits for.

use ascertain_sys::fork::generation;

use crate::primitives::{AtomicU64, Ordering};

/// Nobody's turn.
const NOBODY: u64 = 0;

/// It is somebody's turn until this is dropped: also when what is done meanwhile panics. Who comes next panics too then, and
/// does not go on in silence with nothing ever freed.
pub(crate) struct Turn<'a> {
    holder: &'a AtomicU64,
    /// A thread had it that this process, a child made by fork(2), does not have. What it was at is half done.
    pub(crate) is_inherited: bool,
}

impl<'a> Turn<'a> {
    /// None if somebody else is at it. The word is 0 at first, and then the number of the holder's process.
    pub(crate) fn take(holder: &'a AtomicU64) -> Option<Self> {
        let process = generation();
        let before = holder.load(Ordering::Relaxed);
        let is_free =
            before != process && holder.compare_exchange(before, process, Ordering::Acquire, Ordering::Relaxed).is_ok();
        is_free.then(|| Self { holder, is_inherited: before != NOBODY })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.holder.store(NOBODY, Ordering::Release);
    }
}
