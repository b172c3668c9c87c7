//! Asking a run to end in order: by SIGINT, SIGTERM and SIGHUP, or from another thread.

use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::{mem, ptr};

use crate::{Error, clock};

/// Asks whoever has it, or a clone of it, to end. Waiting for a command ends too.
///
/// The default is what signals ask for, where the program has them caught by [`install`]; nobody else does.
///
/// ```
/// use ascertain_sys::interrupt::Stop;
///
/// let stop = Stop::new()?;
/// let theirs = stop.clone();
/// std::thread::spawn(move || theirs.ask()).join().unwrap();
/// assert!(stop.is_asked());
/// # Ok::<_, ascertain_sys::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Stop(Option<Arc<Own>>);

/// A stop that is not the signals'.
#[derive(Debug)]
struct Own {
    is_asked: AtomicBool,
    wake: (PipeReader, PipeWriter),
}

impl Stop {
    /// One of one's own: signals don't ask for it.
    ///
    /// # Errors
    ///
    /// [`Error::System`] if there are no file descriptors left.
    pub fn new() -> Result<Stop, Error> {
        let wake = std::io::pipe().map_err(Error::system("no pipe to wake who waits"))?;
        Ok(Stop(Some(Arc::new(Own { is_asked: AtomicBool::new(false), wake }))))
    }

    /// Asks for the end. The signals' stop is asked for by signals alone, and this does nothing.
    pub fn ask(&self) {
        let Some(own) = &self.0 else { return };
        if !own.is_asked.swap(true, Ordering::AcqRel) {
            // One byte in an empty pipe, which is open as long as this is.
            let _ = (&own.wake.1).write(b"!");
        }
    }

    /// Whether somebody has asked for the end.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.0.as_ref().map_or_else(requested, |own| own.is_asked.load(Ordering::Acquire))
    }

    /// Becomes readable, and stays so, when somebody asks; none where nobody can.
    #[must_use]
    pub fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.0 {
            Some(own) => Some(own.wake.0.as_fd()),
            None => wake_fd(),
        }
    }
}

const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Further signals within this time are the same wish: `timeout` and some job runners send theirs
/// to the process and then to its group.
const SAME_WISH_NS: u64 = 200_000_000;

/// When the first signal came, by [`clock::now_ns`]; 0 before.
static REQUESTED_NS: AtomicU64 = AtomicU64::new(0);
/// What the handler writes a byte to.
static PIPE: OnceLock<(PipeReader, PipeWriter)> = OnceLock::new();

/// From now on the first SIGINT, SIGTERM or SIGHUP makes [`requested`] true and wakes whoever waits
/// for a command; another one later ends the process at once with exit code 130.
///
/// Signals that were ignored when this is called (`nohup`, jobs in a shell's background) stay
/// ignored. Calling it again does nothing new. It is for the binary to call: a library leaves
/// signals alone.
///
/// # Errors
///
/// [`Error::System`] if there are no file descriptors left.
pub fn install() -> Result<(), Error> {
    if PIPE.get().is_none() {
        let pipe = std::io::pipe().map_err(Error::system("no pipe for signals"))?;
        // Where two threads come here at once the second's pipe is closed again.
        let _ = PIPE.set(pipe);
    }
    SIGNALS.into_iter().try_for_each(handle)
}

/// Whether a signal asked for the end.
#[must_use]
pub fn requested() -> bool {
    REQUESTED_NS.load(Ordering::Acquire) != 0
}

/// Becomes readable, and stays so, when [`requested`] becomes true; none before [`install`].
pub fn wake_fd() -> Option<BorrowedFd<'static>> {
    PIPE.get().map(|(wake, _)| wake.as_fd())
}

/// Lets a write beyond the limit on the size of files (`ulimit -f`) fail with an error, where the signal SIGXFSZ would
/// end the program. Programs that are started later have the signal's default action, because a handler does not
/// outlive `exec`.
///
/// # Errors
///
/// [`Error::System`] if the signal cannot be handled.
pub fn let_large_writes_fail() -> Result<(), Error> {
    handle_with(libc::SIGXFSZ, on_large_write)
}

/// Does nothing: the interrupted write returns the error EFBIG.
extern "C" fn on_large_write(_signal: libc::c_int) {}

fn handle(signal: libc::c_int) -> Result<(), Error> {
    handle_with(signal, on_signal)
}

/// Sets a handler, unless the signal is ignored. `handler` must do only what is allowed in a signal handler.
fn handle_with(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) -> Result<(), Error> {
    // SAFETY: `sigaction` is plain data, for which zeros are valid: default action, no flags, and an empty mask on
    // every Unix. The pointers are to locals. `handler` has the signature that an action without SA_SIGINFO needs,
    // does only what is allowed in a signal handler, and lives as long as the program.
    unsafe {
        let (mut old, mut new): (libc::sigaction, libc::sigaction) = (mem::zeroed(), mem::zeroed());
        if libc::sigaction(signal, ptr::null(), &raw mut old) != 0 {
            return Err(Error::last("the action of a signal could not be read"));
        }
        if old.sa_sigaction == libc::SIG_IGN {
            return Ok(());
        }
        new.sa_sigaction = handler as libc::sighandler_t;
        new.sa_flags = libc::SA_RESTART;
        match libc::sigaction(signal, &raw const new, ptr::null_mut()) {
            0 => Ok(()),
            _ => Err(Error::last("a signal could not be handled")),
        }
    }
}

/// Atomics (the pipe's `get` is one load), `clock_gettime`, `write` and `_exit` only: all may be called from a handler.
/// `errno` stays as it is, for the one write, of one byte to an empty pipe, does not fail.
extern "C" fn on_signal(_signal: libc::c_int) {
    match wish(&REQUESTED_NS, clock::now_ns()) {
        Wish::First => {
            // It is there before the signals are handled, and one byte of room in an empty pipe too.
            let _ = PIPE.get().map(|(_, wake)| rustix::io::write(wake, b"!"));
        }
        Wish::Same => {}
        // SAFETY: `_exit` has no conditions, and does not return.
        Wish::Another => unsafe { libc::_exit(130) },
    }
}

/// The meaning of a signal.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    First,
    /// The wish of the first signal, which was sent twice.
    Same,
    Another,
}

/// Returns the meaning of a signal that comes at `now_ns`, and keeps the time of the first signal.
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
