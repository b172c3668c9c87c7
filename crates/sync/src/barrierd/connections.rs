//! Whom the daemon serves.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use ascertain_sys::socket::{self, Poll};

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
    poll: Poll,
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
        self.poll.clear();
        self.poll.push(stop);
        for client in &self.clients {
            self.poll.push(client.socket.as_fd());
        }
        if let Some(listener) = &self.listener {
            self.poll.push(listener.as_fd());
        }
        self.poll.wait(None)?;
        if self.poll.is_ready(0) {
            return Ok(Event::Stop);
        }
        let is_new = self.poll.is_ready(1 + self.clients.len());
        let is_asked = self.look_at_clients();
        if is_new {
            self.accept(greeting);
        }
        Ok(if is_asked { Event::Asked } else { Event::Nothing })
    }

    /// Returns after so long, true, or as soon as it is to stop, false.
    pub fn rest(&mut self, stop: BorrowedFd<'_>, rest: Duration) -> io::Result<bool> {
        self.poll.clear();
        self.poll.push(stop);
        self.poll.wait(Some(rest))?;
        Ok(!self.poll.is_ready(0))
    }

    /// Whether one asks. Those that hung up are forgotten.
    fn look_at_clients(&mut self) -> bool {
        let Self { clients, poll, .. } = self;
        let (mut number, mut is_asked) = (0, false);
        clients.retain(|client| {
            number += 1;
            let asks = if poll.is_ready(number) { asks(&client.socket) } else { Ok(false) };
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
