use std::path::PathBuf;

use ascertain_engine::claims_file;
use ascertain_engine::command::CommandError;
use ascertain_engine::predicate;

/// What was asked for can't be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run could not be planned, or could not go on.
    #[error(transparent)]
    Engine(#[from] ascertain_engine::Error),
    /// A command line is none.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A predicate is none.
    #[error(transparent)]
    Predicate(#[from] predicate::PredicateError),
    /// A file of claims is none.
    #[error(transparent)]
    Claims(#[from] claims_file::ClaimsFileError),
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
