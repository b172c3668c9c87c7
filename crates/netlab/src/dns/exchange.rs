//! Changes of a zone (RFC 2136), signed where there is a key.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::tsig::TsigError;
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType, TSigVerifier};

use super::Key;
use super::key::is_of_our_time;
use crate::Error;

/// A change of a zone.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A record of a name that has none so far: the server refuses where it has.
    Add {
        /// Whose.
        name: Name,
        /// For how long others may keep it.
        ttl_s: u32,
        /// What it says.
        value: RData,
    },
    /// All records of a name are to go.
    Remove {
        /// Whose.
        name: Name,
    },
}

/// A request for a change, as it is sent.
pub struct Request {
    /// All of it.
    pub bytes: Vec<u8>,
    number: u16,
    verifier: Option<TSigVerifier>,
}

/// Asks a zone's primary server for a change.
///
/// # Errors
/// [`Error::Message`], where it can't be written.
pub fn update(zone: &Name, change: &Change, key: Option<&Key>, number: u16, unix_s: u64) -> Result<Request, Error> {
    let mut message = Message::new(number, MessageType::Query, OpCode::Update);
    message.add_query(Query::query(zone.clone(), RecordType::SOA));
    // Records that say something of all of a name have no content.
    let of_all = |name: &Name, class| {
        let mut record = Record::update0(name.clone(), 0, RecordType::ANY);
        record.dns_class = class;
        record.into_record_of_rdata()
    };
    match change {
        Change::Add { name, ttl_s, value } => {
            message.add_answer(of_all(name, DNSClass::NONE));
            message.add_authority(Record::from_rdata(name.clone(), *ttl_s, value.clone()));
        }
        Change::Remove { name } => {
            message.add_authority(of_all(name, DNSClass::ANY));
        }
    }
    let signed = key.map(|key| message.finalize(&key.0, unix_s)).transpose().map_err(Error::message)?;
    Ok(Request { bytes: message.to_vec().map_err(Error::message)?, number, verifier: signed.flatten() })
}

impl Request {
    /// Whether the answer says that it is done.
    ///
    /// # Errors
    /// [`Error::NoUpdate`] where it says something else; [`Error::Clocks`] and [`Error::Unsigned`].
    pub fn accept(&mut self, answer: &[u8]) -> Result<(), Error> {
        let message = Message::from_vec(answer).map_err(Error::message)?;
        if message.id != self.number || message.message_type != MessageType::Response {
            return Err(Error::message("it is no answer to what was asked"));
        }
        let tsig = message.signature.as_ref().map(|record| &record.data);
        let verifies =
            |verifier: &mut TSigVerifier| tsig.is_some_and(is_of_our_time) && verifier.verify(answer).is_ok();
        let is_authentic = self.verifier.as_mut().is_none_or(verifies);
        match tsig.and_then(|tsig| Some((tsig, tsig.error.as_ref()?))) {
            Some((tsig, TsigError::BadTime)) => {
                let theirs_s = tsig.other.iter().fold(0, |time, byte| time << 8 | u64::from(*byte));
                Err(Error::Clocks { ours_s: tsig.time, theirs_s })
            }
            Some((_, TsigError::BadKey)) => no_update("it does not know a key of that name and algorithm (BADKEY)"),
            Some((_, TsigError::BadSig)) => no_update("its key of that name has another secret (BADSIG)"),
            Some((_, other)) => no_update(format!("it does not take the signature ({other:?})")),
            None if message.response_code != ResponseCode::NoError => {
                no_update(why_not(message.response_code, self.verifier.is_some()))
            }
            None if !is_authentic => Err(Error::Unsigned),
            None => Ok(()),
        }
    }
}

fn no_update<T>(why: impl Into<String>) -> Result<T, Error> {
    Err(Error::NoUpdate { why: why.into() })
}

fn why_not(code: ResponseCode, is_signed: bool) -> String {
    let meaning = match code {
        // Knot and others say so of an update without the key that they want.
        ResponseCode::NotAuth if !is_signed => "it is not the zone's primary server, or it wants a key",
        ResponseCode::Refused => "it refuses updates from here, or such ones, or with this key",
        ResponseCode::NotAuth => "it is not the zone's primary server",
        ResponseCode::NotZone => "the name is not in this zone",
        ResponseCode::NotImp => "it takes no updates at all",
        ResponseCode::YXDomain => "the name has records already",
        ResponseCode::ServFail => "it failed",
        _ => "it does not want to",
    };
    format!("{meaning} ({})", code.to_str())
}

/// Sends a message by a connection, and waits for the next one.
///
/// # Errors
/// [`Error::Broken`].
pub fn exchange(stream: &mut (impl Read + Write), message: &[u8]) -> Result<Vec<u8>, Error> {
    write_message(stream, message).map_err(|error| Error::broken("before the message was sent", error))?;
    read_message(stream).map_err(|error| Error::broken("before the answer was there", error))
}

/// Asks a server by a connection of its own: its answer, within a time for each of its steps.
///
/// # Errors
/// [`Error::Broken`], and [`Error::System`] where there is no connection.
pub fn ask_by_tcp(server: SocketAddr, message: &[u8], limit: Duration) -> Result<Vec<u8>, Error> {
    let connected = TcpStream::connect_timeout(&server, limit).and_then(|stream| {
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        Ok(stream)
    });
    exchange(&mut connected.map_err(|source| Error::System { what: "there is no connection to it", source })?, message)
}

/// Writes a message with its length before it.
pub(super) fn write_message(stream: &mut impl Write, message: &[u8]) -> std::io::Result<()> {
    let length = u16::try_from(message.len()).map_err(std::io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), message].concat())
}

/// Reads a message behind its length.
pub(super) fn read_message(stream: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut message)?;
    Ok(message)
}
