//! A store in S3, in a compatible store, or in GCS through its S3-like interface.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::Timelike;
use hyper::Method;
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::Result;
use super::checked::{self, Checksum};
use super::client::{Call, Client, Headers, NO_STORE, quoted, refused_again};
use super::dialect::{CRC64, Dialect, Token, decoded, decoded_crc32c};
use super::purge;
use super::refusal;
use super::transport::Response;
use crate::{
    Attempt, Attributes, Error, Failure, Kind, Limits, ObjectMeta, PartBody, PutOptions, RangeWriter, Store,
    StoreLocation, Upload,
};

/// The message if a list of objects is incomplete, but has no token to request its next page.
const TRUNCATED_LIST: &str = "the list is incomplete, but has no token for the next page";

/// The query parameter with the token of a page of a list.
const NEXT_PAGE: &str = "continuation-token";

/// A bucket of S3 or GCS.
#[derive(Debug)]
pub struct Bucket {
    client: Client,
    dialect: Dialect,
    location: StoreLocation,
    /// `true` if the store encrypts uploads with a KMS key.
    uses_kms: AtomicBool,
}

impl Bucket {
    pub fn new(client: Client, dialect: Dialect, location: StoreLocation) -> Self {
        Self { client, dialect, location, uses_kms: AtomicBool::new(false) }
    }

