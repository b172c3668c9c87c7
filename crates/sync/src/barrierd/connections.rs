//! Whom the daemon serves.

use std::io::{self, Read};
use std::iter;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use ascertain_sys::socket;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Connections that the daemon keeps at most, below the 1,024 files that a process may usually have.
const CONNECTIONS_MAX: usize = 960;
/// Those of one user but root, so that nobody takes all.
const OF_A_USER_MAX: usize = 240;
/// New ones between two heartbeats.
const ACCEPTED_MAX: usize = 16;

/// Clients that are connected. None of them is trusted, or can hold the daemon up.
#[derive(Debug, Default)]
pub struct Connections {
    listener: Option<UnixListener>,
    clients: Vec<Connection>,
}

#[derive(Debug)]
struct Connection {
    socket: UnixStream,
    uid: u32,
}

/// A client has closed its end, or died.
#[derive(Clone, Copy, Debug)]
struct HungUp;

/// What came of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It is to stop.
    Stop,
    /// Somebody asks for a heartbeat.
    Asked,
    /// Nothing that needs one.
    Nothing,
}

impl Connections {
    pub fn listen(&mut self, listener: UnixListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        self.listener = Some(listener);
        Ok(())
    }

    /// Waits until there is something to do, and does it, but for the heartbeat. New clients get the descriptors.
    pub fn wait(&mut self, stop: BorrowedFd<'_>, greeting: &[BorrowedFd<'_>]) -> io::Result<Event> {
        let clients = self.clients.iter().map(|client| client.socket.as_fd());
        let listener = self.listener.as_ref().map(AsFd::as_fd);
        let ready = ready(iter::once(stop).chain(clients).chain(listener), None)?;
        if ready[0] {
            return Ok(Event::Stop);
        }
        let is_new = ready.get(1 + self.clients.len()) == Some(&true);
        let is_asked = self.look_at_clients(&ready[1..]);
        if is_new {
            self.accept(greeting);
        }
        Ok(if is_asked { Event::Asked } else { Event::Nothing })
    }

    /// Returns after so long, true, or as soon as it is to stop, false.
    pub fn rest(&mut self, stop: BorrowedFd<'_>, rest: Duration) -> io::Result<bool> {
        Ok(!ready([stop], Some(rest))?[0])
    }

    /// Whether one of those that are ready asks. Those that hung up are forgotten.
    fn look_at_clients(&mut self, ready: &[bool]) -> bool {
        let (mut ready, mut is_asked) = (ready.iter(), false);
        self.clients.retain(|client| {
            let asks = if ready.next() == Some(&true) { asks(&client.socket) } else { Ok(false) };
            is_asked |= asks.is_ok_and(|asks| asks);
            asks.is_ok()
        });
        is_asked
    }

    fn accept(&mut self, greeting: &[BorrowedFd<'_>]) {
        for _ in 0..ACCEPTED_MAX {
            let Some(Ok((socket, _))) = self.listener.as_ref().map(UnixListener::accept) else { return };
            // One who is refused, or hung up already, sees the end of the connection.
            let _ = self.greet(socket, greeting);
        }
    }

    /// Sends the descriptors to a new client.
    pub fn greet(&mut self, socket: UnixStream, greeting: &[BorrowedFd<'_>]) -> io::Result<()> {
        let uid = socket::peer(&socket)?.uid;
        let of_user = self.clients.iter().filter(|client| client.uid == uid).count();
        if self.clients.len() < CONNECTIONS_MAX && (uid == 0 || of_user < OF_A_USER_MAX) {
            socket.set_nonblocking(true)?;
            socket::send(&socket, 0, greeting)?;
            self.clients.push(Connection { socket, uid });
        }
        Ok(())
    }
}

/// Takes the first of what was sent, if anything. The rest asks again, which costs no more than another heartbeat.
fn asks(mut socket: &UnixStream) -> Result<bool, HungUp> {
    match socket.read(&mut [0; 4096]) {
        Ok(0) => Err(HungUp),
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(_) => Err(HungUp),
    }
}

/// Waits until one is readable or its other end closed, for `timeout` at most, or until a signal: which ones are.
fn ready<'a>(
    descriptors: impl IntoIterator<Item = BorrowedFd<'a>>,
    timeout: Option<Duration>,
) -> io::Result<Vec<bool>> {
    let watched = descriptors.into_iter().map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
    let mut watched: Vec<_> = watched.collect();
    let timeout = timeout.and_then(|timeout| timeout.try_into().ok());
    match poll(&mut watched, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(watched.iter().map(|one| !one.revents().is_empty()).collect()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_many() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (other, _kept) = UnixStream::pair().unwrap();
        let both = || [other.as_fd(), theirs.as_fd()];
        assert_eq!(ready(both(), Some(Duration::ZERO)).unwrap(), [false, false]);
        socket::send(&ours, 1, &[]).unwrap();
        assert_eq!(ready(both(), None).unwrap(), [false, true]);
    }
}
