//! An emulated link between two network namespaces of this process. It applies the conditions of
//! [`model`](crate::model) to real packets.

mod emulator;
mod frame;
mod link;
mod pace;
mod report;
mod side;

pub use link::{Carrier, Link, RunningLink};
pub use report::{Lateness, Report};
pub use side::Side;
