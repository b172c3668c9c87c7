//! What is asked when, and what was answered.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::ResponseCode;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Answer, Question};

/// When each question is due. Each of several flows, which differ by the port that they come from, asks each server
/// once an interval; all that is due in an interval is spread evenly over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rhythm {
    /// How many servers are asked.
    pub servers: usize,
    /// How many ports they are asked from.
    pub flows: usize,
    /// How often each server is asked from each port.
    pub interval: Duration,
}

impl Rhythm {
    /// When the question of that number is due, since the first one.
    #[must_use]
    pub fn due_ns(&self, number: u64) -> u64 {
        let an_interval = (self.servers * self.flows).max(1) as u128;
        u64::try_from(u128::from(number) * self.interval.as_nanos() / an_interval).unwrap_or(u64::MAX)
    }

    /// The round of a question: in each, every server is asked once by every flow.
    #[must_use]
    pub fn round(&self, number: u64) -> u64 {
        number / (self.servers * self.flows).max(1) as u64
    }

    /// The server and the flow of a question.
    #[must_use]
    pub fn of(&self, number: u64) -> (usize, usize) {
        let (servers, flows) = (self.servers.max(1) as u64, self.flows.max(1) as u64);
        ((number % servers) as usize, (number / servers % flows) as usize)
    }
}

/// A question that was asked, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Whom.
    pub server: usize,
    /// By which flow.
    pub flow: usize,
    /// When.
    pub sent_ns: u64,
    /// Whether by a connection, for an answer to the same by a datagram was not whole.
    pub is_by_tcp: bool,
    /// The answer, where there was one in time: what is lost is not asked again.
    pub answer: Option<Answered>,
}

/// An answer that came in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// When.
    pub received_ns: u64,
    /// What it says.
    pub says: Says,
    /// The zone's serial number, where it was said.
    pub serial: Option<u32>,
    /// Who said so, an index into [`Probing::nsids`]; none also where too many had other names before.
    pub nsid: Option<usize>,
}

/// What an answer says of what is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// It is there.
    New,
    /// It is not there yet.
    Old,
    /// Nothing: the server failed, or does not want to.
    Failed(ResponseCode),
    /// Nothing: the zone is none of this server's.
    NotItsZone,
    /// Nothing: who answers asks others, and remembers what they said.
    Remembers,
    /// Nothing: not all of the answer is there.
    Truncated,
}

/// What a message says, its number aside.
#[derive(Clone)]
struct Read {
    says: Says,
    serial: Option<u32>,
    nsid: Option<usize>,
    words: Arc<str>,
}

/// How a server stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whether its latest answers are new, by each flow.
    pub is_new: bool,
    /// The latest of its answers that was not, in short, and since when that is so; none where there was none.
    pub other: Option<(Arc<str>, u64)>,
}

/// Servers say few things, again and again. Who says ever new ones is not to fill this memory.
const MOST_READ: usize = 1024;

/// Questions to servers, and their answers.
pub struct Probing {
    servers: Vec<SocketAddr>,
    question: Question,
    is_new: Box<dyn Fn(&Answer) -> bool + Send>,
    limit: Duration,
    asked: Vec<Asked>,
    pending: HashMap<(usize, u16), usize>,
    /// What was understood so far: that is not parsed again.
    read: HashMap<Vec<u8>, Read>,
    nsids: Vec<Vec<u8>>,
    strange: u64,
    late: u64,
    /// Of each server and flow: whether its latest answer was new.
    is_new_at: Vec<bool>,
    /// Of each server: its latest answer that was not, and since when.
    others: Vec<Option<(Arc<str>, u64)>>,
    /// By whom and by which flow what was not whole is to be asked for by a connection.
    again: Vec<(usize, usize)>,
    flows: usize,
    /// Of each server: in one of how many rounds it is asked.
    slowed: Vec<u64>,
    alias: Option<super::Name>,
    latest_old_ns: u64,
    chance: Xoshiro256PlusPlus,
}

impl Probing {
    /// Nothing has been asked yet. An answer that takes longer than the limit is lost. Of an answer that is as one
    /// before it is not asked again whether it `is_new`.
    #[must_use]
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
            asked: Vec::new(),
            pending: HashMap::new(),
            read: HashMap::new(),
            nsids: Vec::new(),
            strange: 0,
            late: 0,
            flows,
            alias: None,
            latest_old_ns: 0,
            chance: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// A server that has a limit is asked less often than the rhythm says: from each port in one of so many rounds.
    pub fn slow(&mut self, server: usize, times: u64) {
        self.slowed[server] = times.max(1);
    }

    /// Whether it is asked by that flow in that round; of one that is asked less often, ports take turns.
    #[must_use]
    pub fn asks(&self, server: usize, flow: usize, round: u64) -> bool {
        (round + flow as u64).is_multiple_of(self.slowed[server])
    }

    /// Asks: whom to send what. Its number can't be guessed by others.
    pub fn ask(&mut self, now_ns: u64, server: usize, flow: usize) -> (SocketAddr, &[u8]) {
        self.ask_by(now_ns, server, flow, false)
    }

    /// Asks again what was not answered as a whole, if there is such a thing: by which flow, and by a connection to
    /// whom what. Such an answer is not asked for a third time.
    pub fn ask_by_tcp(&mut self, now_ns: u64) -> Option<(usize, SocketAddr, Vec<u8>)> {
        let (server, flow) = self.again.pop()?;
        let (to, question) = self.ask_by(now_ns, server, flow, true);
        Some((flow, to, question.to_vec()))
    }

