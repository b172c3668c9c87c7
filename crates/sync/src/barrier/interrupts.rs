//! A barrier that waits for interrupts, with the help of `barrierd`.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use super::contract::State;
use super::{Barrier, Expedited, Global, Method, Ticket, Unavailable};
use crate::barrierd::{self, Client, DEFAULT_PATH};
use crate::primitives::keep_order;

/// Maximum time for which a heavy side waits for the daemon before it uses the fallback. Normally a heavy side takes a
/// few milliseconds.
const PATIENCE: Duration = Duration::from_millis(100);
/// Interval of the checks whether each CPU has been interrupted. A waiting thread makes these checks only if the daemon
/// has died and there is no fallback.
const LOOK: Duration = Duration::from_millis(1);

/// The heavy side waits until each CPU has been interrupted or idle, according to the daemon [`barrierd`]. This
/// disturbs no thread of this process, and checking a ticket that has passed takes no system call.
///
/// If the daemon dies, or does not respond for 100 ms, each heavy side falls back to membarrier(2). If membarrier(2) is
/// not available either, the heavy side waits for the interrupts of the timer, which occur anyway. If a CPU is taken
/// offline in that state, it gets no more interrupts, and the heavy side may wait for ever. [`method`](Self::method)
/// returns the method in use.
#[derive(Clone)]
pub struct Interrupts {
    client: Arc<Client>,
}

impl Interrupts {
    /// Connects to the daemon at its default path.
    ///
    /// # Errors
    /// If there is no daemon, or it is not trusted. The message describes how to start one.
    pub fn new() -> Result<Self, Unavailable> {
        Self::connect(DEFAULT_PATH)
    }

    /// Connects to the daemon at `path`.
    ///
    /// # Errors
    /// Fails like [`new`](Self::new).
    pub fn connect(path: impl AsRef<Path>) -> Result<Self, Unavailable> {
        Client::open(path).map(Self::over).map_err(|error| Unavailable::no_daemon(&error))
    }

    /// Creates a barrier that uses an existing connection to the daemon.
    #[must_use]
    pub fn over(client: Client) -> Self {
        Self { client: Arc::new(client) }
    }

    /// Returns how heavy sides work from now on: [`Method::Interrupts`] while the daemon lives, otherwise the fallback.
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

// SAFETY: the daemon exists only on x86-64. There, the handler of an interrupt records the interrupt in memory after
// everything that the interrupted thread wrote before. The handler returns by an instruction that no later read can
// pass. An idle or offline CPU runs no thread, and the CPU went through a system call or an interrupt to get into that
// state. `keep_order` prevents the compiler from moving memory accesses across the light side.
unsafe impl Barrier for Interrupts {
    #[inline(always)]
    fn light(&self) {
        keep_order();
    }

    fn ticket(&self) -> Ticket {
        let timestamp = self.client.timestamp();
        // If the request does not reach the daemon, the check of the ticket finds that the daemon has ended.
        let _ = self.client.request_heartbeat();
        let pending = Pending { client: Arc::clone(&self.client), timestamp, fallback: OnceLock::new() };
        Ticket(State::Interrupts(Box::new(pending)))
    }
}

impl fmt::Debug for Interrupts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupts").field("method", &self.method()).finish_non_exhaustive()
    }
}

/// Begins a heavy side with another method, because the daemon does not work. Returns `None` if no other method is
/// available.
fn fallback() -> Option<Ticket> {
    let expedited = Expedited::new().map(|barrier| barrier.ticket());
    expedited.or_else(|_| Global::new().map(|barrier| barrier.ticket())).ok()
}

/// A heavy side that has begun, and waits until each CPU has been interrupted or idle.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    client: Arc<Client>,
    timestamp: barrierd::Timestamp,
    /// The fallback, which is used after the daemon died or did not respond; `None` if there is no fallback.
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
