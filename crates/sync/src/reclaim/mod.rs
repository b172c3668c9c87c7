//! What hazard pointers and epochs share: records of readers, objects that wait, and what outlives its thread.

mod published;
mod records;
mod retired;

pub use published::{Published, Reclaimer};
pub(crate) use records::{Record, Records};
pub use retired::Retired;
pub(crate) use retired::{Leavable, Orphans, Turn};
