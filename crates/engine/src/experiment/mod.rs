//! What can be measured: experiments, their variants, factors and metrics, and the sessions that
//! measure them.

mod contract;
mod spec;

pub use crate::finding::Unavailable;
pub use contract::{ArmId, Experiment, Sample, Samples, Session, Setup, Status, TargetError, Trial};
pub use spec::{Accepts, Arm, Better, Emulates, Factor, Footprint, Level, Metric, Plot, Point, Reduce, Spec, Variant};
