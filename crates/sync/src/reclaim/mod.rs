//! The code that hazard pointers and epochs share: records of readers, waiting objects, and objects that outlive their
//! thread.

mod published;
mod records;
mod retired;

pub use published::{Published, Reclaimer};
pub(crate) use records::{Record, Records};
pub use retired::Retired;
pub(crate) use retired::{Leavable, Orphans, Turn};
