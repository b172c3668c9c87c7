use std::path::PathBuf;

use ascertain_engine::predicate;

/// What was asked for can't be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run could not be planned, or could not go on.
    #[error(transparent)]
    Engine(#[from] ascertain_engine::Error),
    /// An environment variable that is to have an address is not set.
    #[error(transparent)]
    Address(#[from] ascertain_engine::experiment::Unset),
    /// A command line is none.
    #[cfg(feature = "commands")]
    #[error(transparent)]
    Command(#[from] ascertain_engine::command::CommandError),
    /// A predicate is none.
    #[error(transparent)]
    Predicate(#[from] predicate::PredicateError),
    /// A file of claims is none.
    #[cfg(feature = "claims")]
    #[error(transparent)]
    Claims(#[from] ascertain_engine::claims_file::ClaimsFileError),
    /// A statistic can't be had of what was given.
    #[error(transparent)]
    Statistics(#[from] ascertain_stats::Error),
    /// Samples have no answer to what is asked of them.
    #[cfg(feature = "permute")]
    #[error(transparent)]
    Permutation(#[from] ascertain_permute::Error),
    /// A recorded run can't be read.
    #[error(transparent)]
    Evidence(#[from] ascertain_engine::evidence::Error),
    /// Nothing has been recorded yet.
    #[error("there is no run in {}; measure something first, or name another folder of runs", folder.display())]
    NoRun {
        /// The folder of runs.
        folder: PathBuf,
    },
    /// A file can't be read.
    #[error("{} can't be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A request asks for what does not go together, or for what is not there.
    #[error("{0}")]
    Request(String),
}

/// What a request asks for can't be had, for this reason.
pub(crate) fn refused<T>(reason: String) -> Result<T, Error> {
    Err(Error::Request(reason))
}
