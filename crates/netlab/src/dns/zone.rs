//! The content of a zone at one server.

use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{NS, SOA};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};

use crate::Error;

const TTL_S: u32 = 60;

/// The content of a zone at one server. It answers queries, accepts updates, and is transferred as a whole. Wildcards
/// and subzones are not supported, and all records have the same class.
#[derive(Clone, Debug)]
pub struct Zone {
    origin: Name,
    serial: u32,
    records: Vec<Record>,
}

impl Zone {
    /// Creates a zone whose only records are its name servers, `servers`.
    pub fn new(origin: Name, servers: &[Name]) -> Self {
        let of_server = |server: &Name| Record::from_rdata(origin.clone(), TTL_S, RData::NS(NS(server.clone())));
        Self { records: servers.iter().map(of_server).collect(), serial: 1, origin }
    }

    /// Returns the zone's serial number. Each change increments it.
    pub fn serial(&self) -> u32 {
        self.serial
    }

    fn soa(&self) -> Record {
        let server = self.records.iter().find_map(|record| match &record.data {
            RData::NS(server) => Some(server.0.clone()),
            _ => None,
        });
        let (server, owner) = (server.unwrap_or_else(|| self.origin.clone()), self.origin.clone());
        Record::from_rdata(
            self.origin.clone(),
            TTL_S,
            RData::SOA(SOA::new(server, owner, self.serial, 3600, 600, 86400, 1)),
        )
    }

    /// Returns the answer to a query, according to the zone's records.
    pub fn answer(&self, question: &Message) -> Message {
        let Some(query) = question.queries.first().filter(|query| self.origin.zone_of(query.name())) else {
            return reply(question, ResponseCode::Refused);
        };
        let mut answer = reply(question, ResponseCode::NoError);
        let kind = query.query_type();
        answer.metadata.authoritative = true;
        let is_origin = query.name() == &self.origin;
        if is_origin && kind == RecordType::SOA {
            answer.add_answer(self.soa());
            return answer;
        }
        let of_name = || self.records.iter().filter(|record| &record.name == query.name());
        answer.add_answers(of_name().filter(|record| record.record_type() == kind).cloned());
        if answer.answers.is_empty() {
            answer.add_authority(self.soa());
            let is_there = is_origin || self.records.iter().any(|record| query.name().zone_of(&record.name));
            answer.metadata.response_code = if is_there { ResponseCode::NoError } else { ResponseCode::NXDomain };
        }
        answer
    }

    /// Applies an update (RFC 2136) completely or not at all, and returns the response code. Two kinds of prerequisites
    /// are supported: that a name has records, and that it has none.
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
        let mut is_changed = false;
        for record in &update.authorities {
            let is_to_go = |other: &Record| {
                let (of_name, of_kind) =
                    (other.name == record.name, [other.record_type(), RecordType::ANY].contains(&record.record_type()));
                match record.dns_class {
                    // The zone must keep its name servers.
                    DNSClass::ANY => of_name && of_kind && record.name != self.origin,
                    _ => of_name && other.data == record.data,
                }
            };
            let before = self.records.len();
            self.records.retain(|other| !is_to_go(other));
            is_changed |= self.records.len() < before;
            if record.dns_class == DNSClass::IN {
                self.records.push(record.clone());
                is_changed = true;
            }
        }
        self.serial += u32::from(is_changed);
        ResponseCode::NoError
    }

    /// Returns the answer to a request for a zone transfer, in one message. The answer has the whole zone, even if the
    /// request was only for the changes (RFC 1995, section 4).
    pub fn transfer(&self, question: &Message) -> Message {
        if question.queries.first().is_none_or(|query| query.name() != &self.origin) {
            return reply(question, ResponseCode::NotAuth);
        }
        let mut answer = reply(question, ResponseCode::NoError);
        answer.metadata.authoritative = true;
        answer.add_answer(self.soa()).add_answers(self.records.iter().cloned()).add_answer(self.soa());
        answer
    }

    /// Replaces the zone's content by the content that another server sent as answer to [a transfer
    /// request](Self::transfer_request).
    ///
    /// # Errors
    /// Returns [`Error::Message`] if the message is not a zone transfer.
    pub fn take(&mut self, transfer: &Message) -> Result<(), Error> {
        let [first, records @ .., last] = &transfer.answers[..] else { return Err(Error::message(NO_TRANSFER)) };
        let serial = serial_of(first).filter(|serial| serial_of(last) == Some(*serial));
        self.serial = serial.ok_or_else(|| Error::message(NO_TRANSFER))?;
        self.records = records.to_vec();
        Ok(())
    }

    /// Returns a request for a transfer of the whole zone, with `number` as its id.
    pub fn transfer_request(&self, number: u16) -> Message {
        let mut message = Message::new(number, MessageType::Query, OpCode::Query);
        message.add_query(hickory_proto::op::Query::query(self.origin.clone(), RecordType::AXFR));
        message
    }
}

const NO_TRANSFER: &str = "the message is not a transfer of a zone";

fn serial_of(record: &Record) -> Option<u32> {
    match &record.data {
        RData::SOA(soa) => Some(soa.serial),
        _ => None,
    }
}

/// Returns an answer to `question` that has this response code and no records.
pub(super) fn reply(question: &Message, code: ResponseCode) -> Message {
    let mut answer = Message::new(question.id, MessageType::Response, question.op_code);
    answer.metadata.response_code = code;
    answer.add_queries(question.queries.iter().cloned());
    answer
}
