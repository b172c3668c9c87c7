//! What a command is and what a run of it gives, as plain data; [`process`](crate::process) runs it.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where standard input comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// Empty.
    #[default]
    Null,
    /// A file, opened anew by each run.
    File(PathBuf),
    /// These bytes, from a file in memory: no pipe to fill and no thread beside the command.
    Bytes(Vec<u8>),
}

/// Where standard output or standard error goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// To a device that discards it and that programs do not recognise: `/dev/zero`, or a pipe that is drained if there
    /// is no such device.
    #[default]
    Discard,
    /// To `/dev/null`. Some programs recognise it and leave their work undone: GNU grep stops at its first match, and
    /// GNU tar does not read the files.
    Null,
    /// Into a pipe that is read and thrown away. Both outputs share one if both are pipes.
    Pipe,
    /// Into memory, of which [`said`](crate::process::Prepared::said) gives the end. What descendants write after the
    /// command's end is refused where the kernel can (Linux), and no pipe breaks under them. Both outputs share it if
    /// both are.
    Memory,
    /// To our own.
    Inherit,
    /// To a file, made empty by each run. Both outputs share it if both name the same path.
    File(PathBuf),
}

/// A program, its arguments, and what it is connected to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Looked up in `PATH` unless it holds a `/`.
    pub program: OsString,
    /// The arguments, without the program's name.
    pub args: Vec<OsString>,
    /// Variables added to our own environment, or replacing them.
    pub env: Vec<(OsString, OsString)>,
    /// Standard input.
    pub stdin: Input,
    /// Standard output.
    pub stdout: Output,
    /// Standard error.
    pub stderr: Output,
}

impl Command {
    /// A program with arguments, our environment, and nothing on its inputs and outputs.
    #[must_use]
    pub fn new(program: &str, args: &[&str]) -> Self {
        Self { program: program.into(), args: args.iter().map(OsString::from).collect(), ..Self::default() }
    }
}

/// A command line for the shell: `sh -c command_line`.
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

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// It reached its time limit, and its process group was killed.
    TimedOut,
    /// Somebody asked for the end (see [`interrupt::Stop`](crate::interrupt::Stop)), and its process group was
    /// killed.
    Interrupted,
}

/// What a run took, by the kernel's account.
///
/// User and system time and the peak of memory are those of the command and of the descendants
/// that were waited for when it ended; time sums over them, and the peak is the largest one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// How it ended.
    pub exit: Exit,
    /// From just before the process is made to when the kernel reports its end; to when it was killed, if it was
    /// interrupted.
    pub wall_ns: u64,
    /// Time on a CPU in user mode. Many kernels know the sum with `system_ns` exactly, but split it
    /// by samples some milliseconds apart: for a short command only the sum means something.
    pub user_ns: u64,
    /// Time on a CPU in the kernel.
    pub system_ns: u64,
    /// The most memory that was resident at once. Below [`memory_floor_bytes`] it is not known.
    ///
    /// [`memory_floor_bytes`]: crate::process::memory_floor_bytes
    pub memory_peak_bytes: u64,
    /// Bytes that the command and its descendants read by system calls. `None` unless it was
    /// [requested](crate::process::Prepared::counting_reads), and on systems without `/proc/PID/io`.
    pub read_bytes: Option<u64>,
    /// What was counted. Page faults and context switches are as the times above; the rest is none unless it was
    /// [asked for](crate::process::Prepared::counting), and of all descendants.
    pub counts: Counts,
}

/// Something that is counted of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counter {
    /// Instructions of its own code.
    Instructions,
    /// The processor's cycles in its own code.
    Cycles,
    /// Accesses of its own code to the last level of the cache.
    CacheReferences,
    /// Those of them that had to go to memory.
    CacheMisses,
    /// Branches of its own code that the processor had guessed wrong.
    BranchMisses,
    /// Pages of memory that had to be provided when they were touched, with reading from disk or without.
    PageFaults,
    /// How often it gave up a CPU or had to.
    ContextSwitches,
    /// How often it went on on another CPU.
    CpuMigrations,
}

/// How many [counters](Counter) there are.
pub const COUNTERS: usize = Counter::ALL.len();

/// A number for each counter, in the order of [`Counter::ALL`]; none of what was not counted.
pub type Counts = [Option<u64>; COUNTERS];

impl Counter {
    /// All of them.
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
