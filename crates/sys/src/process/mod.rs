//! Commands started without a shell, with the kernel's accounting for each: wall, user and system time, peak memory,
//! and the way it ended.
//!
//! [`Prepared::new`] does all work that is needed only once. [`Prepared::run`] starts the command and waits for its
//! end; it may be called repeatedly. The README of this crate describes the cost and the guarantees of a run.
//!
//! ```
//! use ascertain_sys::process::{Command, Exit, Prepared};
//!
//! let prepared = Prepared::new(&Command::new("true", &[])).unwrap();
//! let usage = prepared.run(None).unwrap();
//! assert_eq!(usage.exit, Exit::Code(0));
//! assert!(usage.wall_ns > 0);
//! ```

#[cfg(target_os = "linux")]
mod image;
#[cfg(target_os = "linux")]
mod launcher;
mod prepared;
mod resolve;
#[cfg(target_os = "linux")]
mod serve;
mod stdio;
mod wait;
mod words;

pub use crate::command::{Command, Exit, Input, Output, Usage, join, shell};
pub use prepared::{Prepared, memory_floor_bytes};
pub use stdio::KEPT_BYTES;
pub use wait::{is_left_behind, kill_group};
pub use words::{SplitError, split};
