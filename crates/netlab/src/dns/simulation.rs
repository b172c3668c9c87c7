//! A zone with a primary server, and servers that have it some time later.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::opt::{EdnsOption, NSIDPayload};
use hickory_proto::rr::rdata::tsig::{TSIG, TsigError, make_tsig_record};
use hickory_proto::rr::{Name, RecordType, TSigResponseContext};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::key::is_of_our_time;
use super::message::UDP_BYTES;
use super::zone::reply;
use super::{Key, Zone};

/// How often a NOTIFY is repeated that was not answered, and no longer.
const MOST_NOTIFIES: u32 = 20;

/// How the zone is served.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The zone.
    pub origin: Name,
    /// What updates must be signed with; without, anybody may update.
    pub key: Option<Key>,
    /// Each server's replicas, which have one address: how long each takes from the NOTIFY until it has what is new.
    pub servers: Vec<Vec<Duration>>,
    /// By what part of it each delay may be shorter or longer, anew each time.
    pub jitter: f64,
    /// How a server's replicas share its questions.
    pub balance: Balance,
    /// Whether replicas say who they are.
    pub has_nsid: bool,
    /// How long the primary waits with its NOTIFY, as Knot does.
    pub notify_after: Duration,
    /// The share of NOTIFYs that are lost.
    pub notify_loss: f64,
    /// After how long one that was lost is sent again.
    pub notify_again: Duration,
    /// What the primary's clock shows at the simulation's beginning.
    pub unix_s: u64,
    /// What chance is drawn from.
    pub seed: u64,
}

/// How replicas behind one address share its questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// By where a question comes from, address and port: routers do so.
    ByFlow,
    /// Each by chance.
    ByPacket,
}

impl Plan {
    /// A zone `example.` whose servers are as told, that loses nothing and holds nothing back.
    #[must_use]
    pub fn new(servers: Vec<Vec<Duration>>) -> Self {
        Self {
            origin: Name::from_labels([b"example".as_slice()]).unwrap_or_else(|_| Name::root()),
            key: None,
            servers,
            jitter: 0.0,
            balance: Balance::ByFlow,
            has_nsid: false,
            notify_after: Duration::ZERO,
            notify_loss: 0.0,
            notify_again: Duration::from_secs(1),
            unix_s: 1_800_000_000,
            seed: 0,
        }
    }
}

/// Whom a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// The primary server, which takes updates and hands the zone on.
    Primary,
    /// One of the servers.
    Server(usize),
}

/// The truth: from when on a replica had a version of the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Had {
    /// Of which server.
    pub server: usize,
    /// Which of its replicas.
    pub replica: usize,
    /// The version.
    pub serial: u32,
    /// When, in nanoseconds of the caller's clock.
    pub at_ns: u64,
}

/// What happens at some moment.
enum Event {
    /// The primary tells a replica that there is something new.
    Notify { replica: usize, attempt: u32 },
    /// A replica asks the primary for it.
    Ask { replica: usize },
}

struct Replica {
    server: usize,
    number: usize,
    delay_ns: u64,
    zone: Zone,
}

/// A zone on its caller's clock, which is in nanoseconds and never goes back.
pub struct Simulation {
    plan: Plan,
    primary: Zone,
    replicas: Vec<Replica>,
    events: BTreeMap<(u64, u64), Event>,
    event_count: u64,
    truth: Vec<Had>,
    chance: Xoshiro256PlusPlus,
    start_ns: u64,
    now_ns: u64,
}

impl Simulation {
    /// A zone that all servers have.
    #[must_use]
    pub fn new(plan: Plan, now_ns: u64) -> Self {
        let name_of = |number: usize| {
            let label = format!("ns{number}");
            plan.origin.prepend_label(label.as_bytes()).unwrap_or_else(|_| plan.origin.clone())
        };
        let names: Vec<Name> = (0..plan.servers.len()).map(name_of).collect();
        let primary = Zone::new(plan.origin.clone(), &names);
        let of_server = |(server, delays): (usize, &Vec<Duration>)| {
            let zone = primary.clone();
            let replica = move |(number, delay): (usize, Duration)| {
                let delay_ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
                Replica { server, number, delay_ns, zone: zone.clone() }
            };
            delays.clone().into_iter().enumerate().map(replica)
        };
        let replicas = plan.servers.iter().enumerate().flat_map(of_server).collect();
        let chance = Xoshiro256PlusPlus::seed_from_u64(plan.seed);
        let (events, truth) = (BTreeMap::new(), Vec::new());
        Self { plan, primary, replicas, events, event_count: 0, truth, chance, start_ns: now_ns, now_ns }
    }