    fn ask_by(&mut self, now_ns: u64, server: usize, flow: usize, is_by_tcp: bool) -> (SocketAddr, &[u8]) {
        let number = loop {
            let number = self.chance.random();
            // One of that number may still be answered, unless that would be too late.
            let before = self.pending.get(&(flow, number));
            if before.is_none_or(|index| self.asked[*index].sent_ns + self.limit_ns() < now_ns) {
                break number;
            }
        };
        self.pending.insert((flow, number), self.asked.len());
        self.asked.push(Asked { server, flow, sent_ns: now_ns, is_by_tcp, answer: None });
        (self.servers[server], self.question.numbered(number))
    }

    /// How long an answer may take.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.limit
    }

    fn limit_ns(&self) -> u64 {
        self.limit.as_nanos() as u64
    }

    /// Something arrived at a flow's port. What has another number than what was asked, is from somewhere else, or no
    /// answer to the question, is strange: somebody may try to be believed.
    pub fn arrived(&mut self, now_ns: u64, flow: usize, from: SocketAddr, bytes: &[u8]) {
        let index = bytes.first_chunk().and_then(|number| {
            let number = u16::from_be_bytes(*number);
            let index = *self.pending.get(&(flow, number))?;
            (self.servers[self.asked[index].server] == from).then_some((number, index))
        });
        let Some(((number, index), Read { says, serial, nsid, words })) =
            index.and_then(|index| Some((index, self.read(bytes)?)))
        else {
            self.strange += 1;
            return;
        };
        self.pending.remove(&(flow, number));
        if now_ns > self.asked[index].sent_ns + self.limit_ns() {
            self.late += 1;
            return;
        }
        let asked = &mut self.asked[index];
        asked.answer = Some(Answered { received_ns: now_ns.max(asked.sent_ns), says, serial, nsid });
        if says == Says::Truncated && !asked.is_by_tcp {
            self.again.push((asked.server, flow));
            return;
        }
        self.is_new_at[asked.server * self.flows + flow] = says == Says::New;
        if says != Says::New {
            self.latest_old_ns = self.latest_old_ns.max(asked.sent_ns);
            let other = &mut self.others[asked.server];
            if other.as_ref().is_none_or(|(before, _)| *before != words) {
                *other = Some((words, asked.sent_ns));
            }
        }
    }

    /// What a message says that is an answer to the question.
    fn read(&mut self, bytes: &[u8]) -> Option<Read> {
        let content = bytes.get(2..)?;
        if let Some(read) = self.read.get(content) {
            return Some(read.clone());
        }
        let (_, answer) = self.question.answer(bytes)?;
        let says = self.says(&answer);
        let words = match says {
            Says::NotItsZone => "without authority for the zone".into(),
            _ => answer.words().into(),
        };
        let nsid = answer.nsid.and_then(|nsid| {
            let known = self.nsids.iter().position(|known| *known == nsid);
            let new = self.nsids.len();
            if known.is_none() && new < MOST_READ {
                self.nsids.push(nsid);
            }
            known.or((new < MOST_READ).then_some(new))
        });
        self.alias = answer.alias.or(self.alias.take());
        let read = Read { says, serial: answer.serial, nsid, words };
        if self.read.len() == MOST_READ {
            self.read.clear();
        }
        self.read.insert(content.to_vec(), read.clone());
        Some(read)
    }

    fn says(&self, answer: &Answer) -> Says {
        match answer.code {
            ResponseCode::NoError | ResponseCode::NXDomain => {}
            code => return Says::Failed(code),
        }
        match () {
            () if !answer.is_authoritative && answer.asks_others => Says::Remembers,
            () if !answer.is_authoritative => Says::NotItsZone,
            () if answer.is_truncated => Says::Truncated,
            () if (self.is_new)(answer) => Says::New,
            () => Says::Old,
        }
    }

    /// Whether there may still be answers in time.
    #[must_use]
    pub fn is_waiting(&self, now_ns: u64) -> bool {
        self.pending.values().any(|index| now_ns <= self.asked[*index].sent_ns + self.limit_ns())
    }

    /// All that was asked, in its order.
    #[must_use]
    pub fn asked(&self) -> &[Asked] {
        &self.asked
    }

    /// The same, where nothing else is wanted any more.
    #[must_use]
    pub fn into_asked(self) -> Vec<Asked> {
        self.asked
    }

    /// Who said who they are.
    #[must_use]
    pub fn nsids(&self) -> &[Vec<u8>] {
        &self.nsids
    }

    /// What the name is another name of, if somebody said so.
    #[must_use]
    pub fn alias(&self) -> Option<&super::Name> {
        self.alias.as_ref()
    }

    /// How many messages were no answers to what was asked.
    #[must_use]
    pub fn strange(&self) -> u64 {
        self.strange
    }

    /// How many answers came when they were lost already.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late
    }

    /// How each server stands.
    #[must_use]
    pub fn standing(&self) -> Vec<Standing> {
        let is_new = |server: usize| self.is_new_at[server * self.flows..][..self.flows].iter().all(|is_new| *is_new);
        let others = self.others.iter().enumerate();
        others.map(|(server, other)| Standing { is_new: is_new(server), other: other.clone() }).collect()
    }

    /// Since when nothing that was asked was answered with anything but what is new, where that is so for each server
    /// by each flow.
    #[must_use]
    pub fn is_new_since_ns(&self) -> Option<u64> {
        self.is_new_at.iter().all(|is_new| *is_new).then_some(self.latest_old_ns)
    }
}
