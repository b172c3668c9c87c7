//! The interface of a store. Each function sends its request once. The caller repeats requests that may be repeated.

mod address;
mod attributes;
mod aws;
mod azure;
mod body;
mod checked;
mod client;
mod connections;
mod credential_process;
mod credentials;
mod dialect;
mod google_tokens;
mod http;
mod keys;
mod local;
mod no_proxy;
mod open;
mod profile;
mod purge;
mod refusal;
mod renewal;
mod s3;
mod service;
mod sso;
mod sts;
mod transport;
mod watched;

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use attributes::Attributes;
pub use checked::Checksum;
pub use local::Local;
pub(crate) use local::{LOCAL_UPLOAD, check_room};
pub use open::{Environment, Options, Sockets, open};
pub use service::{Reply, Service};

use crate::buffers::{Buffers, RangeWriter};
use crate::contact::{AttemptClock, Contact};
use crate::rate_limit::RateLimit;

/// The result of a request to a store.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// An object store. It holds objects under names, and assembles an object from parts that arrive in any order.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// Returns the store's limits on the size and the number of an object's parts.
    fn limits(&self) -> Limits;

    /// Returns the settings that are needed, in addition to an address, to open this store again.
    fn location(&self) -> StoreLocation {
        StoreLocation::default()
    }

    /// Returns the URL of the bucket or container, without user, password and query. `None` if the store has no URL.
    fn base_url(&self) -> Option<String> {
        None
    }

    /// Returns whether this store applies the rate limit of the [`Attempt`] to each slice of a body that it sends. If
    /// it returns `false`, the caller delays whole parts.
    fn keeps_pace(&self) -> bool {
        false
    }

    /// Checks that the store can keep these attributes with the object at `address`. Sends no request.
    ///
    /// # Errors
    /// Returns the errors of [`Attributes::check`].
    fn check_attributes(&self, attributes: &Attributes, address: &str) -> crate::error::Result<()> {
        attributes.check(address, "this store", &["content_type"])
    }

    /// Returns whether the store reliably refuses a `put` with [`PutOptions::no_clobber`] if the object exists. If it
    /// returns `false`, the caller first checks whether the object exists.
    fn refuses_to_replace(&self) -> bool {
        true
    }

    /// Opens connections for `_connections` requests that are about to be sent in parallel. These requests then need
    /// not wait for new connections.
    async fn connect(&self, _connections: usize) {}

    /// Returns the host of the proxy through which requests are sent, according to the environment.
    fn proxy(&self) -> Result<Option<String>> {
        Ok(None)
    }

    /// Describes the object `name` without its bytes. Returns `None` if it does not exist.
    async fn head(&self, name: &str, attempt: &mut Attempt) -> Result<Option<ObjectMeta>>;

    /// Reads the bytes in `range` of the object that `of` describes. Fails if the object has changed since `of` was
    /// read.
    async fn get(&self, of: &ObjectMeta, range: Range<u64>, attempt: &mut Attempt) -> Result<PartBody> {
        if range.end > of.bytes {
            let message = format!("{} has {} bytes, so a range up to {} does not exist", of.name, of.bytes, range.end);
            return Err(Failure::new(Kind::Fatal, message));
        }
        let into = RangeWriter::in_memory(&Buffers::default(), range);
        self.get_range(of, into, attempt).await?.whole().map(RangeWriter::finish)
    }

    /// Reads the range `into.range()` of an object, and adds its bytes to `into` in order. After a failure, `into` may
    /// hold some of these bytes. An implementation must add bytes only while the future is polled. A thread that
    /// outlives the future could overwrite bytes of the next attempt.
    async fn get_range(&self, of: &ObjectMeta, into: RangeWriter, attempt: &mut Attempt) -> Result<RangeWriter>;

    /// Reads a whole object with one request, and adds its bytes to `into` in order. Returns the description of the
    /// object with the checksums that the answer contains. Fails if the object has changed since `of` was read.
    async fn get_whole(
        &self,
        of: &ObjectMeta,
        into: RangeWriter,
        attempt: &mut Attempt,
    ) -> Result<(RangeWriter, ObjectMeta)> {
        Ok((self.get_range(of, into, attempt).await?, of.clone()))
    }

    /// Reads a whole object, or a range of it, with one request, and appends its bytes to `into` as they arrive. Unlike
    /// [`Self::get_range`], it neither computes nor requests a checksum, and reads at most `most` bytes.
    async fn read_into(
        &self,
        name: &str,
        _range: Option<Range<u64>>,
        _most: u64,
        _into: &mut Vec<u8>,
        _attempt: &mut Attempt,
    ) -> Result<()> {
        Err(Failure::new(Kind::Fatal, format!("{name}: this store does not support plain reads")))
    }

    /// Reads a whole object, and compares its bytes with the checksum in the answer, if there is one. Returns the
    /// CRC-64/NVME of the bytes.
    async fn get_checked(&self, of: &ObjectMeta, attempt: &mut Attempt) -> Result<u64> {
        let into = RangeWriter::in_memory(&Buffers::default(), 0..of.bytes);
        let (filled, meta) = self.get_whole(of, into, attempt).await?;
        let crc64 = filled.whole()?.crc64();
        match meta.crc64 {
            Some(sum) if sum != crc64 => Err(Failure::new(Kind::Corrupted, format!("{}: wrong checksum", of.name))),
            _ => Ok(crc64),
        }
    }

    /// Removes everything that the store keeps under exactly this name: the object, its versions and its unfinished
    /// uploads. Never removes an object with another name.
    async fn purge(&self, name: &str, attempt: &mut Attempt) -> Result<()> {
        self.remove(name, attempt).await
    }

    /// Removes one version of an object. `version` is [`Attempt::version`] of the request that wrote it.
    async fn remove_version(&self, name: &str, _version: &str, attempt: &mut Attempt) -> Result<()> {
        self.remove(name, attempt).await
    }

    /// Describes the rule that keeps new objects of this bucket from being removed; `None` if there is no such rule.
    async fn retention(&self, _attempt: &mut Attempt) -> Result<Option<String>> {
        Ok(None)
    }

    /// Returns the size and the CRC-64/NVME of each part of the upload that created an object, in the order of the
    /// parts. The returned list is empty if the store does not keep these values. The checksums show which bytes of a
    /// damaged download are wrong.
    async fn part_sums(&self, _of: &ObjectMeta, _attempt: &mut Attempt) -> Result<Vec<(u64, u64)>> {
        Ok(Vec::new())
    }

    /// Requests a whole object whose length is known only at its end ([`Kind::Unsized`]). Returns the object's
    /// metadata, and a stream of its bytes.
    async fn open_stream(&self, name: &str, _attempt: &mut Attempt) -> Result<(ObjectMeta, Box<dyn ByteStream>)> {
        Err(Failure::new(Kind::Fatal, format!("{name}: this store can't read objects of unknown length")))
    }

    /// Returns whether ranges of this object should be read in order, one at a time. This is so if an HTTP server does
    /// not support ranges. For a range that is out of order, such a server sends the object from its beginning again.
    fn is_sequential(&self, _of: &ObjectMeta) -> bool {
        false
    }

    /// Stores an object with a single request.
    async fn put(&self, name: &str, body: PartBody, options: &PutOptions, attempt: &mut Attempt) -> Result<ObjectMeta>;

    /// Stores an object with a single request that carries this checksum, and does not compare the answer with the
    /// bytes. This shows which checksums the store itself verifies.
    async fn put_with_checksum(
        &self,
        name: &str,
        _body: Bytes,
        _checksum: Checksum,
        _attempt: &mut Attempt,
    ) -> Result<()> {
        Err(Failure::new(Kind::Fatal, format!("{name}: the checksum of this store cannot be chosen")))
    }

    /// Starts to upload the object `name` in parts. Returns the upload, to which [`Self::put_part`] adds the parts.
    async fn start_upload(&self, name: &str, options: &PutOptions, attempt: &mut Attempt) -> Result<Upload>;

    /// Sends the part `index`, counted from 0. Returns the token of this part, which [`Self::commit`] needs.
    async fn put_part(&self, upload: &Upload, index: usize, body: PartBody, attempt: &mut Attempt) -> Result<String>;

    /// Returns whether a part that is sent twice has the same token both times. If not, the request that the store
    /// completes last determines the token, even if its answer was not awaited.
    fn has_stable_tokens(&self) -> bool {
        true
    }

    /// Assembles the object from its parts, in the order of `tokens`. `crc64` is the checksum of the whole object, for
    /// stores that can check it.
    async fn commit(
        &self,
        upload: &Upload,
        tokens: &[String],
        crc64: u64,
        options: &PutOptions,
        attempt: &mut Attempt,
    ) -> Result<ObjectMeta>;

    /// Aborts an upload, so that its parts no longer cost anything. Does nothing if the store has no such operation.
    /// Such a store removes the parts by itself after some time.
    async fn abort(&self, upload: &Upload, attempt: &mut Attempt) -> Result<()>;

    /// Removes an object. Succeeds if the object is already missing.
    async fn remove(&self, name: &str, _attempt: &mut Attempt) -> Result<()> {
        Err(Failure::new(Kind::Fatal, format!("{name}: this store does not support removing objects")))
    }

    /// Returns the file on this machine that holds the object, if there is one.
    fn local_path(&self, _name: &str) -> Option<PathBuf> {
        None
    }

    /// Lists all objects whose names start with `prefix`, in the order of names.
    async fn list(&self, prefix: &str, attempt: &mut Attempt) -> Result<Vec<ObjectMeta>>;

    /// Lists the objects whose names start with `prefix` with one request. Returns the objects of the page with the
    /// token `page`, or of the first page. Also returns the token of the next page, if there is one. By default, one
    /// page has all objects.
    async fn list_page(
        &self,
        prefix: &str,
        _page: Option<&str>,
        attempt: &mut Attempt,
    ) -> Result<(Vec<ObjectMeta>, Option<String>)> {
        Ok((self.list(prefix, attempt).await?, None))
    }
}

