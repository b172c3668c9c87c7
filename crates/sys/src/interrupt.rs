//! Requests to stop in an orderly way: by SIGINT, SIGTERM and SIGHUP, or from another thread.

use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::{mem, ptr};

use crate::{Error, clock};

/// A stop token. Code that holds the token or a clone of it should end soon after a stop is requested. A stop also
/// kills the commands that were started with this token.
///
/// The default token belongs to the signals of this process. Only a signal can request a stop through it, after the
/// program has called [`install`].
///
/// ```
/// use ascertain_sys::interrupt::Stop;
///
/// let stop = Stop::new()?;
/// let theirs = stop.clone();
/// std::thread::spawn(move || theirs.request()).join().unwrap();
/// assert!(stop.is_requested());
/// # Ok::<_, ascertain_sys::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Stop(Option<Arc<OwnStop>>);

/// The state of a stop token that signals do not affect. Only [`Stop::request`] changes it.
#[derive(Debug)]
struct OwnStop {
    is_requested: AtomicBool,
    wake: (PipeReader, PipeWriter),
}

impl Stop {
    /// Creates a token that signals do not affect.
    ///
    /// # Errors
    ///
    /// [`Error::System`] if there are no file descriptors left.
    pub fn new() -> Result<Stop, Error> {
        let wake = std::io::pipe().map_err(Error::system("could not create a pipe for wake-ups"))?;
        Ok(Stop(Some(Arc::new(OwnStop { is_requested: AtomicBool::new(false), wake }))))
    }

    /// Requests a stop. Does nothing for the token of the signals.
    pub fn request(&self) {
        let Some(own) = &self.0 else { return };
        if !own.is_requested.swap(true, Ordering::AcqRel) {
            // Cannot fail: this writes one byte to an empty pipe, which stays open as long as `own`.
            let _ = (&own.wake.1).write(b"!");
        }
    }

    /// Returns whether a stop has been requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.as_ref().map_or_else(requested, |own| own.is_requested.load(Ordering::Acquire))
    }

    /// Returns a descriptor that becomes readable, and stays so, when a stop is requested; `None` for the token of the
    /// signals before [`install`].
    #[must_use]
    pub fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.0 {
            Some(own) => Some(own.wake.0.as_fd()),
            None => wake_fd(),
        }
    }
}

const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Time after the first signal, in nanoseconds, within which a second signal counts as part of the same request.
/// `timeout` and some job runners send their signal first to the process and then to its group.
const SAME_WISH_NS: u64 = 200_000_000;

/// The time of the first signal, by [`clock::now_ns`]; 0 if no signal has arrived.
static REQUESTED_NS: AtomicU64 = AtomicU64::new(0);
/// The pipe to which the signal handler writes a byte.
static PIPE: OnceLock<(PipeReader, PipeWriter)> = OnceLock::new();

/// Installs the signal handlers. From now on, the first SIGINT, SIGTERM or SIGHUP makes [`requested`] return `true` and
/// wakes each thread that waits for a command. A later signal ends the process at once with exit code 130.
///
/// Signals that were ignored before this call (`nohup`, background jobs of a shell) stay ignored. Further calls have no
/// effect. Only the binary should call this; a library should not handle signals.
///
/// # Errors
///
/// [`Error::System`] if there are no file descriptors left.
pub fn install() -> Result<(), Error> {
    if PIPE.get().is_none() {
        let pipe = std::io::pipe().map_err(Error::system("could not create a pipe for signals"))?;
        // If two threads get here at once, the pipe of the second one is closed again.
        let _ = PIPE.set(pipe);
    }
    SIGNALS.into_iter().try_for_each(|signal| handle(signal, on_signal))
}

/// Returns whether a signal has requested a stop.
#[must_use]
pub fn requested() -> bool {
    REQUESTED_NS.load(Ordering::Acquire) != 0
}

/// Returns a descriptor that becomes readable, and stays so, when [`requested`] becomes true; `None` before
/// [`install`].
pub fn wake_fd() -> Option<BorrowedFd<'static>> {
    PIPE.get().map(|(wake, _)| wake.as_fd())
}

