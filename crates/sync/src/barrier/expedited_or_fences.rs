//! A barrier that every machine has, found when the program runs.

use super::{Barrier, Expedited, Fences, Ticket};

/// [`Expedited`] where the machine has it, or else [`Fences`]: for code that can't be compiled for each, as
/// [`choose`](super::choose) does. The light side is a branch, which always goes the same way, or a fence.
///
/// The slower ways to a light side that is nothing are not tried: `Interrupts` needs a daemon, and `Global` makes what waits
/// for it wait for milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct ExpeditedOrFences(Option<Expedited>);

impl ExpeditedOrFences {
    /// Asks the kernel, which takes system calls.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self(Expedited::new().ok())
    }

    /// Whether its light side is a fence.
    #[must_use]
    pub fn is_fences(&self) -> bool {
        self.0.is_none()
    }
}

// SAFETY: it is one of two barriers, and each clone the same one.
unsafe impl Barrier for ExpeditedOrFences {
    #[inline(always)]
    fn light(&self) {
        match self.0 {
            Some(expedited) => expedited.light(),
            None => Fences.light(),
        }
    }

    fn ticket(&self) -> Ticket {
        match self.0 {
            Some(expedited) => expedited.ticket(),
            None => Fences.ticket(),
        }
    }
}
