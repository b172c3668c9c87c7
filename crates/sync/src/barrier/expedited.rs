//! membarrier(2) by interrupts.

use std::io;

use ascertain_sys::membarrier;

use super::unavailable::{Method, Unavailable};
use super::{Barrier, Ticket, global};
use crate::primitives::{Ordering, compiler_fence, fence};

/// Expedited membarrier: the heavy side interrupts each CPU that runs a thread of this process. Microseconds, during
/// which each of those CPUs loses about one.
#[derive(Clone, Copy, Debug)]
pub struct Expedited(());

impl Expedited {
    /// Tells the kernel that this process will use it. Calling it again costs a system call.
    ///
    /// # Errors
    /// Where the kernel is older than Linux 4.14, the system another, or a filter of system calls forbids it.
    pub fn new() -> Result<Self, Unavailable> {
        match membarrier::is_expedited_supported() {
            Ok(true) => {}
            Ok(false) => return Err(Unavailable::old_kernel(Method::Expedited)),
            Err(error) => return Err(Unavailable::refused(Method::Expedited, &error)),
        }
        registered_barrier().map_err(|error| Unavailable::refused(Method::Expedited, &error))?;
        Ok(Self(()))
    }
}

/// A child process need not have inherited that its parent had registered: it is done anew when the kernel says so.
pub(super) fn registered_barrier() -> io::Result<()> {
    match membarrier::private_expedited() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            membarrier::register_private_expedited()?;
            membarrier::private_expedited()
        }
        done => done,
    }
}

// SAFETY: the kernel has each thread that runs pass a full barrier between call and return, and each other thread
// passes one when it is next scheduled. If a light side comes before that barrier in its thread, what precedes it has
// been written when the call returns; if after, what it reads is read after the call began. The compiler fence keeps
// the light side's place in its thread.
unsafe impl Barrier for Expedited {
    #[inline(always)]
    fn light(&self) {
        compiler_fence(Ordering::SeqCst);
    }

    fn ticket(&self) -> Ticket {
        // The call is a full barrier on every processor: the fences say so in the language.
        fence(Ordering::SeqCst);
        // The kernel may be out of memory for a moment, which the slower way does not need.
        let done = registered_barrier().or_else(|_| membarrier::global());
        global::check(done.as_ref().err().and_then(io::Error::raw_os_error));
        fence(Ordering::SeqCst);
        Ticket::passed()
    }
}
