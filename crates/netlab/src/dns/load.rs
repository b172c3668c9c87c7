//! Sends DNS queries at a fixed rate, even if the server is slow. The time of each answer counts from when its query
//! was due.

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
/// Number of queries per connection that may wait for an answer. It is below 65,536, the number of different ids, so
/// that a free id can still be found.
const MOST_WAITING: usize = 60_000;
/// If a connection has this many waiting queries more than [`MOST_WAITING`], the queries whose time limit has passed
/// are removed. If more than [`MOST_WAITING`] queries are still left, the load fails.
const SWEEP: usize = 4_096;

/// A list of encoded DNS queries. [`load`] sends them in order, and starts again after the last query.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryMix(Vec<Vec<u8>>);

impl QueryMix {
    /// Parses the file format of the program dnsperf: a name and a record type on each line. Empty lines, and lines
    /// that begin with `;` or `#`, are ignored.
    ///
    /// ```
    /// use ascertain_netlab::dns::QueryMix;
    /// assert!(QueryMix::parse("example.org A\n; and\nexample.org MX\n").is_ok());
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] with the line number.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let lines = text.lines().map(str::trim).zip(1..);
        let lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with([';', '#']));
        let question = |(line, number): (&str, usize)| {
            let no_question = |why: String| Error::Invalid(format!("line {number}: {why}"));
            let (name, kind) = match line.split_whitespace().collect::<Vec<_>>()[..] {
                [name, kind] => (name, kind),
                _ => return Err(no_question(format!("expected a name and a record type, found `{line}`"))),
            };
            let mut name = Name::from_ascii(name).map_err(|_| no_question(format!("`{name}` is not a name")))?;
            name.set_fqdn(true);
            let of_kind = kind.to_ascii_uppercase().parse::<RecordType>();
            let kind = of_kind.map_err(|_| no_question(format!("`{kind}` is not a record type")))?;
            let mut message = Message::new(0, MessageType::Query, OpCode::Query);
            message.add_query(Query::query(name, kind));
            message.to_vec().map_err(|error| no_question(error.to_string()))
        };
        let questions = lines.map(question).collect::<Result<Vec<_>, _>>()?;
        if questions.is_empty() {
            let why = "there are no queries; write a name and a type on each line, such as `example.org A`";
            return Err(Error::Invalid(why.into()));
        }
        Ok(Self(questions))
    }
}

/// The rate of the queries that [`load`] sends, how long it sends them, and the time limit for each answer.
#[derive(Clone, Copy, Debug)]
pub struct QueryRate {
    /// Number of queries per second. Queries that are due within the same half millisecond are sent together, at the
    /// beginning of that half millisecond.
    pub rate_per_s: u64,
    /// Time for which queries are sent.
    pub time: Duration,
    /// Time limit for each answer, counted from the time at which its query was due. A later answer counts as lost.
    pub limit: Duration,
}

impl QueryRate {
    fn due_ns(&self, number: u64) -> u64 {
        let even_ns = u128::from(number) * 1_000_000_000 / u128::from(self.rate_per_s.max(1));
        u64::try_from(even_ns).unwrap_or(u64::MAX) / ROUND_NS * ROUND_NS
    }

    /// Returns the number of queries that are sent in total.
    pub fn questions(&self) -> u64 {
        u64::try_from(self.time.as_nanos() * u128::from(self.rate_per_s) / 1_000_000_000).unwrap_or(u64::MAX)
    }
}

/// The sockets through which [`load`] sends its queries. It uses them in turn, so each socket gets an equal share.
pub enum LoadTransport {
    /// Unconnected UDP sockets, and the address of the server to which all of them send.
    Udp(Vec<UdpSocket>, SocketAddr),
    /// TCP connections to the server. Each query is sent without waiting for earlier answers.
    Tcp(Vec<TcpStream>),
}

/// A query of [`load`], and its answer. The query is sent only once, even if no answer arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadQuery {
    /// Time at which the query was due, on the clock of [`now_ns`](crate::now_ns).
    pub due_ns: u64,
    /// Time at which the query was sent, on the same clock as `due_ns`.
    pub sent_ns: u64,
    /// The answer; `None` if no answer arrived within the time limit.
    pub answer: Option<LoadReply>,
}

/// An answer that arrived within the time limit of its query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadReply {
    /// Time from the moment at which the query was due to the arrival of the answer.
    pub took_ns: u64,
    /// DNS response code of the answer.
    pub code: ResponseCode,
    /// `true` if the answer is truncated.
    pub is_truncated: bool,
}

