//! A store in Azure: block blobs in a container.

use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::SystemTime;

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use hyper::Method;
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::Result;
use super::attributes::rfc_3339;
use super::checked::{self, Checksum};
use super::client::{Call, Client, Headers, NO_STORE, quoted, refused_again};
use super::refusal::parse_time;
use super::transport::Response;
use crate::crc64::crc64_of_blocks;
use crate::{Attempt, Attributes, Error, Kind, Limits, ObjectMeta, PartBody, PutOptions, RangeWriter, Store, Upload};

/// Name of the header with the checksum of a body. It is the same CRC-64/NVME as for S3, but its bytes are in reverse
/// order.
const CRC64: &str = "x-ms-content-crc64";
/// Largest range in bytes for which Azure sends a checksum with the answer.
const CHECKED_RANGE_BYTES: u64 = 4 << 20;

/// A store in Azure: a container of blobs.
#[derive(Debug)]
pub struct Container {
    client: Client,
    range_sums: AtomicU8,
}

/// The initial value of [`Container::range_sums`]: it is not known yet whether the store sends checksums for ranges.
const UNKNOWN: u8 = 0;
const SENT: u8 = 1;
const REFUSED: u8 = 2;

impl Container {
    pub fn new(client: Client) -> Self {
        Self { client, range_sums: AtomicU8::new(UNKNOWN) }
    }

    /// Checks that an answer contains the checksum `crc64` of our bytes, or no checksum. The error names the object
    /// `name`.
    fn check(&self, name: &str, crc64: u64, response: &Response) -> Result<()> {
        match response.header(CRC64) {
            Some(answered) if answered != encoded(crc64) => {
                Err(self.client.failure(name, Kind::Corrupted, "the stored bytes differ from those that were sent"))
            }
            _ => Ok(()),
        }
    }

    /// Sends a request that creates an object or a part. The answer must have status 201.
    async fn create(&self, call: Call<'_>, attempt: &mut Attempt) -> Result<Response> {
        let name = call.name;
        let (response, _) = self.client.send_for_text(call, attempt).await?;
        if response.status == 201 { Ok(response) } else { Err(self.client.failure(name, Kind::Fatal, NO_STORE)) }
    }

    /// Requests a range of an object. If the range is small and the store supports this, the answer has its checksum.
    async fn request_range(&self, of: &ObjectMeta, range: &Range<u64>, attempt: &mut Attempt) -> Result<Response> {
        let is_small = range.end.saturating_sub(range.start) <= CHECKED_RANGE_BYTES;
        let known = self.range_sums.load(Ordering::Relaxed);
        if !is_small || known == REFUSED {
            return self.client.get_range(of, range, Headers::new(), attempt).await;
        }
        let with_sum = vec![("x-ms-range-get-content-crc64", "true".into())];
        let (response, now) = match self.client.get_range(of, range, with_sum, attempt).await {
            // Azurite does not support the header `x-ms-range-get-content-crc64`, and answers with status 500. The
            // request is then repeated without this header.
            Err(_) if known == UNKNOWN && attempt.status == Some(500) => {
                (self.client.get_range(of, range, Headers::new(), attempt).await?, REFUSED)
            }
            response => (response?, SENT),
        };
        self.range_sums.store(now, Ordering::Relaxed);
        Ok(response)
    }
}

impl Container {
    /// Lists blobs. `include` names further entries of each blob, such as its versions.
    async fn list_blobs(&self, prefix: &str, include: Option<&str>, attempt: &mut Attempt) -> Result<Vec<Blob>> {
        self.client.list(&list_query(prefix, include), NEXT_PAGE, attempt, |text| self.parse_page(text)).await
    }

    /// Parses a page of a list. Returns its blobs, and the token of the next page if there is one.
    fn parse_page(&self, text: &str) -> Result<(Vec<Blob>, Option<String>)> {
        let page: Page = self.client.parse("", text.trim_start_matches('\u{feff}'))?;
        Ok((page.blobs.blobs, page.next_marker.filter(|next| !next.is_empty())))
    }

    /// Lists the entries of exactly one name.
    async fn entries(&self, name: &str, include: &str, attempt: &mut Attempt) -> Result<Vec<Blob>> {
        let blobs = self.list_blobs(name, Some(include), attempt).await?;
        Ok(blobs.into_iter().filter(|blob| blob.name.decoded() == name).collect())
    }

