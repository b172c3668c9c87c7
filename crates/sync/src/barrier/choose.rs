//! The methods of implementing a barrier, the reasons why a method is not available, and the choice of the best method
//! that is available.

use std::error::Error;
use std::fmt;
use std::io;

use super::{Barrier, Expedited, Fences, Global, Interrupts, Ticket};
use crate::barrierd;

/// The ways to implement a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// [`Expedited`](super::Expedited) uses membarrier(2), which interrupts the CPUs that run this process.
    Expedited,
    /// [`Interrupts`](super::Interrupts) waits until each CPU has been interrupted, with the help of the daemon
    /// `barrierd`.
    Interrupts,
    /// [`Global`](super::Global) uses membarrier(2), and waits until each CPU has gone through the scheduler.
    Global,
    /// [`Fences`](super::Fences) executes fences on both sides.
    Fences,
}

impl Method {
    /// Checks whether this machine supports the method.
    ///
    /// # Errors
    /// Returns the reason why the machine does not support it.
    pub fn is_available(self) -> Result<(), Unavailable> {
        match self {
            Self::Expedited => Expedited::new().map(drop),
            Self::Interrupts => Interrupts::new().map(drop),
            Self::Global => Global::new().map(drop),
            Self::Fences => Ok(()),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expedited => "expedited membarrier",
            Self::Interrupts => "interrupt generations",
            Self::Global => "plain membarrier",
            Self::Fences => "fences",
        })
    }
}

/// The error if a barrier is not available on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// The barrier that was tried.
    pub method: Method,
    /// The reason why the barrier is not available.
    pub reason: Reason,
}

/// The reason why a barrier is not available on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The system call of the barrier does not exist: the kernel is too old, or a filter of system calls hides it.
    OldKernel,
    /// A filter of system calls (seccomp, as in containers) forbids the system call of the barrier.
    Forbidden,
    /// Some CPUs run without the kernel's timer (`nohz_full` on its command line), so the kernel cannot wait for them.
    IsolatedCpus,
    /// The system is not Linux, and so does not have the system call of the barrier.
    NotLinux,
    /// No `barrierd` is running, or the running daemon is not trusted. Contains the error message of the attempt to
    /// connect to it.
    Daemon(String),
    /// The kernel refused the system call of the barrier with this error number.
    Refused(i32),
}

impl Unavailable {
    pub(super) fn no_daemon(error: &barrierd::Error) -> Self {
        Self { method: Method::Interrupts, reason: Reason::Daemon(error.to_string()) }
    }

    pub(super) fn refused(method: Method, error: &io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::PermissionDenied => Reason::Forbidden,
            // If the kernel lacks the call, an `Unsupported` error has an error number. On systems other than Linux,
            // this crate itself returns `Unsupported`, without an error number.
            io::ErrorKind::Unsupported if error.raw_os_error().is_none() => Reason::NotLinux,
            io::ErrorKind::Unsupported => Reason::OldKernel,
            _ => Reason::Refused(error.raw_os_error().unwrap_or(0)),
        };
        Self { method, reason }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot use {}: ", self.method)?;
        match &self.reason {
            Reason::OldKernel => {
                let version = if self.method == Method::Expedited { "4.14" } else { "4.3" };
                write!(f, "the kernel is older than Linux {version}, or a filter of system calls (seccomp) hides ")?;
                f.write_str("membarrier(2); allow it")
            }
            Reason::Forbidden => f.write_str("a filter of system calls (seccomp) forbids membarrier(2); allow it"),
            Reason::IsolatedCpus => {
                f.write_str("the kernel was started with nohz_full= and cannot wait for the CPUs that it lists")
            }
            Reason::NotLinux => f.write_str("only Linux has membarrier(2)"),
            Reason::Daemon(message) => f.write_str(message),
            Reason::Refused(errno) => write!(f, "membarrier(2): {}", io::Error::from_raw_os_error(*errno)),
        }
    }
}

impl Error for Unavailable {}

