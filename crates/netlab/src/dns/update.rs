//! Requests to change a zone (RFC 2136). They are signed (TSIG, RFC 8945) if the caller has a key.

use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::tsig::{TSIG, TsigAlgorithm, TsigError};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType, TSigVerifier, TSigner};

use crate::Error;

/// A change of a zone.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Adds a record to a name that has no records. The server refuses if the name has any.
    Add {
        /// Full name of the record.
        name: Name,
        /// Time for which resolvers may cache the record, in seconds.
        ttl_s: u32,
        /// Value of the record, which determines its type.
        value: RData,
    },
    /// Removes all records of a name.
    Remove {
        /// Full name whose records are removed.
        name: Name,
    },
}

/// An encoded request to update a zone. It can check the primary server's answer.
pub struct UpdateRequest {
    /// The encoded request, as it is sent to the primary server.
    pub bytes: Vec<u8>,
    number: u16,
    verifier: Option<TSigVerifier>,
}

/// Creates an update request for a zone's primary server. `number` becomes the id of the message. `unix_s` is the time
/// of its signature, in seconds since 1970.
///
/// # Errors
/// Returns [`Error::Message`] if the request cannot be encoded.
pub fn update(
    zone: &Name,
    change: &Change,
    key: Option<&Key>,
    number: u16,
    unix_s: u64,
) -> Result<UpdateRequest, Error> {
    let mut message = Message::new(number, MessageType::Query, OpCode::Update);
    message.add_query(Query::query(zone.clone(), RecordType::SOA));
    // A record without content, which stands for all records of a name.
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
    Ok(UpdateRequest { bytes: message.to_vec().map_err(Error::message)?, number, verifier: signed.flatten() })
}

impl UpdateRequest {
    /// Checks that `answer` confirms the update.
    ///
    /// # Errors
    /// - [`Error::NoUpdate`] if the server refused the update;
    /// - [`Error::Clocks`] if the clocks of the server and of this machine differ too much;
    /// - [`Error::Unsigned`] if the answer is not signed with the key;
    /// - [`Error::Message`] if the bytes are not an answer to this request.
    pub fn accept(&mut self, answer: &[u8]) -> Result<(), Error> {
        let message = Message::from_vec(answer).map_err(Error::message)?;
        if message.id != self.number || message.message_type != MessageType::Response {
            return Err(Error::message("the answer does not belong to the request"));
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
            Some((_, TsigError::BadKey)) => no_update("it has no key with this name and algorithm (BADKEY)"),
            Some((_, TsigError::BadSig)) => no_update("its key with this name has another secret (BADSIG)"),
            Some((_, other)) => no_update(format!("it rejects the signature ({other:?})")),
            None if message.response_code != ResponseCode::NoError => {
                no_update(why_not(message.response_code, self.verifier.is_some()))
            }
            None if !is_authentic => Err(Error::Unsigned),
            None => Ok(()),
        }
    }
}

fn no_update<T>(why: impl Into<String>) -> Result<T, Error> {
    Err(Error::NoUpdate(why.into()))
}

fn why_not(code: ResponseCode, is_signed: bool) -> String {
    let meaning = match code {
        // Knot and other servers answer NOTAUTH if an update lacks the key that they require.
        ResponseCode::NotAuth if !is_signed => "it is not the zone's primary server, or it requires a key",
        ResponseCode::Refused => "it refuses updates from this address, of this kind, or with this key",
        ResponseCode::NotAuth => "it is not the zone's primary server",
        ResponseCode::NotZone => "the name is not in this zone",
        ResponseCode::NotImp => "it does not support updates",
        ResponseCode::YXDomain => "the name already has records",
        ResponseCode::ServFail => "it failed",
        _ => "it refused",
    };
    format!("{meaning} ({})", code.to_str())
}

/// Sends a DNS message over a connection, and returns the next message that arrives.
///
/// # Errors
/// Returns [`Error::Broken`] if the connection breaks.
pub fn exchange(stream: &mut (impl Read + Write), message: &[u8]) -> Result<Vec<u8>, Error> {
    write_message(stream, message).map_err(|error| Error::broken("before the message was sent", error))?;
    read_message(stream).map_err(|error| Error::broken("before the answer arrived", error))
}