    /// From when on which replica had which version: all but the first.
    #[must_use]
    pub fn truth(&self) -> &[Had] {
        &self.truth
    }

    /// A message arrives: the answer to it, if it deserves one. What happened in the zone before that moment has then
    /// happened, whenever the caller comes.
    pub fn request(&mut self, now_ns: u64, to: To, from: SocketAddr, bytes: &[u8]) -> Option<Vec<u8>> {
        self.advance(now_ns);
        let Ok(message) = Message::from_vec(bytes) else { return not_understood(bytes) };
        if message.message_type != MessageType::Query {
            return None;
        }
        let answer = match (to, message.op_code) {
            (To::Primary, OpCode::Update) => return self.update(&message, bytes),
            (To::Primary, OpCode::Query) if is_transfer(&message) => self.primary.transfer(&message),
            (To::Primary, OpCode::Query) => self.primary.answer(&message),
            (To::Server(server), OpCode::Query) => self.answer(server, from, &message)?,
            _ => refusal(&message, ResponseCode::NotImp),
        };
        answer.to_vec().ok()
    }

    /// Lets happen what happens until then.
    pub fn advance(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= self.now_ns) {
            let ((at_ns, _), event) = entry.remove_entry();
            match event {
                Event::Notify { replica, attempt } => self.notify(at_ns, replica, attempt),
                Event::Ask { replica } => self.ask(at_ns, replica),
            }
        }
    }

    fn schedule(&mut self, at_ns: u64, event: Event) {
        self.event_count += 1;
        self.events.insert((at_ns, self.event_count), event);
    }

    fn notify(&mut self, at_ns: u64, replica: usize, attempt: u32) {
        if self.chance.random_bool(self.plan.notify_loss) {
            if attempt < MOST_NOTIFIES {
                let again_ns = at_ns.saturating_add(nanoseconds(self.plan.notify_again));
                self.schedule(again_ns, Event::Notify { replica, attempt: attempt + 1 });
            }
            return;
        }
        let factor = 1.0 + self.plan.jitter * self.chance.random_range(-1.0..1.0);
        let delay_ns = (self.replicas[replica].delay_ns as f64 * factor.max(0.0)) as u64;
        self.schedule(at_ns.saturating_add(delay_ns), Event::Ask { replica });
    }

    fn ask(&mut self, at_ns: u64, replica: usize) {
        let Replica { server, number, zone, .. } = &mut self.replicas[replica];
        let before = zone.serial();
        // As bytes, so that what is written is also read.
        let sent = |message: Message| message.to_vec().ok().and_then(|bytes| Message::from_vec(&bytes).ok());
        let transfer = sent(zone.asks(0)).and_then(|question| sent(self.primary.transfer(&question)));
        if transfer.is_some_and(|transfer| zone.take(&transfer).is_ok()) && zone.serial() > before {
            self.truth.push(Had { server: *server, replica: *number, serial: zone.serial(), at_ns });
        }
    }

    /// What a server says, by one of its replicas.
    fn answer(&mut self, server: usize, from: SocketAddr, message: &Message) -> Option<Message> {
        let count = self.plan.servers.get(server).map(Vec::len).filter(|count| *count > 0)?;
        let number = match self.plan.balance {
            Balance::ByFlow => flow_hash(from, server as u64) as usize % count,
            Balance::ByPacket => self.chance.random_range(0..count),
        };
        let replica = self.replicas.iter().find(|replica| replica.server == server && replica.number == number)?;
        let mut answer =
            if is_transfer(message) { refusal(message, ResponseCode::Refused) } else { replica.zone.answer(message) };
        if message.edns.is_some() {
            let mut edns = Edns::new();
            edns.set_max_payload(UDP_BYTES);
            if self.plan.has_nsid {
                let nsid = NSIDPayload::new(format!("s{server}r{number}")).ok()?;
                edns.options_mut().insert(EdnsOption::NSID(nsid));
            }
            answer.set_edns(edns);
        }
        Some(answer)
    }

    /// Takes an update, if its signature is as it should be (RFC 8945, 5.2).
    fn update(&mut self, message: &Message, bytes: &[u8]) -> Option<Vec<u8>> {
        let now_s = self.plan.unix_s + (self.now_ns - self.start_ns) / 1_000_000_000;
        let Some(key) = self.plan.key.clone() else {
            return self.change(message).to_vec().ok();
        };
        let Some(tsig) = &message.signature else {
            return refusal(message, ResponseCode::Refused).to_vec().ok();
        };
        let signed = |mut answer: Message, context: TSigResponseContext| {
            let signature = context.sign(&answer.to_vec().ok()?).ok()?;
            answer.set_signature(signature);
            answer.to_vec().ok()
        };
        let no = || refusal(message, ResponseCode::NotAuth);
        if &tsig.name != key.name() || &tsig.data.algorithm != key.0.algorithm() {
            return signed(no(), TSigResponseContext::unknown_key(message.id, now_s, tsig.name.clone()));
        }
        let verified = is_of_our_time(&tsig.data).then(|| key.0.verify_message_byte(bytes, None, true).ok());
        let Some((mac, time_s, _)) = verified.flatten() else {
            return signed(no(), TSigResponseContext::bad_signature(message.id, now_s, key.0));
        };
        if time_s.abs_diff(now_s) > tsig.data.fudge.into() {
            return bad_time(no(), &key, &tsig.data, &mac, now_s);
        }
        let answer = self.change(message);
        signed(answer, TSigResponseContext::new(message.id, now_s, key.0, mac, None))
    }

    fn change(&mut self, message: &Message) -> Message {
        let before = self.primary.serial();
        let mut answer = reply(message);
        answer.metadata.response_code = self.primary.update(message);
        if self.primary.serial() > before {
            let at_ns = self.now_ns.saturating_add(nanoseconds(self.plan.notify_after));
            for replica in 0..self.replicas.len() {
                self.schedule(at_ns, Event::Notify { replica, attempt: 1 });
            }
        }
        answer
    }
}

