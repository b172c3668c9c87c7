//! The two kinds of membarrier(2): by interrupts, and by waiting for the scheduler.

use std::io;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use ascertain_sys::fork::generation;
use ascertain_sys::membarrier;

use super::{Barrier, Method, Ticket, Unavailable};
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
fn registered_barrier() -> io::Result<()> {
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
        check(done.as_ref().err().and_then(io::Error::raw_os_error));
        fence(Ordering::SeqCst);
        Ticket::passed()
    }
}

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
        // The fences say in the language what the call does to processors: see `Expedited`.
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
    let done = membarrier::global().or_else(|_| registered_barrier());
    done.map_err(|error| error.raw_os_error().unwrap_or(0))
}

/// Going on without the barrier would free what is still read.
fn check(errno: Option<i32>) {
    if let Some(errno) = errno {
        let error = io::Error::from_raw_os_error(errno);
        panic!("the kernel refuses membarrier(2), which it offered before: {error}");
    }
}

/// A call of membarrier(2) for all tickets that were taken before it began.
#[derive(Debug)]
pub(super) struct Round {
    /// The process of its thread, as [`generation`] tells them apart.
    process: u64,
    done: OnceLock<Result<(), i32>>,
}

/// The rounds of a process.
struct Rounds {
    process: u64,
    /// The round that has not begun, which tickets join.
    next: Mutex<Option<Arc<Round>>>,
    /// Held while a round is under way: they come one after the other.
    turn: Mutex<()>,
}

static ROUNDS: AtomicPtr<Rounds> = AtomicPtr::new(ptr::null_mut());

impl Rounds {
    /// This process's, which are never freed. A child made by fork(2) has rounds of its own: its parent's threads,
    /// which may hold the parent's locks, are not in it.
    fn here() -> &'static Self {
        let process = generation();
        loop {
            let found = ROUNDS.load(Ordering::Acquire);
            // SAFETY: null, or leaked.
            if let Some(rounds) = unsafe { found.as_ref() }.filter(|rounds| rounds.process == process) {
                return rounds;
            }
            let new = Box::into_raw(Box::new(Self { process, next: Mutex::default(), turn: Mutex::default() }));
            if ROUNDS.compare_exchange(found, new, Ordering::Release, Ordering::Relaxed).is_err() {
                // SAFETY: nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
            }
        }
    }

    /// Waits for its turn, so that more tickets may join, then calls for the round that is next.
    fn run_next(&self) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(round) = next {
            // Nobody else sets it.
            let _ = round.done.set(barrier());
        }
    }
}

impl Round {
    #[cfg(all(test, not(any(model = "loom", model = "tso"))))]
    pub(super) fn that_ended(done: OnceLock<Result<(), i32>>) -> Arc<Self> {
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

    /// However many there are, while a call is under way.
    #[test]
    #[cfg_attr(miri, ignore = "no system calls")]
    fn tickets_share_the_round_that_waits_for_its_turn() {
        let Some(_) = or_left_out(Global::new()) else { return };
        let turn = Rounds::here().turn.lock().unwrap();
        let next = Round::join();
        // Longer than a call takes.
        assert!((0..100).all(|_| {
            thread::sleep(Duration::from_millis(1));
            Arc::ptr_eq(&next, &Round::join())
        }));
        assert!(!next.is_passed());
        drop(turn);
        next.wait();
    }

    /// Miri finds it where one reads what the other has made before that is there.
    #[test]
    fn all_threads_have_the_same_rounds() {
        let other = thread::spawn(|| ptr::from_ref(Rounds::here()).addr());
        let here = ptr::from_ref(Rounds::here()).addr();
        assert_eq!(other.join().unwrap(), here);
    }
}