/// Makes a write beyond the limit on the size of files (`ulimit -f`) fail with an error. By default, the signal SIGXFSZ
/// would end the program. Programs that are started later have the default action of the signal, because a handler does
/// not outlive `exec`.
///
/// # Errors
///
/// [`Error::System`] if the signal cannot be handled.
pub fn let_large_writes_fail() -> Result<(), Error> {
    handle(libc::SIGXFSZ, on_large_write)
}

/// Does nothing: the interrupted write returns the error EFBIG.
extern "C" fn on_large_write(_signal: libc::c_int) {}

/// Sets a handler for a signal. A signal that is ignored stays ignored. `handler` must do only what is allowed in a
/// signal handler.
fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) -> Result<(), Error> {
    // SAFETY: `sigaction` is plain data, for which zeros are valid: default action, no flags, and an empty mask on
    // every Unix. The pointers are to locals. `handler` has the signature that an action without SA_SIGINFO needs,
    // does only what is allowed in a signal handler, and lives as long as the program.
    unsafe {
        let (mut old, mut new): (libc::sigaction, libc::sigaction) = (mem::zeroed(), mem::zeroed());
        if libc::sigaction(signal, ptr::null(), &raw mut old) != 0 {
            return Err(Error::last("could not read the action of a signal"));
        }
        if old.sa_sigaction == libc::SIG_IGN {
            return Ok(());
        }
        new.sa_sigaction = handler as libc::sighandler_t;
        new.sa_flags = libc::SA_RESTART;
        match libc::sigaction(signal, &raw const new, ptr::null_mut()) {
            0 => Ok(()),
            _ => Err(Error::last("could not install a signal handler")),
        }
    }
}

/// The signal handler. It uses only atomics (the pipe's `get` is one load), `clock_gettime`, `write` and `_exit`; a
/// handler may call all of them. `errno` stays unchanged, because the only write, of one byte to an empty pipe, does
/// not fail.
extern "C" fn on_signal(_signal: libc::c_int) {
    match wish(&REQUESTED_NS, clock::now_ns()) {
        Wish::First => {
            // The pipe exists before the signals are handled, and an empty pipe has room for one byte.
            let _ = PIPE.get().map(|(_, wake)| rustix::io::write(wake, b"!"));
        }
        Wish::Same => {}
        // SAFETY: `_exit` has no conditions, and does not return.
        Wish::Another => unsafe { libc::_exit(130) },
    }
}

/// The meaning of a signal that arrives: [`wish`] decides it.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    First,
    /// The signal belongs to the same request as the first one: the sender sent it twice.
    Same,
    Another,
}

/// Returns the meaning of a signal that arrives at `now_ns`. Stores the time of the first signal in `requested_ns`,
/// which is 0 until then.
fn wish(requested_ns: &AtomicU64, now_ns: u64) -> Wish {
    let now_ns = now_ns.max(1);
    match requested_ns.compare_exchange(0, now_ns, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Wish::First,
        Err(first_ns) if now_ns.saturating_sub(first_ns) > SAME_WISH_NS => Wish::Another,
        Err(_) => Wish::Same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_soon_after_the_first_is_the_same_wish() {
        for first_ns in [0, 1, 5_000_000_000] {
            let requested_ns = AtomicU64::new(0);
            assert_eq!(wish(&requested_ns, first_ns), Wish::First);
            for later_ns in [0, 1, SAME_WISH_NS] {
                assert_eq!(wish(&requested_ns, first_ns + later_ns), Wish::Same, "{later_ns}");
            }
            // The clocks of two CPUs may differ.
            assert_eq!(wish(&requested_ns, first_ns.saturating_sub(1)), Wish::Same);
            assert_eq!(wish(&requested_ns, first_ns + SAME_WISH_NS + 2), Wish::Another);
            assert_eq!(wish(&requested_ns, u64::MAX), Wish::Another);
        }
    }
}
