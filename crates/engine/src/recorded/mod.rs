//! Runs as their folders have them, for whoever reports on them: no experiment's code is needed, and the
//! run may be finished, interrupted, killed, or still going on.

mod path;
#[cfg(feature = "recorded")]
mod read;
#[cfg(feature = "recorded")]
mod replay;

pub(crate) use path::PathRecorder;
pub use path::{ClaimPath, EvidencePoint};
#[cfg(feature = "recorded")]
pub use {
    crate::evidence::Series,
    read::{RecordedRun, State, read},
};
#[cfg(feature = "recorded")]
pub(crate) use {
    read::lack_then,
    replay::{check, replay},
};
