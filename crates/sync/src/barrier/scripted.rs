//! For tests: heavy sides that are over when the test says so.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::membarrier::Round;
use super::{Barrier, Fences, Ticket};

/// How the heavy sides end that begin from now on: not at all, well, or with an error's number, which panics.
#[derive(Clone, Default)]
pub(crate) struct Scripted(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    end: Option<Result<(), i32>>,
    tickets: u64,
}

impl Scripted {
    pub(crate) fn end_with(&self, end: Option<Result<(), i32>>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).end = end;
    }

    /// How many heavy sides have begun.
    pub(crate) fn tickets(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).tickets
    }
}

// SAFETY: as of `Fences`.
unsafe impl Barrier for Scripted {
    fn light(&self) {
        Fences.light();
    }

    fn ticket(&self) -> Ticket {
        let mut script = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        script.tickets += 1;
        Fences.heavy();
        Ticket::of_round(Round::that_ended(script.end.map_or_else(OnceLock::new, OnceLock::from)))
    }
}
