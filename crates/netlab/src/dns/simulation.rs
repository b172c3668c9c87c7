//! Simulates a zone: a primary server, and servers that receive the primary's changes some time later.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::time::Duration;

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::opt::{EdnsOption, NSIDPayload};
use hickory_proto::rr::rdata::tsig::{TSIG, TsigError, make_tsig_record};
use hickory_proto::rr::{Name, RecordType, TSigResponseContext};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::message::UDP_BYTES;
use super::update::is_of_our_time;
use super::zone::reply;
use super::{Key, Zone};

/// Maximum number of times that the primary notifies a replica of one change.
const MOST_NOTIFIES: u32 = 20;

/// The settings of a simulated zone and its servers.
#[derive(Clone, Debug)]
pub struct SimulationSpec {
    /// Name of the zone.
    pub origin: Name,
    /// The key with which updates must be signed. With `None`, everybody may update the zone.
    pub key: Option<Key>,
    /// For each server, the delays of its replicas, which share the server's address. A delay is the time from the
    /// NOTIFY until the replica has the new version of the zone.
    pub servers: Vec<Vec<Duration>>,
    /// Largest share by which a delay in `servers` is shortened or lengthened at random (jitter), for example 0.1. Each
    /// transfer has its own random delay.
    pub jitter: f64,
    /// The way in which the queries to a server are divided among its replicas.
    pub balance: Balance,
    /// `true` if replicas send their identity (NSID).
    pub has_nsid: bool,
    /// Time from a change of the zone until the primary sends a NOTIFY. The name server Knot also waits before it sends
    /// a NOTIFY.
    pub notify_after: Duration,
    /// Share of NOTIFYs that are lost, from 0 to 1.
    pub notify_loss: f64,
    /// Time after which the primary repeats a lost NOTIFY.
    pub notify_again: Duration,
    /// Time on the primary's clock when the simulation begins, in seconds since 1970.
    pub unix_s: u64,
    /// Seed of the random numbers, for example for the jitter and for lost NOTIFYs.
    pub seed: u64,
}

/// The way in which the queries to a server are divided among its replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// The replica depends on the source address and port of the query, as with routers that balance load.
    ByFlow,
    /// Each query goes to a random replica.
    ByPacket,
}

impl SimulationSpec {
    /// Creates the settings of a zone `example.`, without a key, jitter or losses. `servers` has the delays of each
    /// server's replicas.
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

/// The simulated server that receives a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// The primary server receives the message. It accepts updates and zone transfers.
    Primary,
    /// The server with this index receives the message.
    Server(usize),
}

/// The arrival of a new version of the zone at a replica (one of the machines behind a server's address). The time is
/// exact, so that measured times can be compared with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaUpdate {
    /// Index of the server.
    pub server: usize,
    /// Index of the replica among the replicas of its server.
    pub replica: usize,
    /// Serial number of the new version.
    pub serial: u32,
    /// Time at which the replica received the new version, in nanoseconds of the caller's clock.
    pub at_ns: u64,
}

/// A future event of the simulation, by which a change spreads from the primary to a replica.
enum Event {
    /// The primary notifies a replica of a new version.
    Notify { replica: usize, attempt: u32 },
    /// A replica requests a zone transfer from the primary.
    Transfer { replica: usize },
}

struct Replica {
    server: usize,
    number: usize,
    delay_ns: u64,
    zone: Zone,
}

/// A simulated zone. It runs on its caller's clock, which counts nanoseconds and never goes back.
pub struct Simulation {
    spec: SimulationSpec,
    primary: Zone,
    replicas: Vec<Replica>,
    events: BTreeMap<(u64, u64), Event>,
    event_count: u64,
    truth: Vec<ReplicaUpdate>,
    chance: Xoshiro256PlusPlus,
    start_ns: u64,
    now_ns: u64,
}

impl Simulation {
    /// Creates a simulation in which all servers have the first version of the zone.
    pub fn new(spec: SimulationSpec, now_ns: u64) -> Self {
        let name_of = |number: usize| {
            let label = format!("ns{number}");
            spec.origin.prepend_label(label.as_bytes()).unwrap_or_else(|_| spec.origin.clone())
        };
        let names: Vec<Name> = (0..spec.servers.len()).map(name_of).collect();
        let primary = Zone::new(spec.origin.clone(), &names);
        let of_server = |(server, delays): (usize, &Vec<Duration>)| {
            let zone = primary.clone();
            let replica = move |(number, delay): (usize, Duration)| Replica {
                server,
                number,
                delay_ns: nanoseconds(delay),
                zone: zone.clone(),
            };
            delays.clone().into_iter().enumerate().map(replica)
        };
        let replicas = spec.servers.iter().enumerate().flat_map(of_server).collect();
        let chance = Xoshiro256PlusPlus::seed_from_u64(spec.seed);
        let (events, truth) = (BTreeMap::new(), Vec::new());
        Self { spec, primary, replicas, events, event_count: 0, truth, chance, start_ns: now_ns, now_ns }
    }

    /// Returns when each version of the zone arrived at each replica so far. The first version is not listed.
    pub fn truth(&self) -> &[ReplicaUpdate] {
        &self.truth
    }

