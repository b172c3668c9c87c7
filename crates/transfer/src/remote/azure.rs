//! Azure's block blobs.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Instant, SystemTime};

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::Method;
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::client::Answer;
use super::refusal::time;
use super::site::{Ask, Headers, NO_STORE, ROUND, Site, meta};
use crate::{Attempt, Block, Failure, Filling, Integrity, Kind, Limits, Meta, PutOptions, Store, Upload};

/// The same polynomial as S3's, its bytes the other way round.
const CRC64: &str = "x-ms-content-crc64";
/// A range up to this size is sent with its checksum, if asked.
const CHECKED_RANGE_BYTES: u64 = 4 << 20;

/// A container.
#[derive(Debug)]
pub struct Container {
    site: Site,
    range_sums: AtomicU8,
}

/// Values of `range_sums`: whether the store sends a range with its checksum.
const UNKNOWN: u8 = 0;
const SENT: u8 = 1;
const REFUSED: u8 = 2;

impl Container {
    pub fn new(site: Site) -> Self {
        Self { site, range_sums: AtomicU8::new(UNKNOWN) }
    }

    /// A checksum in an answer is of what the store has, or has sent.
    fn check(&self, name: &str, crc64: u64, answer: &Answer) -> Result<(), Failure> {
        match answer.header(CRC64) {
            Some(said) if said != encoded(crc64) => {
                Err(self.site.failure(name, Kind::Corrupted, "what the store has is not what was sent"))
            }
            _ => Ok(()),
        }
    }

    /// Asks for something to be made, and takes nothing but that it was.
    async fn make(&self, ask: Ask<'_>, seen: &mut Attempt) -> Result<Answer, Failure> {
        let name = ask.name;
        let (answer, _) = self.site.text(ask, seen).await?;
        if answer.status == 201 { Ok(answer) } else { Err(self.site.failure(name, Kind::Fatal, NO_STORE)) }
    }
}

/// What each request says: an answer that is made for a later version could be another.
fn headers() -> Headers {
    vec![("x-ms-version", "2023-11-03".into())]
}

fn encoded(crc64: u64) -> String {
    BASE64_STANDARD.encode(crc64.to_le_bytes())
}

/// The store's name for a block; within a blob all must be equally long.
fn block_id(upload: &Upload, index: usize) -> String {
    BASE64_STANDARD.encode(format!("{}-{index:06}", upload.id))
}

#[async_trait]
impl Store for Container {
    fn limits(&self) -> Limits {
        Limits {
            min_block_bytes: 1,
            max_block_bytes: 4000 << 20,
            max_blocks: 50_000,
            max_put_bytes: 5000 << 20,
            integrity: Integrity::Blocks,
        }
    }

    fn keeps_pace(&self) -> bool {
        true
    }

    async fn connect(&self, connections: usize) {
        self.site.connect(connections).await;
    }

    async fn head(&self, name: &str, seen: &mut Attempt) -> Result<Option<Meta>, Failure> {
        let ask = Ask { method: Method::HEAD, name, headers: headers(), ..Ask::default() };
        Ok(self.site.head(ask, seen).await?.map(|(_, meta)| meta))
    }

    async fn get_into(&self, of: &Meta, into: Filling, seen: &mut Attempt) -> Result<Filling, Failure> {
        let range = into.range();
        let is_small = range.end.saturating_sub(range.start) <= CHECKED_RANGE_BYTES;
        let known = self.range_sums.load(Ordering::Relaxed);
        let answer = if is_small && known != REFUSED {
            let with_sum = headers().into_iter().chain([("x-ms-range-get-content-crc64", "true".into())]).collect();
            match self.site.ask_range(of, &range, with_sum, seen).await {
                // Azurite does not know the header, and answers with this status.
                Err(_) if known == UNKNOWN && seen.status == Some(500) => {
                    let answer = self.site.ask_range(of, &range, headers(), seen).await?;
                    self.range_sums.store(REFUSED, Ordering::Relaxed);
                    answer
                }
                answer => {
                    let answer = answer?;
                    self.range_sums.store(SENT, Ordering::Relaxed);
                    answer
                }
            }
        } else {
            self.site.ask_range(of, &range, headers(), seen).await?
        };
        let (answer, filled) = self.site.fill(of, answer, into, seen).await?;
        self.check(&of.name, filled.crc64(), &answer)?;
        Ok(filled)
    }

    async fn put(&self, name: &str, body: Block, options: &PutOptions, seen: &mut Attempt) -> Result<Meta, Failure> {
        let mut headers = headers();
        headers.push(("x-ms-blob-type", "BlockBlob".into()));
        headers.push((CRC64, encoded(body.crc64)));
        headers.extend(options.content_type.clone().map(|media| ("x-ms-blob-content-type", media)));
        headers.extend(options.no_clobber.then(|| ("if-none-match", "*".into())));
        let (bytes, crc64) = (body.bytes.len() as u64, body.crc64);
        let ask = Ask { method: Method::PUT, name, headers, body: body.bytes, once: true, ..Ask::default() };
        let answer = self.make(ask, seen).await?;
        self.check(name, crc64, &answer)?;
        Ok(Meta { crc64: answer.header(CRC64).map(|_| crc64), ..meta(name, bytes, &answer) })
    }