/// Code that uses a barrier whose type is known only at run time. The code is compiled once for each barrier type, so
/// the light side, which is used often, needs no branch on the type.
pub trait Visitor {
    /// The result of [`visit`](Self::visit).
    type Output;

    /// Runs the code with the barrier that [`choose`] has found.
    fn visit<B: Barrier>(self, barrier: B) -> Self::Output;
}

/// All methods, the best one first. Methods whose frequent side ([`light`](super::Barrier::light)) costs nothing come
/// first, ordered by the speed of their rare side ([`heavy`](super::Barrier::heavy)). The last method,
/// [`Method::Fences`], is always available.
pub const BEST_FIRST: [Method; 4] = [Method::Expedited, Method::Interrupts, Method::Global, Method::Fences];

/// Runs the visitor with the first of the methods that this machine supports, or else with [`Fences`].
///
/// ```
/// use ascertain_sync::barrier::{BEST_FIRST, Barrier, Visitor, choose};
/// use ascertain_sync::hazard::Domain;
///
/// struct Server;
///
/// impl Visitor for Server {
///     type Output = usize;
///
///     fn visit<B: Barrier>(self, barrier: B) -> usize {
///         let domain = Domain::new(barrier);
///         // … the whole program, with `Domain<B>` in it …
///         domain.slots()
///     }
/// }
///
/// assert_eq!(choose(&BEST_FIRST, Server), 0);
/// ```
pub fn choose<V: Visitor>(methods: &[Method], visitor: V) -> V::Output {
    for method in methods {
        match method {
            Method::Expedited => {
                if let Ok(barrier) = Expedited::new() {
                    return visitor.visit(barrier);
                }
            }
            Method::Interrupts => {
                if let Ok(barrier) = Interrupts::new() {
                    return visitor.visit(barrier);
                }
            }
            Method::Global => {
                if let Ok(barrier) = Global::new() {
                    return visitor.visit(barrier);
                }
            }
            Method::Fences => break,
        }
    }
    visitor.visit(Fences)
}

/// [`Expedited`] if the machine supports it, otherwise [`Fences`]. [`choose`](super::choose) compiles code once for
/// each barrier; use this type if that is not possible. The light side is a branch that always goes the same way. If
/// the barrier is [`Fences`], a fence follows.
///
/// The slower barriers with a free light side are not tried: [`Interrupts`] needs a daemon, and a heavy side of
/// [`Global`] takes milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct ExpeditedOrFences(Option<Expedited>);

impl ExpeditedOrFences {
    /// Creates the barrier for this machine. Makes system calls to find out which of the two barriers is supported.
    #[must_use]
    pub fn for_this_machine() -> Self {
        Self(Expedited::new().ok())
    }

    /// Returns whether the barrier in use is [`Fences`]. Each light side then executes a fence.
    #[must_use]
    pub fn is_fences(&self) -> bool {
        self.0.is_none()
    }
}

// SAFETY: this is either `Expedited` or `Fences`, and all clones of one value are of the same kind.
unsafe impl Barrier for ExpeditedOrFences {
    #[inline(always)]
    fn light(&self) {
        match self.0 {
            Some(expedited) => expedited.light(),
            None => Fences.light(),
        }
    }

    fn ticket(&self) -> Ticket {
        match self.0 {
            Some(expedited) => expedited.ticket(),
            None => Fences.ticket(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_said_in_words() {
        let message =
            |errno: i32| Unavailable::refused(Method::Expedited, &io::Error::from_raw_os_error(errno)).to_string();
        assert_eq!(
            message(1),
            "cannot use expedited membarrier: a filter of system calls (seccomp) forbids membarrier(2); allow it"
        );
        assert_eq!(
            message(38),
            "cannot use expedited membarrier: the kernel is older than Linux 4.14, or a filter of system calls \
             (seccomp) hides membarrier(2); allow it"
        );
        assert!(message(12).contains("memory"), "{}", message(12));
        let elsewhere = Unavailable::refused(Method::Global, &io::ErrorKind::Unsupported.into());
        assert_eq!(elsewhere.to_string(), "cannot use plain membarrier: only Linux has membarrier(2)");
    }
}
