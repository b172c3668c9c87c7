//! The daemon's side of its socket. Nothing here waits for a client.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

use super::protocol::{self, LENGTH_BYTES, Query, REQUEST_MAX, Request};

/// Maximum number of clients at the same time. Further clients are refused, and their hooks answer `/`.
const CLIENTS_MAX: usize = 128;
/// Time that a client has for its request and for reading the answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The connection to a client.
pub struct Connection {
    pub stream: UnixStream,
    input: Vec<u8>,
    output: Vec<u8>,
    deadline: Instant,
    /// A question that waits until all folders have been read.
    pub waiting: Option<Query>,
}

/// The result of reading from a client.
pub enum Received {
    /// The request is not complete.
    Nothing,
    Request(Request),
    /// The client has another version, or sent something else.
    Unknown,
    /// The client is gone.
    Closed,
}

/// Accepts the clients that wait. Clients of other users are dropped.
pub fn accept(listener: &UnixListener, connections: &mut Vec<Connection>) {
    while let Ok((stream, _)) = listener.accept() {
        let is_own = socket_peercred(&stream).is_ok_and(|peer| peer.uid == geteuid());
        if is_own && connections.len() < CLIENTS_MAX && stream.set_nonblocking(true).is_ok() {
            let deadline = Instant::now() + PATIENCE;
            let (input, output) = (Vec::new(), Vec::new());
            connections.push(Connection { stream, input, output, deadline, waiting: None });
        }
    }
}

impl Connection {
    /// Reads what has arrived.
    pub fn receive(&mut self) -> Received {
        let mut buffer = [0; 4096];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Received::Closed,
                Ok(count) => self.input.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return Received::Closed,
            }
            if self.input.len() > REQUEST_MAX {
                return Received::Unknown;
            }
        }
        if let Some(length) = self.input.first_chunk::<LENGTH_BYTES>()
            && u64::from_le_bytes(*length) > REQUEST_MAX as u64
        {
            return Received::Unknown;
        }
        let Some(content) = protocol::content(&self.input) else { return Received::Nothing };
        let request = Request::read(content);
        self.input.clear();
        request.map_or(Received::Unknown, Received::Request)
    }

    /// Begins to send an answer.
    pub fn answer(&mut self, content: &[u8]) {
        self.output = protocol::framed(content);
        self.waiting = None;
        self.deadline = Instant::now() + PATIENCE;
    }

    /// Sends as much as the socket takes. Returns `false` if the client is gone.
    pub fn send(&mut self) -> bool {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(count) => drop(self.output.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        self.output = Vec::new();
        true
    }

    pub fn is_sending(&self) -> bool {
        !self.output.is_empty()
    }

    pub fn is_late(&self, now: Instant) -> bool {
        now >= self.deadline
    }

    pub fn deadline(&self) -> Instant {
        self.deadline
    }
}