    /// There is nothing to ask for: an upload is what its blocks' names have in common.
    async fn begin(&self, name: &str, _options: &PutOptions, seen: &mut Attempt) -> Result<Upload, Failure> {
        *seen = Attempt { began: Some(Instant::now()), ..Attempt::default() };
        let id = std::hash::RandomState::new().hash_one((name, SystemTime::now()));
        Ok(Upload { name: name.into(), id: format!("{id:016x}") })
    }

    async fn put_block(
        &self,
        upload: &Upload,
        index: usize,
        body: Block,
        seen: &mut Attempt,
    ) -> Result<String, Failure> {
        let mut headers = headers();
        headers.push((CRC64, encoded(body.crc64)));
        let id = block_id(upload, index);
        let query = &[("comp", "block"), ("blockid", &*id)];
        let bytes = body.bytes.len();
        let ask = Ask { method: Method::PUT, name: &upload.name, query, headers, body: body.bytes, once: false };
        let answer = self.make(ask, seen).await?;
        self.check(&upload.name, body.crc64, &answer)?;
        Ok(format!("{bytes} {id}"))
    }

    async fn commit(
        &self,
        upload: &Upload,
        blocks: &[String],
        _crc64: u64,
        options: &PutOptions,
        seen: &mut Attempt,
    ) -> Result<Meta, Failure> {
        let name = &*upload.name;
        let mut list = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
        let mut bytes = 0;
        for block in blocks {
            let (size, id) = block
                .split_once(' ')
                .and_then(|(size, id)| Some((size.parse::<u64>().ok()?, id)))
                .filter(|(_, id)| BASE64_STANDARD.decode(id).is_ok())
                .ok_or_else(|| self.site.failure(name, Kind::Fatal, "the journal's names of blocks are damaged"))?;
            bytes += size;
            list += &format!("<Latest>{id}</Latest>");
        }
        list += "</BlockList>";
        let mut headers = headers();
        headers.extend(options.content_type.clone().map(|media| ("x-ms-blob-content-type", media)));
        headers.extend(options.no_clobber.then(|| ("if-none-match", "*".into())));
        let query = &[("comp", "blocklist")];
        let ask = Ask { method: Method::PUT, name, query, headers, body: list.into(), once: true };
        let answer = self.make(ask, seen).await?;
        Ok(meta(name, bytes, &answer))
    }

    /// Nothing to be done, and no request for it: blocks that no list names expire in a week.
    async fn abort(&self, _upload: &Upload, seen: &mut Attempt) -> Result<(), Failure> {
        *seen = Attempt { began: Some(Instant::now()), ..Attempt::default() };
        Ok(())
    }

    async fn remove(&self, name: &str, seen: &mut Attempt) -> Result<(), Failure> {
        self.site.delete(name, &[], headers(), seen).await
    }

    async fn list(&self, prefix: &str, seen: &mut Attempt) -> Result<Vec<Meta>, Failure> {
        let (mut found, mut markers) = (Vec::new(), Vec::<String>::new());
        loop {
            let mut query = vec![("restype", "container"), ("comp", "list")];
            query.extend(Some(("prefix", prefix)).filter(|_| !prefix.is_empty()));
            query.extend(markers.last().map(|marker| ("marker", &**marker)));
            let ask = Ask { query: &query, headers: headers(), ..Ask::default() };
            let (_, text) = self.site.text(ask, seen).await?;
            let page: Page = quick_xml::de::from_str(text.trim_start_matches('\u{feff}'))
                .map_err(|_| self.site.failure("", Kind::Fatal, NO_STORE))?;
            found.extend(page.blobs.blobs.into_iter().map(Meta::from));
            match page.next.unwrap_or_default() {
                next if next.is_empty() => return Ok(found),
                next if markers.contains(&next) => return Err(self.site.failure("", Kind::Fatal, ROUND)),
                next => markers.push(next),
            }
        }
    }
}

#[derive(Deserialize)]
struct Page {
    #[serde(rename = "Blobs")]
    blobs: Blobs,
    #[serde(rename = "NextMarker")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct Blobs {
    #[serde(rename = "Blob", default)]
    blobs: Vec<Blob>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Blob {
    name: Name,
    properties: Properties,
}

/// What XML has no characters for is encoded.
#[derive(Deserialize)]
struct Name {
    #[serde(rename = "@Encoded", default)]
    is_encoded: bool,
    #[serde(rename = "$text", default)]
    text: String,
}

#[derive(Deserialize)]
struct Properties {
    #[serde(rename = "Content-Length")]
    bytes: u64,
    #[serde(rename = "Etag")]
    etag: Option<String>,
    #[serde(rename = "Last-Modified")]
    modified: Option<String>,
}

impl From<Blob> for Meta {
    fn from(blob: Blob) -> Self {
        // A list has it without the quotes that headers have.
        let etag = blob.properties.etag.map(|etag| if etag.starts_with('"') { etag } else { format!("\"{etag}\"") });
        let modified = blob.properties.modified.as_deref().and_then(time);
        let Name { is_encoded, text } = blob.name;
        let name = if is_encoded { percent_decode_str(&text).decode_utf8_lossy().into() } else { text };
        Self { name, bytes: blob.properties.bytes, etag, modified, crc64: None, crc32c: None }
    }
}
