//! Heavy sides that are under way.

use std::sync::Arc;

use super::global::Round;
use super::interrupts::Pending;

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
