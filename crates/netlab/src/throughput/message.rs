//! The protocol between a client and a listener: lines of JSON.
//!
//! The first line of each connection is a [`Hello`] with the token. On a control connection [`Message`]s follow, in
//! both directions. A reader buffers an incomplete line, and refuses a line that is longer than the reader's limit.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};

use super::counting::FlowEnd;
use super::traffic::{MOST_INTERVALS, Refusal, TrafficSpec};

/// Version of this protocol. A client and a listener must have the same version.
pub(super) const VERSION: u64 = 1;
/// Maximum length of a line of text that a listener reads, in bytes. The line is a [`Hello`], or a message of a client.
pub(super) const MOST_CLIENT_LINE_BYTES: usize = 4 << 10;
/// Maximum length of any line of text, in bytes. The longest is [`Message::End`], which has a number of up to 20 digits
/// for each interval.
pub(super) const MOST_LINE_BYTES: usize = 24 * MOST_INTERVALS as usize + MOST_CLIENT_LINE_BYTES;

/// The first line of a connection. Its fields are the same in every version of the protocol.
#[derive(Serialize, Deserialize)]
pub(super) struct Hello {
    pub version: u64,
    pub token: String,
    /// 0 for a control connection. For a flow's connection, the number of the flow's session.
    pub session: u64,
    pub flow: u32,
}

/// A line on the control connection between a client and a listener, after the first line with the token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// The listener accepts the client's token. The first line of each flow's connection repeats the session number.
    Welcome {
        /// The session number, which is never 0.
        session: u64,
    },
    /// The listener will not measure, or stops measuring, and sends no further messages.
    Refused(Refusal),
    /// The client asks for the time on the listener's clock.
    Ping {
        /// Time at which the ping was sent, on the client's clock.
        sent_ns: u64,
    },
    /// The listener answers a ping.
    Pong {
        /// The time `sent_ns` of the ping.
        sent_ns: u64,
        /// Time at which the ping was answered, on the listener's clock.
        at_ns: u64,
    },
    /// The client requests a measurement of this traffic.
    Measure(TrafficSpec),
    /// The listener has the connections (TCP) or addresses (UDP) of all flows, so the measurement can start.
    Ready,
    /// The client sets the time at which the measurement starts.
    Begin {
        /// The start time, on the listener's clock.
        at_ns: u64,
        /// Largest error of `at_ns`, which the client computed from an estimated offset of the clocks.
        bound_ns: u64,
    },
    /// The listener sends its counts of a flow.
    End {
        /// Index of the flow.
        flow: u32,
        /// The counts of the flow by the listener.
        end: FlowEnd,
    },
}

/// The error for a line that is not part of the protocol, or is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the other end sent a line that is not a message of this protocol")]
pub struct Malformed;

impl Message {
    /// Parses the first line of `bytes`. Returns the message and the length of its line, or `None` if the line is not
    /// complete yet.
    ///
    /// # Errors
    /// Returns [`Malformed`] if the line is not a message, or is too long. A line that is too long is recognised even
    /// before its end has arrived.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        parse_line(bytes, MOST_LINE_BYTES)
    }

    /// Encodes the message as a line of JSON, including the line end.
    pub fn to_line(&self) -> Vec<u8> {
        to_line(self)
    }
}

/// Encodes a value as a line of JSON, including the line end.
pub(super) fn to_line(value: &impl Serialize) -> Vec<u8> {
    // Encoding fails only for maps whose keys are not strings, and the encoded values have no maps.
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line
}

fn parse_line<T: DeserializeOwned>(bytes: &[u8], limit_bytes: usize) -> Result<Option<(T, usize)>, Malformed> {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    if end.unwrap_or(bytes.len()) >= limit_bytes {
        return Err(Malformed);
    }
    let Some(end) = end else { return Ok(None) };
    let value = serde_json::from_slice(&bytes[..end]).map_err(|_| Malformed)?;
    Ok(Some((value, end + 1)))
}

/// Parses the name of a congestion control algorithm. Refuses control characters, because the name is printed to a
/// terminal, which might interpret them.
pub(super) fn plain_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    let is_plain = name.len() <= 16 && name.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain {
        Ok(name)
    } else {
        Err(D::Error::custom("invalid name of a congestion control algorithm: expected up to 16 printable characters"))
    }
}

/// Reads lines of JSON from a connection. It keeps the bytes of incomplete lines.
pub(super) struct LineReader {
    limit_bytes: usize,
    /// Bytes that have arrived and are not parsed yet.
    buffer: Vec<u8>,
}

