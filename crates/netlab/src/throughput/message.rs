//! What both ends say to each other.
//!
//! A connection begins with a [`Hello`] of fixed size. On a control connection messages follow, both ways: a byte for
//! the kind, three zeros, how many words, and so many words of 8 bytes, all with the lowest byte first. Whoever reads
//! one keeps what has arrived and nothing else: a length is never believed.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::counting::{End, Tcp};
use super::plan::{MOST_INTERVALS, Plan, Refusal, Transport};
use super::token::TOKEN_BYTES;
use super::{Direction, Token};

/// This protocol's.
pub(super) const VERSION: u64 = 1;
const MAGIC: [u8; 8] = *b"ascnet\r\n";
const HEAD_BYTES: usize = 8;
/// Besides its intervals an end has fewer words than that.
const MOST_WORDS: usize = MOST_INTERVALS as usize + 64;

/// What a connection begins with. Its parts stay where they are in every version.
pub(super) struct Hello {
    pub version: u64,
    pub token: [u8; TOKEN_BYTES],
    /// 0 for a control connection, otherwise whose flow it is.
    pub session: u64,
    pub flow: u64,
}

impl Hello {
    pub const BYTES: usize = MAGIC.len() + TOKEN_BYTES + 3 * 8;

    pub fn new(token: &Token, session: u64, flow: u32) -> Self {
        Self { version: VERSION, token: token.bytes(), session, flow: flow.into() }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let words = [self.version, self.session, self.flow].map(u64::to_le_bytes);
        [&MAGIC[..], &self.token, &words.concat()].concat()
    }

    pub fn parse(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (token, words) = bytes.strip_prefix(&MAGIC)?.split_first_chunk::<TOKEN_BYTES>()?;
        let mut words = Words(words);
        Some(Self { version: words.next()?, token: *token, session: words.next()?, flow: words.next()? })
    }
}

/// What is said on a control connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// To a client with the token: the number that its flows are to say.
    Welcome {
        /// Never 0.
        session: u64,
    },
    /// To a client: there will be no measurement, and no more messages.
    Refused(Refusal),
    /// To a listener: what time is it?
    Ping {
        /// The client's.
        sent_ns: u64,
    },
    /// The answer.
    Pong {
        /// As it was asked.
        sent_ns: u64,
        /// The listener's time.
        at_ns: u64,
    },
    /// To a listener: what the client wants.
    Ask(Plan),
    /// To a client: all flows are there.
    Ready,
    /// To a listener: when it begins.
    Begin {
        /// By the listener's clock.
        at_ns: u64,
        /// By how much that may be wrong.
        bound_ns: u64,
    },
    /// To a client: the listener's end of a flow.
    End {
        /// Its number.
        flow: u32,
        /// What was seen of it.
        end: End,
    },
}

/// What is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what came is no message of the protocol")]
pub struct Strange;

/// Words that have not been read yet.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn next(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    fn next_u32(&mut self) -> Option<u32> {
        self.next()?.try_into().ok()
    }
}

impl Message {
    /// The message that these bytes begin with, and how many bytes it has; none where the rest of it is still to come.
    ///
    /// # Errors
    /// [`Strange`], as soon as that can be seen.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Strange> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let [kind, 0, 0, 0, count @ ..] = *head else { return Err(Strange) };
        let count = u32::from_le_bytes(count) as usize;
        if count > MOST_WORDS || !(1..=8).contains(&kind) {
            return Err(Strange);
        }
        let Some(words) = rest.get(..8 * count) else { return Ok(None) };
        let mut words = Words(words);
        let message = Self::of(kind, &mut words).filter(|_| words.0.is_empty()).ok_or(Strange)?;
        Ok(Some((message, HEAD_BYTES + 8 * count)))
    }

    fn of(kind: u8, words: &mut Words) -> Option<Self> {
        Some(match kind {
            1 => Self::Welcome { session: words.next().filter(|session| *session != 0)? },
            2 => Self::Refused(refusal_of(words.next()?, words.next()?)?),
            3 => Self::Ping { sent_ns: words.next()? },
            4 => Self::Pong { sent_ns: words.next()?, at_ns: words.next()? },
            5 => Self::Ask(plan_of(words)?),
            6 => Self::Ready,
            7 => Self::Begin { at_ns: words.next()?, bound_ns: words.next()? },
            8 => Self::End { flow: words.next_u32()?, end: end_of(words)? },
            _ => return None,
        })
    }

    /// The message as it is sent.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let (kind, words) = match self {
            Self::Welcome { session } => (1, vec![*session]),
            Self::Refused(refusal) => (2, words_of_refusal(*refusal).to_vec()),
            Self::Ping { sent_ns } => (3, vec![*sent_ns]),
            Self::Pong { sent_ns, at_ns } => (4, vec![*sent_ns, *at_ns]),
            Self::Ask(plan) => (5, words_of_plan(plan).to_vec()),
            Self::Ready => (6, Vec::new()),
            Self::Begin { at_ns, bound_ns } => (7, vec![*at_ns, *bound_ns]),
            Self::End { flow, end } => (8, words_of_end(*flow, end)),
        };
        let count = (words.len() as u32).to_le_bytes();
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        [kind, 0, 0, 0].into_iter().chain(count).chain(words).collect()
    }
}