/// The result of [`load`]: its queries with their answers, and what went wrong.
#[derive(Clone, Debug, Default)]
pub struct LoadResult {
    /// The queries, in the order in which they were sent.
    pub queries: Vec<LoadQuery>,
    /// Number of received messages that were not an answer to one of the queries.
    pub strange: u64,
    /// CPU time that the sending thread used for this load until it had sent the last query.
    pub cpu_ns: u64,
    /// Number of queries that the kernel refused to send.
    pub refused: u64,
    /// Text of the first error with which the kernel refused to send a query; `None` if it refused none.
    pub refusal: Option<String>,
}

/// Sends the queries of `mix` at a rate, and waits for their answers. Ends when every query is answered or lost, or
/// when `is_over` returns `true`. The seed determines the ids of the queries.
///
/// # Errors
/// Returns errors of the kernel. Returns `UnexpectedEof` if the server closes a connection too early, and
/// `InvalidInput` if `transport` has no connection. Also fails, with a hint, if more than 60,000 queries of one
/// connection wait for an answer.
pub fn load(
    mix: &QueryMix,
    rate: QueryRate,
    transport: LoadTransport,
    seed: u64,
    is_over: impl Fn() -> bool,
) -> io::Result<LoadResult> {
    let mut lines = Connections::new(transport)?;
    if lines.count() == 0 {
        return Err(io::Error::new(ErrorKind::InvalidInput, "there are no connections for the queries"));
    }
    let chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let pending = vec![HashMap::new(); lines.count()];
    let (count, limit_ns) = (rate.questions(), rate.limit.as_nanos() as u64);
    let result = LoadResult { queries: Vec::with_capacity(count.min(1 << 24) as usize), ..LoadResult::default() };
    let mut state = LoadState { mix, pending, result, limit_ns, chance, bytes: Vec::new() };
    let (start_ns, mut number) = (now_ns(), 0);
    let (mut last_ns, before_ns, mut is_asking) = (start_ns, thread_cpu_ns(), true);
    while !is_over() {
        let due_ns = |number| start_ns.saturating_add(rate.due_ns(number));
        for _ in 0..AT_ONCE {
            if number >= count || due_ns(number) > now_ns() {
                break;
            }
            let line = (number % lines.count() as u64) as usize;
            last_ns = now_ns();
            state.add_query(number, line, due_ns(number), last_ns)?;
            if let Err(error) = lines.send(line, &state.bytes) {
                state.result.refused += 1;
                state.result.refusal.get_or_insert_with(|| error.to_string());
            }
            number += 1;
        }
        lines.receive(|at_ns, line, bytes| state.arrived(at_ns, line, bytes))?;
        if is_asking && number == count {
            (state.result.cpu_ns, is_asking) = (thread_cpu_ns() - before_ns, false);
        }
        if !is_asking && (state.is_answered() || now_ns() > last_ns + limit_ns) {
            break;
        }
        let wait_ns = if is_asking { due_ns(number).saturating_sub(now_ns()) } else { ROUND_NS };
        lines.wait(Duration::from_nanos(wait_ns).min(LOOK))?;
    }
    Ok(state.result)
}

/// The state of [`load`]: the queries that were sent so far, and those that wait for an answer.
struct LoadState<'a> {
    mix: &'a QueryMix,
    /// For each connection, the queries that wait for an answer. The key is the query's id, and the value is the
    /// query's index in [`LoadResult::queries`].
    pending: Vec<HashMap<u16, usize>>,
    result: LoadResult,
    limit_ns: u64,
    chance: Xoshiro256PlusPlus,
    /// The encoded form of the next query to send.
    bytes: Vec<u8>,
}