impl LineReader {
    pub fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, buffer: Vec::new() }
    }

    /// Returns the next line. `None` if the line is not complete within `wait`, even if bytes keep arriving. A later
    /// call then returns the line.
    pub fn poll<T: DeserializeOwned>(&mut self, mut stream: &TcpStream, wait: Duration) -> io::Result<Option<T>> {
        let end = Instant::now() + wait;
        let mut left = wait;
        loop {
            let parsed = parse_line(&self.buffer, self.limit_bytes);
            if let Some((value, bytes)) = parsed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))? {
                self.buffer.drain(..bytes);
                return Ok(Some(value));
            }
            if left.is_zero() {
                return Ok(None);
            }
            stream.set_read_timeout(Some(left))?;
            let mut arrived = [0; 1 << 14];
            match stream.read(&mut arrived) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => self.buffer.extend_from_slice(&arrived[..bytes]),
                Err(error) if is_nothing_yet(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
            left = end.saturating_duration_since(Instant::now());
        }
    }
}

/// One side of the control connection between a client and a listener.
pub(super) struct Control {
    pub stream: TcpStream,
    reader: LineReader,
}

impl Control {
    pub fn new(stream: TcpStream, reader: LineReader) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        // A peer counts as gone if it does not read these few messages.
        stream.set_write_timeout(Some(Duration::from_secs(10)))?;
        Ok(Self { stream, reader })
    }

    pub fn send(&mut self, message: &Message) -> io::Result<()> {
        self.stream.write_all(&message.to_line())
    }

    /// Returns the next message; `None` if the message is not complete within `wait`.
    pub fn poll(&mut self, wait: Duration) -> io::Result<Option<Message>> {
        self.reader.poll(&self.stream, wait)
    }
}

/// Returns whether an error only means that nothing arrived within the time limit, or that a signal interrupted the
/// call.
pub(super) fn is_nothing_yet(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A peer sends a long message byte by byte, with pauses that are shorter than `wait`. The whole message would take
    /// more than a minute, so `poll` has to return earlier.
    #[test]
    fn who_says_something_slowly_has_no_more_time() {
        let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut control = Control::new(listener.accept().unwrap().0, LineReader::new(MOST_LINE_BYTES)).unwrap();
        let end = FlowEnd { bytes: vec![0; 4 << 10], ..FlowEnd::default() };
        let has_returned = std::sync::atomic::AtomicBool::new(false);
        let message = Message::End { flow: 0, end };
        let bytes = message.to_line();
        let (first, last) = bytes.split_at(bytes.len() - 1);
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| {
                let is_polling = || !has_returned.load(std::sync::atomic::Ordering::Relaxed);
                let mut sent = 0;
                while sent < first.len() && is_polling() {
                    peer.write_all(&first[sent..=sent]).unwrap();
                    sent += 1;
                    std::thread::sleep(Duration::from_millis(10));
                }
                peer.write_all(&first[sent..]).unwrap();
                peer.write_all(last).unwrap();
                sent
            });
            assert_eq!(control.poll(Duration::from_millis(200)).unwrap(), None);
            has_returned.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(sending.join().unwrap() < first.len(), "it was read to its end");
        });
        // The bytes that had arrived earlier were kept.
        assert_eq!(control.poll(Duration::from_secs(60)).unwrap(), Some(message));
    }

    /// A listener refuses a line as soon as it has read the maximum length of a line without finding the line end.
    #[test]
    fn a_line_beyond_the_limit_is_refused_before_its_end() {
        let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let stream = listener.accept().unwrap().0;
        let mut reader = LineReader::new(MOST_CLIENT_LINE_BYTES);
        peer.write_all(&[b'['; MOST_CLIENT_LINE_BYTES]).unwrap();
        let error = reader.poll::<u64>(&stream, Duration::from_secs(60)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_hello_is_what_it_was() {
        let hello = Hello { version: VERSION, token: "a-token-of-mine\"\\".into(), session: u64::MAX, flow: 3 };
        let line = to_line(&hello);
        assert!(line.len() < MOST_CLIENT_LINE_BYTES);
        let (read, length) = parse_line::<Hello>(&line, MOST_CLIENT_LINE_BYTES).unwrap().unwrap();
        assert_eq!((read.version, read.session, read.flow, length), (VERSION, u64::MAX, 3, line.len()));
        assert_eq!(read.token, hello.token);
        // A later version may have more fields.
        let later = b"{\"version\":9,\"token\":\"t\",\"session\":0,\"flow\":0,\"more\":[]}\n";
        assert_eq!(parse_line::<Hello>(later, MOST_CLIENT_LINE_BYTES).unwrap().unwrap().0.version, 9);
        assert!(parse_line::<Hello>(b"GET / HTTP/1.1\r\n", MOST_CLIENT_LINE_BYTES).is_err());
    }
}
