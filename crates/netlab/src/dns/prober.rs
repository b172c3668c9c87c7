//! The schedule of DNS queries to servers, and the servers' answers.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::ResponseCode;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Answer, Question};

/// The schedule of the queries of a [`Prober`]. Each flow, which has its own source port, queries each server once per
/// interval. The queries of an interval are spread evenly over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rhythm {
    /// Number of servers that are queried.
    pub servers: usize,
    /// Number of flows, each with its own source port.
    pub flows: usize,
    /// Time between two queries of the same flow to the same server.
    pub interval: Duration,
}

impl Rhythm {
    /// Returns the time at which the query with this index is due, in nanoseconds after the first query.
    pub fn due_ns(&self, number: u64) -> u64 {
        let an_interval = (self.servers * self.flows).max(1) as u128;
        u64::try_from(u128::from(number) * self.interval.as_nanos() / an_interval).unwrap_or(u64::MAX)
    }

    /// Returns the index of the round to which a query belongs. In each round, every flow queries every server once.
    pub fn round(&self, number: u64) -> u64 {
        number / (self.servers * self.flows).max(1) as u64
    }

    /// Returns the index of the server and the index of the flow for the query with index `number`.
    pub fn server_and_flow(&self, number: u64) -> (usize, usize) {
        let (servers, flows) = (self.servers.max(1) as u64, self.flows.max(1) as u64);
        ((number % servers) as usize, (number / servers % flows) as usize)
    }
}

/// A query that a [`Prober`] sent, and its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// Index of the queried server.
    pub server: usize,
    /// Index of the flow that sent the query.
    pub flow: usize,
    /// Time at which the query was sent, on the caller's clock.
    pub sent_ns: u64,
    /// `true` if the query was sent over TCP because the answer over UDP was truncated.
    pub is_by_tcp: bool,
    /// The answer; `None` if no answer arrived within the time limit.
    pub answer: Option<ProbeAnswer>,
}

/// An answer that arrived within the time limit of its query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeAnswer {
    /// Time at which the answer arrived, on the caller's clock.
    pub received_ns: u64,
    /// State of the change that the prober waits for, according to this answer: made, not made yet, or unknown.
    pub state: AnswerState,
    /// Serial number in the zone's SOA record; `None` if the answer has no SOA record.
    pub serial: Option<u32>,
    /// Identity of the server, as an index into [`ProbeLog::nsids`]. `None` if the answer does not state an identity,
    /// or if the list was full.
    pub nsid: Option<usize>,
}

/// The state of a change to the zone at one server, according to one of the server's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerState {
    /// The answer shows the change to the zone.
    New,
    /// The answer does not show the change to the zone yet.
    Old,
    /// The state is unknown, because the server failed or refused. Contains the response code.
    Failed(ResponseCode),
    /// The state is unknown, because the server is not authoritative for the zone.
    NotItsZone,
    /// The state is unknown, because the server is a resolver, whose answer may come from a cache.
    Remembers,
    /// The state is unknown, because the answer is truncated.
    Truncated,
}

/// The parsed form of an answer, without its id. Answers that differ only in their id have the same parsed form, so
/// only the first of them is parsed.
#[derive(Clone)]
struct ParsedAnswer {
    state: AnswerState,
    serial: Option<u32>,
    nsid: Option<usize>,
    words: Arc<str>,
}

/// The state of a change to the zone at one server, according to the server's latest answer to each flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerState {
    /// `true` if, for each flow, the server's latest answer shows the change to the zone.
    pub is_new: bool,
    /// The server's latest answer without the change, as a text and a time. The time is when the query for that answer
    /// was sent, on the caller's clock in nanoseconds. If the server repeats the same answer, the time of the first
    /// such query is kept. `None` if every answer showed the change.
    pub other: Option<(Arc<str>, u64)>,
}

/// Maximum number of different answers that are kept in parsed form, and of identities in [`ProbeLog::nsids`]. Most
/// servers repeat a few answers. The limit protects against a server that keeps sending new ones.
const MOST_PARSED: usize = 1024;

/// The queries that a [`Prober`] sent so far, and their answers.
#[derive(Clone, Debug, Default)]
pub struct ProbeLog {
    /// The queries, in the order in which they were sent.
    pub probes: Vec<Probe>,
    /// The identities that servers reported (NSID), each once.
    pub nsids: Vec<Vec<u8>>,
    /// The target of a CNAME record, if the queried name is an alias; `None` if no answer had such a record.
    pub alias: Option<super::Name>,
    /// Number of received messages that were not an answer to one of the queries.
    pub strange: u64,
    /// Number of answers that arrived after the time limit of their query.
    pub late: u64,
}

