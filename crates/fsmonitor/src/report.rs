//! Plain data that the functions of this crate return.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The result of [`enable`](crate::enable).
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Enabled {
    /// The root folder of the worktree.
    #[cfg_attr(feature = "serde", serde(serialize_with = "lossy"))]
    pub root: PathBuf,
    /// The hook that git calls from now on.
    #[cfg_attr(feature = "serde", serde(serialize_with = "lossy"))]
    pub hook: PathBuf,
    /// Git's version, as `git --version` prints it.
    pub git: String,
    /// `true` if this git has its own monitor, which works on Linux (git 2.55 and later).
    pub has_builtin: bool,
    /// Number of worktrees of the repository that use the setting. A daemon starts for a worktree when git asks.
    pub worktrees: usize,
    /// Number of submodules, which are enabled one at a time.
    pub submodules: usize,
    /// The reason why the monitor cannot help at present, such as a limit; `None` if the daemon is ready.
    pub problem: Option<String>,
}

/// The files that changed since a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Only these paths, relative to the root, may have changed. A path that ends in `/` stands for everything below
    /// it. A path `DIR/_` (or `_` for the root) means that the entries of the folder may have changed; a file of this
    /// name need not exist.
    Paths(Vec<Vec<u8>>),
    /// Anything may have changed, for this reason.
    Everything(Reason),
}

/// The reason why an answer was `/`, which means that anything may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reason {
    /// The index had no token of this monitor. Another program may have removed it from the index.
    NoToken,
    /// The token is from an earlier process of the daemon.
    EarlierDaemon,
    /// The token is older than the journal.
    TooOld,
    /// The token belongs to another worktree, or git was called from another folder.
    OtherWorktree,
    /// Git runs in another mount namespace, where other file systems may be mounted.
    OtherNamespace,
    /// The daemon is still reading the folders.
    Walking,
    /// The queue of the kernel overflowed, or the mounts or the permissions of the root changed.
    Overflow,
    /// A network file system is mounted below the root.
    NetworkMount,
    /// A bind mount shows the same folder at two paths below the root, and an event names only one of them.
    BindMount,
    /// Too many changes came at once.
    Busy,
    /// Too many files have several names, and there are not enough watches for them.
    Links,
    /// The token has a form that no monitor uses.
    BadToken,
    /// This git misreads short answers in this command: versions 2.32 to 2.42 in `git diff-index` and others.
    FaultyGit,
}

impl Reason {
    /// The list of all reasons.
    pub const ALL: [Reason; 13] = [
        Reason::NoToken,
        Reason::EarlierDaemon,
        Reason::TooOld,
        Reason::OtherWorktree,
        Reason::OtherNamespace,
        Reason::Walking,
        Reason::Overflow,
        Reason::NetworkMount,
        Reason::BindMount,
        Reason::Busy,
        Reason::Links,
        Reason::BadToken,
        Reason::FaultyGit,
    ];

