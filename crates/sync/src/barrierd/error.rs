//! The errors of the daemon and of its clients.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Maximum length of the path in bytes. The kernel's limit for a socket includes a zero byte at the end. The daemon
/// first gives its socket the path with `.new` appended, which must fit too.
const PATH_BYTES_MAX: usize = 108 - 1 - ".new".len();

/// An error of the daemon or a client: what failed, and what the user can do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The machine is something other than Linux on x86-64.
    OtherMachine,
    /// No daemon listens at the path.
    NotRunning {
        /// The path that the client tried.
        path: PathBuf,
        /// Error that the kernel returned for connecting to the socket.
        source: io::Error,
    },
    /// The caller lacks the permission to enter the folder of the path, or to connect to the socket.
    Denied {
        /// The path that the client tried.
        path: PathBuf,
        /// Error that the kernel returned for connecting to the socket.
        source: io::Error,
    },
    /// The path is too long for a socket. The socket's first name, which ends with `.new`, must fit too.
    LongPath {
        /// The path that is too long.
        path: PathBuf,
    },
    /// The process that listens at the path belongs neither to root nor to the caller's user. Or its user is unknown:
    /// the kernel shows the same ID for all users that have no ID in the caller's user namespace.
    Stranger {
        /// The path of the socket that the client connected to.
        path: PathBuf,
        /// The user ID of the process that listens.
        uid: u32,
        /// `true` if `uid` stands for all users who have no ID in the caller's user namespace.
        is_anybody: bool,
    },
    /// The process that listens at the path does not use the daemon's protocol.
    NotADaemon {
        /// The path of the socket that the client connected to.
        path: PathBuf,
        /// The error of the connection, or the fault in the reply of the process, as text for the user.
        why: String,
    },
    /// The daemon uses another version of the protocol than this client.
    OtherVersion {
        /// The path of the socket that the client connected to.
        path: PathBuf,
        /// The protocol version of the daemon.
        version: u32,
    },
    /// The daemon of this connection has ended.
    Gone,
    /// The timestamp is from the client of another daemon.
    OtherDaemon,
    /// The deadline was reached before the timestamp had passed on each CPU. The daemon may be suspended, or a CPU may
    /// be unreachable.
    Late {
        /// The index of a CPU that was not interrupted after the timestamp.
        cpu: u32,
        /// The number of CPUs that this machine may have. A CPU whose index is not below this number does not exist, so
        /// it is never interrupted.
        cpus: u32,
        /// The time since the last interrupt of that CPU, in nanoseconds.
        age_ns: u64,
    },
    /// The daemon lacks a privilege that it needs.
    Forbidden {
        /// The action that failed without the privilege.
        what: &'static str,
        /// Error that the kernel returned for the action.
        source: io::Error,
    },
    /// The kernel is too old, or was built without features that the daemon needs.
    Kernel {
        /// The action that the kernel refused.
        what: &'static str,
        /// Error that the kernel returned for the action.
        source: io::Error,
    },
    /// Every user may load programs into this kernel, and a program can write to the daemon's memory.
    UnprivilegedBpf,
    /// Another daemon uses the path.
    IsRunning {
        /// The path at which the other daemon accepts clients.
        path: PathBuf,
    },
    /// A file could not be created or opened.
    File {
        /// The path of the file.
        path: PathBuf,
        /// Error that the kernel returned for creating or opening the file.
        source: io::Error,
    },
}

impl Error {
    /// Returns [`Error::LongPath`] unless the path is short enough for the socket of a daemon.
    #[cfg(target_os = "linux")]
    pub(super) fn unless_short(path: &std::path::Path) -> Result<(), Self> {
        match path.as_os_str().len() {
            0..=PATH_BYTES_MAX => Ok(()),
            _ => Err(Self::LongPath { path: path.into() }),
        }
    }

    /// Returns whether the cause is the machine, or the user's rights on it. Trying again is then useless.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        use Error::{Denied, Forbidden, Kernel, OtherMachine, UnprivilegedBpf};
        matches!(self, OtherMachine | Denied { .. } | Forbidden { .. } | Kernel { .. } | UnprivilegedBpf)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherMachine => f.write_str("barrierd needs Linux on x86-64"),
            Self::NotRunning { path, source } => {
                write!(f, "no barrierd listens at {}: {source}; start it as root", path.display())
            }
            Self::Denied { path, source } => {
                let path = path.display();
                write!(f, "you may not connect to {path}: {source}; each of its folders must be open to you (chmod +x)")
            }
            Self::LongPath { path } => {
                let bytes = path.as_os_str().len();
                write!(
                    f,
                    "{}: the path has {bytes} bytes, but a socket allows {PATH_BYTES_MAX}; choose a shorter path",
                    path.display()
                )
            }
            Self::Stranger { path, uid, is_anybody } => {
                let who = match is_anybody {
                    true => "which stands for all users without an ID in your user namespace",
                    false => "neither root nor you",
                };
                write!(f, "the process at {} belongs to user {uid}, {who}, and is not trusted", path.display())
            }
            Self::NotADaemon { path, why } => {
                write!(f, "the process at {} is not a usable barrierd: {why}", path.display())
            }
            Self::OtherVersion { path, version } => {
                let path = path.display();
                write!(f, "the barrierd at {path} has version {version} of the shared memory, not ")?;
                write!(f, "{}; use a daemon and a program of the same release", super::file::VERSION)
            }
            Self::Gone => f.write_str("the barrierd that this client was connected to has ended"),
            Self::OtherDaemon => {
                f.write_str("the timestamp is from another barrierd, or from before barrierd was restarted")
            }
            Self::Late { cpu, cpus, .. } if cpu >= cpus => {
                write!(f, "CPU {cpu} does not exist: this machine has at most {cpus} CPUs, numbered from 0")
            }
            Self::Late { cpu, age_ns, .. } => {
                let age_ms = *age_ns as f64 / 1e6;
                write!(
                    f,
                    "CPU {cpu} was not interrupted in time (last {age_ms:.1} ms ago): check that barrierd is running and \
                     not suspended"
                )
            }
            Self::Forbidden { what, source } => {
                write!(f, "{what}: {source}; start barrierd as root (sudo), or with CAP_BPF and CAP_PERFMON; ")?;
                f.write_str("a filter of system calls, such as that of a container, must allow bpf(2)")
            }
            Self::Kernel { what, source } => {
                write!(f, "{what}: {source}; barrierd needs Linux 5.11 with CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS")
            }
            Self::UnprivilegedBpf => f.write_str(
                "every user of this machine may load BPF programs, and such a program could write to barrierd's \
                 memory; run `sysctl -w kernel.unprivileged_bpf_disabled=1` as root (effective until the next boot)",
            ),
            Self::IsRunning { path } => write!(f, "a barrierd is already running at {}", path.display()),
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
        }
    }
}

impl std::error::Error for Error {}