/// The position in a list that consists of pages.
#[derive(Debug, Default)]
pub(crate) struct ListCursor {
    page: Option<String>,
    /// The tokens of all pages so far.
    pages: HashSet<String>,
}

impl ListCursor {
    /// Returns the token of the next page to request; `None` for the first page.
    pub fn page(&self) -> Option<&str> {
        self.page.as_deref()
    }

    /// Moves on to the page with the token `next`. Returns `false` if there is no such page. Fails if the list never
    /// ends, because one of its pages refers to an earlier page.
    pub fn advance(&mut self, next: Option<String>) -> Result<bool> {
        if next.as_ref().is_some_and(|next| !self.pages.insert(next.clone())) {
            return Err(Failure::fatal("the pages of the list refer to each other in a circle"));
        }
        self.page = next;
        Ok(self.page.is_some())
    }
}

/// The bytes of an object as they arrive, from first to last.
#[async_trait]
pub trait ByteStream: Send {
    /// Returns the next bytes; `None` at the end of the object. If the answer is not chunked, its end is the end of the
    /// connection. So a truncated answer looks complete.
    async fn next(&mut self, attempt: &mut Attempt) -> Result<Option<Bytes>>;
}

/// The limits of a store on the size and the number of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Smallest size of a part in bytes. The last part may be smaller.
    pub min_part_bytes: u64,
    /// Largest size of a part in bytes.
    pub max_part_bytes: u64,
    /// Maximum number of parts of an object.
    pub max_parts: usize,
    /// Largest size in bytes of an object that a single `put` can store; 0 if the store is read-only.
    pub max_put_bytes: u64,
}