    /// The reason as a word for programs, such as `no-token`.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Reason::NoToken => "no-token",
            Reason::EarlierDaemon => "earlier-daemon",
            Reason::TooOld => "too-old",
            Reason::OtherWorktree => "other-worktree",
            Reason::OtherNamespace => "other-namespace",
            Reason::Walking => "walking",
            Reason::Overflow => "overflow",
            Reason::NetworkMount => "network-mount",
            Reason::BindMount => "bind-mount",
            Reason::Busy => "busy",
            Reason::Links => "links",
            Reason::BadToken => "bad-token",
            Reason::FaultyGit => "faulty-git",
        }
    }

    /// Returns the reason with this code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Reason> {
        Reason::ALL.into_iter().find(|reason| reason.code() == code)
    }

    /// The reason as a clause for people.
    #[must_use]
    pub fn explanation(self) -> &'static str {
        match self {
            Reason::NoToken => {
                "the index had no token of this monitor: a first query, or a program removed the token, as \
                 `git -c core.fsmonitor=false status` does"
            }
            Reason::EarlierDaemon => "the token is from an earlier process of the daemon",
            Reason::TooOld => "the token is older than the journal",
            Reason::OtherWorktree => "the token is from another worktree, or git was called from another folder",
            Reason::OtherNamespace => "git ran in a container or another mount namespace",
            Reason::Walking => "the daemon was still reading the folders",
            Reason::Overflow => "the queue of the kernel overflowed, or mounts or permissions changed",
            Reason::NetworkMount => "a network file system is mounted below the root",
            Reason::BindMount => "a bind mount shows the same folder at two paths below the root",
            Reason::Busy => "too many changes came at once",
            Reason::Links => "too many tracked files have several names (hard links)",
            Reason::BadToken => "the token has a form that no monitor uses",
            Reason::FaultyGit => "git 2.32 to 2.42 misreads short answers in commands such as `git diff-index`",
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

/// Writes a path as text, also if it is not UTF-8.
#[cfg(feature = "serde")]
fn lossy<S: serde::Serializer>(path: &std::path::Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// One answer of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Answer {
    /// Time since the answer, in milliseconds.
    pub age_ms: u64,
    /// Number of paths in the answer.
    pub paths: u64,
    /// The reason if the answer was `/`; `None` if it named paths.
    pub everything: Option<Reason>,
    /// The command that asked, such as `git status`; empty if the command had ended before the daemon could look it up.
    pub command: String,
}

/// The watches of the daemon, and the kernel's limits for this user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Watches {
    /// Number of watched folders.
    pub folders: u64,
    /// Number of tracked files that have their own watches.
    pub files: u64,
    /// Number of watches that a user may have, over all programs.
    pub limit: u64,
    /// Number of inotify instances that a user may have. Each daemon takes one.
    pub instances_limit: u64,
    /// Estimated kernel memory for the watches, in bytes. It does not count as memory of the daemon.
    pub kernel_bytes: u64,
}

/// Tracked files with several names (hard links). A write through a name outside of the worktree gives no event on the
/// folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Links {
    /// Number of known files with several names.
    pub files: u64,
    /// Number of the files with several names that have no watch. Every answer names these files instead.
    pub always: u64,
    /// `true` if every tracked file has a watch. A new name is then noticed at once. Otherwise the daemon looks for new
    /// names from time to time.
    pub are_all_watched: bool,
}

/// The state of the monitor of a worktree.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct MonitorStatus {
    /// The root folder of the worktree.
    #[cfg_attr(feature = "serde", serde(serialize_with = "lossy"))]
    pub root: PathBuf,
    /// The value of `core.fsmonitor`; `None` if it is not set.
    pub configured: Option<String>,
    /// `true` if git calls our hook, and the hook exists.
    pub is_enabled: bool,
    /// Process ID of the daemon; `None` if none runs.
    pub pid: Option<u32>,
    /// The reason why the last attempt to start a daemon failed.
    pub failure: Option<String>,
    /// `true` if the daemon has read all folders and knows the tracked files.
    pub is_ready: bool,
    /// Time that the last reading of all folders took, in microseconds.
    pub walk_us: u64,
    /// Number of times that the daemon had to read all folders again.
    pub walks: u64,
    /// Memory of the daemon, in bytes. Memory that it shares with other processes counts in proportion (Pss).
    pub memory_bytes: u64,
    /// CPU time of the daemon, in milliseconds.
    pub cpu_ms: u64,
    /// Time since the daemon started, in seconds.
    pub age_s: u64,
    /// Number of paths in the journal.
    pub pending: u64,
    /// The watches of the daemon.
    pub watches: Watches,
    /// Tracked files with several names.
    pub links: Links,
    /// Number of answers since the daemon started.
    pub answers: u64,
    /// Number of answers that were `/`, by reason.
    pub everything: BTreeMap<Reason, u64>,
    /// The last answers, the newest last.
    pub last: Vec<Answer>,
    /// Number of submodules and other repositories below the root. Every answer names their folders.
    pub nested: u64,
    /// The reasons why `git status` may be slow although the monitor works: one sentence each.
    pub hints: Vec<String>,
}
