//! A link between two network namespaces of this process: what [`model`](crate::model) says, done to packets.

mod emulator;
mod frame;
mod lateness;
mod link;
mod pace;
mod report;
mod side;

pub use lateness::Lateness;
pub use link::{Carrier, Link, RunningLink};
pub use report::Report;
pub use side::Side;
