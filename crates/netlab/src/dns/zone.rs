//! What one server knows of a zone.

use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{NS, SOA};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};

use crate::Error;

const TTL_S: u32 = 60;

/// A zone at one server: it answers, takes changes, and hands on what has changed since. There are no wildcards in it,
/// no other zones below it, and one class.
#[derive(Clone, Debug)]
pub struct Zone {
    origin: Name,
    serial: u32,
    records: Vec<Record>,
    changes: Vec<Changed>,
}

/// What made one serial number the next one.
#[derive(Clone, Debug, Default)]
struct Changed {
    removed: Vec<Record>,
    added: Vec<Record>,
}

impl Zone {
    /// A zone with these servers, and nothing else in it.
    #[must_use]
    pub fn new(origin: Name, servers: &[Name]) -> Self {
        let of_server = |server: &Name| Record::from_rdata(origin.clone(), TTL_S, RData::NS(NS(server.clone())));
        Self { records: servers.iter().map(of_server).collect(), serial: 1, changes: Vec::new(), origin }
    }

    /// How often it was changed.
    #[must_use]
    pub fn serial(&self) -> u32 {
        self.serial
    }

    /// Its start of authority with a serial number.
    fn soa(&self, serial: u32) -> Record {
        let server = self.records.iter().find_map(|record| match &record.data {
            RData::NS(server) => Some(server.0.clone()),
            _ => None,
        });
        let (server, owner) = (server.unwrap_or_else(|| self.origin.clone()), self.origin.clone());
        Record::from_rdata(self.origin.clone(), TTL_S, RData::SOA(SOA::new(server, owner, serial, 3600, 600, 86400, 1)))
    }

    /// The answer to a question.
    #[must_use]
    pub fn answer(&self, question: &Message) -> Message {
        let mut answer = reply(question);
        let Some(query) = question.queries.first().filter(|query| self.origin.zone_of(query.name())) else {
            answer.metadata.response_code = ResponseCode::Refused;
            return answer;
        };
        let kind = query.query_type();
        answer.metadata.authoritative = true;
        let is_origin = query.name() == &self.origin;
        if is_origin && kind == RecordType::SOA {
            answer.add_answer(self.soa(self.serial));
            return answer;
        }
        let of_name = || self.records.iter().filter(|record| &record.name == query.name());
        answer.add_answers(of_name().filter(|record| record.record_type() == kind).cloned());
        if answer.answers.is_empty() {
            answer.add_authority(self.soa(self.serial));
            let is_there = is_origin || self.records.iter().any(|record| query.name().zone_of(&record.name));
            answer.metadata.response_code = if is_there { ResponseCode::NoError } else { ResponseCode::NXDomain };
        }
        answer
    }

    /// Changes it as an update says (RFC 2136): all of it or nothing. Of prerequisites it knows names that are in use,
    /// and names that are not.
    pub fn update(&mut self, update: &Message) -> ResponseCode {
        if update.queries.first().is_none_or(|zone| zone.name() != &self.origin) {
            return ResponseCode::NotAuth;
        }
        if update.answers.iter().chain(&update.authorities).any(|record| !self.origin.zone_of(&record.name)) {
            return ResponseCode::NotZone;
        }
        for wanted in &update.answers {
            let is_used = self.records.iter().any(|record| record.name == wanted.name);
            match (wanted.dns_class, wanted.record_type()) {
                (DNSClass::NONE, RecordType::ANY) if is_used => return ResponseCode::YXDomain,
                (DNSClass::ANY, RecordType::ANY) if !is_used => return ResponseCode::NXDomain,
                (DNSClass::NONE | DNSClass::ANY, RecordType::ANY) => {}
                _ => return ResponseCode::NotImp,
            }
        }
        let mut changed = Changed::default();
        for record in &update.authorities {
            let is_to_go = |other: &Record| {
                let (of_name, of_kind) =
                    (other.name == record.name, [other.record_type(), RecordType::ANY].contains(&record.record_type()));
                match record.dns_class {
                    // The zone is not to be without its servers.
                    DNSClass::ANY => of_name && of_kind && record.name != self.origin,
                    _ => of_name && other.data == record.data,
                }
            };
            let removed: Vec<Record> = self.records.iter().filter(|other| is_to_go(other)).cloned().collect();
            changed.removed.extend(removed);
            if record.dns_class == DNSClass::IN {
                changed.added.push(record.clone());
            }
        }
        if !changed.removed.is_empty() || !changed.added.is_empty() {
            self.change(&changed);
            self.changes.push(changed);
        }
        ResponseCode::NoError
    }

