//! What a store can be asked for. Each function is one request, made once: who calls it repeats what may be repeated.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::buffers::{Buffers, Filling};
use crate::moving::Pace;

/// A place that holds objects under names, and makes one of blocks that arrive in any order.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// What it takes.
    fn limits(&self) -> Limits;

    /// How somebody who has an address in it alone gets here again.
    fn reached(&self) -> Reached {
        Reached::default()
    }

    /// Whether blocks are sent to it as slowly as [`Attempt`] says, slice by slice; what doesn't is given them later.
    fn keeps_pace(&self) -> bool {
        false
    }

    /// Makes connections for requests that come all at once: where it is far away, each saves them round trips.
    async fn connect(&self, _connections: usize) {}

    /// What there is under a name; none if there is nothing.
    async fn head(&self, name: &str, seen: &mut Attempt) -> Result<Option<Meta>, Failure>;

    /// These bytes of the object that `of` describes, and of no other: if it has changed since, that is an error.
    async fn get(&self, of: &Meta, range: Range<u64>, seen: &mut Attempt) -> Result<Block, Failure> {
        if range.end > of.bytes {
            let said = format!("{} has {} bytes, and none up to {}", of.name, of.bytes, range.end);
            return Err(Failure { kind: Kind::Fatal, said });
        }
        let into = Filling::in_memory(&Buffers::default(), range);
        self.get_into(of, into, seen).await?.whole().map(Filling::done)
    }

    /// The bytes of a range to where they belong, as they come: when that fails, some of them may be there. Who implements
    /// it adds them from the range's beginning on, and only while the future is polled: a thread or task that outlives it
    /// would write over what the next attempt has put right.
    async fn get_into(&self, of: &Meta, into: Filling, seen: &mut Attempt) -> Result<Filling, Failure>;

    /// All of an object whose length is known only at its end ([`Kind::Unsized`]), by one request, and what it is.
    async fn get_pieces(&self, name: &str, _seen: &mut Attempt) -> Result<(Meta, Box<dyn Pieces>), Failure> {
        Err(Failure { kind: Kind::Fatal, said: format!("{name}: objects here have a length that is known") })
    }

    /// Whether parts of this object can only be asked for in their order, one at a time: some servers of HTTP know no
    /// ranges. Another order works, but begins at the front each time.
    fn in_order(&self, _of: &Meta) -> bool {
        false
    }

    /// Puts an object by a single request.
    async fn put(&self, name: &str, body: Block, options: &PutOptions, seen: &mut Attempt) -> Result<Meta, Failure>;

    /// Begins an object that is made of blocks.
    async fn begin(&self, name: &str, options: &PutOptions, seen: &mut Attempt) -> Result<Upload, Failure>;

    /// Sends one block, counted from 0. Returns what `commit` must be told for it.
    async fn put_block(
        &self,
        upload: &Upload,
        index: usize,
        body: Block,
        seen: &mut Attempt,
    ) -> Result<String, Failure>;

    /// Makes the object of its blocks, in this order. `crc64` is the whole's, for stores that can check it.
    async fn commit(
        &self,
        upload: &Upload,
        blocks: &[String],
        crc64: u64,
        options: &PutOptions,
        seen: &mut Attempt,
    ) -> Result<Meta, Failure>;

    /// Gives up an object that was begun, so that its blocks cost nothing. What can't be given up expires by itself.
    async fn abort(&self, upload: &Upload, seen: &mut Attempt) -> Result<(), Failure>;

    /// Removes an object; what is not there is as it was to be.
    async fn remove(&self, name: &str, _seen: &mut Attempt) -> Result<(), Failure> {
        Err(Failure { kind: Kind::Fatal, said: format!("{name}: nothing can be removed here") })
    }

    /// The file of this machine that an object is, where it is one.
    fn file(&self, _name: &str) -> Option<PathBuf> {
        None
    }

    /// Everything whose name begins like this, in the order of names; a page at a time behind the scenes.
    async fn list(&self, prefix: &str, seen: &mut Attempt) -> Result<Vec<Meta>, Failure>;
}

/// An object's bytes as they come, from the first to the last.
#[async_trait]
pub trait Pieces: Send {
    /// The next of them; none at the end. Without chunks that is when the server closes the connection, so that an answer
    /// that was cut short can't be told from a whole one.
    async fn next(&mut self, seen: &mut Attempt) -> Result<Option<Bytes>, Failure>;
}

