//! A run with its outcome.

use std::path::Path;

use ascertain_engine::evidence::{self, Header};
use ascertain_engine::outcome::Outcome;
use ascertain_engine::recorded::{self, State};
use ascertain_report::history::list::RunState;

use crate::runs;

/// A run with its outcome: the one that it wrote, or where it has none yet, the one that its rows say.
pub struct Loaded {
    pub id: String,
    pub header: Header,
    pub outcome: Outcome,
    pub state: RunState,
}

impl Loaded {
    /// Reads a run's folder; its rows only where they are needed.
    pub fn read(folder: &Path) -> anyhow::Result<Loaded> {
        let id = runs::name(folder);
        // Asked first: a run that is seen to have ended has written all that it will.
        let is_going_on = evidence::is_going_on(folder);
        let mut header = evidence::read_header(folder)?;
        let interrupted = header.outcome.as_ref().map(|outcome| outcome.interrupted);
        let checksum = header.lines_checksum.as_deref();
        let state = State::of(folder, is_going_on, interrupted, header.lines_bytes, checksum);
        match header.outcome.take().filter(|_| matches!(state, State::Finished | State::Interrupted)) {
            Some(outcome) => Ok(Loaded { id, header, outcome, state: state.into() }),
            None => {
                let run = recorded::read(folder)?;
                Ok(Loaded { id, header: run.header, outcome: run.outcome, state: run.state.into() })
            }
        }
    }
}
