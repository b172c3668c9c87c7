//! A command whose standard output is read while the command runs.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid};

use crate::command::{Command, Input};
use crate::interrupt::Stop;
use crate::{Error, clock, futex};

/// Time that the command has for its own clean-up after SIGTERM, before it is killed.
const GRACE: Duration = Duration::from_secs(2);
/// Longest time to wait for the end of a command that was killed. The kill has no effect on a command of another user.
const MOST_AFTER_KILL: Duration = Duration::from_secs(3);
/// Interval at which this process checks whether the command has ended.
const LOOK: Duration = Duration::from_millis(5);

/// A running command whose standard output is a pipe. Its standard error is the standard error of this process. The
/// command leads its own process group, so that Ctrl-C does not reach it before this process does.
///
/// ```
/// use std::time::Duration;
///
/// use ascertain_sys::command::shell;
/// use ascertain_sys::interrupt::Stop;
/// use ascertain_sys::piped::{Piece, Piped};
///
/// let mut piped = Piped::start(&shell("echo 12.5 ms")).unwrap();
/// let mut buffer = [0; 64];
/// let piece = piped.read(&mut buffer, Duration::from_secs(60), &Stop::new()?).unwrap();
/// assert!(matches!(piece, Piece::Bytes(8)));
/// # Ok::<_, ascertain_sys::Error>(())
/// ```
#[derive(Debug)]
pub struct Piped {
    child: Child,
    /// The output; `None` while the command is being ended, so that it cannot wait for a reader.
    pipe: Option<ChildStdout>,
    /// `true` if the command needs no further signal, because it was waited for or cannot be ended.
    is_done: bool,
}

/// The way in which a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipedEnd {
    /// The command had ended by itself, with this status.
    Exited(ExitStatus),
    /// This process ended the command by a signal.
    Ended,
    /// The process with this ID still runs, because the signals had no effect. It may belong to another user.
    Running(u32),
}

/// The result of reading from a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// This many bytes were read.
    Bytes(usize),
    /// Nothing arrived before the time was up, or a stop was requested.
    Nothing,
    /// The command has closed its standard output.
    End,
}

impl Piped {
    /// Starts the command. Its `stdout` and `stderr` are ignored.
    ///
    /// # Errors
    /// If the program cannot be started, or if the file for its standard input cannot be opened.
    pub fn start(command: &Command) -> Result<Piped, Error> {
        let path = || command.program.clone().into();
        let failed = |source| Error::Start { path: path(), source };
        let stdin = match &command.stdin {
            Input::File(file) => Stdio::from(File::open(file).map_err(failed)?),
            Input::Null | Input::Bytes(_) => Stdio::null(),
        };
        let mut started = std::process::Command::new(&command.program);
        started.args(&command.args).envs(command.env.iter().map(|(name, value)| (name, value)));
        command.env_removed.iter().for_each(|name| _ = started.env_remove(name));
        started.stdin(stdin).stdout(Stdio::piped()).process_group(0);
        #[cfg(target_os = "linux")]
        crate::tether::tether(&mut started);
        let mut child = started.spawn().map_err(failed)?;
        let pipe = child.stdout.take().ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
        Ok(Piped { child, pipe: Some(pipe), is_done: false })
    }

    /// Reads some bytes. Waits at most `timeout` for them.
    ///
    /// # Errors
    /// If the pipe cannot be read.
    pub fn read(&mut self, buffer: &mut [u8], timeout: Duration, stop: &Stop) -> io::Result<Piece> {
        let Some(output) = &self.pipe else { return Ok(Piece::End) };
        let wake = stop.wake_fd();
        let pipe = PollFd::new(output, PollFlags::IN);
        // Without a descriptor for the stop, the pipe is in both places.
        let signals = wake.map_or_else(|| pipe.clone(), |wake| PollFd::from_borrowed_fd(wake, PollFlags::IN));
        let mut events = [pipe, signals];
        // An interrupted call is treated like a timeout, because the caller calls again.
        let _ = poll(&mut events, futex::timespec(Some(timeout)).as_ref());
        if stop.is_requested() || events[0].revents().is_empty() {
            return Ok(Piece::Nothing);
        }
        match rustix::io::read(output.as_fd(), buffer) {
            Ok(0) => Ok(Piece::End),
            Ok(bytes) => Ok(Piece::Bytes(bytes)),
            Err(rustix::io::Errno::INTR) => Ok(Piece::Nothing),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends the command and its process group: first with SIGTERM, and after two seconds with SIGKILL. If neither has
    /// an effect, returns after three more seconds.
    pub fn end(mut self) -> PipedEnd {
        let had_ended = self.has_ended();
        self.pipe = None;
        self.end_group();
        match self.reap() {
            Some(status) if had_ended => PipedEnd::Exited(status),
            Some(_) => PipedEnd::Ended,
            None => PipedEnd::Running(self.child.id()),
        }
    }

    /// Waits at most two seconds for the end of a command that has closed its output. Then ends the command if it still
    /// runs, and the rest of its process group.
    pub fn wait(self) -> PipedEnd {
        self.is_over_within(GRACE);
        self.end()
    }

    /// Returns whether the command has ended with an exit code other than 0, or by a signal. Processes that it started
    /// may still run, and print.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        matches!(self.status(), Ok(Some(status)) if status.exit_status() != Some(0))
    }

    /// Returns whether the command has ended. The command is not waited for, so its process ID stays reserved.
    fn has_ended(&self) -> bool {
        !matches!(self.status(), Ok(None))
    }

    /// Returns the status of a command that has ended, and `None` for one that runs.
    fn status(&self) -> rustix::io::Result<Option<WaitIdStatus>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        waitid(WaitId::Pid(Pid::from_child(&self.child)), options)
    }