    /// Removes an object with its snapshots, or the version or the snapshot that `query` names.
    async fn delete(&self, name: &str, query: &[(&str, &str)], attempt: &mut Attempt) -> Result<()> {
        let snapshots = query.is_empty().then(|| ("x-ms-delete-snapshots", "include".into()));
        self.client.delete(name, query, snapshots.into_iter().collect(), attempt).await
    }
}

/// The query parameter with the token of a page of a list.
const NEXT_PAGE: &str = "marker";

/// Returns the query of a request for a list.
fn list_query<'a>(prefix: &'a str, include: Option<&'a str>) -> Vec<(&'static str, &'a str)> {
    let mut query = vec![("restype", "container"), ("comp", "list")];
    query.extend(include.map(|include| ("include", include)));
    query.extend(Some(("prefix", prefix)).filter(|_| !prefix.is_empty()));
    query
}

/// The header with the version of Azure's protocol. Every request has it, because answers may differ between versions.
pub const VERSION: (&str, &str) = ("x-ms-version", "2023-11-03");

/// Returns the headers for a request that makes an object visible under its name. They contain the object's attributes
/// except the metadata. With `no_clobber`, they also contain the condition that the object must not exist yet.
fn headers_for(options: &PutOptions) -> Headers {
    let Attributes { content_type, cache_control, storage_class, tagging, .. } = &options.attributes;
    let attributes = [
        ("x-ms-blob-content-type", content_type),
        ("x-ms-blob-cache-control", cache_control),
        ("x-ms-access-tier", storage_class),
        ("x-ms-tags", tagging),
    ];
    let attributes = attributes.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
    attributes.chain(options.no_clobber.then(|| ("if-none-match", "*".into()))).collect()
}

/// Returns the headers with an object's metadata.
fn metadata(options: &PutOptions) -> Vec<(String, String)> {
    options.attributes.metadata_headers("x-ms-meta-", &[("mtime", rfc_3339)])
}

fn encoded(crc64: u64) -> String {
    BASE64_STANDARD.encode(crc64.to_le_bytes())
}

fn decoded(crc64: &str) -> Option<u64> {
    Some(u64::from_le_bytes(BASE64_STANDARD.decode(crc64).ok()?.try_into().ok()?))
}

/// Returns the identifier under which the store keeps the part `index` of an upload. All identifiers of an object must
/// have the same length.
fn block_id(upload: &Upload, index: usize) -> String {
    BASE64_STANDARD.encode(format!("{}-{index:06}", upload.id))
}

#[async_trait]
impl Store for Container {
    fn limits(&self) -> Limits {
        Limits { min_part_bytes: 1, max_part_bytes: 4000 << 20, max_parts: 50_000, max_put_bytes: 5000 << 20 }
    }

    fn keeps_pace(&self) -> bool {
        true
    }

    fn check_attributes(&self, attributes: &Attributes, address: &str) -> crate::error::Result<()> {
        let known = ["content_type", "cache_control", "metadata", "storage_class", "tagging"];
        attributes.check(address, "az://", &known)?;
        let is_identifier =
            |name: &str| !name.contains(['-', '.']) && !name.starts_with(|first: char| first.is_ascii_digit());
        match attributes.metadata.keys().find(|name| !is_identifier(name)) {
            None => Ok(()),
            Some(name) => Err(Error::Request(format!(
                "{address}: Azure accepts no metadata with the name `{name}`; use letters, digits and `_`, and no digit at \
                 the beginning"
            ))),
        }
    }

    async fn connect(&self, connections: usize) {
        self.client.connect(connections).await;
    }

    fn proxy(&self) -> Result<Option<String>> {
        self.client.proxy()
    }

    async fn head(&self, name: &str, attempt: &mut Attempt) -> Result<Option<ObjectMeta>> {
        Ok(self.client.head(name, Headers::new(), attempt).await?.map(|(_, meta)| meta))
    }

    async fn get_range(&self, of: &ObjectMeta, into: RangeWriter, attempt: &mut Attempt) -> Result<RangeWriter> {
        self.get_whole(of, into, attempt).await.map(|(filled, _)| filled)
    }