/// The bytes of a part with their checksum. The checksum is computed only once: when the bytes are read or arrive.
#[derive(Clone, Debug)]
pub struct PartBody {
    /// The bytes of the part.
    pub bytes: Bytes,
    /// The CRC-64/NVME of the bytes.
    pub crc64: u64,
}

/// An object, as described by its store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectMeta {
    /// Name of the object in the store.
    pub name: String,
    /// Size of the object in bytes.
    pub bytes: u64,
    /// A tag that changes whenever the object changes; `None` if the store has no tags.
    pub etag: Option<String>,
    /// The time when the object was last written, according to the store's clock.
    pub modified: Option<SystemTime>,
    /// The time when the original file was last modified, if the upload recorded it in [`Attributes::modified`]. Lists
    /// do not contain it.
    pub file_modified: Option<SystemTime>,
    /// The CRC-64/NVME of the whole object, if the store knows it.
    pub crc64: Option<u64>,
    /// The CRC-32C of the whole object, if the store knows it.
    pub crc32c: Option<u32>,
}

impl ObjectMeta {
    /// The value of [`ObjectMeta::bytes`] that means an unknown size.
    const UNKNOWN_BYTES: u64 = u64::MAX;

    /// Creates the metadata of an object whose size is unknown.
    pub(crate) fn without_size(name: &str) -> Self {
        Self { name: name.into(), bytes: Self::UNKNOWN_BYTES, ..Self::default() }
    }

