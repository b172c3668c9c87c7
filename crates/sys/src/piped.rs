//! A command whose standard output is read while the command runs.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::command::{Command, Input};
use crate::interrupt::Stop;
use crate::{Error, clock, futex};

/// Time that the command has for its own clean-up after SIGTERM, before it is killed.
const GRACE: Duration = Duration::from_secs(2);
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
    pipe: ChildStdout,
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
        Ok(Piped { child, pipe })
    }

    /// Reads some bytes. Waits at most `timeout` for them.
    ///
    /// # Errors
    /// If the pipe cannot be read.
    pub fn read(&mut self, buffer: &mut [u8], timeout: Duration, stop: &Stop) -> io::Result<Piece> {
        let wake = stop.wake_fd();
        let pipe = PollFd::new(&self.pipe, PollFlags::IN);
        // Without a descriptor for the stop, the pipe is in both places.
        let signals = wake.map_or_else(|| pipe.clone(), |wake| PollFd::from_borrowed_fd(wake, PollFlags::IN));
        let mut events = [pipe, signals];
        // An interrupted call is treated like a timeout, because the caller calls again.
        let _ = poll(&mut events, futex::timespec(Some(timeout)).as_ref());
        if stop.is_requested() || events[0].revents().is_empty() {
            return Ok(Piece::Nothing);
        }
        match rustix::io::read(self.pipe.as_fd(), buffer) {
            Ok(0) => Ok(Piece::End),
            Ok(bytes) => Ok(Piece::Bytes(bytes)),
            Err(rustix::io::Errno::INTR) => Ok(Piece::Nothing),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends the command and its process group: first with SIGTERM, and after two seconds with SIGKILL. Returns the status
    /// of a command that had already ended by itself, otherwise `None`.
    pub fn end(mut self) -> Option<ExitStatus> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Some(status);
        }
        self.signal(Signal::TERM);
        let until_ns = clock::now_ns().saturating_add(GRACE.as_nanos() as u64);
        while clock::now_ns() < until_ns {
            if let Ok(Some(_)) = self.child.try_wait() {
                return None;
            }
            thread::sleep(LOOK);
        }
        None
    }

    /// Waits for a command that has closed its output, and returns its status. If the command still runs after two
    /// seconds, ends it and returns `None`.
    pub fn wait(mut self) -> Option<ExitStatus> {
        let until_ns = clock::now_ns().saturating_add(GRACE.as_nanos() as u64);
        while clock::now_ns() < until_ns {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            thread::sleep(LOOK);
        }
        self.end()
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        // A child that has been waited for may share its process ID with another process.
        if let Ok(None) = self.child.try_wait() {
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
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
        assert_eq!(piped.wait().unwrap().code(), Some(3));
    }

    #[test]
    fn a_command_that_goes_on_is_ended_with_its_group() {
        let mut piped = Piped::start(&shell("sleep 1000 & echo $!; wait")).unwrap();
        let mut buffer = [0; 32];
        let stop = Stop::new().unwrap();
        let bytes = loop {
            match piped.read(&mut buffer, Duration::from_secs(60), &stop).unwrap() {
                Piece::Bytes(bytes) => break bytes,
                Piece::Nothing => {}
                Piece::End => panic!("the command goes on"),
            }
        };
        let grandchild: i32 = std::str::from_utf8(&buffer[..bytes]).unwrap().trim().parse().unwrap();
        assert_eq!(piped.end(), None);
        let pid = Pid::from_raw(grandchild).unwrap();
        while rustix::process::test_kill_process(pid).is_ok() && !is_zombie(grandchild) {
            thread::sleep(LOOK);
        }
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
