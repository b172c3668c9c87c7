//! The choices that a caller of `enable` has.

use std::path::PathBuf;

/// Name of the program that git calls, and that is also the daemon.
pub const HOOK: &str = "ascertain-fsmonitor-hook";

/// First argument that makes the hook run as the daemon, in the foreground. The next arguments are the root of the
/// worktree and its git folder.
pub const FOREGROUND: &str = "detached-daemon";

/// Options for [`enable`](crate::enable).
#[derive(Clone, Debug, Default)]
pub struct EnableOptions {
    /// Path of the hook; `None` for the file [`HOOK`] in the folder of the running program.
    pub hook: Option<PathBuf>,
    /// `true` to replace a monitor that is already configured. `false` to keep such a monitor; `enable` then fails.
    pub replace: bool,
    /// The form of `git status` for which git keeps its cache of untracked files.
    pub untracked: Untracked,
}

/// The way in which `git status` lists untracked files. Git's cache serves only one way at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Untracked {
    /// A folder without tracked files is one line: `git status` and `git status -unormal`. If an earlier call with
    /// [`Untracked::All`] has set `status.showUntrackedFiles`, `enable` restores the earlier value.
    #[default]
    Normal,
    /// Every file is a line: `git status -uall`, which many editors call. `enable` then sets
    /// `status.showUntrackedFiles` to `all`.
    All,
}
