//! membarrier(2) by waiting for the scheduler.

use std::io;
use std::process;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use ascertain_sys::membarrier;

use super::unavailable::{Method, Unavailable};
use super::{Barrier, Ticket, expedited};
use crate::primitives::{Ordering, compiler_fence, fence};

/// Plain membarrier: the heavy side waits until each CPU has scheduled. Milliseconds, and no CPU is disturbed.
///
/// A ticket is a call on a thread of its own, which all tickets share that are taken before the call begins. There
/// are at most two such threads at a time, and none without tickets. Where no thread can be made the ticket blocks.
#[derive(Clone, Copy, Debug)]
pub struct Global(());

impl Global {
    /// Asks the kernel whether it can.
    ///
    /// # Errors
    /// Where the kernel is older than Linux 4.3, the system another, a filter of system calls forbids it, or CPUs run
    /// without the kernel's timer (`nohz_full`).
    pub fn new() -> Result<Self, Unavailable> {
        match membarrier::is_global_supported() {
            Ok(true) => Ok(Self(())),
            Ok(false) => Err(Unavailable::isolated_cpus()),
            Err(error) => Err(Unavailable::refused(Method::Global, &error)),
        }
    }
}

// SAFETY: when the call returns, each CPU has gone through the scheduler since it began, which is a full barrier for
// the thread that it ran: see `Expedited`.
unsafe impl Barrier for Global {
    #[inline(always)]
    fn light(&self) {
        compiler_fence(Ordering::SeqCst);
    }

    fn heavy(&self) {
        fence(Ordering::SeqCst);
        check(barrier().err());
        fence(Ordering::SeqCst);
    }

    fn ticket(&self) -> Ticket {
        fence(Ordering::SeqCst);
        Ticket::of_round(Round::join())
    }
}

/// The number of the error that the kernel gave, should it neither do this nor the expedited way.
fn barrier() -> Result<(), i32> {
    let done = membarrier::global().or_else(|_| expedited::registered_barrier());
    done.map_err(|error| error.raw_os_error().unwrap_or(0))
}

/// Going on without the barrier would free what is still read.
pub(super) fn check(errno: Option<i32>) {
    if let Some(errno) = errno {
        let error = io::Error::from_raw_os_error(errno);
        panic!("the kernel refuses membarrier(2), which it offered before: {error}");
    }
}

/// A call of membarrier(2) for all tickets that were taken before it began.
#[derive(Debug)]
pub(super) struct Round {
    /// The process of its thread.
    pid: u32,
    done: OnceLock<Result<(), i32>>,
}

/// The rounds of a process. A child made by fork(2) has rounds of its own: its parent's threads are not in it.
struct Rounds {
    pid: u32,
    /// The round that has not begun, which tickets join.
    next: Option<Arc<Round>>,
    /// Held while a round is under way: they come one after the other.
    turn: Arc<Mutex<()>>,
}

static ROUNDS: Mutex<Option<Rounds>> = Mutex::new(None);

impl Round {
    fn join() -> Arc<Self> {
        let pid = process::id();
        let mut guard = ROUNDS.lock().unwrap_or_else(PoisonError::into_inner);
        let of_parent = guard.take_if(|rounds| rounds.pid != pid);
        let rounds = guard.get_or_insert_with(|| Rounds { pid, next: None, turn: Arc::default() });
        if let Some(round) = &rounds.next {
            return Arc::clone(round);
        }
        let round = Arc::new(Self { pid, done: OnceLock::new() });
        rounds.next = Some(Arc::clone(&round));
        let turn = Arc::clone(&rounds.turn);
        drop((guard, of_parent));
        let here = Arc::clone(&turn);
        if thread::Builder::new().name("membarrier".into()).spawn(move || Self::run_next(&turn)).is_err() {
            Self::run_next(&here);
        }
        round
    }

    /// Waits for its turn, so that more tickets may join, then calls for the round that is next.
    fn run_next(turn: &Mutex<()>) {
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rounds = ROUNDS.lock().unwrap_or_else(PoisonError::into_inner);
        let next = rounds.as_mut().and_then(|rounds| rounds.next.take());
        drop(rounds);
        if let Some(round) = next {
            // Nobody else sets it.
            let _ = round.done.set(barrier());
        }
    }

    pub(super) fn is_passed(&self) -> bool {
        match self.done.get() {
            Some(done) => check(done.err()),
            None if self.pid == process::id() => return false,
            None => {}
        }
        fence(Ordering::SeqCst);
        true
    }

    pub(super) fn wait(&self) {
        if !self.is_passed() {
            check(self.done.wait().err());
            fence(Ordering::SeqCst);
        }
    }
}
