//! The errors of this crate.

use std::io;
use std::path::PathBuf;

/// What can go wrong: what was tried, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such file, or no such program in `PATH`.
    #[error("`{program}` was not found{}", way_out(*.is_searched))]
    NotFound {
        /// The program as it was given.
        program: String,
        /// Whether `PATH` was searched: not where the program was given with a `/`.
        is_searched: bool,
    },
    /// The program is a directory.
    #[error("`{}` is a directory, not a program", .path.display())]
    IsDirectory {
        /// Where it was found.
        path: PathBuf,
    },
    /// The file may not be executed.
    #[error(
        "`{}` may not be executed: make it executable (chmod +x), or name its interpreter first",
        .path.display()
    )]
    NotExecutable {
        /// Where it was found.
        path: PathBuf,
    },
    /// The kernel does not know the file's format.
    #[error("`{}` is not a program that this kernel can start: {hint}", .path.display())]
    NotAProgram {
        /// Where it was found.
        path: PathBuf,
        /// What is probably the matter.
        hint: &'static str,
    },
    /// The file's interpreter (of its `#!` line, or its dynamic loader) does not exist.
    #[error("`{}` needs the interpreter `{interpreter}`, which was not found", .path.display())]
    InterpreterMissing {
        /// Where the program was found.
        path: PathBuf,
        /// The interpreter.
        interpreter: String,
    },
    /// The program could not be started for another reason.
    #[error("`{}` could not be started: {source}", .path.display())]
    Start {
        /// Where it was found.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel makes no more processes.
    #[error(
        "no process could be made ({source}): end other processes, or raise the limits on \
         processes (ulimit -u, cgroup pids.max) or memory"
    )]
    OutOfProcesses {
        /// What the kernel said.
        source: io::Error,
    },
    /// A program, argument or variable holds a NUL byte, which no program can be given.
    #[error("{text:?} holds a NUL byte, which no program can be given")]
    Nul {
        /// The string.
        text: String,
    },
    /// The file for standard input could not be opened.
    #[error("standard input: `{}` could not be opened: {source}", .path.display())]
    InputFile {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The file for standard output or standard error could not be made.
    #[error("output: `{}` could not be made: {source}", .path.display())]
    OutputFile {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// SIGINT, SIGTERM or SIGHUP arrived. The command's process group was killed.
    #[error("interrupted")]
    Interrupted,
    /// No such compiler in `PATH`.
    #[error("`{compiler}` was not found in PATH: install it, or put the folder that it is in into PATH")]
    CompilerMissing {
        /// The compiler's command.
        compiler: String,
    },
    /// The compiler refused a source.
    #[error("`{compiler}` refused it: {said}")]
    Compile {
        /// The compiler's command.
        compiler: String,
        /// The first error that it named.
        said: String,
    },
    /// The compiler took too long. Its process group was killed.
    #[error("`{compiler}` was not done after {limit_s} s and was stopped: try again when the machine is less busy")]
    CompileTimeout {
        /// The compiler's command.
        compiler: String,
        /// The limit.
        limit_s: f64,
    },
    /// Compiled code could not be loaded, or has no such function.
    #[error("compiled code could not be loaded: {said}")]
    Load {
        /// What the dynamic loader said.
        said: String,
    },
    /// The thread could not be tied to a CPU.
    #[error("this thread could not be tied to CPU {cpu}: {source}")]
    Pin {
        /// The CPU's number.
        cpu: usize,
        /// What the kernel said.
        source: io::Error,
    },
    /// The processor, or the hypervisor, has no such counter.
    #[error("this machine has no such hardware counter, like most virtual machines")]
    NoCounter,
    /// A call of the operating system failed that hardly ever does.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

impl Error {
    /// Of the error that the last system call left behind.
    pub(crate) fn last(what: &'static str) -> Self {
        Self::System { what, source: io::Error::last_os_error() }
    }

    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System { what, source: source.into() }
    }
}

/// `PATH` itself is not said: it takes several lines, and `echo $PATH` shows it.
fn way_out(is_searched: bool) -> &'static str {
    if is_searched { " in PATH: give its path, or use --shell if it is a word of the shell" } else { " at that path" }
}
