//! The errors of this crate.

use std::io;
use std::path::PathBuf;

/// A reason why the monitor cannot be enabled, disabled or queried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system is not Linux.
    #[error("the file system monitor needs Linux; use git's own monitor on this system (core.fsmonitor=true)")]
    Unavailable,
    /// Git finds no repository here, or refuses it.
    #[error("`{}` is not in the worktree of a git repository: {why}", path.display())]
    NotAWorktree {
        /// The folder that was given.
        path: PathBuf,
        /// Git's own message.
        why: String,
    },
    /// The repository has no worktree.
    #[error("`{}` is a bare repository, which has no files to watch; choose a worktree", .0.display())]
    Bare(PathBuf),
    /// Changes made by other machines cause no events here.
    #[error(
        "`{}` is on a file system of type {kind}; the kernel reports no changes made by other machines there, so \
         no monitor can work", path.display()
    )]
    NetworkFileSystem {
        /// The folder on that file system.
        path: PathBuf,
        /// The type as `/proc/self/mountinfo` shows it.
        kind: String,
    },
    /// Another monitor is configured, and may not be replaced.
    #[error("core.fsmonitor is already set to `{value}` ({origin}); remove that setting, or allow it to be replaced")]
    AlreadySet {
        /// The value of `core.fsmonitor`.
        value: String,
        /// The file that contains the value, as git names it.
        origin: String,
    },
    /// A setting with a higher precedence hides the new one.
    #[error("git uses `{value}` from {origin} for {key}, although the repository has another value; remove that value")]
    Overridden {
        /// The name of the setting.
        key: &'static str,
        /// The value that git uses.
        value: String,
        /// The origin of the value, as git names it.
        origin: String,
    },
    /// The program that git should call is missing.
    #[error(
        "the hook `{}` is missing or not executable; install the program {} in the folder of `ascertain`", .0.display(),
        crate::HOOK
    )]
    HookMissing(PathBuf),
    /// A git command failed.
    #[error("`git {command}` failed: {why}")]
    Git {
        /// The arguments of git.
        command: String,
        /// Git's own message.
        why: String,
    },
    /// No daemon runs, and none could be started.
    #[error("no monitor answers for `{}`: {why}", path.display())]
    NotRunning {
        /// Root of the worktree.
        path: PathBuf,
        /// The reason why no daemon answers.
        why: String,
    },
    /// A call to the kernel failed.
    #[error("could not {what}: {source}")]
    System {
        /// The attempted step, with the path.
        what: String,
        /// The kernel's error.
        source: io::Error,
    },
}

impl Error {
    #[cfg(target_os = "linux")]
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        |source| Error::System { what: what.into(), source }
    }
}
