//! The control: schemes over it must free early, and each checker must find out.

use std::sync::atomic::{Ordering, compiler_fence};

use ascertain_sync::barrier::{Barrier, Ticket};

/// No barrier, but for the compiler.
#[derive(Clone)]
pub struct Missing;

// SAFETY: it does not keep the promise, which is what is to be found. What is read is memory that is never given back.
unsafe impl Barrier for Missing {
    #[inline(always)]
    fn light(&self) {
        compiler_fence(Ordering::SeqCst);
    }

    fn ticket(&self) -> Ticket {
        Ticket::passed()
    }
}
