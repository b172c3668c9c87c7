//! The two barriers that use membarrier(2): by interrupts, and by waiting for the scheduler.

use std::io;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use ascertain_sys::fork::generation;
use ascertain_sys::membarrier;

use super::choose::Reason;
use super::contract::State;
use super::{Barrier, Method, Ticket, Unavailable};
use crate::primitives::{Ordering, fence, keep_order};

/// Expedited membarrier. The heavy side interrupts each CPU that runs a thread of this process. The heavy side takes
/// microseconds, and each of those CPUs loses about one microsecond.
#[derive(Clone, Copy, Debug)]
pub struct Expedited(());

impl Expedited {
    /// Registers this process with the kernel. If the process is already registered, this only makes system calls that
    /// take microseconds.
    ///
    /// # Errors
    /// If the kernel is older than Linux 4.14, the system is not Linux, or a filter of system calls forbids the call.
    pub fn new() -> Result<Self, Unavailable> {
        let (method, refused) = (Method::Expedited, |error| Unavailable::refused(Method::Expedited, &error));
        if !membarrier::is_expedited_supported().map_err(refused)? {
            return Err(Unavailable { method, reason: Reason::OldKernel });
        }
        registered_barrier().map_err(refused).map(|()| Self(()))
    }
}

/// Calls the expedited membarrier, and registers this process first if the kernel requires that. A child process may
/// not have inherited the registration of its parent.
fn registered_barrier() -> io::Result<()> {
    match membarrier::private_expedited() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            membarrier::register_private_expedited()?;
            membarrier::private_expedited()
        }
        done => done,
    }
}

// SAFETY: each running thread passes a full barrier between the call and its return, and each other thread passes one
// when it is next scheduled. If a thread executes its light side before this full barrier, everything that it wrote
// before the light side is visible when the call returns. If it executes the light side after the full barrier, its
// later reads see everything that the caller wrote before the call. `keep_order` prevents the compiler from
// moving memory accesses across the light side.
unsafe impl Barrier for Expedited {
    #[inline(always)]
    fn light(&self) {
        keep_order();
    }

    fn ticket(&self) -> Ticket {
        // The call is a full barrier on every processor. The fences make it one in Rust's memory model too.
        fence(Ordering::SeqCst);
        // The call may fail because the kernel is out of memory. The slower method needs no memory.
        let done = registered_barrier().or_else(|_| membarrier::global());
        check(done.as_ref().err().and_then(io::Error::raw_os_error));
        fence(Ordering::SeqCst);
        Ticket::passed()
    }
}

/// Plain membarrier. The heavy side waits until each CPU has run the kernel's scheduler. This takes milliseconds and
/// disturbs no CPU.
///
/// For tickets, a separate thread calls membarrier(2). One call serves all tickets that are taken before it begins.
/// There are at most two such threads at a time, and none without tickets. If a thread cannot be created, taking the
/// ticket blocks.
#[derive(Clone, Copy, Debug)]
pub struct Global(());

impl Global {
    /// Checks whether the kernel supports this command of membarrier(2).
    ///
    /// # Errors
    /// If the kernel is older than Linux 4.3, the system is not Linux, or a filter of system calls forbids the call.
    /// Also if some CPUs run without the kernel's timer (`nohz_full`).
    pub fn new() -> Result<Self, Unavailable> {
        let method = Method::Global;
        match membarrier::is_global_supported().map_err(|error| Unavailable::refused(method, &error))? {
            true => Ok(Self(())),
            false => Err(Unavailable { method, reason: Reason::IsolatedCpus }),
        }
    }
}

// SAFETY: when the call returns, each CPU has gone through the scheduler since the call began. Going through the
// scheduler is a full barrier for the thread that the CPU ran: see `Expedited`.
unsafe impl Barrier for Global {
    #[inline(always)]
    fn light(&self) {
        keep_order();
    }

    fn heavy(&self) {
        // The fences make the call a full barrier in Rust's memory model too: see `Expedited`.
        fence(Ordering::SeqCst);
        check(barrier().err());
        fence(Ordering::SeqCst);
    }

    fn ticket(&self) -> Ticket {
        fence(Ordering::SeqCst);
        Ticket(State::Round(Round::join()))
    }
}

/// Executes plain membarrier, or expedited membarrier if that is not possible. Returns the kernel's error number if
/// both fail.
fn barrier() -> Result<(), i32> {
    let done = membarrier::global().or_else(|_| registered_barrier());
    done.map_err(|error| error.raw_os_error().unwrap_or(0))
}

