//! A command that is ready to be run repeatedly.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Pid;

#[cfg(target_os = "linux")]
use super::launcher::Launcher;
use super::stdio::{OpenStreams, Redirections, Streams};
use super::wait::{Running, exit_descriptor, memory_peak_bytes, wait};
use super::{Command, Usage, resolve};
use crate::interrupt::Stop;
use crate::perf::{self, Counters, Counts};
use crate::{Error, clock};

/// Size of the buffer for reading a pipe, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;

static MEMORY_FLOOR_BYTES: AtomicU64 = AtomicU64::new(0);

/// Returns the limit below which [`Usage::memory_peak_bytes`] is not reliable, in bytes. Each prepared command has its
/// own limit, and the result is the largest limit so far.
///
/// On Linux, the memory of the process that starts a program counts as memory of the program. To avoid that, a small
/// process starts each command (see the README). The 0.6 to 1 MB of that process are still counted, so the limit is
/// about as large. If there is no such process, the limit is the peak memory of this process.
#[must_use]
pub fn memory_floor_bytes() -> u64 {
    MEMORY_FLOOR_BYTES.load(Ordering::Relaxed)
}

/// A command whose program was found and whose arguments and environment are prepared, so that each execution has
/// little left to do.
///
/// The command inherits the properties that the calling thread has when this is created: working directory, limits,
/// priority, CPU affinity, namespaces. On Linux, this keeps a small sleeping process until it is dropped.
pub struct Prepared {
    path: PathBuf,
    redirections: Redirections,
    stop: Stop,
    /// The events that are counted in each execution of the command.
    events: &'static [perf::Event],
    /// `true` if the bytes that the command reads are counted in each execution.
    counts_reads: bool,
    state: Mutex<State>,
}

struct State {
    starter: Starter,
    buffer: Box<[u8]>,
    captured: Vec<u8>,
}

enum Starter {
    #[cfg(target_os = "linux")]
    Launcher(Launcher),
    Portable(Portable),
}

impl Prepared {
    /// Finds the program and prepares everything that all runs share.
    ///
    /// If SIGCHLD is ignored, this sets it to its default, because otherwise the kernel would not keep accounts of
    /// commands.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::IsDirectory`] or [`Error::NotExecutable`] for the program; [`Error::Nul`] for a
    /// string that cannot be passed; [`Error::System`] otherwise.
    pub fn new(command: &Command) -> Result<Self, Error> {
        keep_account_of_children();
        let path = resolve::resolve(command)?;
        let starter = Starter::new(&path, command)?;
        Self::assemble(path, command, starter)
    }

    fn assemble(path: PathBuf, command: &Command, starter: Starter) -> Result<Self, Error> {
        MEMORY_FLOOR_BYTES.fetch_max(starter.memory_floor_bytes(), Ordering::Relaxed);
        let buffer = vec![0; BUFFER_BYTES].into();
        let state = Mutex::new(State { starter, buffer, captured: Vec::new() });
        let redirections = Redirections::new(command)?;
        Ok(Self { path, redirections, stop: Stop::default(), events: &[], counts_reads: false, state })
    }

    /// Makes a stop request through `stop` end a running command. By default, only a signal to this process ends the
    /// command (see [`interrupt`](crate::interrupt)).
    #[must_use]
    pub fn stopping_with(self, stop: &Stop) -> Self {
        Self { stop: stop.clone(), ..self }
    }

    /// Requests those counters of [`perf`](crate::perf) that the kernel does not keep for every process. Leaves out
    /// counters that are not available here. If this process has to start the command itself, without the small process
    /// that usually starts it, none of them is available.
    #[must_use]
    pub fn counting(self) -> Self {
        self.counting_events(&perf::EVENTS)
    }

    pub(crate) fn counting_events(self, events: &'static [perf::Event]) -> Self {
        Self { events, ..self }
    }

    /// Requests a count of the bytes that each run reads ([`Usage::read_bytes`]). This takes about 20 µs after the end
    /// of the run.
    #[must_use]
    pub fn counting_reads(self) -> Self {
        Self { counts_reads: true, ..self }
    }

