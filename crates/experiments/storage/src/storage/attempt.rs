//! One request, measured below any retry.

use std::ops::Range;
use std::time::{Duration, Instant};

use ascertain_transfer::{Attempt, Failure, Kind, PartBody, PutOptions, Store};
use tokio::time::timeout;

/// A request to measure.
#[derive(Clone)]
pub enum Request {
    /// Reads an object of `bytes` bytes, or only `range` of it. An answer with more than `most` bytes is an error.
    Read { key: String, range: Option<Range<u64>>, bytes: u64, most: u64 },
    /// Writes an object with one request, or in parts one after the other. `crc64` is the checksum of the object.
    Write { key: String, parts: Vec<PartBody>, crc64: u64 },
}

/// The result of one request.
#[derive(Debug)]
pub struct Answer {
    pub outcome: Outcome,
    /// The time when the request began, after the wait for a connection.
    pub began: Instant,
    /// Time from `began` to the last byte of the answer. If the answer is not complete, the time until this was known.
    pub time: Duration,
    pub phases: Phases,
    /// Bytes of the object that were received or sent, as on the wire.
    pub bytes: u64,
    pub is_encoded: bool,
    /// `true` if the request opened a connection.
    pub is_fresh: bool,
    /// The time for which the kept connection had been idle before the request.
    pub gap: Option<Duration>,
    pub version: Option<String>,
}

/// The kinds of results. For all kinds except `Complete`, the time is censored: the true time is longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Complete,
    /// The answer ended early.
    Short,
    /// The store refused the request temporarily, with this HTTP status: 429, 503, or another status after which a
    /// retry may succeed. `code` is the store's own error code, such as `SlowDown`.
    Refused {
        status: u16,
        code: Option<String>,
    },
    /// The request timed out.
    TimedOut,
    /// The connection failed.
    Broken(String),
    /// The request failed permanently, for example because of wrong credentials. It ends the measurement.
    /// `is_refused` is `true` if the store has certainly written nothing.
    Fatal {
        why: String,
        is_refused: bool,
    },
}

/// The durations of the phases of a request, in the order in which they follow each other. `None` if a phase did not
/// take place, or did not end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Phases {
    /// The wait for a connection, before the request began.
    pub wait: Option<Duration>,
    pub lookup: Option<Duration>,
    pub connect: Option<Duration>,
    pub tls: Option<Duration>,
    pub send: Option<Duration>,
    pub header: Option<Duration>,
    pub first_byte: Option<Duration>,
    pub body: Option<Duration>,
}

impl Phases {
    fn new(attempt: &Attempt) -> Self {
        let mut latest = attempt.began;
        let mut until = |event: Option<Instant>| {
            let (from, to) = (latest?, event?);
            latest = Some(to.max(from));
            Some(to.saturating_duration_since(from))
        };
        let [lookup, connect, tls] =
            if attempt.resolved.is_some() { [attempt.resolved, attempt.connected, attempt.secured] } else { [None; 3] };
        Self {
            wait: attempt.requested.zip(attempt.began).map(|(from, to)| to.saturating_duration_since(from)),
            lookup: until(lookup),
            connect: until(connect),
            tls: until(tls),
            send: until(attempt.sent),
            header: until(attempt.header),
            first_byte: until(attempt.first_byte),
            body: until(attempt.last_byte),
        }
    }

