//! Questions and answers.

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::opt::{EdnsCode, EdnsOption, NSIDPayload};
use hickory_proto::rr::{Name, RData, Record, RecordType};

use crate::Error;

/// What is sure to come through whole (DNS Flag Day 2020).
pub(super) const UDP_BYTES: u16 = 1232;

/// A question that is asked again and again: all of it but its number is written once. It asks a server who it is, too
/// (NSID, RFC 5001), and never to ask others.
#[derive(Clone, Debug)]
pub struct Question {
    query: Query,
    bytes: Vec<u8>,
}

/// What a server said.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// How it went.
    pub code: ResponseCode,
    /// Whether it speaks of a zone of its own.
    pub is_authoritative: bool,
    /// Whether it would ask others: a resolver does, and remembers what they said.
    pub asks_others: bool,
    /// Whether not all of it is there.
    pub is_truncated: bool,
    /// The zone's serial number, where it was said.
    pub serial: Option<u32>,
    /// Who answered, where it says so.
    pub nsid: Option<Vec<u8>>,
    /// The name that the one that was asked for is another name of.
    pub alias: Option<Name>,
    /// The records that were asked for.
    pub values: Vec<RData>,
}

impl Answer {
    /// In a few words: its code where that says all, its records, or that there are none.
    #[must_use]
    pub fn words(&self) -> String {
        let value = |value: &RData| match value {
            RData::TXT(text) => format!("\"{text}\""),
            other => other.to_string(),
        };
        let values: Vec<String> = self.values.iter().map(value).collect();
        match &self.alias {
            _ if self.code != ResponseCode::NoError => format!("{:?}", self.code).to_uppercase(),
            _ if self.is_truncated => "a part only".into(),
            _ if !values.is_empty() => values.join(", "),
            Some(alias) => format!("another name, {alias}"),
            None => "no such record".into(),
        }
    }
}

impl Question {
    /// A question for the records of a name.
    ///
    /// # Errors
    /// [`Error::Message`], where it can't be written.
    pub fn new(name: Name, kind: RecordType) -> Result<Self, Error> {
        let mut message = Message::new(0, MessageType::Query, OpCode::Query);
        let query = Query::query(name, kind);
        message.add_query(query.clone());
        let mut edns = Edns::new();
        edns.set_max_payload(UDP_BYTES);
        edns.options_mut().insert(EdnsOption::NSID(NSIDPayload::new([]).map_err(Error::message)?));
        message.set_edns(edns);
        Ok(Self { query, bytes: message.to_vec().map_err(Error::message)? })
    }

    /// The same for a resolver, which is to ask others.
    #[must_use]
    pub fn for_resolver(mut self) -> Self {
        self.bytes[2] |= 1;
        self
    }

    /// The name that is asked for.
    #[must_use]
    pub fn name(&self) -> &Name {
        self.query.name()
    }

    /// The question with a number.
    pub fn numbered(&mut self, number: u16) -> &[u8] {
        self.bytes[..2].copy_from_slice(&number.to_be_bytes());
        &self.bytes
    }

    /// The answer to it, and its number; none where that is no answer to this question.
    #[must_use]
    pub fn answer(&self, bytes: &[u8]) -> Option<(u16, Answer)> {
        let message = Message::from_vec(bytes).ok()?;
        let is_answer = message.message_type == MessageType::Response && message.op_code == OpCode::Query;
        // Who does not understand a question may leave it out.
        let is_ours = message.queries.first().map_or(message.response_code != ResponseCode::NoError, |query| {
            query.name() == self.query.name() && query.query_type() == self.query.query_type()
        });
        (is_answer && is_ours).then(|| (message.id, self.read(message)))
    }

    fn read(&self, message: Message) -> Answer {
        let serial = message.answers.iter().chain(&message.authorities).find_map(|record| match &record.data {
            RData::SOA(soa) => Some(soa.serial),
            _ => None,
        });
        let nsid = message.edns.as_ref().and_then(|edns| match edns.option(EdnsCode::NSID) {
            Some(EdnsOption::NSID(payload)) if !payload.as_ref().is_empty() => Some(payload.as_ref().to_vec()),
            _ => None,
        });
        let is_of_name = |record: &&Record| &record.name == self.query.name();
        let alias = message.answers.iter().filter(is_of_name).find_map(|record| match &record.data {
            RData::CNAME(alias) if self.query.query_type() != RecordType::CNAME => Some(alias.0.clone()),
            _ => None,
        });
        let kind = self.query.query_type();
        let mut values: Vec<RData> = Vec::new();
        let answers = message.answers.iter().filter(is_of_name).filter(|record| record.record_type() == kind);
        values.extend(answers.map(|record| record.data.clone()));
        Answer {
            code: message.response_code,
            is_authoritative: message.authoritative,
            asks_others: message.recursion_available,
            is_truncated: message.truncation,
            serial,
            nsid,
            alias,
            values,
        }
    }
}