    /// Handles a message, and returns the answer, if there is one. The events that were due before the message are
    /// handled first.
    pub fn request(&mut self, now_ns: u64, to: Recipient, from: SocketAddr, bytes: &[u8]) -> Option<Vec<u8>> {
        self.advance(now_ns);
        let Ok(message) = Message::from_vec(bytes) else { return not_understood(bytes) };
        if message.message_type != MessageType::Query {
            return None;
        }
        let answer = match (to, message.op_code) {
            (Recipient::Primary, OpCode::Update) => return self.update(&message, bytes),
            (Recipient::Primary, OpCode::Query) if is_transfer(&message) => self.primary.transfer(&message),
            (Recipient::Primary, OpCode::Query) => self.primary.answer(&message),
            (Recipient::Server(server), OpCode::Query) => self.answer(server, from, &message)?,
            _ => reply(&message, ResponseCode::NotImp),
        };
        answer.to_vec().ok()
    }

    /// Handles all events that are due at or before this time.
    pub fn advance(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= self.now_ns) {
            let ((at_ns, _), event) = entry.remove_entry();
            match event {
                Event::Notify { replica, attempt } => self.notify(at_ns, replica, attempt),
                Event::Transfer { replica } => self.transfer_zone(at_ns, replica),
            }
        }
    }

    fn schedule(&mut self, at_ns: u64, event: Event) {
        self.event_count += 1;
        self.events.insert((at_ns, self.event_count), event);
    }

    fn notify(&mut self, at_ns: u64, replica: usize, attempt: u32) {
        if self.chance.random_bool(self.spec.notify_loss) {
            if attempt < MOST_NOTIFIES {
                let again_ns = at_ns.saturating_add(nanoseconds(self.spec.notify_again));
                self.schedule(again_ns, Event::Notify { replica, attempt: attempt + 1 });
            }
            return;
        }
        let factor = 1.0 + self.spec.jitter * self.chance.random_range(-1.0..1.0);
        let delay_ns = (self.replicas[replica].delay_ns as f64 * factor.max(0.0)) as u64;
        self.schedule(at_ns.saturating_add(delay_ns), Event::Transfer { replica });
    }

    fn transfer_zone(&mut self, at_ns: u64, replica: usize) {
        let Replica { server, number, zone, .. } = &mut self.replicas[replica];
        let before = zone.serial();
        // Each message is encoded and parsed again, to test that the encoder and the parser agree.
        let sent = |message: Message| message.to_vec().ok().and_then(|bytes| Message::from_vec(&bytes).ok());
        let transfer = sent(zone.transfer_request(0)).and_then(|question| sent(self.primary.transfer(&question)));
        if transfer.is_some_and(|transfer| zone.take(&transfer).is_ok()) && zone.serial() > before {
            self.truth.push(ReplicaUpdate { server: *server, replica: *number, serial: zone.serial(), at_ns });
        }
    }

    /// Chooses one of the server's replicas according to [`Balance`], and returns the answer of this replica. `None` if
    /// the server has no replica.
    fn answer(&mut self, server: usize, from: SocketAddr, message: &Message) -> Option<Message> {
        let count = self.spec.servers.get(server).map(Vec::len).filter(|count| *count > 0)?;
        let number = match self.spec.balance {
            Balance::ByFlow => flow_hash(from, server) as usize % count,
            Balance::ByPacket => self.chance.random_range(0..count),
        };
        let replica = self.replicas.iter().find(|replica| replica.server == server && replica.number == number)?;
        let mut answer =
            if is_transfer(message) { reply(message, ResponseCode::Refused) } else { replica.zone.answer(message) };
        if message.edns.is_some() {
            let mut edns = Edns::new();
            edns.set_max_payload(UDP_BYTES);
            if self.spec.has_nsid {
                let nsid = NSIDPayload::new(format!("s{server}r{number}")).ok()?;
                edns.options_mut().insert(EdnsOption::NSID(nsid));
            }
            answer.set_edns(edns);
        }
        Some(answer)
    }

    /// Applies an update if its signature is valid (RFC 8945, section 5.2) or the zone has no key. Returns the answer.
    fn update(&mut self, message: &Message, bytes: &[u8]) -> Option<Vec<u8>> {
        let now_s = self.spec.unix_s + (self.now_ns - self.start_ns) / 1_000_000_000;
        let Some(key) = self.spec.key.clone() else {
            return self.change(message).to_vec().ok();
        };
        let Some(tsig) = &message.signature else {
            return reply(message, ResponseCode::Refused).to_vec().ok();
        };
        let signed = |mut answer: Message, context: TSigResponseContext| {
            let signature = context.sign(&answer.to_vec().ok()?).ok()?;
            answer.set_signature(signature);
            answer.to_vec().ok()
        };
        let no = || reply(message, ResponseCode::NotAuth);
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
        let answer = reply(message, self.primary.update(message));
        if self.primary.serial() > before {
            let at_ns = self.now_ns.saturating_add(nanoseconds(self.spec.notify_after));
            for replica in 0..self.replicas.len() {
                self.schedule(at_ns, Event::Notify { replica, attempt: 1 });
            }
        }
        answer
    }
}

/// Returns an answer with the error BADTIME, which means that the clocks differ. The signature states the client's
/// time, because the client would reject a signature with any other time. A separate field has the server's time,
/// `now_s`.
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

/// Returns an answer to bytes that could not be parsed, with the error FORMERR. `None` if the bytes have no header, or
/// are an answer and not a query.
fn not_understood(bytes: &[u8]) -> Option<Vec<u8>> {
    let number = bytes.get(..12).filter(|head| head[2] & 0x80 == 0)?;
    let message = Message::error_msg(u16::from_be_bytes([number[0], number[1]]), OpCode::Query, ResponseCode::FormErr);
    message.to_vec().ok()
}

/// Returns a hash of a client's address and port and of the server's index. The hash determines which replica answers
/// the client.
fn flow_hash(from: SocketAddr, server: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    (from, server).hash(&mut hasher);
    hasher.finish()
}
