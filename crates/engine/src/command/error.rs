//! What can be wrong with commands before any of them runs.

use std::io;
use std::path::PathBuf;

use ascertain_sys::process::SplitError;

/// A set of commands can't be measured as it is. Each message is whole: there is no `source` to add.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is none.
    #[error("there is no command to measure")]
    NoCommand,
    /// A command line can't be cut into a program and its arguments.
    #[error("{what} `{line}`: {reason}")]
    Words {
        /// `command`, `set-up`, `preparation`, `clean-up` or `shell`.
        what: &'static str,
        /// The command line, its parameters replaced.
        line: String,
        /// What is wrong.
        reason: SplitError,
    },
    /// The program can't be started: most often it does not exist.
    #[error("{what} `{line}`: {reason}")]
    Program {
        /// As above.
        what: &'static str,
        /// The command line, its parameters replaced.
        line: String,
        /// What is wrong.
        reason: ascertain_sys::Error,
    },
    /// A parameter is in no command line.
    #[error("no command line has `{{{0}}}`: nothing would differ between the values of this parameter")]
    UnusedParameter(String),
    /// There is a list of recorded requests with nothing in it.
    #[error("there are no recorded requests: give at least one")]
    NoRequests,
    /// A parameter has the name that stands for the request.
    #[error("`{{request}}` stands for the recorded request: give the parameter another name")]
    ParameterNamedRequest,
    /// A command gets its requests on standard input, which is to be a file.
    #[error(
        "command `{0}`: standard input can't be both the recorded request and a file: write \
         `{{request}}` where the command line takes the request, or leave out the file"
    )]
    TwoInputs(String),
    /// The file for standard input can't be read.
    #[error("standard input `{}`: {reason}", .path.display())]
    InputFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// The file for the output can't be written.
    #[error("output `{}`: {reason}", .path.display())]
    OutputFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
}
