//! Processes of runtimes: each with its own environment, time limit, and captured output.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ascertain_engine::experiment::TargetError;
use ascertain_sys::clock;
use ascertain_sys::interrupt::Stop;
use ascertain_sys::process::{Command, Exit, Input, Output, Prepared};

/// A program with the arguments and variables that it always gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub path: PathBuf,
    /// Arguments before the file.
    pub options: Vec<OsString>,
    /// Variables that a wrapper sets.
    pub environment: Vec<(OsString, OsString)>,
    /// Variables that a wrapper unsets.
    pub removed: Vec<OsString>,
}

impl Program {
    /// Creates a program without options and variables.
    pub fn plain(path: &Path) -> Program {
        Program { path: path.to_path_buf(), options: Vec::new(), environment: Vec::new(), removed: Vec::new() }
    }
}

/// The result of running a process.
#[derive(Clone, Debug)]
pub struct Ran {
    pub exit: Exit,
    /// A reading of the clock just before the process was started, in nanoseconds.
    pub start_ns: u64,
    pub wall_ns: u64,
    /// The last part of standard output.
    pub output: String,
    pub error_output: String,
}

impl Ran {
    /// Returns the last line of standard error, shortened; empty if there is none.
    pub fn last_error_line(&self) -> String {
        let line = self.error_output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        line.trim().chars().take(200).collect()
    }
}

/// Name of the environment variable that pads the environment to the size that all processes of a trial share.
pub const PADDING: &str = "ASCERTAIN_PADDING";

/// Runs the program with arguments and additional variables, and waits for its end.
///
/// # Errors
/// If the program cannot be started, or a stop was requested.
pub fn run(
    program: &Program,
    arguments: &[OsString],
    environment: &[(OsString, OsString)],
    (folder, limit, stop): (&Path, Duration, &Stop),
) -> Result<Ran, TargetError> {
    let errors = folder.join("standard-error");
    let command = Command {
        program: program.path.clone().into(),
        args: program.options.iter().chain(arguments).cloned().collect(),
        env: program.environment.iter().chain(environment).cloned().collect(),
        env_removed: program.removed.clone(),
        stdin: Input::Null,
        stdout: Output::Memory,
        stderr: Output::File(errors.clone()),
    };
    let failed = |error: ascertain_sys::Error| match error {
        ascertain_sys::Error::Interrupted => TargetError::Interrupted,
        error => TargetError::Failed(error.to_string()),
    };
    let prepared = Prepared::new(&command).map_err(failed)?.stopping_with(stop);
    let start_ns = clock::now_ns();
    let usage = prepared.run(Some(limit)).map_err(failed)?;
    if usage.exit == Exit::Interrupted || stop.is_requested() {
        return Err(TargetError::Interrupted);
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Ran {
        exit: usage.exit,
        start_ns,
        wall_ns: usage.wall_ns,
        output: text(prepared.captured_output()),
        error_output: text(fs::read(&errors).unwrap_or_default()),
    })
}

/// Returns the number of bytes of the strings that a process of the program gets. These are the path (twice), the
/// arguments, and the environment variables, including inherited variables.
pub fn strings_bytes(program: &Program, arguments: &[OsString], environment: &[(OsString, OsString)]) -> usize {
    let added = program.environment.iter().chain(environment).cloned();
    let inherited = env::vars_os().filter(|(name, _)| !program.removed.contains(name));
    let variables: BTreeMap<OsString, OsString> = inherited.chain(added).collect();
    let of_variables: usize = variables.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
    let of_arguments: usize = program.options.iter().chain(arguments).map(|argument| argument.len() + 1).sum();
    2 * (program.path.as_os_str().as_bytes().len() + 1) + of_arguments + of_variables
}