/// Decides which query is sent to which server, and keeps the servers' answers. The caller does the sending and
/// receiving.
pub struct Prober {
    /// The queries that were sent so far, and their answers.
    pub log: ProbeLog,
    servers: Vec<SocketAddr>,
    question: Question,
    is_new: Box<dyn Fn(&Answer) -> bool + Send>,
    limit: Duration,
    pending: HashMap<(usize, u16), usize>,
    /// The parsed forms of the answers so far. The key is the answer's bytes without the id, so that a repeated answer
    /// is parsed only once.
    parsed: HashMap<Vec<u8>, ParsedAnswer>,
    /// For each server and flow: `true` if the latest answer showed the change to the zone.
    is_new_at: Vec<bool>,
    /// For each server, the value of [`ServerState::other`].
    others: Vec<Option<(Arc<str>, u64)>>,
    /// Servers and flows of queries whose answers were truncated. These queries are still to be sent again over TCP.
    again: Vec<(usize, usize)>,
    flows: usize,
    /// For each server, a number N: each flow queries the server only in every N-th round. N is 1 for a server that is
    /// not slowed down.
    slowed: Vec<u64>,
    latest_old_ns: u64,
    chance: Xoshiro256PlusPlus,
}

impl Prober {
    /// Creates a prober that has sent nothing yet. An answer that takes longer than `limit` counts as lost. `is_new`
    /// returns whether an answer shows the awaited change; a repeated answer is not passed to it again. `seed`
    /// determines the ids of the queries.
    pub fn new(
        servers: Vec<SocketAddr>,
        flows: usize,
        question: Question,
        is_new: impl Fn(&Answer) -> bool + Send + 'static,
        limit: Duration,
        seed: u64,
    ) -> Self {
        Self {
            is_new_at: vec![false; servers.len() * flows],
            others: vec![None; servers.len()],
            slowed: vec![1; servers.len()],
            again: Vec::new(),
            servers,
            question,
            is_new: Box::new(is_new),
            limit,
            log: ProbeLog::default(),
            pending: HashMap::new(),
            parsed: HashMap::new(),
            flows,
            latest_old_ns: 0,
            chance: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// Slows down the queries to the server with index `server`, because it has a rate limit. Each flow then queries
    /// the server only in one of `times` rounds.
    pub fn slow(&mut self, server: usize, times: u64) {
        self.slowed[server] = times.max(1);
    }

    /// Returns whether a flow queries a server in this round. If the server is slowed down, the flows take turns, so
    /// that only some of them query the server in each round.
    pub fn is_due(&self, server: usize, flow: usize, round: u64) -> bool {
        (round + flow as u64).is_multiple_of(self.slowed[server])
    }

    /// Records a query, and returns the server's address and the encoded query. The id is random, so that an attacker
    /// cannot guess it and forge an answer.
    pub fn query(&mut self, now_ns: u64, server: usize, flow: usize) -> (SocketAddr, &[u8]) {
        self.query_by(now_ns, server, flow, false)
    }

    /// Takes a query whose answer was truncated, and records that it is sent again over TCP. Returns the flow, the
    /// server's address and the encoded query; `None` if no such query is left. An answer over TCP is final, even if it
    /// is truncated.
    pub fn query_by_tcp(&mut self, now_ns: u64) -> Option<(usize, SocketAddr, Vec<u8>)> {
        let (server, flow) = self.again.pop()?;
        let (to, question) = self.query_by(now_ns, server, flow, true);
        Some((flow, to, question.to_vec()))
    }

    fn query_by(&mut self, now_ns: u64, server: usize, flow: usize, is_by_tcp: bool) -> (SocketAddr, &[u8]) {
        let number = loop {
            let number = self.chance.random();
            // An id is free if no waiting query has it, or if the time limit of the query that has it has passed.
            let before = self.pending.get(&(flow, number));
            if before.is_none_or(|index| self.log.probes[*index].sent_ns + self.limit_ns() < now_ns) {
                break number;
            }
        };
        self.pending.insert((flow, number), self.log.probes.len());
        self.log.probes.push(Probe { server, flow, sent_ns: now_ns, is_by_tcp, answer: None });
        (self.servers[server], self.question.numbered(number))
    }

    /// Returns the time within which an answer must arrive. A later answer counts as lost.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    fn limit_ns(&self) -> u64 {
        self.limit.as_nanos() as u64
    }

    /// Handles a message that arrived at a flow's port. The message counts as strange if its id or its sender's address
    /// is wrong, or if it does not answer the query. Such a message may be forged.
    pub fn arrived(&mut self, now_ns: u64, flow: usize, from: SocketAddr, bytes: &[u8]) {
        let index = bytes.first_chunk().and_then(|number| {
            let number = u16::from_be_bytes(*number);
            let index = *self.pending.get(&(flow, number))?;
            (self.servers[self.log.probes[index].server] == from).then_some((number, index))
        });
        let Some(((number, index), ParsedAnswer { state, serial, nsid, words })) =
            index.and_then(|index| Some((index, self.parse(bytes)?)))
        else {
            self.log.strange += 1;
            return;
        };
        self.pending.remove(&(flow, number));
        if now_ns > self.log.probes[index].sent_ns + self.limit_ns() {
            self.log.late += 1;
            return;
        }
        let probe = &mut self.log.probes[index];
        probe.answer = Some(ProbeAnswer { received_ns: now_ns.max(probe.sent_ns), state, serial, nsid });
        if state == AnswerState::Truncated && !probe.is_by_tcp {
            self.again.push((probe.server, flow));
            return;
        }
        self.is_new_at[probe.server * self.flows + flow] = state == AnswerState::New;
        if state != AnswerState::New {
            self.latest_old_ns = self.latest_old_ns.max(probe.sent_ns);
            let other = &mut self.others[probe.server];
            if other.as_ref().is_none_or(|(before, _)| *before != words) {
                *other = Some((words, probe.sent_ns));
            }
        }
    }

    /// Returns the parsed form of a message. A message that equals an earlier one except for its id is not parsed
    /// again. `None` if the message does not answer the query.
    fn parse(&mut self, bytes: &[u8]) -> Option<ParsedAnswer> {
        let content = bytes.get(2..)?;
        if let Some(parsed) = self.parsed.get(content) {
            return Some(parsed.clone());
        }
        let (_, answer) = self.question.answer(bytes)?;
        let state = self.state_of(&answer);
        let words = match state {
            AnswerState::NotItsZone => "not authoritative for the zone".into(),
            _ => answer.words().into(),
        };
        let nsid = answer.nsid.and_then(|nsid| {
            let known = self.log.nsids.iter().position(|known| *known == nsid);
            let new = self.log.nsids.len();
            if known.is_none() && new < MOST_PARSED {
                self.log.nsids.push(nsid);
            }
            known.or((new < MOST_PARSED).then_some(new))
        });
        self.log.alias = answer.alias.or(self.log.alias.take());
        let parsed = ParsedAnswer { state, serial: answer.serial, nsid, words };
        if self.parsed.len() == MOST_PARSED {
            self.parsed.clear();
        }
        self.parsed.insert(content.to_vec(), parsed.clone());
        Some(parsed)
    }

    fn state_of(&self, answer: &Answer) -> AnswerState {
        match answer.code {
            ResponseCode::NoError | ResponseCode::NXDomain => {}
            code => return AnswerState::Failed(code),
        }
        match () {
            () if !answer.is_authoritative && answer.asks_others => AnswerState::Remembers,
            () if !answer.is_authoritative => AnswerState::NotItsZone,
            () if answer.is_truncated => AnswerState::Truncated,
            () if (self.is_new)(answer) => AnswerState::New,
            () => AnswerState::Old,
        }
    }

    /// Returns whether an answer to some query may still arrive within the time limit.
    pub fn is_waiting(&self, now_ns: u64) -> bool {
        self.pending.values().any(|index| now_ns <= self.log.probes[*index].sent_ns + self.limit_ns())
    }

    /// Returns the state of the change to the zone at each server.
    pub fn standing(&self) -> Vec<ServerState> {
        let is_new = |server: usize| self.is_new_at[server * self.flows..][..self.flows].iter().all(|is_new| *is_new);
        let others = self.others.iter().enumerate();
        others.map(|(server, other)| ServerState { is_new: is_new(server), other: other.clone() }).collect()
    }

    /// Returns the time since when all answers have shown the change to the zone. This is the time at which the last
    /// query with another answer was sent. The time is 0 if every answer showed the change. Returns `None` if a
    /// server's latest answer to one of the flows does not show the change.
    pub fn is_new_since_ns(&self) -> Option<u64> {
        self.is_new_at.iter().all(|is_new| *is_new).then_some(self.latest_old_ns)
    }
}