impl LoadState<'_> {
    /// Records the query with index `number`, and writes its encoded form into `bytes`. `line` is the index of the
    /// connection that sends it. Fails if too many queries of that connection wait for an answer.
    fn add_query(&mut self, number: u64, line: usize, due_ns: u64, sent_ns: u64) -> io::Result<()> {
        let (pending, queries) = (&mut self.pending[line], &mut self.result.queries);
        // If every id were in use, the loop below would never find a free one.
        if pending.len() >= MOST_WAITING + SWEEP {
            pending.retain(|_, index| queries[*index].sent_ns + self.limit_ns >= sent_ns);
            if pending.len() > MOST_WAITING {
                return Err(io::Error::other(format!(
                    "more than {MOST_WAITING} queries of one connection are unanswered at once; use more \
                     connections or a shorter time limit"
                )));
            }
        }
        let id = loop {
            let id: u16 = self.chance.random();
            // An id is free if no waiting query has it, or if the time limit of the query that has it has passed.
            let before = pending.get(&id);
            if before.is_none_or(|index: &usize| queries[*index].sent_ns + self.limit_ns < sent_ns) {
                break id;
            }
        };
        pending.insert(id, queries.len());
        queries.push(LoadQuery { due_ns, sent_ns, answer: None });
        self.bytes.clone_from(&self.mix.0[number as usize % self.mix.0.len()]);
        self.bytes[..2].copy_from_slice(&id.to_be_bytes());
        Ok(())
    }

    fn arrived(&mut self, at_ns: u64, line: usize, bytes: &[u8]) {
        let id = bytes.first_chunk().map(|id| u16::from_be_bytes(*id));
        let found = id.and_then(|id| Some((id, *self.pending[line].get(&id)?)));
        // The queries of the mix are sent in order, so the index of a sent query determines its query in the mix.
        let answer = found.and_then(|(id, index)| Some((id, index, reply(bytes, self.question(index))?)));
        let Some((id, index, (code, is_truncated))) = answer else {
            self.result.strange += 1;
            return;
        };
        self.pending[line].remove(&id);
        let query = &mut self.result.queries[index];
        let took_ns = at_ns.max(query.sent_ns) - query.due_ns;
        if took_ns <= self.limit_ns {
            query.answer = Some(LoadReply { took_ns, code, is_truncated });
        }
    }

    fn question(&self, index: usize) -> &[u8] {
        &self.mix.0[index % self.mix.0.len()]
    }

    fn is_answered(&self) -> bool {
        self.pending.iter().all(HashMap::is_empty)
    }
}

/// Returns the response code of the answer in `bytes`, and `true` if the answer is truncated. `None` if `bytes` does
/// not answer the query `question`.
fn reply(bytes: &[u8], question: &[u8]) -> Option<(ResponseCode, bool)> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let code = ResponseCode::from(0, head[3] & 0xf);
    let is_same = match [head[4], head[5]] {
        [0, 1] => rest.get(..question.len() - HEAD_BYTES)?.eq_ignore_ascii_case(&question[HEAD_BYTES..]),
        // A server that cannot parse a query may leave the query out of its answer.
        [0, 0] => code != ResponseCode::NoError,
        _ => false,
    };
    let is_answer = head[2] & 0xf8 == 0x80;
    (is_answer && is_same).then_some((code, head[2] & 2 > 0))
}

/// The sockets of a load. Each TCP connection also has buffers for bytes that are still to be sent or parsed.
enum Connections {
    Udp { sockets: Vec<UdpSocket>, server: SocketAddr, inbox: Inbox },
    Tcp(Vec<Stream>),
}

struct Stream {
    socket: TcpStream,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

impl Connections {
    fn new(transport: LoadTransport) -> io::Result<Self> {
        Ok(match transport {
            LoadTransport::Udp(sockets, server) => {
                for socket in &sockets {
                    socket.set_nonblocking(true)?;
                    note_times(socket)?;
                }
                Self::Udp { sockets, server, inbox: Inbox::new(MOST_BYTES) }
            }
            LoadTransport::Tcp(sockets) => {
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

    /// Sends the bytes that wait to be sent. Calls `each` for every message that has arrived, with its arrival time,
    /// the index of its connection, and its bytes.
    fn receive(&mut self, mut each: impl FnMut(u64, usize, &[u8])) -> io::Result<()> {
        match self {
            Self::Udp { sockets, server, inbox } => {
                for line in ready(sockets, Duration::ZERO)? {
                    // An error is ignored: it reports that an earlier datagram was not delivered, and the query in that
                    // datagram counts as lost.
                    _ = inbox.receive(&sockets[line], |at_ns, from, bytes| {
                        // A datagram from another address does not count as an answer, whatever its content is.
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

    /// Waits for `time`. With TCP, returns earlier if bytes arrive. With UDP, always sleeps for the whole time: reading
    /// datagrams late does no harm, because the kernel records when each of them arrived.
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
            Ok(0) => Err(io::Error::new(ErrorKind::UnexpectedEof, "the server closed the connection")),
            Ok(count) => {
                self.incoming.extend_from_slice(&bytes[..count]);
                Ok(())
            }
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Calls `each` for every complete message in the received bytes, and removes these messages.
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
