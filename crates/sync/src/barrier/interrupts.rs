//! Counting interrupts, with the help of `barrierd`.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use super::{Barrier, Expedited, Global, Method, Ticket, Unavailable};
use crate::barrierd::{self, Client, DEFAULT_PATH};
use crate::primitives::{Ordering, compiler_fence};

/// How long a heavy side is left to a daemon that says nothing. It takes some milliseconds otherwise.
const PATIENCE: Duration = Duration::from_millis(100);
/// Between looks at the CPUs where there is nothing to wait on.
const LOOK: Duration = Duration::from_millis(1);

/// Interrupt generations: the heavy side waits until each CPU has been interrupted, or idle, of which the daemon
/// [`barrierd`] tells. No thread of this process is disturbed, and a ticket that has passed costs no system call to
/// look at.
///
/// Should the daemon die, or not answer for 100 ms, each heavy side falls back to membarrier(2), and without that to
/// interrupts that come anyway, those of the timer, which a CPU that is then taken offline has no more.
/// [`method`](Self::method) says which it is.
#[derive(Clone)]
pub struct Interrupts {
    client: Arc<Client>,
}

impl Interrupts {
    /// Connects to the daemon where it listens unless it was told otherwise.
    ///
    /// # Errors
    /// Where there is no daemon, or none to be trusted: it says how to start one.
    pub fn new() -> Result<Self, Unavailable> {
        Self::connect(DEFAULT_PATH)
    }

    /// Connects to the daemon at `path`.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn connect(path: impl AsRef<Path>) -> Result<Self, Unavailable> {
        Client::open(path).map(Self::over).map_err(|error| Unavailable::no_daemon(&error))
    }

    /// Over a connection that there is.
    #[must_use]
    pub fn over(client: Client) -> Self {
        Self { client: Arc::new(client) }
    }

    /// How heavy sides are done from now on: [`Method::Interrupts`] while the daemon lives, and else what it falls
    /// back to.
    #[must_use]
    pub fn method(&self) -> Method {
        match self.client.is_alive() {
            true => Method::Interrupts,
            false => [Method::Expedited, Method::Global]
                .into_iter()
                .find(|method| method.is_available().is_ok())
                .unwrap_or(Method::Interrupts),
        }
    }
}

// SAFETY: only x86-64 has the daemon. There an interrupt's handler notes it in memory after whatever the thread wrote
// before, and returns by an instruction that lets nothing that follows be read before. An idle or offline CPU runs no
// thread, and went through a system call or an interrupt to become so. The compiler fence keeps the light side's place.
unsafe impl Barrier for Interrupts {
    #[inline(always)]
    fn light(&self) {
        compiler_fence(Ordering::SeqCst);
    }

    fn ticket(&self) -> Ticket {
        let timestamp = self.client.timestamp();
        // That nobody hears it is noticed when the ticket is looked at.
        let _ = self.client.ask();
        Ticket::of_interrupts(Pending { client: Arc::clone(&self.client), timestamp, fallback: OnceLock::new() })
    }
}

impl fmt::Debug for Interrupts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupts").field("method", &self.method()).finish_non_exhaustive()
    }
}

/// A heavy side that is begun anew: in the way that is found, if any.
fn fallback() -> Option<Ticket> {
    let expedited = Expedited::new().map(|barrier| barrier.ticket());
    expedited.or_else(|_| Global::new().map(|barrier| barrier.ticket())).ok()
}

/// A heavy side that waits for interrupts.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    client: Arc<Client>,
    timestamp: barrierd::Timestamp,
    /// What is waited for too since the daemon died; none if there is nothing.
    fallback: OnceLock<Option<Ticket>>,
}

impl Pending {
    fn fallback(&self) -> Option<&Ticket> {
        self.fallback.get_or_init(fallback).as_ref()
    }

    pub(super) fn is_passed(&self) -> bool {
        self.client.has_passed(self.timestamp, None)
            || (!self.client.is_alive() && self.fallback().is_some_and(Ticket::is_passed))
    }

    pub(super) fn wait(&self) {
        if self.client.wait(self.timestamp, None, Instant::now() + PATIENCE).is_ok() {
            return;
        }
        match self.fallback() {
            Some(ticket) => ticket.wait(),
            None => {
                while !self.client.has_passed(self.timestamp, None) {
                    thread::sleep(LOOK);
                }
            }
        }
    }
}
