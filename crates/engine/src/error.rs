//! What can go wrong in the engine.

use crate::evidence;
use crate::memory::Shortage;

/// A run could not be planned, or not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A claim's numbers can't be judged.
    #[error("claim `{id}`: {reason}")]
    Claim {
        /// The claim.
        id: String,
        /// What is wrong with it.
        reason: ascertain_stats::Error,
    },
    /// The run's error can't be shared among its claims.
    #[error("{0}")]
    Budget(String),
    /// A trial can't hold what a claim needs.
    #[error("claim `{id}` needs {arms} arms in a trial, which holds at most {most}; make several claims of it")]
    TooManyArms {
        /// The claim.
        id: String,
        /// How many it needs.
        arms: usize,
        /// How many there may be.
        most: usize,
    },
    /// What is measured at one time does not fit in memory.
    #[error("the whole run, with all its sizes at once, {0}; measure fewer levels or variants at a time")]
    Memory(Shortage),
    /// An experiment is not in this program.
    #[error("there is no experiment `{0}` in this program; take the one that measured it, or register it")]
    UnknownExperiment(String),
    /// Evidence could not be written or read.
    #[error(transparent)]
    Evidence(#[from] evidence::Error),
    /// Recorded rows do not fit the plan beside them.
    #[error("the evidence does not fit its plan: {0}; run it anew")]
    Replay(String),
}
