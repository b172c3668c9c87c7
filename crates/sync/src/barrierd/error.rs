//! What can go wrong with the daemon, for those who ask and for those who run it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::DEFAULT_PATH;

/// What the kernel has room for, less the zero at the end, and the `.new` that the daemon's socket has at first.
const PATH_BYTES_MAX: usize = 108 - 1 - ".new".len();

/// What was tried, and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// This is not Linux on x86-64.
    OtherMachine,
    /// No daemon listens at the path.
    NotRunning {
        /// The path.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The caller may not enter the path's folder, or not connect to what is there.
    Denied {
        /// The path.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// No socket can have so long a path, and the name that it has at first.
    LongPath {
        /// The path.
        path: PathBuf,
    },
    /// Whoever listens there is neither root nor the caller's own user, or is shown by the number that stands for all
    /// users whom the caller's user namespace has no number for.
    Stranger {
        /// The path.
        path: PathBuf,
        /// Who it is.
        uid: u32,
        /// Whether that number stands for all who have none.
        is_anybody: bool,
    },
    /// Something listens there that does not talk as the daemon does.
    NotADaemon {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The daemon is of another version.
    OtherVersion {
        /// The path.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// The daemon has ended.
    Gone,
    /// The timestamp was given by another daemon's client.
    OtherDaemon,
    /// The time ran out. The daemon may be stopped, or a CPU not be reached.
    Late {
        /// A CPU that is missing.
        cpu: u32,
        /// How many this machine may have: another one never passes.
        cpus: u32,
        /// How long ago its last interrupt was.
        age_ns: u64,
    },
    /// The privilege is missing that the daemon needs.
    Forbidden {
        /// For what.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel is too old, or made without what the daemon needs.
    Kernel {
        /// What it can't do.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// Everybody may load programs into this kernel, and write to the daemon's memory by one.
    UnprivilegedBpf,
    /// Another daemon has the path.
    IsRunning {
        /// The path.
        path: PathBuf,
    },
    /// A file could not be made or opened.
    File {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

impl Error {
    /// [`Error::LongPath`] for what no daemon can have.
    #[cfg(target_os = "linux")]
    pub(super) fn unless_short(path: &std::path::Path) -> Result<(), Self> {
        match path.as_os_str().len() {
            0..=PATH_BYTES_MAX => Ok(()),
            _ => Err(Self::LongPath { path: path.into() }),
        }
    }

    /// Whether it is the machine, or the user's rights on it, that it fails for: trying again is of no use.
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
                write!(f, "no barrierd listens at {}: {source}; start it: sudo ascertain barrierd", path.display())?;
                match path.to_str() == Some(DEFAULT_PATH) {
                    true => Ok(()),
                    false => write!(f, " --path {}", path.display()),
                }
            }
            Self::Denied { path, source } => {
                let path = path.display();
                write!(f, "you may not connect to {path}: {source}; each of its folders must be open to you (chmod +x)")
            }
            Self::LongPath { path } => {
                let bytes = path.as_os_str().len();
                write!(f, "{}: a path of {bytes} bytes, {PATH_BYTES_MAX} are the most for a socket", path.display())
            }
            Self::Stranger { path, uid, is_anybody } => {
                let who = match is_anybody {
                    true => "which stands for all who have no number in your user namespace",
                    false => "neither root nor you",
                };
                write!(f, "who listens at {} is user {uid}, {who}, and is not to be trusted", path.display())
            }
            Self::NotADaemon { path, why } => write!(f, "no barrierd is at {}: {why}", path.display()),
            Self::OtherVersion { path, version } => {
                let path = path.display();
                write!(f, "the barrierd at {path} has version {version} of the shared memory, not ")?;
                write!(f, "{}; let daemon and program be of one release", super::file::VERSION)
            }
            Self::Gone => f.write_str("barrierd has ended"),
            Self::OtherDaemon => {
                f.write_str("the timestamp is another barrierd's, or of one that was started anew since")
            }
            Self::Late { cpu, cpus, .. } if cpu >= cpus => {
                write!(f, "CPU {cpu} never passes: this machine may have {cpus}, of which 0 is the first")
            }
            Self::Late { cpu, age_ns, .. } => {
                let age_ms = *age_ns as f64 / 1e6;
                write!(f, "CPU {cpu} was not interrupted in time (last {age_ms:.1} ms ago): is barrierd stopped?")
            }
            Self::Forbidden { what, source } => {
                f.write_str("barrierd needs root (sudo), or CAP_BPF and CAP_PERFMON, and no filter of system calls, ")?;
                write!(f, "such as a container's, against bpf(2): {what}: {source}")
            }
            Self::Kernel { what, source } => {
                write!(f, "{what}: {source}; barrierd needs Linux 5.11 with CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS")
            }
            Self::UnprivilegedBpf => f.write_str(
                "every user of this machine may load programs into the kernel, and could write to what barrierd's \
                 clients trust: set kernel.unprivileged_bpf_disabled to 1 (sysctl -w), which lasts until the next boot",
            ),
            Self::IsRunning { path } => write!(f, "a barrierd is running at {} already", path.display()),
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
        }
    }
}

impl std::error::Error for Error {}
