//! What a barrier promises.

use super::Ticket;

/// A memory barrier in two sides that don't cost the same.
///
/// For each call of [`light`](Self::light) and each call of [`heavy`](Self::heavy), whatever threads they are on, one
/// of two things holds:
///
/// - what the light side's thread wrote before it is seen by what follows the heavy side, or
/// - what the heavy side's thread wrote before it is seen by what follows the light side.
///
/// It is what `fence(SeqCst)` on both sides gives, and what store buffers take away from a program without any: there
/// a thread may read before its own write is seen, and both may miss the other's.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
/// use ascertain_sync::barrier::{Barrier, Fences};
///
/// static IS_READING: AtomicBool = AtomicBool::new(false);
/// static IS_CLOSED: AtomicBool = AtomicBool::new(false);
///
/// fn may_read(barrier: &impl Barrier) -> bool { // often
///     IS_READING.store(true, Relaxed);
///     barrier.light();
///     !IS_CLOSED.load(Relaxed)
/// }
///
/// fn is_unused(barrier: &impl Barrier) -> bool { // rarely
///     IS_CLOSED.store(true, Relaxed);
///     barrier.heavy();
///     !IS_READING.load(Relaxed)
/// }
///
/// assert!(may_read(&Fences));
/// assert!(!is_unused(&Fences));
/// ```
///
/// # Safety
/// The promise must hold for all threads of the process, of which memory's safety depends in [`hazard`](crate::hazard)
/// and [`epoch`](crate::epoch), and for each clone of the barrier together with each other.
pub unsafe trait Barrier: Clone + Send + Sync + 'static {
    /// The side that is taken often: it keeps the compiler from moving memory accesses across it, and with
    /// [`Fences`](super::Fences) only the processor too.
    fn light(&self);

    /// The side that is taken rarely: blocks until the promise holds for each light side that was taken before.
    ///
    /// # Panics
    /// When the kernel refuses what it offered before (a filter of system calls installed since), and the other ways
    /// too: going on would not be safe.
    fn heavy(&self) {
        self.ticket().wait();
    }

    /// Begins a heavy side and returns at once: it is over when the ticket has passed. What was written before the
    /// ticket was taken, and what is read after it passed, are on its two sides.
    #[must_use]
    fn ticket(&self) -> Ticket;
}
