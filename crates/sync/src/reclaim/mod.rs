//! What hazard pointers and epochs share: records of readers, objects that wait, and what outlives its thread.

mod orphans;
mod published;
mod records;
mod retired;
mod turn;

pub(crate) use orphans::{Leavable, Orphans};
pub use published::{Published, Reclaimer};
pub(crate) use records::{Record, Records};
pub use retired::Retired;
pub(crate) use turn::Turn;
