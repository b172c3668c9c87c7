//! A file system monitor for git on Linux. It knows which files of a worktree changed since a given moment, so
//! `git status` need not look at all files.
//!
//! Git asks a *hook* before it looks at files (`core.fsmonitor`, version 2 of the protocol, git 2.26 and later). The
//! hook, `ascertain-fsmonitor-hook`, passes the question on to a *daemon*, and there is one daemon per worktree. The
//! daemon watches the folders with inotify. If the hook or the daemon does not know the answer, the answer is `/`. It
//! means that anything may have changed, and git looks at all files as it would without a monitor.
//!
//! [`enable`] sets a repository up, [`disable`] restores it, [`status`] returns the state of the daemon, and [`since`]
//! is the question for other programs.
//!
//! The crate works on Linux only. It compiles on other systems, where every function returns [`Error::Unavailable`].

mod error;
mod options;
mod report;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
use elsewhere as imp;
#[cfg(target_os = "linux")]
use linux as imp;

pub use error::Error;
pub use imp::{disable, enable, hook_main, log, since, status};
pub use options::{EnableOptions, FOREGROUND, HOOK, Untracked};
pub use report::{Answer, Changes, Enabled, Links, MonitorStatus, Reason, Watches};
