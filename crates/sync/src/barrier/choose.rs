//! Which barriers there are, why one is not, and the best of this machine.

use std::error::Error;
use std::fmt;
use std::io;

use super::{Barrier, Expedited, Fences, Global, Interrupts, Ticket};
use crate::barrierd;

/// The ways to a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// [`Expedited`](super::Expedited): membarrier by interrupts.
    Expedited,
    /// [`Interrupts`](super::Interrupts): waiting for interrupts, with the help of `barrierd`.
    Interrupts,
    /// [`Global`](super::Global): membarrier by waiting for the scheduler.
    Global,
    /// [`Fences`](super::Fences) on both sides.
    Fences,
}

impl Method {
    /// Whether this machine has it.
    ///
    /// # Errors
    /// Why it has not.
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

/// Why a barrier can't be had on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// The barrier that was tried.
    pub method: Method,
    /// The cause.
    pub reason: Reason,
}

/// What a barrier lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The kernel does not have it yet, or a filter of system calls says so.
    OldKernel,
    /// A filter of system calls (seccomp, as containers use it) forbids it.
    Forbidden,
    /// CPUs run without the kernel's timer (`nohz_full` on its command line), so that it can't wait for them.
    IsolatedCpus,
    /// This is not Linux.
    NotLinux,
    /// There is no `barrierd`, or none to be trusted: what its client says.
    Daemon(String),
    /// The kernel said something else: the number of the error.
    Refused(i32),
}

impl Unavailable {
    pub(super) fn old_kernel(method: Method) -> Self {
        Self { method, reason: Reason::OldKernel }
    }

    pub(super) fn isolated_cpus() -> Self {
        Self { method: Method::Global, reason: Reason::IsolatedCpus }
    }

    pub(super) fn no_daemon(error: &barrierd::Error) -> Self {
        Self { method: Method::Interrupts, reason: Reason::Daemon(error.to_string()) }
    }

    pub(super) fn refused(method: Method, error: &io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::PermissionDenied => Reason::Forbidden,
            // What a kernel without the call says, and this crate where the system is another.
            io::ErrorKind::Unsupported if error.raw_os_error().is_none() => Reason::NotLinux,
            io::ErrorKind::Unsupported => Reason::OldKernel,
            _ => Reason::Refused(error.raw_os_error().unwrap_or(0)),
        };
        Self { method, reason }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} can't be had: ", self.method)?;
        match &self.reason {
            Reason::OldKernel => {
                let version = if self.method == Method::Expedited { "4.14" } else { "4.3" };
                write!(f, "the kernel is older than Linux {version}, or a filter of system calls (seccomp) hides ")?;
                f.write_str("membarrier(2); allow it")
            }
            Reason::Forbidden => f.write_str("a filter of system calls (seccomp) forbids membarrier(2); allow it"),
            Reason::IsolatedCpus => {
                f.write_str("the kernel was started with nohz_full=, and can't wait for those CPUs")
            }
            Reason::NotLinux => f.write_str("only Linux has membarrier(2)"),
            Reason::Daemon(said) => f.write_str(said),
            Reason::Refused(errno) => write!(f, "membarrier(2): {}", io::Error::from_raw_os_error(*errno)),
        }
    }
}

impl Error for Unavailable {}

/// What is to be done with a barrier whose type is known only when the program runs: code that is compiled once for
/// each, so that the light side stays free.
pub trait Visitor {
    /// What comes of it.
    type Output;

    /// Gets the barrier.
    fn visit<B: Barrier>(self, barrier: B) -> Self::Output;
}

/// Cheap to wait for first. [`Method::Fences`] is always there.
pub const BEST_FIRST: [Method; 4] = [Method::Expedited, Method::Interrupts, Method::Global, Method::Fences];

/// Runs the visitor with the first of the methods that this machine has, or else with [`Fences`].
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

/// [`Expedited`] where the machine has it, or else [`Fences`]: for code that can't be compiled for each, as
/// [`choose`](super::choose) does. The light side is a branch, which always goes the same way, or a fence.
///
/// The slower ways to a light side that is nothing are not tried: `Interrupts` needs a daemon, and `Global` makes what
/// waits for it wait for milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct ExpeditedOrFences(Option<Expedited>);

impl ExpeditedOrFences {
    /// Asks the kernel, which takes system calls.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self(Expedited::new().ok())
    }

    /// Whether its light side is a fence.
    #[must_use]
    pub fn is_fences(&self) -> bool {
        self.0.is_none()
    }
}

// SAFETY: it is one of two barriers, and each clone the same one.
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
        let said =
            |errno: i32| Unavailable::refused(Method::Expedited, &io::Error::from_raw_os_error(errno)).to_string();
        assert_eq!(
            said(1),
            "expedited membarrier can't be had: a filter of system calls (seccomp) forbids membarrier(2); allow it"
        );
        assert_eq!(
            said(38),
            "expedited membarrier can't be had: the kernel is older than Linux 4.14, or a filter of system calls \
             (seccomp) hides membarrier(2); allow it"
        );
        assert!(said(12).contains("memory"), "{}", said(12));
        let elsewhere = Unavailable::refused(Method::Global, &io::ErrorKind::Unsupported.into());
        assert_eq!(elsewhere.to_string(), "plain membarrier can't be had: only Linux has membarrier(2)");
    }
}