    /// Returns the phases of the request, each with its name. The wait for a connection is not one of them.
    pub fn named(&self) -> [(&'static str, Option<Duration>); 7] {
        let Self { wait: _, lookup, connect, tls, send, header, first_byte, body } = *self;
        [
            ("1 look-up", lookup),
            ("2 connect", connect),
            ("3 TLS", tls),
            ("4 send", send),
            ("5 header", header),
            ("6 first byte", first_byte),
            ("7 body", body),
        ]
    }

    /// Returns the time from the start of the request to the first byte of the answer's body.
    pub fn until_first_byte(&self) -> Option<Duration> {
        self.first_byte?;
        Some(self.named().iter().take(6).filter_map(|(_, time)| *time).sum())
    }
}

/// Sends one request, and measures it. The bytes of a read are in `buffer` afterwards, for a check of the content.
pub async fn send(
    store: &dyn Store,
    request: &Request,
    is_fresh: bool,
    limit: Duration,
    buffer: &mut Vec<u8>,
) -> Answer {
    let mut attempt = Attempt::default();
    attempt.is_fresh = is_fresh;
    let (mut first, mut is_begun) = (None, false);
    buffer.clear();
    let start = Instant::now();
    let sent = async {
        match request {
            Request::Read { key, range, most, .. } => {
                store.read_into(key, range.clone(), *most, buffer, &mut attempt).await
            }
            Request::Write { key, parts, .. } if parts.len() == 1 => {
                let body = parts[0].clone();
                store.put(key, body, &PutOptions::default(), &mut attempt).await.map(drop)
            }
            Request::Write { key, parts, crc64 } => {
                let options = PutOptions::default();
                let upload = store.start_upload(key, &options, &mut attempt).await?;
                // Azure needs no request to start an upload. The time then begins with the first part.
                (first, is_begun) = (attempt.sent.and(attempt.began), true);
                let mut tokens = Vec::with_capacity(parts.len());
                for (index, part) in parts.iter().enumerate() {
                    let sent = store.put_part(&upload, index, part.clone(), &mut attempt).await;
                    first = first.or(attempt.began);
                    tokens.push(sent?);
                }
                store.commit(&upload, &tokens, *crc64, &options, &mut attempt).await.map(drop)
            }
        }
    };
    let sent = timeout(limit, sent).await;
    let ended = Instant::now();
    let expected = match request {
        Request::Read { bytes, .. } => *bytes,
        Request::Write { parts, .. } => parts.iter().map(|part| part.bytes.len() as u64).sum(),
    };
    let bytes = if matches!(request, Request::Read { .. }) { buffer.len() as u64 } else { expected };
    let outcome = match sent {
        Err(_) => Outcome::TimedOut,
        Ok(Ok(())) if bytes < expected => Outcome::Short,
        Ok(Ok(())) => Outcome::Complete,
        Ok(Err(failure)) => Outcome::of_failure(failure, &attempt, is_begun),
    };
    let began = first.or(attempt.began).unwrap_or(start);
    let end = if outcome == Outcome::Complete { attempt.last_byte.unwrap_or(ended) } else { ended };
    Answer {
        outcome,
        began,
        time: end.saturating_duration_since(began),
        // If the object is sent in parts, the phases are only the phases of the last request, so they do not describe
        // the object.
        phases: if is_begun { Phases::default() } else { Phases::new(&attempt) },
        bytes,
        is_encoded: attempt.encoding.is_some_and(|encoding| encoding != "identity"),
        is_fresh: attempt.resolved.is_some(),
        gap: attempt.idle,
        version: attempt.version,
    }
}

/// Returns whether a write that failed with this kind of failure has certainly written nothing.
pub fn is_refused(kind: Kind) -> bool {
    matches!(kind, Kind::Denied | Kind::Missing | Kind::Full)
}

impl Outcome {
    /// Converts the failure of a request to an outcome. `is_begun` means that an upload in parts had begun. The store
    /// then already holds an unfinished upload, so even a refusal does not prove that nothing was written.
    fn of_failure(failure: Failure, attempt: &Attempt, is_begun: bool) -> Self {
        match (failure.kind, attempt.status) {
            (Kind::Transient(_) | Kind::Unanswered, Some(status)) if status >= 400 => {
                Self::Refused { status, code: attempt.refusal_code.clone() }
            }
            // The head of the answer had arrived.
            (Kind::Transient(_) | Kind::Unanswered, Some(_)) => Self::Short,
            (Kind::Transient(_) | Kind::Unanswered, None) => Self::Broken(failure.message),
            (kind, _) => Self::Fatal { is_refused: !is_begun && is_refused(kind), why: failure.message },
        }
    }
}
