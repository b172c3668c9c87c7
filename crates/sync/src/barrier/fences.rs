//! The same fence on both sides.

use super::{Barrier, Ticket};
use crate::primitives::{Ordering, fence};

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
