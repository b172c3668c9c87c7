//! What a barrier promises, heavy sides that are under way, and the barrier that every machine has.

use std::sync::Arc;

use super::interrupts::Pending;
use super::membarrier::Round;
use crate::primitives::{Ordering, fence};

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

/// A heavy side that has begun and perhaps not ended: see [`Barrier::ticket`](super::Barrier::ticket).
///
/// Dropping it is allowed at any time. A child process made by fork(2) may go on with tickets of its parent.
///
/// ```
/// use ascertain_sync::barrier::{Barrier, Global};
/// # fn work() {}
/// if let Ok(barrier) = Global::new() {
///     let ticket = barrier.ticket();
///     while !ticket.is_passed() {
///         work(); // for some milliseconds
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Ticket(State);

#[derive(Clone, Debug)]
enum State {
    Passed,
    Round(Arc<Round>),
    Interrupts(Box<Pending>),
}

impl Ticket {
    /// A ticket that has passed, for barriers whose heavy side is over at once.
    #[must_use]
    pub fn passed() -> Self {
        Self(State::Passed)
    }

    pub(super) fn of_round(round: Arc<Round>) -> Self {
        Self(State::Round(round))
    }

    pub(super) fn of_interrupts(pending: Pending) -> Self {
        Self(State::Interrupts(Box::new(pending)))
    }

    /// Whether the heavy side is over. It does not block.
    ///
    /// # Panics
    /// As [`Barrier::heavy`](super::Barrier::heavy).
    #[must_use]
    pub fn is_passed(&self) -> bool {
        match &self.0 {
            State::Passed => true,
            State::Round(round) => round.is_passed(),
            State::Interrupts(pending) => pending.is_passed(),
        }
    }

    /// Blocks until the heavy side is over.
    ///
    /// # Panics
    /// As [`Barrier::heavy`](super::Barrier::heavy).
    pub fn wait(&self) {
        match &self.0 {
            State::Passed => {}
            State::Round(round) => round.wait(),
            State::Interrupts(pending) => pending.wait(),
        }
    }
}

/// A sequentially consistent fence on both sides: no help of the kernel, and a light side that costs as much as the
/// heavy one. There is no machine without it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fences;

// SAFETY: two sequentially consistent fences have an order. What precedes the first is seen by what follows the second.
unsafe impl Barrier for Fences {
    #[inline(always)]
    fn light(&self) {
        fence(Ordering::SeqCst);
    }

    fn ticket(&self) -> Ticket {
        fence(Ordering::SeqCst);
        Ticket::passed()
    }
}

#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::barrier::Scripted;

    #[test]
    fn a_heavy_side_is_waited_for() {
        let barrier = Scripted::default();
        // That it was waited for is seen by its panic.
        barrier.end_with(Some(Err(1)));
        assert!(catch_unwind(AssertUnwindSafe(|| barrier.heavy())).is_err());
    }
}
