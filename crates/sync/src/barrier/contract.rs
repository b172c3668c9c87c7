//! The trait of all barriers, the ticket that shows when a heavy side is complete, and the barrier that every machine
//! supports.

use std::sync::Arc;

use super::interrupts::Pending;
use super::membarrier::Round;
use crate::primitives::{Ordering, fence};

/// A memory barrier whose two sides have different costs.
///
/// For each call of [`light`](Self::light) and each call of [`heavy`](Self::heavy), on any threads, at least one of two
/// statements holds:
///
/// - everything that the light side's thread wrote before the light side is visible after the heavy side, or
/// - everything that the heavy side's thread wrote before the heavy side is visible after the light side.
///
/// `fence(SeqCst)` on both sides gives the same guarantee. Without any fence, store buffers break it: a thread may read
/// before its own write is visible, so both threads may miss the write of the other.
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
/// The guarantee must hold for all threads of the process, because memory safety in [`hazard`](crate::hazard) and
/// [`epoch`](crate::epoch) depends on it. It must also hold between any two clones of the barrier.
pub unsafe trait Barrier: Clone + Send + Sync + 'static {
    /// Executes the side that is used often. The compiler moves no memory access across the call. The processor may
    /// still move one, unless the barrier is [`Fences`](super::Fences).
    fn light(&self);

    /// Executes the side that is used rarely: blocks until the guarantee holds for each light side that was executed
    /// before.
    ///
    /// # Panics
    /// If the kernel refuses a call that it supported before (because a filter of system calls was installed since),
    /// and the other methods fail too. Continuing would not be safe.
    fn heavy(&self) {
        self.ticket().wait();
    }

    /// Begins a heavy side and returns at once. The heavy side is complete once [`Ticket::is_passed`] returns `true` or
    /// [`Ticket::wait`] returns. The heavy side is ordered after all writes before this call, and before all reads
    /// after its completion.
    #[must_use]
    fn ticket(&self) -> Ticket;
}

/// A heavy side that has begun and may be complete: see [`Barrier::ticket`](super::Barrier::ticket).
///
/// A ticket may be dropped at any time. A child process made by fork(2) may continue to use the tickets of its parent.
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
pub struct Ticket(pub(super) State);

#[derive(Clone, Debug)]
pub(super) enum State {
    Passed,
    Round(Arc<Round>),
    Interrupts(Box<Pending>),
}

impl Ticket {
    /// Returns a ticket whose heavy side is already complete, for barriers that complete a heavy side at once.
    #[must_use]
    pub fn passed() -> Self {
        Self(State::Passed)
    }

    /// Returns whether the heavy side is complete. It does not block.
    ///
    /// # Panics
    /// Panics in the same cases as [`Barrier::heavy`](super::Barrier::heavy).
    #[must_use]
    pub fn is_passed(&self) -> bool {
        match &self.0 {
            State::Passed => true,
            State::Round(round) => round.is_passed(),
            State::Interrupts(pending) => pending.is_passed(),
        }
    }

    /// Blocks until the heavy side is complete.
    ///
    /// # Panics
    /// Panics in the same cases as [`Barrier::heavy`](super::Barrier::heavy).
    pub fn wait(&self) {
        match &self.0 {
            State::Passed => {}
            State::Round(round) => round.wait(),
            State::Interrupts(pending) => pending.wait(),
        }
    }
}

/// A sequentially consistent fence on both sides. It needs no help from the kernel, and its light side costs as much as
/// its heavy side. Every machine supports it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fences;

// SAFETY: two sequentially consistent fences have an order. Code after the second fence sees everything before the
// first fence.
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
        // The scripted heavy side ends with a panic. So if `heavy` panics, it has waited until the heavy side ended.
        barrier.end_with(Some(Err(1)));
        assert!(catch_unwind(AssertUnwindSafe(|| barrier.heavy())).is_err());
    }
}
