//! A barrier for tests, whose heavy sides end as the test specifies.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::contract::State;
use super::membarrier::Round;
use super::{Barrier, Fences, Ticket};

/// A barrier for tests. The test specifies how its heavy sides end from now on: never, successfully, or by a panic with
/// an error number.
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

    /// Returns the number of tickets that were taken, one for each heavy side that has begun.
    pub(crate) fn tickets(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).tickets
    }
}

// SAFETY: the sides are those of `Fences`, whose fences give the guarantee.
unsafe impl Barrier for Scripted {
    fn light(&self) {
        Fences.light();
    }

    fn ticket(&self) -> Ticket {
        let mut script = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        script.tickets += 1;
        Fences.heavy();
        Ticket(State::Round(Round::ended(script.end.map_or_else(OnceLock::new, OnceLock::from))))
    }
}