    /// Runs the command and waits for its end. A concurrent call waits until this one has ended.
    ///
    /// At the time limit, or when a stop is requested, this kills the process group of the command and still waits for
    /// its end. Processes that left the group (a daemon) are not found. Descendants that outlive a command that ended
    /// by itself are left running.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`] if a stop was requested before the command was started; [`Error::InputFile`] and
    /// [`Error::OutputFile`] for the files of the command; otherwise the reason why the program could not be started. A
    /// failure to start is never reported as an [`Exit`]: an exit code of 127 can only come from the command itself.
    ///
    /// [`Exit`]: super::Exit
    pub fn run(&self, time_limit: Option<Duration>) -> Result<Usage, Error> {
        if self.stop.is_requested() {
            return Err(Error::Interrupted);
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { starter, buffer, captured } = &mut *state;
        let opened = self.redirections.open()?;
        let counters = starter.parent().map(|parent| Counters::of_child(parent, self.events));
        let started = starter.start(opened.streams)?;
        let (pid, start_ns) = started.map_err(|source| resolve::start_error(&self.path, source))?;
        let (reader, counts_reads) = (opened.reader, self.counts_reads);
        let running = Running { pid, start_ns, end: exit_descriptor(pid), reader, counts_reads };
        let usage = wait(running, time_limit, &self.stop, buffer);
        starter.ended();
        *captured = opened.memory.as_ref().map_or_else(Vec::new, OpenStreams::read_captured);
        let counted = counters.map_or_else(Counts::default, |counters| counters.read());
        usage.map(|usage| {
            let counts = std::array::from_fn(|counter| counted[counter].or(usage.counts[counter]));
            Usage { counts, ..usage }
        })
    }

    /// Returns the last MiB ([`KEPT_BYTES`](super::KEPT_BYTES)) of the output that the last run wrote into
    /// [memory](super::Output::Memory).
    ///
    /// ```
    /// use ascertain_sys::process::{Command, Output, Prepared, shell};
    ///
    /// let failing = Command { stderr: Output::Memory, ..shell("echo why >&2; exit 1") };
    /// let failing = Prepared::new(&failing).unwrap();
    /// failing.run(None).unwrap();
    /// assert_eq!(failing.captured_output(), b"why\n");
    /// ```
    #[must_use]
    pub fn captured_output(&self) -> Vec<u8> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).captured.clone()
    }
}

impl Starter {
    #[cfg(target_os = "linux")]
    fn new(path: &Path, command: &Command) -> Result<Self, Error> {
        match Launcher::new(path, command) {
            Ok(launcher) => Ok(Self::Launcher(launcher)),
            Err(error @ Error::Nul { .. }) => Err(error),
            // A launcher is impossible: the kernel is old, a sandbox forbids it, or there is no memory for a copy of
            // this process. The only disadvantage is a higher floor of memory.
            Err(_) => Ok(Self::Portable(Portable::new(path, command))),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn new(path: &Path, command: &Command) -> Result<Self, Error> {
        for text in [&command.program].into_iter().chain(&command.args) {
            resolve::c_string(text)?;
        }
        Ok(Self::Portable(Portable::new(path, command)))
    }

    fn start(&mut self, streams: Streams) -> Result<io::Result<(Pid, u64)>, Error> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Launcher(launcher) => launcher.launch(&streams),
            Self::Portable(portable) => Ok(portable.start(streams)),
        }
    }

    fn ended(&self) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Launcher(launcher) => launcher.ended(),
            Self::Portable(_) => {
                MEMORY_FLOOR_BYTES.fetch_max(self.memory_floor_bytes(), Ordering::Relaxed);
            }
        }
    }

    /// Returns the process of the launcher, which creates the processes of the command. `None` if there is no launcher;
    /// this process then creates them.
    fn parent(&self) -> Option<Pid> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Launcher(launcher) => Some(launcher.pid()),
            Self::Portable(_) => None,
        }
    }

    fn memory_floor_bytes(&self) -> u64 {
        let own = match self {
            #[cfg(target_os = "linux")]
            Self::Launcher(launcher) => launcher.memory_peak_bytes(),
            Self::Portable(_) => None,
        };
        own.unwrap_or_else(own_peak_bytes)
    }
}

