//! Reads recorded runs for reports, without the code of the experiments. A run may be finished, interrupted, killed, or
//! still in progress.

#[cfg(feature = "recorded")]
pub mod figures;
mod path;
#[cfg(feature = "recorded")]
mod read;
#[cfg(feature = "recorded")]
mod replay;

pub(crate) use path::PathRecorder;
pub use path::{ClaimPath, EvidencePoint};
#[cfg(feature = "recorded")]
pub(crate) use replay::{check, replay};
#[cfg(feature = "recorded")]
pub use {
    crate::evidence::Series,
    read::{RecordedRun, State, read},
};