/// Panics if there is an error number. Continuing without the barrier would free memory that threads still read.
fn check(errno: Option<i32>) {
    if let Some(errno) = errno {
        let error = io::Error::from_raw_os_error(errno);
        panic!("the kernel refuses membarrier(2), which it allowed before: {error}");
    }
}

/// A call of membarrier(2) for all tickets that were taken before it began.
#[derive(Debug)]
pub(super) struct Round {
    /// The process whose thread executes the round, identified by its [`generation`].
    process: u64,
    done: OnceLock<Result<(), i32>>,
}

/// The rounds of one process. A round is a call of membarrier(2) that serves several tickets.
struct Rounds {
    process: u64,
    /// The round that has not begun yet, which new tickets join.
    next: Mutex<Option<Arc<Round>>>,
    /// A lock that is held while a round runs, so that rounds run one after the other.
    turn: Mutex<()>,
}

static ROUNDS: AtomicPtr<Rounds> = AtomicPtr::new(ptr::null_mut());

impl Rounds {
    /// Returns the rounds of this process, which are never freed. A child made by fork(2) gets its own rounds: the
    /// threads of its parent may hold the parent's locks, but do not exist in the child.
    fn here() -> &'static Self {
        let process = generation();
        loop {
            let found = ROUNDS.load(Ordering::Acquire);
            // SAFETY: the pointer is null or points to leaked memory.
            if let Some(rounds) = unsafe { found.as_ref() }.filter(|rounds| rounds.process == process) {
                return rounds;
            }
            let new = Box::into_raw(Box::new(Self { process, next: Mutex::default(), turn: Mutex::default() }));
            if ROUNDS.compare_exchange(found, new, Ordering::Release, Ordering::Relaxed).is_err() {
                // SAFETY: `new` is from `Box::into_raw`, and no other thread has seen it.
                drop(unsafe { Box::from_raw(new) });
            }
        }
    }

    /// Waits until the previous call of membarrier(2) ends, while more tickets may join the next round. Then makes the
    /// call for that round.
    fn run_next(&self) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(round) = next {
            // Cannot fail, because no other code sets the result of this round.
            let _ = round.done.set(barrier());
        }
    }
}

impl Round {
    #[cfg(all(test, not(any(model = "loom", model = "tso"))))]
    pub(super) fn ended(done: OnceLock<Result<(), i32>>) -> Arc<Self> {
        Arc::new(Self { process: generation(), done })
    }

    fn join() -> Arc<Self> {
        let rounds = Rounds::here();
        let mut next = rounds.next.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(round) = &*next {
            return Arc::clone(round);
        }
        let round = Arc::new(Self { process: rounds.process, done: OnceLock::new() });
        *next = Some(Arc::clone(&round));
        drop(next);
        if thread::Builder::new().name("membarrier".into()).spawn(|| rounds.run_next()).is_err() {
            rounds.run_next();
        }
        round
    }

    pub(super) fn is_passed(&self) -> bool {
        match self.done.get() {
            Some(done) => check(done.err()),
            None if self.process == generation() => return false,
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

#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
mod tests {
    use std::time::Duration;

    use ascertain_sys::testing::or_left_out;

    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "no system calls")]
    fn a_round_that_has_begun_is_not_joined() {
        let Some(_) = or_left_out(Global::new()) else { return };
        let first = Round::join();
        first.wait();
        assert!(!Arc::ptr_eq(&first, &Round::join()));
    }

    /// Tests that any number of tickets share one round while a call is running.
    #[test]
    #[cfg_attr(miri, ignore = "no system calls")]
    fn tickets_share_the_round_that_waits_for_its_turn() {
        let Some(_) = or_left_out(Global::new()) else { return };
        let turn = Rounds::here().turn.lock().unwrap();
        let next = Round::join();
        // The round cannot begin while this test holds the turn. So tickets join it for longer than one call takes.
        assert!((0..100).all(|_| {
            thread::sleep(Duration::from_millis(1));
            Arc::ptr_eq(&next, &Round::join())
        }));
        assert!(!next.is_passed());
        drop(turn);
        next.wait();
    }

    /// One of the two threads creates the [`Rounds`], and the other one reads the pointer to them. Under Miri, this
    /// test fails if the other thread can see the pointer before the contents.
    #[test]
    fn all_threads_have_the_same_rounds() {
        let other = thread::spawn(|| ptr::from_ref(Rounds::here()).addr());
        let here = ptr::from_ref(Rounds::here()).addr();
        assert_eq!(other.join().unwrap(), here);
    }
}