    /// Waits until the command has ended, but at most for `time`. Returns whether it has ended.
    fn is_over_within(&self, time: Duration) -> bool {
        let until_ns = clock::now_ns().saturating_add(time.as_nanos() as u64);
        while !self.has_ended() {
            if clock::now_ns() >= until_ns {
                return false;
            }
            thread::sleep(LOOK);
        }
        true
    }

    /// Ends all processes of the group. The leader has not been waited for, so no other group has its process ID.
    fn end_group(&self) {
        let leader = Pid::from_child(&self.child);
        let is_running = || !self.has_ended() || has_others(leader);
        if !is_running() {
            return;
        }
        self.signal(Signal::TERM);
        let until_ns = clock::now_ns().saturating_add(GRACE.as_nanos() as u64);
        while is_running() {
            if clock::now_ns() >= until_ns {
                self.signal(Signal::KILL);
                return;
            }
            thread::sleep(LOOK);
        }
    }

    /// Returns the status of the command, after at most three seconds. `None` if the command still runs.
    fn reap(&mut self) -> Option<ExitStatus> {
        self.is_done = true;
        if self.is_over_within(MOST_AFTER_KILL) { self.child.wait().ok() } else { None }
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        if !self.is_done {
            self.pipe = None;
            self.signal(Signal::KILL);
            self.reap();
        }
    }
}

/// Returns whether a process group has running processes in addition to its leader. A leader that has ended still
/// belongs to its group, so a signal to the group does not show this.
#[cfg(target_os = "linux")]
fn has_others(leader: Pid) -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|process| process.file_name().to_str()?.parse().ok()).any(|pid: i32| {
        pid != leader.as_raw_pid() && {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // The name of the program, which may contain spaces, ends with the last parenthesis.
            let mut fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
            let (state, group) = (fields.next(), fields.nth(1));
            !matches!(state, Some("Z" | "X")) && group.and_then(|group| group.parse().ok()) == Some(leader.as_raw_pid())
        }
    })
}