/// Sends a query over a new TCP connection, and returns the answer. `limit` is the time limit for connecting, and also
/// for each write and each read.
///
/// # Errors
/// Returns [`Error::System`] if the connection cannot be opened, and [`Error::Broken`] if it breaks.
pub fn query_by_tcp(server: SocketAddr, message: &[u8], limit: Duration) -> Result<Vec<u8>, Error> {
    let connected = TcpStream::connect_timeout(&server, limit).and_then(|stream| {
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        Ok(stream)
    });
    exchange(
        &mut connected.map_err(|source| Error::System { what: "could not connect to the server", source })?,
        message,
    )
}

/// Writes the length of a message and then the message, as DNS over TCP requires.
pub(super) fn write_message(stream: &mut impl Write, message: &[u8]) -> std::io::Result<()> {
    let length = u16::try_from(message.len()).map_err(std::io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), message].concat())
}

/// Reads the length of a message, and then the message.
pub(super) fn read_message(stream: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut message)?;
    Ok(message)
}

/// Largest accepted difference between the clocks of client and server, in seconds. RFC 8945 recommends this value.
const FUDGE_S: u16 = 300;

/// Returns whether the library hickory can check the time of a signature. When hickory subtracts `fudge` from `time`,
/// the result must not be negative.
pub(super) fn is_of_our_time(signature: &TSIG) -> bool {
    signature.time >= signature.fudge.into()
}

/// A TSIG key that client and server share. Debug output omits the secret.
#[derive(Clone)]
pub struct Key(pub(super) TSigner);

impl Key {
    /// Parses a key in the form that `nsupdate -y` takes, `[ALGORITHM:]NAME:SECRET`, or in the form that `tsig-keygen`
    /// prints. The default algorithm is hmac-sha256.
    ///
    /// ```
    /// use ascertain_netlab::dns::Key;
    /// assert!(Key::parse("hmac-sha512:mine:c2VjcmV0").is_ok());
    /// assert!(Key::parse("key \"mine\" {\n\talgorithm hmac-sha256;\n\tsecret \"c2VjcmV0\";\n};").is_ok());
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Invalid`]. Its message does not contain the secret.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let no_key = |why: String| Error::Invalid(format!("invalid key: {why}"));
        let parts: Vec<&str> = if text.contains('{') {
            let words: Vec<&str> = text
                .split(|c: char| c.is_whitespace() || "{};\"".contains(c))
                .filter(|word| !word.is_empty())
                .collect();
            let behind = |what| words.iter().position(|word| *word == what).and_then(|at| words.get(at + 1).copied());
            let part = |what| behind(what).ok_or_else(|| no_key(format!("it has no `{what}`")));
            vec![part("algorithm")?, part("key")?, part("secret")?]
        } else {
            text.trim().split(':').collect()
        };
        let (algorithm, name, secret) = match parts[..] {
            [name, secret] => ("hmac-sha256", name, secret),
            [algorithm, name, secret] => (algorithm, name, secret),
            _ => return Err(no_key("expected ALGORITHM:NAME:SECRET".into())),
        };
        let algorithm = match algorithm.to_ascii_lowercase().trim_end_matches('.') {
            "hmac-sha256" => TsigAlgorithm::HmacSha256,
            "hmac-sha384" => TsigAlgorithm::HmacSha384,
            "hmac-sha512" => TsigAlgorithm::HmacSha512,
            _ => return Err(no_key("its algorithm must be hmac-sha256, hmac-sha384 or hmac-sha512".into())),
        };
        let secret = STANDARD.decode(secret).map_err(|_| no_key("its secret is not valid Base64".into()))?;
        let mut name = Name::from_ascii(name).map_err(|error| no_key(format!("its name is invalid: {error}")))?;
        name.set_fqdn(true);
        TSigner::new(secret, algorithm, name, FUDGE_S).map(Self).map_err(|error| no_key(error.to_string()))
    }

    /// Returns the name of the key, which is not secret.
    pub fn name(&self) -> &Name {
        self.0.signer_name()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.name())
    }
}
