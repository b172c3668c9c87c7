//! The code that hazard pointers and epochs share: the records of readers, retired objects, and lists of the objects
//! that ended threads have not freed.

mod published;
mod records;
mod retired;

pub use published::{Published, Reclaimer};
pub(crate) use records::{Record, Records};
pub use retired::Retired;
pub(crate) use retired::{Leavable, Orphans, Turn};
