//! DNS queries and answers.

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::opt::{EdnsCode, EdnsOption, NSIDPayload};
use hickory_proto::rr::{Name, RData, Record, RecordType};

use crate::Error;

/// Size of the largest UDP answer that queries allow the server to send, in bytes. Datagrams of this size are not
/// fragmented on common paths (DNS Flag Day 2020).
pub(super) const UDP_BYTES: u16 = 1232;

/// A query that is sent many times, each time with another id. It also requests the server's identity (NSID, RFC 5001).
/// It does not ask for recursion unless [`for_resolver`](Self::for_resolver) was called.
#[derive(Clone, Debug)]
pub struct Question {
    query: Query,
    bytes: Vec<u8>,
}

/// A parsed answer of a DNS server.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// DNS response code of the answer.
    pub code: ResponseCode,
    /// `true` if the server is authoritative for the zone.
    pub is_authoritative: bool,
    /// `true` if the server offers recursion, that is, asks other servers, as resolvers do. A resolver's answer may
    /// come from its cache.
    pub asks_others: bool,
    /// `true` if the answer is truncated.
    pub is_truncated: bool,
    /// Serial number in the zone's SOA record; `None` if the answer has no SOA record.
    pub serial: Option<u32>,
    /// Identity of the server (NSID); `None` if the answer does not state it.
    pub nsid: Option<Vec<u8>>,
    /// Target of a CNAME record; `None` if the queried name is not an alias.
    pub alias: Option<Name>,
    /// The values of the records with the queried name and type.
    pub values: Vec<RData>,
}

impl Answer {
    /// Describes the answer in a few words. For an error, the text is the response code. For a truncated answer, the
    /// text is that the answer is truncated. Otherwise the text has the records or the alias, or states that there is
    /// no such record.
    pub fn words(&self) -> String {
        let value = |value: &RData| match value {
            RData::TXT(text) => format!("\"{text}\""),
            other => other.to_string(),
        };
        let values: Vec<String> = self.values.iter().map(value).collect();
        match &self.alias {
            _ if self.code != ResponseCode::NoError => format!("{:?}", self.code).to_uppercase(),
            _ if self.is_truncated => "a truncated answer".into(),
            _ if !values.is_empty() => values.join(", "),
            Some(alias) => format!("an alias of {alias}"),
            None => "no such record".into(),
        }
    }
}

impl Question {
    /// Creates a query for the records of a name and a type.
    ///
    /// # Errors
    /// Returns [`Error::Message`] if the query cannot be encoded.
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

    /// Makes the query ask for recursion, as is usual for a resolver.
    #[must_use]
    pub fn for_resolver(mut self) -> Self {
        self.bytes[2] |= 1;
        self
    }

    /// Returns the queried name.
    pub fn name(&self) -> &Name {
        self.query.name()
    }

    /// Returns the encoded query with `number` as its id.
    pub fn numbered(&mut self, number: u16) -> &[u8] {
        self.bytes[..2].copy_from_slice(&number.to_be_bytes());
        &self.bytes
    }

    /// Parses an answer, and returns its id and its content; `None` if `bytes` does not answer this query.
    pub fn answer(&self, bytes: &[u8]) -> Option<(u16, Answer)> {
        let message = Message::from_vec(bytes).ok()?;
        let is_answer = message.message_type == MessageType::Response && message.op_code == OpCode::Query;
        // A server that cannot parse a query may leave the query out of its answer.
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
