//! Runs as their folders have them, for whoever reports on them: no experiment's code is needed, and the
//! run may be finished, interrupted, killed, or still going on.

mod path;
mod read;
mod replay;

pub use crate::evidence::Series;
pub(crate) use path::PathRecorder;
pub use path::{ClaimPath, EvidencePoint};
pub use read::{RecordedRun, State, read};
pub(crate) use replay::{check, replay};
