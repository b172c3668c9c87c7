//! Questions at a rate, whatever the server makes of them, and how long each answer took since its question was due.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use ascertain_sys::clock::{now_ns, thread_cpu_ns};
use ascertain_sys::datagrams::{AT_ONCE, Inbox, note_times};
use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::probe::{LOOK, MOST_BYTES, ROUND_NS, ready};
use crate::Error;

const HEAD_BYTES: usize = 12;
/// The most questions of a connection that wait for an answer: they are told apart by 16 bits.
const MOST_WAITING: usize = 60_000;
/// So many more there may be before it is looked which of them wait for nothing any more.
const SWEEP: usize = 4_096;

/// Questions that are asked in turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix(Vec<Vec<u8>>);

impl Mix {
    /// Reads what dnsperf reads: a name and a type a line. Empty lines, and those that begin with `;` or `#`, say
    /// nothing.
    ///
    /// ```
    /// use ascertain_netlab::dns::Mix;
    /// assert!(Mix::parse("example.org A\n; and\nexample.org MX\n").is_ok());
    /// ```
    ///
    /// # Errors
    /// [`Error::Mix`], with the line.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let lines = text.lines().map(str::trim).zip(1..);
        let lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with([';', '#']));
        let question = |(line, number): (&str, usize)| {
            let no_question = |why: String| Error::Mix { why: format!("line {number}: {why}") };
            let (name, kind) = match line.split_whitespace().collect::<Vec<_>>()[..] {
                [name, kind] => (name, kind),
                _ => return Err(no_question(format!("`{line}` is not a name and a type"))),
            };
            let mut name = Name::from_ascii(name).map_err(|_| no_question(format!("`{name}` is no name")))?;
            name.set_fqdn(true);
            let of_kind = kind.to_ascii_uppercase().parse::<RecordType>();
            let kind = of_kind.map_err(|_| no_question(format!("`{kind}` is no type")))?;
            let mut message = Message::new(0, MessageType::Query, OpCode::Query);
            message.add_query(Query::query(name, kind));
            message.to_vec().map_err(|error| no_question(error.to_string()))
        };
        let questions = lines.map(question).collect::<Result<Vec<_>, _>>()?;
        if questions.is_empty() {
            Err(Error::Mix {
                why: "there is no question in it: a name and a type a line, such as `example.org A`".into(),
            })
        } else {
            Ok(Self(questions))
        }
    }
}

/// How often is asked, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Questions a second. Those that would be due within half a millisecond are due together, at its beginning.
    pub rate_per_s: u64,
    /// How long.
    pub time: Duration,
    /// What takes longer is lost.
    pub limit: Duration,
}

impl Pace {
    fn due_ns(&self, number: u64) -> u64 {
        let even_ns = u128::from(number) * 1_000_000_000 / u128::from(self.rate_per_s.max(1));
        u64::try_from(even_ns).unwrap_or(u64::MAX) / ROUND_NS * ROUND_NS
    }

    /// How many questions that is.
    #[must_use]
    pub fn questions(&self) -> u64 {
        u64::try_from(self.time.as_nanos() * u128::from(self.rate_per_s) / 1_000_000_000).unwrap_or(u64::MAX)
    }
}

/// By what questions go: each connection, or port, has its turn.
pub enum Way {
    /// Datagrams from sockets that are not connected, to a server.
    Udp(Vec<UdpSocket>, SocketAddr),
    /// Connections to a server, by which one question follows the other without waiting for answers.
    Tcp(Vec<TcpStream>),
}

/// A question, and what became of it. None is asked again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Posed {
    /// When it was to be sent.
    pub due_ns: u64,
    /// When it was.
    pub sent_ns: u64,
    /// The answer that came in time.
    pub answer: Option<Reply>,
}

/// An answer to a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reply {
    /// How long it took since the question was due, sent or not.
    pub took_ns: u64,
    /// How it went.
    pub code: ResponseCode,
    /// Whether not all of it is there.
    pub is_truncated: bool,
}

/// What came of questions.
#[derive(Clone, Debug, Default)]
pub struct Posing {
    /// In the order of their sending.
    pub posed: Vec<Posed>,
    /// Messages that were no answers to what was asked.
    pub strange: u64,
    /// The CPU time of the asking thread until all was sent.
    pub cpu_ns: u64,
    /// So many of them the kernel refused to send: nobody answers them.
    pub refused: u64,
    /// What it said to the first of these.
    pub refusal: Option<String>,
}

