//! The errors of this crate.

use std::io;
use std::path::PathBuf;

/// An error of this crate: what was tried, why it failed, and what the user can do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such file exists, or no program of this name was found in `PATH`.
    #[error("`{program}` was not found{}", way_out(*.is_searched))]
    NotFound {
        /// The name of the program, as given by the caller.
        program: String,
        /// `true` if `PATH` was searched. A name with a `/` is not searched for in `PATH`.
        is_searched: bool,
    },
    /// The path of the program leads to a directory.
    #[error("`{}` is a directory, not a program", .path.display())]
    IsDirectory {
        /// The path at which the directory was found.
        path: PathBuf,
    },
    /// The user lacks the permission to execute the file.
    #[error(
        "`{}` may not be executed: make it executable (chmod +x), or name its interpreter first",
        .path.display()
    )]
    NotExecutable {
        /// The path at which the file was found.
        path: PathBuf,
    },
    /// The file of the program has a format that the kernel does not know.
    #[error("`{}` is not a program that this kernel can start: {hint}", .path.display())]
    NotAProgram {
        /// The path at which the file was found.
        path: PathBuf,
        /// The probable cause of the failure, as text for the user.
        hint: &'static str,
    },
    /// The file refers to an interpreter that does not exist: the program in its `#!` line, or its dynamic loader.
    #[error("`{}` needs the interpreter `{interpreter}`, which was not found", .path.display())]
    InterpreterMissing {
        /// The path at which the program was found.
        path: PathBuf,
        /// The path of the missing interpreter, as it is written in the file.
        interpreter: String,
    },
    /// The program could not be started, for a reason that has no separate variant.
    #[error("`{}` could not be started: {source}", .path.display())]
    Start {
        /// The path at which the program was found.
        path: PathBuf,
        /// Error that the kernel returned for the attempt to start the program.
        source: io::Error,
    },
    /// The kernel could not create another process.
    #[error(
        "could not create a process ({source}): end other processes, or raise the limits on \
         processes (ulimit -u, cgroup pids.max) or memory"
    )]
    OutOfProcesses {
        /// Error that the kernel returned for the attempt to create a process.
        source: io::Error,
    },
    /// A program, argument or variable contains a NUL byte, which cannot be passed to a program.
    #[error("{text:?} contains a NUL byte, which cannot be passed to a program")]
    Nul {
        /// The string with the NUL byte.
        text: String,
    },
    /// The file for standard input could not be opened.
    #[error("standard input: `{}` could not be opened: {source}", .path.display())]
    InputFile {
        /// The path of the input file.
        path: PathBuf,
        /// Error that the kernel returned for opening the file.
        source: io::Error,
    },
    /// The file for standard output or standard error could not be created.
    #[error("output: `{}` could not be created: {source}", .path.display())]
    OutputFile {
        /// The path of the output file.
        path: PathBuf,
        /// Error that the kernel returned for creating the file.
        source: io::Error,
    },
    /// SIGINT, SIGTERM or SIGHUP arrived while the command ran. The command's process group was killed.
    #[error("interrupted")]
    Interrupted,
    /// The compiler's command was not found in `PATH`.
    #[error("`{compiler}` was not found in PATH: install it, or add its folder to PATH")]
    CompilerMissing {
        /// The compiler's command.
        compiler: String,
    },
    /// The compiler rejected the source or an option.
    #[error("`{compiler}` could not compile the source: {message}")]
    Compile {
        /// The compiler's command.
        compiler: String,
        /// The first error message of the compiler.
        message: String,
    },
    /// The compiler reached its time limit. Its process group was killed.
    #[error("`{compiler}` did not finish within {limit_s} s and was stopped: try again when the machine is less busy")]
    CompileTimeout {
        /// The compiler's command.
        compiler: String,
        /// The time limit that the compiler reached, in seconds.
        limit_s: f64,
    },
    /// Compiled code could not be loaded, or does not contain the function that the caller requested.
    #[error("compiled code could not be loaded: {message}")]
    Load {
        /// The reason: the message of the dynamic loader, or a difference between the requested and the compiled
        /// function.
        message: String,
    },
    /// The thread could not be pinned to a CPU.
    #[error("could not pin this thread to CPU {cpu}: {source}")]
    Pin {
        /// The index of the CPU, in the kernel's numbering.
        cpu: usize,
        /// Error that the kernel returned for setting the CPUs of the thread.
        source: io::Error,
    },
    /// The processor, or the hypervisor, does not provide the requested counter.
    #[error("this machine does not provide this hardware counter (most virtual machines provide none)")]
    NoCounter,
    /// A system call failed for a rare reason, which has no separate variant.
    #[error("{what}: {source}")]
    System {
        /// The start of the message, which names the action that failed: "could not …".
        what: &'static str,
        /// Error that the system call returned.
        source: io::Error,
    },
}

impl Error {
    /// Creates an [`Error::System`] from `errno`, which the last system call set.
    pub(crate) fn last(what: &'static str) -> Self {
        Self::System { what, source: io::Error::last_os_error() }
    }

    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System { what, source: source.into() }
    }
}

/// Returns the last part of the message about a program that was not found: what the user can do. The value of `PATH`
/// is not printed, because it takes several lines and `echo $PATH` prints it.
fn way_out(is_searched: bool) -> &'static str {
    if is_searched { " in PATH: give its path, or use a shell if it is a shell builtin" } else { " at that path" }
}