    fn change(&mut self, Changed { removed, added }: &Changed) {
        self.records.retain(|record| !removed.contains(record));
        self.records.extend_from_slice(added);
        self.serial += 1;
    }

    /// The answer to who wants all of the zone (AXFR), or what is new in it (IXFR, RFC 1995): in one message.
    #[must_use]
    pub fn transfer(&self, question: &Message) -> Message {
        let mut answer = reply(question);
        if question.queries.first().is_none_or(|query| query.name() != &self.origin) {
            answer.metadata.response_code = ResponseCode::NotAuth;
            return answer;
        }
        answer.metadata.authoritative = true;
        let known = question.authorities.iter().find_map(serial_of);
        let newest = self.soa(self.serial);
        answer.add_answer(newest.clone());
        match known.filter(|serial| self.changes.len() >= self.serial.saturating_sub(*serial) as usize) {
            Some(serial) if serial >= self.serial => return answer,
            Some(serial) => {
                let missing = (self.serial - serial) as usize;
                for (from, changed) in (serial..).zip(&self.changes[self.changes.len() - missing..]) {
                    answer.add_answer(self.soa(from)).add_answers(changed.removed.iter().cloned());
                    answer.add_answer(self.soa(from + 1)).add_answers(changed.added.iter().cloned());
                }
            }
            None => _ = answer.add_answers(self.records.iter().cloned()),
        }
        answer.add_answer(newest);
        answer
    }

    /// Takes over what another server said to who wanted what is new since this zone.
    ///
    /// # Errors
    /// [`Error::Message`], where that can't be.
    pub fn take(&mut self, transfer: &Message) -> Result<(), Error> {
        let wrong = || Error::message("it is no transfer of the zone that is known here");
        let [first, rest @ .., _] = &transfer.answers[..] else {
            // What is known is the newest.
            return if transfer.answers.len() == 1 { Ok(()) } else { Err(wrong()) };
        };
        let newest = serial_of(first).ok_or_else(wrong)?;
        if rest.first().and_then(serial_of).is_none() {
            (self.records, self.serial, self.changes) = (rest.to_vec(), newest, Vec::new());
            return Ok(());
        }
        // A serial number, what goes, the next one, what comes.
        let mut parts = rest.chunk_by(|_, next| serial_of(next).is_none());
        while let Some(removed) = parts.next() {
            let added = parts.next().ok_or_else(wrong)?;
            if removed.first().and_then(serial_of) != Some(self.serial) {
                return Err(wrong());
            }
            let changed = Changed { removed: removed[1..].to_vec(), added: added[1..].to_vec() };
            self.change(&changed);
            self.changes.push(changed);
        }
        if self.serial == newest { Ok(()) } else { Err(wrong()) }
    }

    /// Asks for what is new since this zone.
    #[must_use]
    pub fn asks(&self, number: u16) -> Message {
        let mut message = Message::new(number, MessageType::Query, OpCode::Query);
        message.add_query(hickory_proto::op::Query::query(self.origin.clone(), RecordType::IXFR));
        message.add_authority(self.soa(self.serial));
        message
    }
}

fn serial_of(record: &Record) -> Option<u32> {
    match &record.data {
        RData::SOA(soa) => Some(soa.serial),
        _ => None,
    }
}

/// An answer that says nothing yet.
pub(super) fn reply(question: &Message) -> Message {
    let mut answer = Message::new(question.id, MessageType::Response, question.op_code);
    answer.add_queries(question.queries.iter().cloned());
    answer
}