/// With the time of who asks, or it would not take the answer; what the clock here shows is beside it.
fn bad_time(mut answer: Message, key: &Key, asked: &TSIG, mac: &[u8], now_s: u64) -> Option<Vec<u8>> {
    let (algorithm, now) = (asked.algorithm.clone(), now_s.to_be_bytes()[2..].to_vec());
    let error = Some(TsigError::BadTime);
    let unsigned = TSIG::new(algorithm, asked.time, asked.fudge, Vec::new(), answer.id, error, now);
    let to_sign = key.0.encode_response_tbs(mac, &answer.to_vec().ok()?, &unsigned).ok()?;
    let signed = unsigned.set_mac(key.0.sign(&to_sign).ok()?);
    answer.set_signature(Box::new(make_tsig_record(key.name().clone(), signed)));
    answer.to_vec().ok()
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn is_transfer(message: &Message) -> bool {
    let is_one = |query: &Query| [RecordType::AXFR, RecordType::IXFR].contains(&query.query_type());
    message.queries.first().is_some_and(is_one)
}

fn refusal(message: &Message, code: ResponseCode) -> Message {
    let mut answer = reply(message);
    answer.metadata.response_code = code;
    answer
}

/// What can't be read is told so, where it has a number at least, and is no answer itself.
fn not_understood(bytes: &[u8]) -> Option<Vec<u8>> {
    let number = bytes.get(..12).filter(|head| head[2] & 0x80 == 0)?;
    let message = Message::error_msg(u16::from_be_bytes([number[0], number[1]]), OpCode::Query, ResponseCode::FormErr);
    message.to_vec().ok()
}

/// Spreads flows over replicas (SplitMix64's last step).
fn flow_hash(from: SocketAddr, server: u64) -> u64 {
    let address = match from.ip() {
        std::net::IpAddr::V4(ip) => u64::from(u32::from(ip)),
        std::net::IpAddr::V6(ip) => u128::from(ip) as u64,
    };
    let mut hash = address << 24 ^ u64::from(from.port()) << 8 ^ server;
    for constant in [0xbf58_476d_1ce4_e5b9_u64, 0x94d0_49bb_1331_11eb] {
        hash = (hash ^ hash >> 30).wrapping_mul(constant);
    }
    hash ^ hash >> 31
}
