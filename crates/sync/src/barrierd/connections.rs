//! The connections that the daemon serves.

use std::io::{self, Read};
use std::iter;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use ascertain_sys::socket;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Maximum number of connections that the daemon keeps, below the usual limit of 1,024 open files per process.
const CONNECTIONS_MAX: usize = 960;
/// Maximum number of connections of one user other than root, so that other users can connect too.
const OF_A_USER_MAX: usize = 240;
/// Maximum number of connections that are accepted between two heartbeats.
const ACCEPTED_MAX: usize = 16;

/// The connected clients. They are not trusted, and none of them can delay the daemon.
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

/// The error if a client has closed its side of the connection, or died.
#[derive(Clone, Copy, Debug)]
struct HungUp;

/// The result of waiting for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The daemon must stop.
    Stop,
    /// A client has requested a heartbeat.
    Requested,
    /// No client has requested a heartbeat, and the daemon need not stop.
    Nothing,
}

impl Connections {
    pub fn listen(&mut self, listener: UnixListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        self.listener = Some(listener);
        Ok(())
    }

    /// Waits for an event and handles it, but leaves the heartbeat to the caller. Returns [`Event::Stop`] if `stop` is
    /// readable. Sends the descriptors in `greeting` to each new client.
    pub fn wait(&mut self, stop: BorrowedFd<'_>, greeting: &[BorrowedFd<'_>]) -> io::Result<Event> {
        let clients = self.clients.iter().map(|client| client.socket.as_fd());
        let listener = self.listener.as_ref().map(AsFd::as_fd);
        let ready = ready(iter::once(stop).chain(clients).chain(listener), None)?;
        if ready[0] {
            return Ok(Event::Stop);
        }
        let is_new = ready.get(1 + self.clients.len()) == Some(&true);
        let is_requested = self.look_at_clients(&ready[1..]);
        if is_new {
            self.accept(greeting);
        }
        Ok(if is_requested { Event::Requested } else { Event::Nothing })
    }

    /// Sleeps for the duration `rest`, but stops as soon as `stop` is readable. Returns `true` after the full duration,
    /// and `false` if `stop` is readable, because the daemon must then stop.
    pub fn rest(&mut self, stop: BorrowedFd<'_>, rest: Duration) -> io::Result<bool> {
        Ok(!ready([stop], Some(rest))?[0])
    }

    /// Returns whether a client has requested a heartbeat. `ready` contains, for each client in order, whether its
    /// socket can be read. Removes clients that hung up.
    fn look_at_clients(&mut self, ready: &[bool]) -> bool {
        let (mut ready, mut is_requested) = (ready.iter(), false);
        self.clients.retain(|client| {
            let requests = if ready.next() == Some(&true) { has_requests(&client.socket) } else { Ok(false) };
            is_requested |= requests.is_ok_and(|has_requests| has_requests);
            requests.is_ok()
        });
        is_requested
    }

    fn accept(&mut self, greeting: &[BorrowedFd<'_>]) {
        for _ in 0..ACCEPTED_MAX {
            let Some(Ok((socket, _))) = self.listener.as_ref().map(UnixListener::accept) else { return };
            // A client that is refused, or has hung up already, sees the end of the connection.
            let _ = self.greet(socket, greeting);
        }
    }

    /// Sends the descriptors in `greeting` to a new client and keeps the connection. Drops the connection if its user
    /// has too many connections, or if there are too many in total.
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

/// Returns whether the client has sent a request. Reads at most 4 KiB. If the client sent more bytes, the next call
/// counts them as another request, which causes at most one unnecessary heartbeat.
fn has_requests(mut socket: &UnixStream) -> Result<bool, HungUp> {
    match socket.read(&mut [0; 4096]) {
        Ok(0) => Err(HungUp),
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(_) => Err(HungUp),
    }
}

/// Waits until at least one descriptor is readable or its other side is closed. Waits for at most `timeout`; a signal
/// also ends the wait. Returns for each descriptor whether it is ready.
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