/// Asks at a pace, and waits for the answers, unless it is told to end. Numbers are drawn from the seed.
///
/// # Errors
/// As the kernel says; `UnexpectedEof` where a connection is at its end before that, `InvalidInput` where there is
/// none; with a way out where more questions of a connection wait for answers than can be told apart.
pub fn load(mix: &Mix, pace: Pace, way: Way, seed: u64, is_over: impl Fn() -> bool) -> io::Result<Posing> {
    let mut lines = Lines::new(way)?;
    if lines.count() == 0 {
        return Err(io::Error::new(ErrorKind::InvalidInput, "there is nothing to ask by"));
    }
    let chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let pending = vec![HashMap::new(); lines.count()];
    let (count, limit_ns) = (pace.questions(), pace.limit.as_nanos() as u64);
    let posing = Posing { posed: Vec::with_capacity(count.min(1 << 24) as usize), ..Posing::default() };
    let mut asking = Asking { mix, pending, posing, limit_ns, chance };
    let (start_ns, mut number, mut bytes) = (now_ns(), 0, Vec::new());
    let (mut last_ns, before_ns, mut is_asking) = (start_ns, thread_cpu_ns(), true);
    while !is_over() {
        let due_ns = |number| start_ns.saturating_add(pace.due_ns(number));
        for _ in 0..AT_ONCE {
            if number >= count || due_ns(number) > now_ns() {
                break;
            }
            let line = (number % lines.count() as u64) as usize;
            last_ns = now_ns();
            asking.ask(number, line, due_ns(number), last_ns, &mut bytes)?;
            if let Err(error) = lines.send(line, &bytes) {
                asking.posing.refused += 1;
                asking.posing.refusal.get_or_insert_with(|| error.to_string());
            }
            number += 1;
        }
        lines.receive(|at_ns, line, bytes| asking.arrived(at_ns, line, bytes))?;
        if is_asking && number == count {
            (asking.posing.cpu_ns, is_asking) = (thread_cpu_ns() - before_ns, false);
        }
        if !is_asking && (asking.is_answered() || now_ns() > last_ns + limit_ns) {
            break;
        }
        let wait_ns = if is_asking { due_ns(number).saturating_sub(now_ns()) } else { ROUND_NS };
        lines.wait(Duration::from_nanos(wait_ns).min(LOOK))?;
    }
    Ok(asking.posing)
}

/// What was asked, and what is waited for.
struct Asking<'a> {
    mix: &'a Mix,
    /// The questions of each connection by their numbers there.
    pending: Vec<HashMap<u16, usize>>,
    posing: Posing,
    limit_ns: u64,
    chance: Xoshiro256PlusPlus,
}

impl Asking<'_> {
    fn ask(&mut self, number: u64, line: usize, due_ns: u64, sent_ns: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
        let (pending, posed) = (&mut self.pending[line], &mut self.posing.posed);
        // Without one that is free there would be none to be found.
        if pending.len() >= MOST_WAITING + SWEEP {
            pending.retain(|_, index| posed[*index].sent_ns + self.limit_ns >= sent_ns);
            if pending.len() > MOST_WAITING {
                return Err(io::Error::other(format!(
                    "more than {MOST_WAITING} questions of a connection wait for their answers at once: it takes more \
                     `connections`, or a shorter `limit_ms`"
                )));
            }
        }
        let id = loop {
            let id: u16 = self.chance.random();
            // One of that number may still be answered, unless that would be too late.
            let before = pending.get(&id);
            if before.is_none_or(|index: &usize| posed[*index].sent_ns + self.limit_ns < sent_ns) {
                break id;
            }
        };
        pending.insert(id, posed.len());
        posed.push(Posed { due_ns, sent_ns, answer: None });
        bytes.clear();
        bytes.extend_from_slice(&self.mix.0[number as usize % self.mix.0.len()]);
        bytes[..2].copy_from_slice(&id.to_be_bytes());
        Ok(())
    }

    fn arrived(&mut self, at_ns: u64, line: usize, bytes: &[u8]) {
        let id = bytes.first_chunk().map(|id| u16::from_be_bytes(*id));
        let found = id.and_then(|id| Some((id, *self.pending[line].get(&id)?)));
        // Questions have their turn: that of a number is that of its place.
        let answer = found.and_then(|(id, index)| Some((id, index, reply(bytes, self.question(index))?)));
        let Some((id, index, (code, is_truncated))) = answer else {
            self.posing.strange += 1;
            return;
        };
        self.pending[line].remove(&id);
        let posed = &mut self.posing.posed[index];
        let took_ns = at_ns.max(posed.sent_ns) - posed.due_ns;
        if took_ns <= self.limit_ns {
            posed.answer = Some(Reply { took_ns, code, is_truncated });
        }
    }

    fn question(&self, index: usize) -> &[u8] {
        &self.mix.0[index % self.mix.0.len()]
    }

    fn is_answered(&self) -> bool {
        self.pending.iter().all(HashMap::is_empty)
    }
}

