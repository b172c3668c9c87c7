//! The client's side of the daemon's socket: for the hook and for the functions of the library.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::place::{self, Worktree, file_name};
use super::protocol::{self, Query, Request};
use super::{daemon, git, settings, token};
use crate::{Changes, EnableOptions, Error, Reason};

/// Time that functions of the library wait for a daemon.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Longest token that is sent to the daemon, in bytes. Tokens of this program have fewer than 100 bytes. A daemon ends
/// after a request that is too long, as it does after one of another version.
const TOKEN_MAX: usize = 1024;

/// A connection to the daemon of a worktree.
pub struct Client {
    stream: UnixStream,
    /// Process ID of the daemon.
    pub pid: i32,
}

impl Client {
    /// Connects to the daemon. `git_dir` is opened, so that its path may be longer than the path of a socket.
    ///
    /// # Errors
    /// `ConnectionRefused` or `NotFound` if no daemon runs; `PermissionDenied` if the socket belongs to another user.
    pub fn connect(git_dir: &Path) -> io::Result<Client> {
        let folder = super::monitor::open_root(git_dir)?;
        Client::connect_to(&format!("/proc/self/fd/{}/{}", folder.as_raw_fd(), file_name("sock")))
    }

    fn connect_to(path: &str) -> io::Result<Client> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
        let peer = socket_peercred(&socket)?;
        if peer.uid != geteuid() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        Ok(Client { stream: UnixStream::from(socket), pid: peer.pid.as_raw_nonzero().get() })
    }

    /// Sends a request and returns the answer.
    ///
    /// # Errors
    /// `TimedOut` at the deadline; `UnexpectedEof` if the daemon ended.
    pub fn request(&mut self, request: &Request, deadline: Instant) -> io::Result<Vec<u8>> {
        let message = request.message();
        let mut rest = &message[..];
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) => self.wait(error, PollFlags::OUT, deadline)?,
            }
        }
        let (mut answer, mut buffer) = (Vec::new(), [0; 16 << 10]);
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => answer.extend_from_slice(&buffer[..count]),
                Err(error) => self.wait(error, PollFlags::IN, deadline)?,
            }
            if let Some(content) = protocol::content(&answer) {
                return Ok(content.to_vec());
            }
        }
    }

    fn wait(&self, error: io::Error, events: PollFlags, deadline: Instant) -> io::Result<()> {
        match error.kind() {
            ErrorKind::Interrupted => return Ok(()),
            ErrorKind::WouldBlock => {}
            _ => return Err(error),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) as _ };
        match poll(&mut [PollFd::new(&self.stream, events)], Some(&timeout)) {
            Err(error) if error != rustix::io::Errno::INTR => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// Returns whether an error means that no daemon runs, or that it ended during the request.
pub fn is_without_daemon(error: &io::Error) -> bool {
    let kinds = [
        ErrorKind::NotFound,
        ErrorKind::ConnectionRefused,
        ErrorKind::ConnectionReset,
        ErrorKind::UnexpectedEof,
        ErrorKind::BrokenPipe,
    ];
    kinds.contains(&error.kind())
}

/// Connects to the daemon; starts one if none runs. Waits until the deadline.
pub fn connect_or_start(hook: &Path, worktree: &Worktree, deadline: Instant) -> io::Result<Client> {
    let mut is_started = false;
    loop {
        match Client::connect(&worktree.git_dir) {
            Err(error) if is_without_daemon(&error) => {
                if !is_started {
                    daemon::start(hook, worktree)?;
                    is_started = true;
                } else if daemon::failure(worktree).is_some() || Instant::now() >= deadline {
                    return Err(error);
                }
            }
            other => return other,
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Stops the daemon of a worktree, by force if it does not react. Returns whether a daemon ran.
pub fn stop(worktree: &Worktree) -> bool {
    let Ok(mut client) = Client::connect(&worktree.git_dir) else { return false };
    let stopped = client.request(&Request::Stop, Instant::now() + Duration::from_secs(1));
    if stopped.is_err_and(|error| error.kind() == ErrorKind::TimedOut)
        && let Some(pid) = Pid::from_raw(client.pid)
    {
        let _ = kill_process(pid, Signal::KILL);
    }
    // The lock is free as soon as the process has ended.
    let deadline = Instant::now() + PATIENCE;
    while is_locked(worktree) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

fn is_locked(worktree: &Worktree) -> bool {
    let Ok(file) = File::open(worktree.file("lock")) else { return false };
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockShared).is_err()
}

/// Builds a question for the folder in which this process would run git.
pub fn query(root: &Path, token: &[u8], asker: u32) -> io::Result<Query> {
    let folder = place::identity(&fs::metadata(root)?);
    // No monitor's token is so long, or contains a NUL byte. The daemon answers `/` to any token that it does not know.
    let token = if token.len() > TOKEN_MAX || token.contains(&0) { b"?" } else { token };
    Ok(Query { token: token.to_vec(), folder, namespace: protocol::namespace(), asker })
}

/// Returns the files that changed since a token, and the token for the next question. Starts the daemon if none runs,
/// with the hook of git's settings, the one in the folder of the running program, or the one in `PATH`.
///
/// An empty token is allowed: the answer is then [`Changes::Everything`]. The answer depends on the token alone, so any
/// number of programs can ask.
///
/// # Errors
/// [`Error::NotRunning`] if no daemon can run; [`Error::NotAWorktree`], [`Error::Bare`] or [`Error::Git`] if git finds
/// no worktree.
pub fn since(path: &Path, token: &[u8]) -> Result<(Vec<u8>, Changes), Error> {
    let worktree = git::worktree(path)?;
    let beside = || settings::hook(&EnableOptions::default()).ok();
    let hook = settings::configured_hook(&worktree)?.or_else(beside).unwrap_or_else(|| PathBuf::from(crate::HOOK));
    let deadline = Instant::now() + PATIENCE;
    let asked = query(&worktree.root, token, std::process::id()).and_then(|query| {
        let mut client = connect_or_start(&hook, &worktree, deadline)?;
        let answer = client.request(&Request::Query(query), deadline)?;
        Ok((answer, client.request(&Request::Status, deadline)?))
    });
    let (answer, status) = asked.map_err(|error| Error::NotRunning {
        path: worktree.root.clone(),
        why: daemon::failure(&worktree).map_or_else(|| error.to_string(), |(why, _)| why),
    })?;
    let (next, paths) = protocol::token_and_paths(&answer);
    // The end of this token concerns only git's cache of untracked files.
    let next = next.strip_suffix(token::AFTER_EVERYTHING.as_bytes()).unwrap_or(&next).to_vec();
    let changes = if paths == [b"/"] { Changes::Everything(reason(&status)) } else { Changes::Paths(paths) };
    Ok((next, changes))
}

/// Returns the reason for the newest answer in a daemon's state.
fn reason(status: &[u8]) -> Reason {
    let text = String::from_utf8_lossy(status);
    let last = text.lines().rev().find_map(|line| line.strip_prefix("answer="));
    last.and_then(|line| Reason::from_code(line.split(' ').nth(2)?)).unwrap_or(Reason::NoToken)
}

/// The answer of a hook that could not ask.
pub fn everything() -> Vec<u8> {
    [token::NONE.as_bytes(), b"\0/\0"].concat()
}
