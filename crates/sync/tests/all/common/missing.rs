//! A control: with this barrier, reclamation must free objects too early, and each checker must detect that.

use std::sync::atomic::{Ordering, compiler_fence};

use ascertain_sync::barrier::{Barrier, Ticket};

/// A barrier that restricts only the compiler.
#[derive(Clone)]
pub struct Missing;

// SAFETY: this barrier does not give the guarantee, which the tests must detect. They read only memory that is never
// released.
unsafe impl Barrier for Missing {
    #[inline(always)]
    fn light(&self) {
        compiler_fence(Ordering::SeqCst);
    }

    fn ticket(&self) -> Ticket {
        Ticket::passed()
    }
}
