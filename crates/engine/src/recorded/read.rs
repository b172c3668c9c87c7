use std::path::{Path, PathBuf};

use super::path::ClaimPath;
use super::series::Series;
use crate::error::Error;
use crate::evidence::Header;
use crate::outcome::Outcome;

/// A run as its folder has it.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedRun {
    /// The run's folder.
    pub folder: PathBuf,
    /// Everything but the rows.
    pub header: Header,
    /// How it ended, if it did.
    pub state: State,
    /// The outcome that the run wrote, or, where it has none yet, the one that its rows say.
    pub outcome: Outcome,
    /// The rows, by experiment, arm, metric and key.
    pub series: Vec<Series>,
    /// How each claim came to its verdict, in the order of the outcome's claims.
    pub paths: Vec<ClaimPath>,
    /// How many rows there are.
    pub rows: u64,
}

/// How a run ended, if it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It came to its end.
    Finished,
    /// Ctrl-C or SIGTERM ended it.
    Interrupted,
    /// It is going on: another process holds its lock.
    Running,
    /// It was killed: nobody holds its lock, and it wrote no outcome.
    Killed,
}