    /// Returns the size, if it is known.
    pub(crate) fn size(&self) -> Option<u64> {
        Some(self.bytes).filter(|bytes| *bytes != Self::UNKNOWN_BYTES)
    }
}

/// Options for storing an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutOptions {
    /// The attributes of the object.
    pub attributes: Attributes,
    /// `true` to fail if an object of this name already exists.
    pub no_clobber: bool,
}

/// An upload in parts. A journal records these fields to resume the upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// Name of the object that the upload creates.
    pub name: String,
    /// The identifier that the store has given to this upload.
    pub id: String,
}

/// The settings that are needed, in addition to an address, to reach a store. They contain no credentials, because
/// journals record them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreLocation {
    /// URL of the endpoint, without user and query.
    pub endpoint_url: Option<String>,
    /// The region of the bucket, for S3.
    pub region: Option<String>,
    /// The profile that the user requested, for S3.
    pub profile: Option<String>,
    /// `true` if the name of the bucket is part of the host name (`BUCKET.HOST`), for S3.
    pub virtual_hosted: bool,
    /// `true` if requests are sent without a signature or token.
    pub anonymous: bool,
    /// `true` if the caller's account pays for requests, instead of the owner of the bucket.
    pub requester_pays: bool,
}

/// A record of one attempt to send a request: the times of its events. A time is `None` if the event did not happen.
#[derive(Clone, Debug, Default)]
pub struct Attempt {
    /// The rate limit for the body. `None` if the caller delays whole parts, or if the rate is unlimited.
    pub(crate) rate_limit: Option<Arc<RateLimit>>,
    /// The record of the latest contact with a server, which this attempt updates.
    pub(crate) contact: Option<Arc<Contact>>,
    /// The clock of the attempt's time limit, which starts again with each progress. The clock is stopped while the
    /// attempt waits for a connection.
    pub(crate) clock: Option<Arc<AttemptClock>>,
    /// `true` if the attempt failed because no bytes moved for the timeout.
    pub(crate) timed_out: bool,
    /// `true` to send the request over a new connection, and to close the connection afterwards.
    pub is_fresh: bool,
    /// The time for which the open connection had been unused; `None` if the request opened a connection.
    pub idle: Option<Duration>,
    /// The time when the request was ready to be sent, before the wait for a connection.
    pub requested: Option<Instant>,
    /// The time when the attempt started, after the wait for a connection.
    pub began: Option<Instant>,
    /// The time when the address of a new connection's host was known; `None` if an open connection was used.
    pub resolved: Option<Instant>,
    /// The time when a new TCP connection was open; `None` if an open connection was used.
    pub connected: Option<Instant>,
    /// The time when the TLS handshake of a new connection was complete.
    pub secured: Option<Instant>,
    /// The time when the last byte of the request's body was given to the connection. If there is no body, the time
    /// when the head was given to it.
    pub sent: Option<Instant>,
    /// The time when the head of the answer arrived.
    pub header: Option<Instant>,
    /// The time when the first byte of the answer's body arrived.
    pub first_byte: Option<Instant>,
    /// The time when the last byte of the answer arrived.
    pub last_byte: Option<Instant>,
    /// The HTTP status of the answer.
    pub status: Option<u16>,
    /// The error code with which the store refused the request, such as `SlowDown`.
    pub refusal_code: Option<String>,
    /// The version of the object that the answer names, if the bucket keeps versions. It is `null` if the bucket no
    /// longer keeps new versions.
    pub version: Option<String>,
    /// The compression of the body of the answer, such as `gzip`; `None` if it is not compressed.
    pub encoding: Option<String>,
}

