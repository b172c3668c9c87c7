//! A command and the result of running it, as plain data; [`process`](crate::process) runs it.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The source of a command's standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// An empty standard input.
    #[default]
    Null,
    /// A file, which is opened anew each time the command is started.
    File(PathBuf),
    /// These bytes. The command reads them from a file in memory, because filling a pipe would need an additional
    /// thread.
    Bytes(Vec<u8>),
}

/// The destination of a command's standard output or standard error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// A device that discards the output and that programs do not recognise (`/dev/zero`). If the device is missing,
    /// the output goes to a pipe that is drained.
    #[default]
    Discard,
    /// `/dev/null`. Some programs recognise this device and leave their work undone: GNU grep stops at its first match,
    /// and GNU tar skips reading the files.
    Null,
    /// A pipe that is read and discarded. If both outputs are pipes, they share one.
    Pipe,
    /// Memory. [`captured_output`](crate::process::Prepared::captured_output) returns the last bytes. If both outputs
    /// go to memory, they share it. On Linux, descendants that write after the command has ended get an error, but not
    /// the signal for a broken pipe.
    Memory,
    /// The standard output or standard error of this process.
    Inherit,
    /// A file, which is emptied each time the command is started. If both outputs have the same path, they share the
    /// file.
    File(PathBuf),
}

/// A program, its arguments, and its inputs and outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The name or path of the program. It is searched for in `PATH` unless it contains a `/`.
    pub program: OsString,
    /// The arguments, without the name of the program.
    pub args: Vec<OsString>,
    /// Variables that the command gets in addition to the environment of this process, or in place of variables in it.
    pub env: Vec<(OsString, OsString)>,
    /// Names of variables in the environment of this process that the command does not get.
    pub env_removed: Vec<OsString>,
    /// The source of the command's standard input.
    pub stdin: Input,
    /// The destination of the command's standard output.
    pub stdout: Output,
    /// The destination of the command's standard error.
    pub stderr: Output,
}

impl Command {
    /// Creates a command with the environment of this process, empty standard input and discarded outputs.
    #[must_use]
    pub fn new(program: &str, args: &[&str]) -> Self {
        Self { program: program.into(), args: args.iter().map(OsString::from).collect(), ..Self::default() }
    }
}

/// Returns a command that runs a command line in the shell: `sh -c command_line`.
///
/// ```
/// use ascertain_sys::process::{Exit, Prepared, shell};
///
/// let usage = Prepared::new(&shell("exit $((3 + 4))")).unwrap().run(None).unwrap();
/// assert_eq!(usage.exit, Exit::Code(7));
/// ```
#[must_use]
pub fn shell(command_line: &str) -> Command {
    Command::new("sh", &["-c", command_line])
}

/// Words that have a special meaning in a shell as the first word of a command. A program of this name must be quoted.
pub(crate) const SHELL_WORDS: [&str; 8] = ["!", "{", "if", "while", "until", "for", "case", "[["];

/// Joins words into a command line. [`split`](crate::process::split), or a shell, splits it into the same words again.
///
/// ```
/// use ascertain_sys::command::join;
///
/// assert_eq!(join(&["curl", "http://localhost/?q=1"]), "curl 'http://localhost/?q=1'");
/// assert_eq!(join(&["dd", "if=it's", "of=x"]), r"dd 'if=it'\''s' of=x");
/// ```
#[must_use]
pub fn join<S: AsRef<str>>(words: &[S]) -> String {
    let quoted = words.iter().enumerate().map(|(index, word)| {
        let word = word.as_ref();
        let is_plain = |c: char| c.is_alphanumeric() || "-_./:,+@%=".contains(c);
        // If this word is the first one, a shell would take it for an assignment or a reserved word.
        let is_variable = word.contains('=') && !word.starts_with('-');
        let is_for_shell = index == 0 && (is_variable || SHELL_WORDS.contains(&word));
        if word.is_empty() || is_for_shell || !word.chars().all(is_plain) {
            format!("'{}'", word.replace('\'', r"'\''"))
        } else {
            word.to_owned()
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// The way a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// The command ended by itself with this exit code.
    Code(i32),
    /// This signal ended the command.
    Signal(i32),
    /// The command reached its time limit, and its process group was killed.
    TimedOut,
    /// A stop was requested (see [`interrupt::Stop`](crate::interrupt::Stop)), and the process group of the command was
    /// killed.
    Interrupted,
}

/// The resources that one execution of a command used, according to the kernel.
///
/// The user time, the system time and the peak memory cover the command and some of its descendants: those that had
/// been waited for when the command ended. The times are sums; the peak is the peak of the largest process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The way the command ended.
    pub exit: Exit,
    /// Wall time in nanoseconds, from just before the process is created until the kernel reports that the process has
    /// ended. If the command was interrupted, the time ends at the moment when the command was killed.
    pub wall_ns: u64,
    /// Time on a CPU in user mode, in nanoseconds. Many kernels know the sum of this time and `system_ns` exactly, but
    /// split the sum by samples that are some milliseconds apart. So for a short command, use the sum.
    pub user_ns: u64,
    /// Time on a CPU in the kernel, in nanoseconds.
    pub system_ns: u64,
    /// The largest amount of main memory that a single process had at any time, in bytes. A value below
    /// [`memory_floor_bytes`] is not reliable.
    ///
    /// [`memory_floor_bytes`]: crate::process::memory_floor_bytes
    pub memory_peak_bytes: u64,
    /// Bytes that the command and its descendants read by system calls. `None` if they were not
    /// [requested](crate::process::Prepared::counting_reads), or if the system does not have `/proc/PID/io`.
    pub read_bytes: Option<u64>,
    /// The counts, one for each [`Counter`]. Page faults and context switches cover the same processes as
    /// [`user_ns`](Self::user_ns). The other counts cover all descendants, and are `None` unless they were
    /// [requested](crate::process::Prepared::counting).
    pub counts: Counts,
}

/// A kind of event that can be counted while a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counter {
    /// Instructions executed in user mode.
    Instructions,
    /// Processor cycles in user mode.
    Cycles,
    /// Accesses to the last-level cache in user mode.
    CacheReferences,
    /// Accesses to the last-level cache in user mode that missed. They were followed by an access to memory.
    CacheMisses,
    /// Mispredicted branches in user mode.
    BranchMisses,
    /// Pages of memory that the kernel had to provide at their first access, with or without reading from disk.
    PageFaults,
    /// Number of times that the command gave up its CPU or was preempted.
    ContextSwitches,
    /// Number of times that the command continued on another CPU.
    CpuMigrations,
}

/// The number of different [counters](Counter), and so the length of [`Counts`].
pub const COUNTERS: usize = Counter::ALL.len();

/// One count for each counter, in the order of [`Counter::ALL`]; `None` if the counter was not used.
pub type Counts = [Option<u64>; COUNTERS];

impl Counter {
    /// All counters, in the order of [`Counts`].
    pub const ALL: [Counter; 8] = [
        Counter::Instructions,
        Counter::Cycles,
        Counter::CacheReferences,
        Counter::CacheMisses,
        Counter::BranchMisses,
        Counter::PageFaults,
        Counter::ContextSwitches,
        Counter::CpuMigrations,
    ];
}