fn words_of_refusal(refusal: Refusal) -> [u64; 2] {
    match refusal {
        Refusal::Version { speaks } => [1, speaks],
        Refusal::Busy => [2, 0],
        Refusal::Plan => [3, 0],
        Refusal::TooLong { most_s } => [4, most_s],
        Refusal::UsedUp => [5, 0],
        Refusal::NotReached => [6, 0],
        Refusal::Broken => [7, 0],
        Refusal::Late => [8, 0],
    }
}

fn refusal_of(code: u64, value: u64) -> Option<Refusal> {
    Some(match (code, value) {
        (1, speaks) => Refusal::Version { speaks },
        (2, 0) => Refusal::Busy,
        (3, 0) => Refusal::Plan,
        (4, most_s) => Refusal::TooLong { most_s },
        (5, 0) => Refusal::UsedUp,
        (6, 0) => Refusal::NotReached,
        (7, 0) => Refusal::Broken,
        (8, 0) => Refusal::Late,
        _ => return None,
    })
}

fn words_of_plan(plan: &Plan) -> [u64; 7] {
    let direction = match plan.direction {
        Direction::Up => 1,
        Direction::Down => 2,
        Direction::Both => 3,
    };
    let (rate_bits_per_s, datagram_bytes) = match plan.transport {
        Transport::Tcp => (0, 0),
        Transport::Udp { rate_bits_per_s, datagram_bytes } => (rate_bits_per_s, datagram_bytes.into()),
    };
    let interval_ns = u64::try_from(plan.interval.as_nanos()).unwrap_or(u64::MAX);
    let [streams, left_out, intervals] = [plan.streams, plan.left_out, plan.intervals].map(u64::from);
    [rate_bits_per_s, datagram_bytes, direction, streams, interval_ns, left_out, intervals]
}

fn plan_of(words: &mut Words) -> Option<Plan> {
    let transport = match (words.next()?, words.next_u32()?) {
        (0, 0) => Transport::Tcp,
        (rate_bits_per_s, datagram_bytes) => Transport::Udp { rate_bits_per_s, datagram_bytes },
    };
    let direction = match words.next()? {
        1 => Direction::Up,
        2 => Direction::Down,
        3 => Direction::Both,
        _ => return None,
    };
    let streams = words.next_u32()?;
    let interval = Duration::from_nanos(words.next()?);
    let (left_out, intervals) = (words.next_u32()?, words.next_u32()?);
    Some(Plan { transport, direction, streams, interval, left_out, intervals })
}

/// A name of 16 characters at most, which those of congestion controls are.
fn words_of_name(name: &str) -> [u64; 2] {
    let mut bytes = [0; 16];
    let length = name.len().min(bytes.len());
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    let value = u128::from_le_bytes(bytes);
    [value as u64, (value >> 64) as u64]
}

fn name_of([low, high]: [u64; 2]) -> Option<String> {
    let bytes = (u128::from(high) << 64 | u128::from(low)).to_le_bytes();
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    // It is shown: control characters would steer a terminal.
    let is_name = name.iter().all(u8::is_ascii_graphic) && bytes[name.len()..].iter().all(|byte| *byte == 0);
    is_name.then(|| String::from_utf8_lossy(name).into_owned())
}