    /// Reads the object in pieces for which the store sends checksums, one after the other over the same connection.
    async fn get_whole(
        &self,
        of: &ObjectMeta,
        mut into: RangeWriter,
        attempt: &mut Attempt,
    ) -> Result<(RangeWriter, ObjectMeta)> {
        let (Range { start, end }, mut next) = (into.range(), into.range().start);
        loop {
            let is_refused = self.range_sums.load(Ordering::Relaxed) == REFUSED;
            let piece = next..if is_refused { end } else { end.min(next + CHECKED_RANGE_BYTES) };
            let mut response = self.request_range(of, &piece, attempt).await?;
            let (meta, before) = (response.meta(&of.name, of.bytes), (next - start, into.crc64()));
            response.add_to(&mut into, attempt).await?;
            if into.left() as u64 != end - piece.end {
                let message = "the store sent fewer or more bytes than the requested range";
                return Err(self.client.failure(&of.name, Kind::Corrupted, message));
            }
            let fits = |sum| into.crc64() == crc64_of_blocks([before, (piece.end - piece.start, sum)]);
            if response.header(CRC64).is_some_and(|sum| !decoded(sum).is_some_and(fits)) {
                let message = "the bytes that arrived do not have the checksum in the answer";
                return Err(self.client.failure(&of.name, Kind::Corrupted, message));
            }
            next = piece.end;
            if next >= end {
                return Ok((into, meta));
            }
        }
    }

    async fn read_into(
        &self,
        name: &str,
        range: Option<Range<u64>>,
        most: u64,
        into: &mut Vec<u8>,
        attempt: &mut Attempt,
    ) -> Result<()> {
        self.client.read_into(name, range, most, into, attempt).await
    }

    fn base_url(&self) -> Option<String> {
        Some(self.client.configured_base().into())
    }

    async fn retention(&self, attempt: &mut Attempt) -> Result<Option<String>> {
        let (response, _) =
            self.client.send_for_text(Call { query: &[("restype", "container")], ..Call::default() }, attempt).await?;
        let rules =
            [("x-ms-has-immutability-policy", "an immutability policy"), ("x-ms-has-legal-hold", "a legal hold")];
        let rule = rules.into_iter().find(|(header, _)| response.header(header) == Some("true"));
        Ok(rule.map(|(_, rule)| rule.into()))
    }

    async fn purge(&self, name: &str, attempt: &mut Attempt) -> Result<()> {
        if !self.entries(name, "uncommittedblobs", attempt).await?.is_empty() {
            // An empty object replaces the blocks of an upload that was not completed.
            let empty = PartBody { bytes: Bytes::new(), crc64: crate::crc64(&[]) };
            self.put(name, empty, &PutOptions::default(), attempt).await?;
        }
        self.delete(name, &[], attempt).await?;
        for entry in self.entries(name, "versions,snapshots", attempt).await? {
            let of = [("versionid", &entry.version_id), ("snapshot", &entry.snapshot)];
            for (key, id) in of.into_iter().filter_map(|(key, id)| Some((key, id.as_deref()?))) {
                self.delete(name, &[(key, id)], attempt).await?;
            }
        }
        Ok(())
    }

    /// Removes the object, and then its version. The current version cannot be removed by its id.
    async fn remove_version(&self, name: &str, version: &str, attempt: &mut Attempt) -> Result<()> {
        self.delete(name, &[], attempt).await?;
        self.delete(name, &[("versionid", version)], attempt).await
    }

    async fn put(&self, name: &str, body: PartBody, options: &PutOptions, attempt: &mut Attempt) -> Result<ObjectMeta> {
        let mut headers = headers_for(options);
        headers.extend([("x-ms-blob-type", "BlockBlob".into()), (CRC64, encoded(body.crc64))]);
        let (bytes, crc64) = (body.bytes.len() as u64, body.crc64);
        let (metadata, body) = (metadata(options), body.bytes);
        let call = Call { method: Method::PUT, name, headers, metadata, body, once: true, ..Call::default() };
        let response = self.create(call, attempt).await?;
        self.check(name, crc64, &response).map_err(|failure| refused_again(failure, options))?;
        Ok(ObjectMeta { crc64: response.header(CRC64).map(|_| crc64), ..response.meta(name, bytes) })
    }

    async fn put_with_checksum(
        &self,
        name: &str,
        body: Bytes,
        checksum: Checksum,
        attempt: &mut Attempt,
    ) -> Result<()> {
        checked::put(&self.client, name, body, (checksum, true), attempt).await
    }

