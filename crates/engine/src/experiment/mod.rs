//! What can be measured: experiments, their variants, factors and metrics, and the sessions that
//! measure them.

mod arm;
mod contract;
mod factor;
mod metric;
mod samples;
mod spec;

pub use crate::finding::Unavailable;
pub use arm::{Arm, Point};
pub use contract::{ArmId, Experiment, Session, Setup, TargetError, Trial};
pub use factor::{Accepts, Factor, Level};
pub use metric::{Better, Metric, Reduce};
pub use samples::{Sample, Samples, Status};
pub use spec::{Footprint, Plot, Spec, Variant};