/// Returns whether a process group has running processes in addition to its leader. Processes that have ended do not
/// count for a signal to the group.
#[cfg(not(target_os = "linux"))]
fn has_others(leader: Pid) -> bool {
    rustix::process::test_kill_process_group(leader).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::shell;

    fn read_all(piped: &mut Piped) -> String {
        let (mut text, mut buffer, stop) = (String::new(), [0; 16], Stop::new().unwrap());
        loop {
            match piped.read(&mut buffer, Duration::from_secs(60), &stop).unwrap() {
                Piece::Bytes(bytes) => text += std::str::from_utf8(&buffer[..bytes]).unwrap(),
                Piece::End => return text,
                Piece::Nothing => {}
            }
        }
    }

    #[test]
    fn the_output_is_read_to_its_end() {
        let mut piped = Piped::start(&shell("seq 1 20; exit 3")).unwrap();
        let expected: String = (1..=20).map(|number| format!("{number}\n")).collect();
        assert_eq!(read_all(&mut piped), expected);
        let PipedEnd::Exited(status) = piped.wait() else { panic!("the command ends by itself") };
        assert_eq!(status.code(), Some(3));
    }

    /// Reads the process ID that the command prints.
    fn read_pid(piped: &mut Piped) -> Pid {
        let (mut buffer, stop) = ([0; 32], Stop::new().unwrap());
        let bytes = loop {
            match piped.read(&mut buffer, Duration::from_secs(60), &stop).unwrap() {
                Piece::Bytes(bytes) => break bytes,
                Piece::Nothing => {}
                Piece::End => panic!("the command goes on"),
            }
        };
        Pid::from_raw(std::str::from_utf8(&buffer[..bytes]).unwrap().trim().parse().unwrap()).unwrap()
    }

    /// Waits until a process has ended. A process that was killed may need a moment for this.
    fn wait_for_end(pid: Pid) {
        while rustix::process::test_kill_process(pid).is_ok() && !is_zombie(pid.as_raw_pid()) {
            thread::sleep(LOOK);
        }
    }

    #[test]
    fn a_command_that_goes_on_is_ended_with_its_group() {
        let mut piped = Piped::start(&shell("sleep 1000 & echo $!; wait")).unwrap();
        let grandchild = read_pid(&mut piped);
        assert_eq!(piped.end(), PipedEnd::Ended);
        wait_for_end(grandchild);
    }

    #[test]
    fn a_grandchild_that_ignores_sigterm_is_killed() {
        let mut piped = Piped::start(&shell("sh -c 'trap \"\" TERM; echo $$; exec sleep 1000' & wait")).unwrap();
        let grandchild = read_pid(&mut piped);
        assert_eq!(piped.end(), PipedEnd::Ended);
        wait_for_end(grandchild);
    }

    #[test]
    fn a_grandchild_of_a_command_that_has_ended_is_ended() {
        for ends in [Piped::end, Piped::wait] {
            let mut piped = Piped::start(&shell("sh -c 'trap \"\" TERM; echo $$; exec sleep 1000' &")).unwrap();
            let grandchild = read_pid(&mut piped);
            while !piped.has_ended() {
                thread::sleep(LOOK);
            }
            assert!(!piped.has_failed());
            assert!(matches!(ends(piped), PipedEnd::Exited(status) if status.success()));
            wait_for_end(grandchild);
        }
    }

    #[test]
    fn a_command_that_closes_its_output_and_goes_on_is_ended() {
        let mut piped = Piped::start(&shell("exec >&-; sleep 1000")).unwrap();
        assert_eq!(read_all(&mut piped), "");
        assert_eq!(piped.wait(), PipedEnd::Ended);
    }

    #[test]
    fn a_command_that_failed_is_known_while_its_grandchildren_print() {
        let mut piped = Piped::start(&shell("sleep 1000 & echo $!; exit 3")).unwrap();
        let grandchild = read_pid(&mut piped);
        while !piped.has_ended() {
            thread::sleep(LOOK);
        }
        assert!(piped.has_failed());
        assert!(matches!(piped.end(), PipedEnd::Exited(status) if status.code() == Some(3)));
        wait_for_end(grandchild);
    }

    const LEAVES: &str = "ASCERTAIN_TEST_LEAVES_ITS_GROUP";

    /// The command of the next test. It joins another process group, so that signals to its own one do not reach it.
    /// Otherwise, this test does nothing.
    #[test]
    fn command_that_leaves_its_group() {
        if std::env::var_os(LEAVES).is_some() {
            let group = rustix::process::getpgid(rustix::process::getppid()).unwrap();
            rustix::process::setpgid(None, Some(group)).unwrap();
            io::Write::write_all(&mut io::stdout(), format!("\n{LEAVES}\n").as_bytes()).unwrap();
            thread::sleep(Duration::from_secs(1000));
        }
    }

    #[test]
    fn a_command_that_signals_do_not_reach_is_not_waited_for() {
        let program = std::env::current_exe().unwrap();
        let arguments = ["--exact", "piped::tests::command_that_leaves_its_group", "--nocapture"];
        let mut command = Command::new(program.to_str().unwrap(), &arguments);
        command.env.push((LEAVES.into(), "1".into()));
        let mut piped = Piped::start(&command).unwrap();
        let (mut text, mut buffer, stop) = (String::new(), [0; 64], Stop::new().unwrap());
        while !text.contains(LEAVES) {
            match piped.read(&mut buffer, Duration::from_secs(60), &stop).unwrap() {
                Piece::Bytes(bytes) => text += std::str::from_utf8(&buffer[..bytes]).unwrap(),
                Piece::Nothing => {}
                Piece::End => panic!("the command goes on: {text}"),
            }
        }
        let process = Pid::from_child(&piped.child);
        assert_eq!(piped.end(), PipedEnd::Running(process.as_raw_pid() as u32));
        rustix::process::kill_process(process, Signal::KILL).unwrap();
        rustix::process::waitpid(Some(process), rustix::process::WaitOptions::empty()).unwrap();
    }

    #[test]
    fn a_command_that_is_dropped_is_killed_with_its_group() {
        let mut piped = Piped::start(&shell("sleep 1000 & echo $!")).unwrap();
        let grandchild = read_pid(&mut piped);
        while !piped.has_ended() {
            thread::sleep(LOOK);
        }
        drop(piped);
        wait_for_end(grandchild);
    }

    fn is_zombie(pid: i32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with('Z'))
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let mut piped = Piped::start(&shell("sleep 1000")).unwrap();
        let stop = Stop::new().unwrap();
        stop.request();
        assert_eq!(piped.read(&mut [0; 8], Duration::from_secs(1000), &stop).unwrap(), Piece::Nothing);
        assert!(Piped::start(&Command::new("/no/such/program", &[])).is_err());
    }
}