/// What a store takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Every block but the last has at least these, …
    pub min_block_bytes: u64,
    /// … and at most these.
    pub max_block_bytes: u64,
    /// The most blocks in an object.
    pub max_blocks: usize,
    /// The most that a single `put` takes.
    pub max_put_bytes: u64,
    /// Who notices that bytes were changed on the way.
    pub integrity: Integrity,
}

/// Who notices that bytes were changed on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integrity {
    /// The store checks each block, and the whole against the sum of `commit`.
    Whole,
    /// The store checks each block.
    Blocks,
    /// Nobody, unless what was stored is read back.
    ReadBack,
}

/// A block's bytes with their checksum, which was computed when they were read or came, once, and travels with them.
#[derive(Clone, Debug)]
pub struct Block {
    /// The bytes.
    pub bytes: Bytes,
    /// Their CRC-64/NVME.
    pub crc64: u64,
}

/// An object, as its store describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Its name in the store.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// What changes when it changes, where the store says so.
    pub etag: Option<String>,
    /// When it was last written, by the store's clock.
    pub modified: Option<SystemTime>,
    /// The CRC-64/NVME of all of it, where the store knows it.
    pub crc64: Option<u64>,
    /// The CRC-32C of all of it, where that is the sum that the store knows.
    pub crc32c: Option<u32>,
}

impl Meta {
    /// Metadata of an object of which only the name is known; the length is one that no object has.
    pub(crate) fn unsized_of(name: &str) -> Self {
        Self { name: name.into(), bytes: u64::MAX, etag: None, modified: None, crc64: None, crc32c: None }
    }
}

/// What an object is put with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutOptions {
    /// Its media type.
    pub content_type: Option<String>,
    /// Only if there is nothing under its name yet.
    pub no_clobber: bool,
}

/// An object that was begun: what a journal must remember to go on with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// The object's name.
    pub name: String,
    /// The store's name for this upload.
    pub id: String,
}

/// How a store is reached beside its address: for journals, so without credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// Where it is, without a user or a query.
    pub endpoint_url: Option<String>,
    /// S3: the region.
    pub region: Option<String>,
    /// S3: the profile that was asked for.
    pub profile: Option<String>,
    /// S3: whether the bucket is in front of the endpoint's host.
    pub virtual_hosted: bool,
    /// Whether without credentials; older journals don't say.
    #[serde(default)]
    pub anonymous: bool,
    /// Whether who asks pays; older journals don't say.
    #[serde(default)]
    pub requester_pays: bool,
}

/// What was seen of one request, for those who measure: what did not come to pass is not there.
#[derive(Clone, Debug, Default)]
pub struct Attempt {
    /// How fast what it carries may go to a remote store, if there is a limit; for who makes the request.
    pub(crate) pace: Option<Arc<Pace>>,
    /// When it was begun, …
    pub began: Option<Instant>,
    /// … when there was a connection, if a new one was made, …
    pub connected: Option<Instant>,
    /// … when keys were agreed upon, …
    pub secured: Option<Instant>,
    /// … when the answer's head came, …
    pub header: Option<Instant>,
    /// … its first byte, …
    pub first_byte: Option<Instant>,
    /// … and its last.
    pub last_byte: Option<Instant>,
    /// The status of HTTP.
    pub status: Option<u16>,
}

/// Why a request failed. Its words have no credentials, no query and no signature in them.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{said}")]
pub struct Failure {
    /// What kind of failure.
    pub kind: Kind,
    /// What happened, to what, and the way out.
    pub said: String,
}

/// What a failure means for who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It may be tried again, after this time if the store named one.
    Transient(Option<Duration>),
    /// The request may have been carried out: look before anything is repeated.
    Unanswered,
    /// What was sent or received is not what it should be; it may be tried again.
    Corrupted,
    /// The object is no longer the one that was asked about, or is there although it must not be.
    Changed,
    /// There is no such object, bucket or upload.
    Missing,
    /// Credentials are missing, wrong, or not enough.
    Denied,
    /// There is no room left.
    Full,
    /// The store tells how long the object is only at its end: see [`Store::get_pieces`].
    Unsized,
    /// Anything that trying again does not mend.
    Fatal,
}

/// A store, and a name or the beginning of names in it: what a URL says.
#[derive(Debug)]
pub struct Found {
    /// The store.
    pub store: Box<dyn Store>,
    /// The object's name, or what the names of objects begin with.
    pub name: String,
    /// The address without user, password or query, to be shown.
    pub shown: String,
}