/// How an answer to a question went, and whether it is truncated; none where it is no answer to it.
fn reply(bytes: &[u8], question: &[u8]) -> Option<(ResponseCode, bool)> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let code = ResponseCode::from(0, head[3] & 0xf);
    let is_same = match [head[4], head[5]] {
        [0, 1] => rest.get(..question.len() - HEAD_BYTES)?.eq_ignore_ascii_case(&question[HEAD_BYTES..]),
        // Who does not understand a question may leave it out.
        [0, 0] => code != ResponseCode::NoError,
        _ => false,
    };
    let is_answer = head[2] & 0xf8 == 0x80;
    (is_answer && is_same).then_some((code, head[2] & 2 > 0))
}

/// Sockets, and what is on its way through them.
enum Lines {
    Udp { sockets: Vec<UdpSocket>, server: SocketAddr, inbox: Inbox },
    Tcp(Vec<Stream>),
}

struct Stream {
    socket: TcpStream,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

impl Lines {
    fn new(way: Way) -> io::Result<Self> {
        Ok(match way {
            Way::Udp(sockets, server) => {
                for socket in &sockets {
                    socket.set_nonblocking(true)?;
                    note_times(socket)?;
                }
                Self::Udp { sockets, server, inbox: Inbox::new(MOST_BYTES) }
            }
            Way::Tcp(sockets) => {
                let stream = |socket: TcpStream| {
                    socket.set_nonblocking(true)?;
                    socket.set_nodelay(true)?;
                    Ok(Stream { socket, outgoing: Vec::new(), incoming: Vec::new() })
                };
                Self::Tcp(sockets.into_iter().map(stream).collect::<io::Result<_>>()?)
            }
        })
    }

    fn count(&self) -> usize {
        match self {
            Self::Udp { sockets, .. } => sockets.len(),
            Self::Tcp(streams) => streams.len(),
        }
    }

    fn send(&mut self, line: usize, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Udp { sockets, server, .. } => _ = sockets[line].send_to(bytes, *server)?,
            Self::Tcp(streams) => {
                let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
                streams[line].outgoing.extend_from_slice(&length.to_be_bytes());
                streams[line].outgoing.extend_from_slice(bytes);
            }
        }
        Ok(())
    }

    /// Sends what waits for that, and takes what has come.
    fn receive(&mut self, mut each: impl FnMut(u64, usize, &[u8])) -> io::Result<()> {
        match self {
            Self::Udp { sockets, server, inbox } => {
                for line in ready(sockets, Duration::ZERO)? {
                    // An error is what the network says of something that was sent before.
                    _ = inbox.receive(&sockets[line], |at_ns, from, bytes| {
                        // What is from somewhere else is no answer, whatever it says.
                        each(at_ns, line, if from == *server { bytes } else { &[] });
                    });
                }
            }
            Self::Tcp(streams) => {
                streams.iter_mut().try_for_each(Stream::flush)?;
                let sockets: Vec<&TcpStream> = streams.iter().map(|stream| &stream.socket).collect();
                for line in ready(&sockets, Duration::ZERO)? {
                    streams[line].fill()?;
                    streams[line].take(|bytes| each(now_ns(), line, bytes));
                }
            }
        }
        Ok(())
    }

    /// Until something is due. The kernel writes down when datagrams come; what a stream brings is waited for.
    fn wait(&self, time: Duration) -> io::Result<()> {
        match self {
            Self::Udp { .. } => thread::sleep(time),
            Self::Tcp(streams) => {
                let sockets: Vec<&TcpStream> = streams.iter().map(|stream| &stream.socket).collect();
                ready(&sockets, time)?;
            }
        }
        Ok(())
    }
}

impl Stream {
    fn flush(&mut self) -> io::Result<()> {
        while !self.outgoing.is_empty() {
            match self.socket.write(&self.outgoing) {
                Ok(count) => _ = self.outgoing.drain(..count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut bytes = [0; 1 << 14];
        match self.socket.read(&mut bytes) {
            Ok(0) => Err(io::Error::new(ErrorKind::UnexpectedEof, "the server has ended the connection")),
            Ok(count) => {
                self.incoming.extend_from_slice(&bytes[..count]);
                Ok(())
            }
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The messages that are whole.
    fn take(&mut self, mut each: impl FnMut(&[u8])) {
        let mut rest = &self.incoming[..];
        while let Some((length, behind)) = rest.split_first_chunk() {
            let Some((message, next)) = behind.split_at_checked(u16::from_be_bytes(*length).into()) else { break };
            each(message);
            rest = next;
        }
        let taken = self.incoming.len() - rest.len();
        self.incoming.drain(..taken);
    }
}