    /// Creates an upload. This needs no request, because an upload is only a random number: the identifiers of its
    /// parts start with it.
    async fn start_upload(&self, name: &str, _options: &PutOptions, attempt: &mut Attempt) -> Result<Upload> {
        attempt.restart();
        let id = std::hash::RandomState::new().hash_one((name, SystemTime::now()));
        Ok(Upload { name: name.into(), id: format!("{id:016x}") })
    }

    async fn put_part(&self, upload: &Upload, index: usize, body: PartBody, attempt: &mut Attempt) -> Result<String> {
        let headers = vec![(CRC64, encoded(body.crc64))];
        let id = block_id(upload, index);
        let query = &[("comp", "block"), ("blockid", &*id)];
        let bytes = body.bytes.len();
        let call =
            Call { method: Method::PUT, name: &upload.name, query, headers, body: body.bytes, ..Call::default() };
        let response = self.create(call, attempt).await?;
        self.check(&upload.name, body.crc64, &response)?;
        Ok(format!("{bytes} {id}"))
    }

    async fn commit(
        &self,
        upload: &Upload,
        tokens: &[String],
        _crc64: u64,
        options: &PutOptions,
        attempt: &mut Attempt,
    ) -> Result<ObjectMeta> {
        let name = &*upload.name;
        let mut list = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
        let mut bytes = 0;
        for token in tokens {
            let (size, id) = token
                .split_once(' ')
                .and_then(|(size, id)| Some((size.parse::<u64>().ok()?, id)))
                .filter(|(_, id)| BASE64_STANDARD.decode(id).is_ok())
                .ok_or_else(|| {
                    self.client.failure(name, Kind::Fatal, "the tokens of parts in the journal are damaged")
                })?;
            bytes += size;
            list += &format!("<Latest>{id}</Latest>");
        }
        list += "</BlockList>";
        let (query, headers) = (&[("comp", "blocklist")], headers_for(options));
        let (metadata, body) = (metadata(options), list.into());
        let (once, assembles) = (true, true);
        let call =
            Call { method: Method::PUT, name, query, headers, metadata, body, once, assembles, ..Call::default() };
        Ok(self.create(call, attempt).await?.meta(name, bytes))
    }

    /// Does nothing, because Azure removes uncommitted parts within a week.
    async fn abort(&self, _upload: &Upload, attempt: &mut Attempt) -> Result<()> {
        attempt.restart();
        Ok(())
    }

    async fn remove(&self, name: &str, attempt: &mut Attempt) -> Result<()> {
        self.client.delete(name, &[], Headers::new(), attempt).await
    }

    async fn list(&self, prefix: &str, attempt: &mut Attempt) -> Result<Vec<ObjectMeta>> {
        let blobs = self.list_blobs(prefix, None, attempt).await?;
        Ok(blobs.into_iter().map(ObjectMeta::from).collect())
    }

    async fn list_page(
        &self,
        prefix: &str,
        page: Option<&str>,
        attempt: &mut Attempt,
    ) -> Result<(Vec<ObjectMeta>, Option<String>)> {
        let query = list_query(prefix, None);
        let (blobs, next) =
            self.client.list_page(&query, (NEXT_PAGE, page), attempt, |text| self.parse_page(text)).await?;
        Ok((blobs.into_iter().map(ObjectMeta::from).collect(), next))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    blobs: Blobs,
    next_marker: Option<String>,
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
    version_id: Option<String>,
    snapshot: Option<String>,
}

/// The name of an object in a list. Names with characters that are invalid in XML are percent-encoded.
#[derive(Deserialize)]
struct Name {
    #[serde(rename = "@Encoded", default)]
    is_encoded: bool,
    #[serde(rename = "$text", default)]
    text: String,
}

impl Name {
    fn decoded(&self) -> String {
        match self.is_encoded {
            true => percent_decode_str(&self.text).decode_utf8_lossy().into(),
            false => self.text.clone(),
        }
    }
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

impl From<Blob> for ObjectMeta {
    fn from(blob: Blob) -> Self {
        // ETags have quotes in headers, but not in lists.
        let etag = blob.properties.etag.map(quoted);
        let modified = blob.properties.modified.as_deref().and_then(parse_time);
        let name = blob.name.decoded();
        Self { name, bytes: blob.properties.bytes, etag, modified, ..Self::default() }
    }
}
