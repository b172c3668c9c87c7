//! Runs as their folders have them, for whoever reports on them: no experiment's code is needed, and the
//! run may be finished, interrupted, killed, or still going on.

mod experiment;
mod path;
mod path_recorder;
mod read;
mod state;

pub use crate::evidence::Series;
pub use path::{ClaimPath, EvidencePoint};
pub(crate) use path_recorder::PathRecorder;
pub use read::{RecordedRun, read};
pub use state::State;
