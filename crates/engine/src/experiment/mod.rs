//! Experiments: their variants, factors and metrics, and the sessions that measure arms.

mod address;
#[cfg(feature = "commands")]
mod compiled;
mod contract;
mod spec;

pub use crate::finding::Unavailable;
pub use address::{Address, Unset};
#[cfg(feature = "commands")]
pub use compiled::compiled_function;
pub use contract::{ArmId, Experiment, Sample, Samples, Session, Setup, Status, TargetError, Trial};
pub use spec::{Accepts, Arm, Better, Emulates, Factor, Footprint, Level, Metric, Plot, Point, Reduce, Spec, Variant};