/// A way to start the command without a launcher: `std::process::Command` starts each execution.
struct Portable {
    command: std::process::Command,
}

impl Portable {
    fn new(path: &Path, command: &Command) -> Self {
        let mut portable = std::process::Command::new(path);
        portable.arg0(&command.program).args(&command.args).process_group(0);
        portable.env_clear().envs(resolve::environment(command));
        Self { command: portable }
    }

    /// Starts the command. Returns its process, and the time just before the process was created.
    fn start(&mut self, streams: Streams) -> io::Result<(Pid, u64)> {
        let [stdin, stdout, stderr] = streams.map(|stream| stream.map_or_else(Stdio::inherit, Into::into));
        self.command.stdin(stdin).stdout(stdout).stderr(stderr);
        let start_ns = clock::now_ns();
        let child = self.command.spawn()?;
        // Dropping a `Child` does not wait for it. `wait` does that, to get the accounting.
        Ok((Pid::from_child(&child), start_ns))
    }
}

/// Returns the peak of resident memory in this process. If this process starts a command, Linux counts that memory as
/// the command's memory.
fn own_peak_bytes() -> u64 {
    // SAFETY: `rusage` is plain data for which zeros are valid, and the call writes to it.
    memory_peak_bytes(&unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    })
}

fn keep_account_of_children() {
    // SAFETY: `sigaction` is plain data for which zeros are valid and mean the default action; the pointers are to
    // local variables.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGCHLD, std::ptr::null(), &raw mut action);
        if action.sa_sigaction == libc::SIG_IGN {
            action.sa_sigaction = libc::SIG_DFL;
            libc::sigaction(libc::SIGCHLD, &raw const action, std::ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Exit, Input, Output, shell};

    fn portable(command: &Command) -> Prepared {
        let path = resolve::resolve(command).unwrap();
        let starter = Starter::Portable(Portable::new(&path, command));
        Prepared::assemble(path, command, starter).unwrap()
    }

    #[test]
    fn without_a_launcher_commands_run_too() {
        let mut command = shell("cat; head -c 1000000 /dev/zero; test $0 = sh && exit $CODE");
        command.stdin = Input::Bytes(b"some".to_vec());
        command.stdout = Output::Pipe;
        command.env = vec![("CODE".into(), "6".into())];
        let prepared = portable(&command);
        for _ in 0..3 {
            assert_eq!(prepared.run(None).unwrap().exit, Exit::Code(6));
        }
        assert!(memory_floor_bytes() > 0);
    }

    /// A container may lack this device, or have a regular file of that name.
    #[test]
    fn without_a_device_that_discards_output_a_pipe_is_drained() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("zero");
        std::fs::write(&file, "").unwrap();
        for device in [file.clone(), folder.path().join("missing")] {
            let script = "test -p /dev/stdout && test -p /dev/stderr && head -c 3000000 /dev/zero | tee /dev/stderr";
            let mut prepared = Prepared::new(&shell(script)).unwrap();
            prepared.redirections.discard = device;
            assert_eq!(prepared.run(None).unwrap().exit, Exit::Code(0));
        }
        assert_eq!(std::fs::metadata(&file).unwrap().len(), 0);
    }

    #[test]
    fn without_a_launcher_the_time_limit_holds_and_errors_are_told() {
        let sleeper = portable(&shell("sleep 3600; :"));
        let (limit, start_ns) = (Duration::from_millis(20), clock::now_ns());
        let usage = sleeper.run(Some(limit)).unwrap();
        assert_eq!(usage.exit, Exit::TimedOut);
        assert!((20_000_000..=clock::now_ns() - start_ns).contains(&usage.wall_ns));

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::os::unix::fs::symlink("/bin/sh", &path).unwrap();
        let prepared = portable(&Command { program: path.clone().into(), ..Command::default() });
        std::fs::remove_file(path).unwrap();
        assert!(matches!(prepared.run(None), Err(Error::NotFound { .. })));
    }
}