impl Attempt {
    /// Discards the record of the previous attempt, and keeps the settings of the caller.
    pub(crate) fn restart(&mut self) {
        let Self { rate_limit, contact, clock, is_fresh, .. } = std::mem::take(self);
        let now = Some(Instant::now());
        *self = Self { rate_limit, contact, clock, is_fresh, requested: now, began: now, ..Self::default() };
    }

    /// Records that bytes of the request or its answer have moved now. A store whose requests may take long calls this
    /// function while their bytes move, because the time limit of a request starts again with each progress.
    pub fn record_progress(&self) {
        self.clock.iter().for_each(|clock| clock.touch());
        self.contact.iter().for_each(|contact| contact.touch());
    }

    /// Returns the time in seconds to open a new connection; `None` if an open connection was used.
    pub(crate) fn connecting_s(&self) -> Option<f64> {
        let connected = self.secured.or(self.connected)?;
        Some(connected.saturating_duration_since(self.began?).as_secs_f64())
    }
}

/// A failed request. The message contains no credentials, no query and no signature.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The kind of failure.
    pub kind: Kind,
    /// A text that describes the problem, names the object, and explains how to solve the problem.
    pub message: String,
    /// `true` if the same problem affects every object of the store: wrong credentials, a missing bucket, a disabled
    /// account. Requests for other objects would fail too.
    pub concerns_whole_store: bool,
    /// The time of the latest progress of the request; `None` if it is unknown.
    pub(crate) moved: Option<tokio::time::Instant>,
}

impl Failure {
    /// Creates a failure that concerns one object only.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), concerns_whole_store: false, moved: None }
    }

    pub(crate) fn fatal(message: impl Into<String>) -> Self {
        Self::new(Kind::Fatal, message)
    }

    pub(crate) fn transient(message: impl Into<String>) -> Self {
        Self::new(Kind::Transient(None), message)
    }

    /// Creates a failure for credentials that are missing or can't be used.
    pub(crate) fn denied(message: impl Into<String>) -> Self {
        Self::new(Kind::Denied, message).of_whole_store()
    }

    /// Marks a failure that would repeat with every object of the store.
    pub(crate) fn of_whole_store(self) -> Self {
        Self { concerns_whole_store: true, ..self }
    }

    /// Adds the object or address of the request to the front of the message.
    pub(crate) fn about(self, subject: &str) -> Self {
        Self { message: format!("{subject}: {}", self.message), ..self }
    }
}

/// The kind of failure, which decides how the caller reacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The failure is transient, and the request may be repeated. The duration is the wait that the store requested, if
    /// any.
    Transient(Option<Duration>),
    /// The answer was lost, and the store may have carried out the request. The caller must check this before it
    /// repeats the request.
    Unanswered,
    /// Bytes were corrupted on the way. The request may be repeated.
    Corrupted,
    /// The object has changed since it was described, or it exists although it must not exist.
    Changed,
    /// The object, bucket or upload does not exist.
    Missing,
    /// Credentials are missing, invalid or insufficient.
    Denied,
    /// The store or a quota is full, or the object is too large.
    Full,
    /// The store reports the object's length only at its end; use [`Store::open_stream`].
    Unsized,
    /// Any other failure. Repeating the request does not help.
    Fatal,
}
