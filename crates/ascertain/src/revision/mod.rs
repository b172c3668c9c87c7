//! Revisions of a repository: the revision in which a run is started, and a command that is compared at several
//! revisions.

#[cfg(feature = "commands")]
mod build;
#[cfg(feature = "commands")]
mod cache;
#[cfg(feature = "commands")]
mod git;
#[cfg(feature = "commands")]
mod program;
mod recorded;
#[cfg(feature = "commands")]
mod same_path;
#[cfg(feature = "commands")]
mod sides;
#[cfg(feature = "commands")]
mod worktree;

pub(crate) use recorded::of_folder;
#[cfg(feature = "commands")]
pub use sides::{Revisions, Side, Sides};
#[cfg(feature = "commands")]
pub use worktree::remove_leftovers;