    /// Records that the store encrypts uploads with a KMS key, if the headers of `response` show this.
    fn note_encryption(&self, response: &Response) {
        if response.header("x-amz-server-side-encryption").is_some_and(|kind| kind.starts_with("aws:kms")) {
            self.uses_kms.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the checksum of a body in the store's format. Fails if the bytes have changed in memory.
    fn sum(&self, name: &str, body: &PartBody) -> Result<String> {
        let changed =
            || self.client.failure(name, Kind::Corrupted, "the bytes to send differ from those that were read");
        self.dialect.sum(body).ok_or_else(changed)
    }

    /// Returns the headers that ask for the checksum of an object.
    fn with_checksums(&self) -> Headers {
        (self.dialect == Dialect::S3).then(|| ("x-amz-checksum-mode", "ENABLED".into())).into_iter().collect()
    }

    /// Adds the checksums of the whole object, as far as the answer contains them, to its description.
    fn add_checksums(&self, response: &Response, meta: ObjectMeta) -> ObjectMeta {
        // A composite checksum is computed from the checksums of the parts. It can't be compared with the checksum of
        // the whole object.
        let is_whole = response.header("x-amz-checksum-type").is_none_or(|kind| kind == "FULL_OBJECT");
        let crc64 = response.header(CRC64).filter(|_| is_whole).and_then(decoded);
        let hash = if self.dialect == Dialect::Google { self.dialect.sum_in(response) } else { None };
        ObjectMeta { crc64, crc32c: hash.as_deref().and_then(decoded_crc32c), ..meta }
    }

    /// Checks that an answer contains the checksum `sum` of our bytes, or no checksum. The error names the object
    /// `name`.
    fn check(&self, name: &str, sum: &str, answered: Option<&str>) -> Result<()> {
        if answered.is_none_or(|answered| answered == sum) {
            return Ok(());
        }
        Err(self.client.failure(name, Kind::Corrupted, "the stored bytes differ from those that were sent"))
    }

    /// Fails if the object exists and `options` forbid replacing it. Does nothing for stores that check this condition
    /// during the commit.
    async fn refuse_if_there(&self, name: &str, options: &PutOptions, attempt: &mut Attempt) -> Result<()> {
        let is_needed = options.no_clobber && self.dialect.commits_blindly();
        if is_needed && self.head(name, attempt).await?.is_some() {
            return Err(self.client.failure(name, Kind::Changed, "an object of this name exists already"));
        }
        Ok(())
    }
}

#[async_trait]
impl Store for Bucket {
    fn limits(&self) -> Limits {
        Limits { min_part_bytes: 5 << 20, max_part_bytes: 5 << 30, max_parts: 10_000, max_put_bytes: 5 << 30 }
    }

    fn location(&self) -> StoreLocation {
        self.location.clone()
    }

    fn keeps_pace(&self) -> bool {
        true
    }

    fn check_attributes(&self, attributes: &Attributes, address: &str) -> crate::error::Result<()> {
        let (store, known) = self.dialect.known_attributes();
        attributes.check(address, store, known)?;
        match (&attributes.sse, &attributes.sse_kms_key_id) {
            (Some(sse), Some(_)) if !sse.starts_with("aws:kms") => Err(Error::Request(format!(
                "{address}: the encryption {sse} does not use a key of KMS; use aws:kms, or leave the key out"
            ))),
            _ => Ok(()),
        }
    }

    fn refuses_to_replace(&self) -> bool {
        // Some compatible stores ignore the condition, and replace the object.
        self.dialect == Dialect::Google || self.dialect == Dialect::S3 && self.location.endpoint_url.is_none()
    }

    fn has_stable_tokens(&self) -> bool {
        // With a key of KMS, each copy of a part is encrypted differently and has another ETag.
        !self.uses_kms.load(Ordering::Relaxed)
    }

    async fn connect(&self, connections: usize) {
        self.client.connect(connections).await;
    }

    fn proxy(&self) -> Result<Option<String>> {
        self.client.proxy()
    }

    async fn head(&self, name: &str, attempt: &mut Attempt) -> Result<Option<ObjectMeta>> {
        let described = self.client.head(name, self.with_checksums(), attempt).await?;
        Ok(described.map(|(response, meta)| self.add_checksums(&response, meta)))
    }

    async fn get_range(&self, of: &ObjectMeta, into: RangeWriter, attempt: &mut Attempt) -> Result<RangeWriter> {
        self.client.get_range(of, &into.range(), Headers::new(), attempt).await?.fill(into, attempt).await
    }

    async fn get_whole(
        &self,
        of: &ObjectMeta,
        into: RangeWriter,
        attempt: &mut Attempt,
    ) -> Result<(RangeWriter, ObjectMeta)> {
        // The answer to a request for a range contains no checksum, so this request names none.
        let mut response = self.client.get(of, self.with_checksums(), attempt).await?;
        let meta = self.add_checksums(&response, response.meta(&of.name, of.bytes));
        let into = into.with_crc32c(meta.crc32c.is_some());
        Ok((response.fill(into, attempt).await?, meta))
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

    async fn purge(&self, name: &str, attempt: &mut Attempt) -> Result<()> {
        purge::purge(&self.client, self.dialect, name, attempt).await
    }

    async fn remove_version(&self, name: &str, version: &str, attempt: &mut Attempt) -> Result<()> {
        self.client.delete(name, &[(purge::version_key(self.dialect), version)], Headers::new(), attempt).await
    }

    fn base_url(&self) -> Option<String> {
        Some(self.client.configured_base().into())
    }

    async fn retention(&self, attempt: &mut Attempt) -> Result<Option<String>> {
        purge::retention(&self.client, self.dialect, attempt).await
    }

    async fn part_sums(&self, of: &ObjectMeta, attempt: &mut Attempt) -> Result<Vec<(u64, u64)>> {
        // Other stores may ignore the query, and send the object.
        if self.dialect == Dialect::Google {
            return Ok(Vec::new());
        }
        let (mut sums, mut marker) = (Vec::new(), 0);
        loop {
            let headers = vec![
                ("x-amz-object-attributes", "ObjectParts".into()),
                ("x-amz-part-number-marker", marker.to_string()),
            ];
            let call = Call { name: &of.name, query: &[("attributes", "")], headers, ..Call::default() };
            let (_, text) = self.client.send_for_text(call, attempt).await?;
            let ObjectAttributes { parts } = self.client.parse(&of.name, &text)?;
            let Some(ObjectParts { parts, is_truncated, next_part_number_marker: next }) = parts else { break };
            sums.extend(parts.iter().filter_map(|part| Some((part.size, decoded(part.checksum.as_deref()?)?))));
            if !is_truncated || !(marker + 1..=self.limits().max_parts as u64).contains(&next) {
                break;
            }
            marker = next;
        }
        Ok(sums)
    }

    async fn put(&self, name: &str, body: PartBody, options: &PutOptions, attempt: &mut Attempt) -> Result<ObjectMeta> {
        let sum = self.sum(name, &body)?;
        let mut headers = vec![self.dialect.header(&sum)];
        headers.extend(self.dialect.attributes(&options.attributes));
        headers.extend(options.no_clobber.then(|| self.dialect.only_create()));
        let (bytes, crc64) = (body.bytes.len() as u64, body.crc64);
        let (metadata, body) = (self.dialect.metadata(&options.attributes), body.bytes);
        let call = Call { method: Method::PUT, name, headers, metadata, body, once: true, ..Call::default() };
        let (response, _) = self.client.send_for_text(call, attempt).await?;
        let answered = self.dialect.sum_in(&response);
        self.check(name, &sum, answered.as_deref()).map_err(|failure| refused_again(failure, options))?;
        let meta = ObjectMeta { crc64: answered.is_some().then_some(crc64), ..response.meta(name, bytes) };
        if meta.etag.is_none() { Err(self.client.failure(name, Kind::Fatal, NO_STORE)) } else { Ok(meta) }
    }

    async fn put_with_checksum(
        &self,
        name: &str,
        body: Bytes,
        checksum: Checksum,
        attempt: &mut Attempt,
    ) -> Result<()> {
        checked::put(&self.client, name, body, (checksum, false), attempt).await
    }

    async fn start_upload(&self, name: &str, options: &PutOptions, attempt: &mut Attempt) -> Result<Upload> {
        self.refuse_if_there(name, options, attempt).await?;
        let mut headers = self.dialect.beginning();
        headers.extend(self.dialect.attributes(&options.attributes));
        let (query, metadata) = (&[("uploads", "")], self.dialect.metadata(&options.attributes));
        let call = Call { method: Method::POST, name, query, headers, metadata, ..Call::default() };
        let (response, text) = self.client.send_for_text(call, attempt).await?;
        self.note_encryption(&response);
        let Initiated { upload_id } = self.client.parse(name, &text)?;
        Ok(Upload { name: name.into(), id: upload_id })
    }

    async fn put_part(&self, upload: &Upload, index: usize, body: PartBody, attempt: &mut Attempt) -> Result<String> {
        let sum = self.sum(&upload.name, &body)?;
        let headers = vec![self.dialect.header(&sum)];
        let bytes = body.bytes.len() as u64;
        let number = (index + 1).to_string();
        let query = &[("partNumber", &*number), ("uploadId", &*upload.id)];
        let call =
            Call { method: Method::PUT, name: &upload.name, query, headers, body: body.bytes, ..Call::default() };
        let (response, _) = self.client.send_for_text(call, attempt).await?;
        self.note_encryption(&response);
        self.check(&upload.name, &sum, self.dialect.sum_in(&response).as_deref())?;
        let etag = response.header("etag").unwrap_or_default();
        if etag.is_empty() || etag.contains(char::is_whitespace) {
            return Err(self.client.failure(&upload.name, Kind::Fatal, NO_STORE));
        }
        Ok(Token { bytes, sum: &sum, etag }.text())
    }

    async fn commit(
        &self,
        upload: &Upload,
        tokens: &[String],
        crc64: u64,
        options: &PutOptions,
        attempt: &mut Attempt,
    ) -> Result<ObjectMeta> {
        let name = &*upload.name;
        let tokens: Option<Vec<Token>> = tokens.iter().map(|token| Token::parse(token)).collect();
        let damaged = || self.client.failure(name, Kind::Fatal, "the tokens of parts in the journal are damaged");
        let tokens = tokens.ok_or_else(damaged)?;
        self.refuse_if_there(name, options, attempt).await?;
        let sum = self.dialect.whole(&tokens, crc64);
        let headers = self.dialect.ending(&sum, options.no_clobber);
        let body = self.part_list(&tokens).into();
        let query = &[("uploadId", &*upload.id)];
        let (once, assembles) = (true, true);
        let call = Call { method: Method::POST, name, query, headers, body, once, assembles, ..Call::default() };
        let (response, text) = self.client.send_for_text(call, attempt).await?;
        // During a long commit, the store sends the head of the answer before the outcome is known. The body contains
        // the outcome.
        if text.contains("<Error>") {
            return Err(refusal::failure(&response, &text));
        }
        let completed: Completed = self.client.parse(name, &text)?;
        let answered = self.dialect.sum_in(&response);
        let answered = answered.or(completed.checksum.filter(|_| self.dialect == Dialect::S3));
        // The failure is fatal. The store no longer has the upload, so another commit would fail.
        self.check(name, &sum, answered.as_deref()).map_err(|failure| Failure { kind: Kind::Fatal, ..failure })?;
        let (bytes, etag) = (tokens.iter().map(|token| token.bytes).sum(), Some(completed.etag));
        Ok(ObjectMeta { etag, crc64: answered.is_some().then_some(crc64), ..response.meta(name, bytes) })
    }

    async fn abort(&self, upload: &Upload, attempt: &mut Attempt) -> Result<()> {
        match self.client.delete(&upload.name, &[("uploadId", &*upload.id)], Headers::new(), attempt).await {
            // Without the bucket, there is no upload.
            Err(failure) if failure.kind != Kind::Missing => Err(failure),
            _ => Ok(()),
        }
    }

    async fn remove(&self, name: &str, attempt: &mut Attempt) -> Result<()> {
        self.client.delete(name, &[], Headers::new(), attempt).await
    }

    async fn list(&self, prefix: &str, attempt: &mut Attempt) -> Result<Vec<ObjectMeta>> {
        self.client.list(&self.list_query(prefix), NEXT_PAGE, attempt, |text| self.parse_page(text)).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        page: Option<&str>,
        attempt: &mut Attempt,
    ) -> Result<(Vec<ObjectMeta>, Option<String>)> {
        let query = self.list_query(prefix);
        self.client.list_page(&query, (NEXT_PAGE, page), attempt, |text| self.parse_page(text)).await
    }
}

impl Bucket {
    /// Returns the query of a request for a list.
    fn list_query<'a>(&self, prefix: &'a str) -> Vec<(&'static str, &'a str)> {
        let mut query = vec![("list-type", "2"), ("prefix", prefix)];
        // XML can't contain most control characters, so names are requested in encoded form.
        query.extend((self.dialect != Dialect::Google).then_some(("encoding-type", "url")));
        query
    }

    /// Parses a page of a list. Returns its objects, and the token of the next page if there is one.
    fn parse_page(&self, text: &str) -> Result<(Vec<ObjectMeta>, Option<String>)> {
        let Page { encoding_type, contents, is_truncated, next_continuation_token: next } =
            self.client.parse("", text)?;
        if is_truncated && next.is_none() {
            return Err(self.client.failure("", Kind::Fatal, TRUNCATED_LIST));
        }
        let is_encoded = encoding_type.as_deref() == Some("url");
        let objects = contents.into_iter().map(|entry| {
            let name = if is_encoded { self.decoded(&entry.key)? } else { entry.key.clone() };
            Ok(ObjectMeta { name, ..entry.into() })
        });
        Ok((objects.collect::<Result<_>>()?, next.filter(|_| is_truncated)))
    }

    /// Decodes the name of an object in a list. Such names are encoded as in HTML forms.
    fn decoded(&self, key: &str) -> Result<String> {
        let spaced = key.replace('+', " ");
        let decoded = percent_decode_str(&spaced).decode_utf8().map(Into::into);
        decoded.map_err(|_| self.client.failure("", Kind::Fatal, "the list contains a name that is not Unicode"))
    }

    fn part_list(&self, tokens: &[Token]) -> String {
        let mut list = String::from("<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
        for (number, token) in (1..).zip(tokens) {
            let etag = quick_xml::escape::escape(token.etag);
            list += &format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag>");
            if self.dialect == Dialect::S3 {
                list += &format!("<ChecksumCRC64NVME>{}</ChecksumCRC64NVME>", token.sum);
            }
            list += "</Part>";
        }
        list + "</CompleteMultipartUpload>"
    }
}

#[derive(Deserialize)]
struct Initiated {
    #[serde(rename = "UploadId")]
    upload_id: String,
}

#[derive(Deserialize)]
struct Completed {
    #[serde(rename = "ETag")]
    etag: String,
    #[serde(rename = "ChecksumCRC64NVME")]
    checksum: Option<String>,
}

#[derive(Deserialize)]
struct ObjectAttributes {
    #[serde(rename = "ObjectParts")]
    parts: Option<ObjectParts>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ObjectParts {
    #[serde(rename = "Part", default)]
    parts: Vec<ObjectPart>,
    #[serde(default)]
    is_truncated: bool,
    #[serde(default)]
    next_part_number_marker: u64,
}

#[derive(Deserialize)]
struct ObjectPart {
    #[serde(rename = "Size")]
    size: u64,
    #[serde(rename = "ChecksumCRC64NVME")]
    checksum: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    encoding_type: Option<String>,
    #[serde(default)]
    contents: Vec<Entry>,
    is_truncated: bool,
    next_continuation_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    key: String,
    size: u64,
    #[serde(rename = "ETag")]
    etag: Option<String>,
    last_modified: Option<String>,
}

impl From<Entry> for ObjectMeta {
    fn from(entry: Entry) -> Self {
        let modified = entry.last_modified.and_then(|time| chrono::DateTime::parse_from_rfc3339(&time).ok());
        // The time is truncated to seconds, because that is the precision of times in headers.
        let modified = modified.and_then(|time| time.with_nanosecond(0)).map(SystemTime::from);
        // Some compatible stores list ETags without the quotes that they have in headers.
        Self { name: entry.key, bytes: entry.size, etag: entry.etag.map(quoted), modified, ..Self::default() }
    }
}
