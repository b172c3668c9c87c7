//! Errors of the engine.

use crate::evidence;
use crate::memory::Shortage;

/// The reason why a run could not be planned, or could not continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A claim's rate, margin or error is invalid.
    #[error("claim `{id}`: {reason}")]
    Claim {
        /// The id of the claim.
        id: String,
        /// The reason why the claim's rate, margin or error is invalid.
        reason: ascertain_stats::Error,
    },
    /// The run's error probability is not strictly between 0 and 1. The field has the invalid number.
    #[error("invalid error {0}; give a probability between 0 and 1, such as 0.001")]
    NotAnError(f64),
    /// The claims that set an error probability leave too little of the run's error probability for the other claims.
    #[error(
        "the claims' `error` values add up to {own}, which leaves too little of {total} for the other claims; lower the \
         claims' `error`, or raise the run's error"
    )]
    ErrorsTooLarge {
        /// Sum of the error probabilities that claims set themselves.
        own: f64,
        /// Highest probability that any verdict of the run is wrong.
        total: f64,
    },
    /// A claim needs more arms than a trial can hold.
    #[error("claim `{id}` needs {arms} arms, but a trial has at most {most}; split it into several claims")]
    TooManyArms {
        /// The id of the claim.
        id: String,
        /// Number of arms that the claim needs.
        arms: usize,
        /// Maximum number of arms in a trial.
        most: usize,
    },
    /// The data of all arms needs too much memory, because all of it is in memory at the same time.
    #[error("the whole run, with all its sizes at once, {0}; measure fewer levels or variants at a time")]
    Memory(Shortage),
    /// The program has no experiment with this id.
    #[error(
        "there is no experiment `{0}` in this program; use the program that measured it, or register the experiment"
    )]
    UnknownExperiment(String),
    /// A command line or one of its options is wrong.
    #[cfg(feature = "commands")]
    #[error(transparent)]
    Command(#[from] crate::command::CommandError),
    /// An environment variable that should contain an address is not set.
    #[error(transparent)]
    Address(#[from] crate::experiment::Unset),
    /// Evidence could not be written or read.
    #[error(transparent)]
    Evidence(#[from] evidence::Error),
    /// A long measurement cannot start, or ended early.
    #[error(transparent)]
    Windows(#[from] crate::windows::WindowError),
    /// The recorded trials do not match the recorded plan.
    #[error("the evidence does not match its plan: {0}; measure again")]
    Replay(String),
}