fn words_of_end(flow: u32, end: &End) -> Vec<u64> {
    let mut words = vec![flow.into(), end.cpu_ns, end.datagrams, end.reordered, end.duplicates, end.jitter_ns];
    words.push(end.tcp.is_some().into());
    if let Some(tcp) = &end.tcp {
        let Tcp { retransmitted_segments, rtt_us, rtt_min_us, mss_bytes, path_mtu_bytes, congestion_control } = tcp;
        words.push(*retransmitted_segments);
        words.extend([*rtt_us, *rtt_min_us, *mss_bytes, *path_mtu_bytes].map(u64::from));
        words.extend(words_of_name(congestion_control));
    }
    words.extend(&end.bytes);
    words
}

fn end_of(words: &mut Words) -> Option<End> {
    let [cpu_ns, datagrams, reordered] = [words.next()?, words.next()?, words.next()?];
    let [duplicates, jitter_ns] = [words.next()?, words.next()?];
    let tcp = match words.next()? {
        0 => None,
        1 => Some(Tcp {
            retransmitted_segments: words.next()?,
            rtt_us: words.next_u32()?,
            rtt_min_us: words.next_u32()?,
            mss_bytes: words.next_u32()?,
            path_mtu_bytes: words.next_u32()?,
            congestion_control: name_of([words.next()?, words.next()?])?,
        }),
        _ => return None,
    };
    let bytes = std::iter::from_fn(|| words.next()).collect();
    Some(End { cpu_ns, bytes, tcp, datagrams, reordered, duplicates, jitter_ns })
}

/// A control connection.
pub(super) struct Control {
    pub stream: TcpStream,
    /// What has arrived and was not read yet.
    buffer: Vec<u8>,
}

impl Control {
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        // Somebody who does not read what little there is to say is not there any more.
        stream.set_write_timeout(Some(Duration::from_secs(10)))?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    pub fn send(&mut self, message: &Message) -> io::Result<()> {
        self.stream.write_all(&message.bytes())
    }

    /// The next message, if all of it is there within that time, however slowly it comes. The rest may come later.
    pub fn poll(&mut self, wait: Duration) -> io::Result<Option<Message>> {
        let end = Instant::now() + wait;
        let mut left = wait;
        loop {
            let parsed =
                Message::parse(&self.buffer).map_err(|strange| io::Error::new(ErrorKind::InvalidData, strange))?;
            if let Some((message, bytes)) = parsed {
                self.buffer.drain(..bytes);
                return Ok(Some(message));
            }
            if left.is_zero() {
                return Ok(None);
            }
            self.stream.set_read_timeout(Some(left))?;
            let mut arrived = [0; 1 << 14];
            match self.stream.read(&mut arrived) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => self.buffer.extend_from_slice(&arrived[..bytes]),
                Err(error) if is_nothing_yet(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
            left = end.saturating_duration_since(Instant::now());
        }
    }
}

/// Whether a socket with a time limit had nothing to say, or a signal came.
pub(super) fn is_nothing_yet(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_harmless() {
        for name in ["", "cubic", "sixteen-letters-"] {
            assert_eq!(name_of(words_of_name(name)).as_deref(), Some(name));
        }
        assert_eq!(name_of(words_of_name("a\x1b[m")), None);
        assert_eq!(name_of([u64::from(b'a'), 1]), None);
    }

    /// A peer sends a long message byte by byte, with pauses that are shorter than `wait`. All of it would take more than
    /// a minute, so `poll` has to return in between.
    #[test]
    fn who_says_something_slowly_has_no_more_time() {
        let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut control = Control::new(listener.accept().unwrap().0).unwrap();
        let end = End { bytes: vec![0; 1 << 10], ..End::default() };
        let has_returned = std::sync::atomic::AtomicBool::new(false);
        let message = Message::End { flow: 0, end };
        let bytes = message.bytes();
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
        // What had come was kept.
        assert_eq!(control.poll(Duration::from_secs(60)).unwrap(), Some(message));
    }

    #[test]
    fn a_hello_is_what_it_was() {
        let token: Token = "a-token-of-mine".parse().unwrap();
        let bytes = Hello::new(&token, 7, 3).bytes();
        let hello = Hello::parse(bytes.as_slice().try_into().unwrap()).unwrap();
        assert_eq!((hello.version, hello.session, hello.flow), (VERSION, 7, 3));
        assert!(token.is(&hello.token));
        for other in ["a-token-of-mind", "a-token-of-mine-too", "another-token"] {
            assert!(!other.parse::<Token>().unwrap().is(&hello.token), "{other}");
        }
        let mut strange = bytes;
        strange[0] = b'G';
        assert!(Hello::parse(strange.as_slice().try_into().unwrap()).is_none());
    }
}
