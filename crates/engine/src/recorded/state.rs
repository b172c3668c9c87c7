//! How a run ended.

use std::path::Path;

use crate::evidence::{self, LinesThen};

/// How a run ended, if it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It came to its end.
    Finished,
    /// Ctrl-C or SIGTERM ended it.
    Interrupted,
    /// It is going on: another process holds its lock.
    Running,
    /// It was killed: nobody holds its lock, and it wrote no outcome, or went on after one.
    Killed,
}

impl State {
    /// What `run.json` and `trials.jsonl` tell: whether the outcome says that it was interrupted, where there is
    /// one, and the header's `lines_bytes` and `lines_checksum`. Whether the run is going on is to be asked
    /// ([`evidence::is_going_on`]) before `run.json` is read: a run that is seen to have ended has written all
    /// that it will.
    pub fn of(
        folder: &Path,
        is_going_on: bool,
        interrupted: Option<bool>,
        lines_bytes: Option<u64>,
        lines_checksum: Option<&str>,
    ) -> State {
        let then = lines_bytes.map(|bytes| LinesThen { bytes, checksum: lines_checksum });
        let went_on = || then.is_some_and(|then| evidence::went_on(folder, then));
        match interrupted {
            _ if is_going_on => State::Running,
            None => State::Killed,
            Some(_) if went_on() => State::Killed,
            Some(true) => State::Interrupted,
            Some(false) => State::Finished,
        }
    }
}
