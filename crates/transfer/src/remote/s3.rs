//! S3, and the interface of GCS that is made after it.

use std::time::SystemTime;

use async_trait::async_trait;
use chrono::Timelike;
use hyper::Method;
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::dialect::{CRC64, Dialect, Token, decoded, decoded_crc32c};
use super::refusal;
use super::site::{Ask, BROKEN_OFF, Headers, NO_STORE, ROUND, Site, meta};
use crate::{Attempt, Block, Failure, Filling, Kind, Limits, Meta, PutOptions, Reached, Store, Upload};

/// A bucket.
#[derive(Debug)]
pub struct Bucket {
    site: Site,
    dialect: Dialect,
    /// What each request says.
    headers: Headers,
    reached: Reached,
}

impl Bucket {
    pub fn new(site: Site, dialect: Dialect, headers: Headers, reached: Reached) -> Self {
        Self { site, dialect, headers, reached }
    }

    /// With the sum that the store is to check, and that by itself.
    fn headers_for(&self, name: &str, body: &Block) -> Result<(Headers, String), Failure> {
        let sum = self.dialect.sum(body);
        let sum =
            sum.ok_or_else(|| self.site.failure(name, Kind::Corrupted, "what is to be sent is not what was read"))?;
        let mut headers = self.headers.clone();
        headers.push(self.dialect.header(&sum));
        Ok((headers, sum))
    }

    /// Whether the store has what was sent, as far as it says what it has.
    fn check(&self, name: &str, sum: &str, said: Option<&str>) -> Result<(), Failure> {
        if said.is_none_or(|said| said == sum) {
            return Ok(());
        }
        Err(self.site.failure(name, Kind::Corrupted, "what the store has is not what was sent"))
    }

    /// Where a commit has no condition, we look ourselves, a moment before.
    async fn refuse_if_there(&self, name: &str, options: &PutOptions, seen: &mut Attempt) -> Result<(), Failure> {
        let looks = options.no_clobber && self.dialect.commits_blindly();
        if looks && self.head(name, seen).await?.is_some() {
            return Err(self.site.failure(name, Kind::Changed, "there is something under this name already"));
        }
        Ok(())
    }
}

#[async_trait]
impl Store for Bucket {
    fn limits(&self) -> Limits {
        Limits {
            min_block_bytes: 5 << 20,
            max_block_bytes: 5 << 30,
            max_blocks: 10_000,
            max_put_bytes: 5 << 30,
            integrity: self.dialect.integrity(),
        }
    }

    fn reached(&self) -> Reached {
        self.reached.clone()
    }

    fn keeps_pace(&self) -> bool {
        true
    }

    async fn connect(&self, connections: usize) {
        self.site.connect(connections).await;
    }

    async fn head(&self, name: &str, seen: &mut Attempt) -> Result<Option<Meta>, Failure> {
        let mut headers = self.headers.clone();
        if self.dialect == Dialect::S3 {
            headers.push(("x-amz-checksum-mode", "ENABLED".into()));
        }
        let ask = Ask { method: Method::HEAD, name, headers, ..Ask::default() };
        let found = self.site.head(ask, seen).await?;
        Ok(found.map(|(answer, meta)| {
            // A sum of parts' sums is none of the whole.
            let whole = answer.header("x-amz-checksum-type").is_none_or(|kind| kind == "FULL_OBJECT");
            let crc64 = answer.header(CRC64).filter(|_| whole).and_then(decoded);
            let hash = if self.dialect == Dialect::Google { self.dialect.sum_in(&answer) } else { None };
            Meta { crc64, crc32c: hash.as_deref().and_then(decoded_crc32c), ..meta }
        }))
    }

    async fn get_into(&self, of: &Meta, into: Filling, seen: &mut Attempt) -> Result<Filling, Failure> {
        self.site.range(of, into, self.headers.clone(), seen).await.map(|(_, filled)| filled)
    }

    async fn put(&self, name: &str, body: Block, options: &PutOptions, seen: &mut Attempt) -> Result<Meta, Failure> {
        let (mut headers, sum) = self.headers_for(name, &body)?;
        headers.extend(options.content_type.clone().map(|media| ("content-type", media)));
        headers.extend(options.no_clobber.then(|| self.dialect.only_create()));
        let (bytes, crc64) = (body.bytes.len() as u64, body.crc64);
        let ask = Ask { method: Method::PUT, name, headers, body: body.bytes, once: true, ..Ask::default() };
        let (answer, _) = self.site.text(ask, seen).await?;
        let said = self.dialect.sum_in(&answer);
        self.check(name, &sum, said.as_deref())?;
        let meta = Meta { crc64: said.is_some().then_some(crc64), ..meta(name, bytes, &answer) };
        if meta.etag.is_none() { Err(self.site.failure(name, Kind::Fatal, NO_STORE)) } else { Ok(meta) }
    }

    async fn begin(&self, name: &str, options: &PutOptions, seen: &mut Attempt) -> Result<Upload, Failure> {
        self.refuse_if_there(name, options, seen).await?;
        let mut headers = self.headers.clone();
        headers.extend(options.content_type.clone().map(|media| ("content-type", media)));
        headers.extend(self.dialect.beginning());
        let ask = Ask { method: Method::POST, name, query: &[("uploads", "")], headers, ..Ask::default() };
        let (_, text) = self.site.text(ask, seen).await?;
        let begun: Begun = self.parsed(name, &text)?;
        Ok(Upload { name: name.into(), id: begun.upload_id })
    }

    async fn put_block(
        &self,
        upload: &Upload,
        index: usize,
        body: Block,
        seen: &mut Attempt,
    ) -> Result<String, Failure> {
        let (headers, sum) = self.headers_for(&upload.name, &body)?;
        let bytes = body.bytes.len() as u64;
        let number = (index + 1).to_string();
        let query = &[("partNumber", &*number), ("uploadId", &*upload.id)];
        let ask = Ask { method: Method::PUT, name: &upload.name, query, headers, body: body.bytes, once: false };
        let (answer, _) = self.site.text(ask, seen).await?;
        self.check(&upload.name, &sum, self.dialect.sum_in(&answer).as_deref())?;
        let etag = answer.header("etag").unwrap_or_default();
        if etag.is_empty() || etag.contains(char::is_whitespace) {
            return Err(self.site.failure(&upload.name, Kind::Fatal, NO_STORE));
        }
        Ok(Token { bytes, sum: &sum, etag }.text())
    }

    async fn commit(
        &self,
        upload: &Upload,
        blocks: &[String],
        crc64: u64,
        options: &PutOptions,
        seen: &mut Attempt,
    ) -> Result<Meta, Failure> {
        let name = &*upload.name;
        let tokens: Option<Vec<Token>> = blocks.iter().map(|block| Token::parse(block)).collect();
        let tokens =
            tokens.ok_or_else(|| self.site.failure(name, Kind::Fatal, "the journal's names of blocks are damaged"))?;
        self.refuse_if_there(name, options, seen).await?;
        let sum = self.dialect.whole(&tokens, crc64);
        let mut headers = self.headers.clone();
        headers.extend(self.dialect.ending(&sum, options.no_clobber));
        let body = self.list_of(&tokens).into();
        let query = &[("uploadId", &*upload.id)];
        let ask = Ask { method: Method::POST, name, query, headers, body, once: true };
        let (answer, text) = self.site.text(ask, seen).await?;
        // The head was sent while the store was still at work; what came of it stands behind.
        if text.contains("<Error>") {
            return Err(refusal::failure(
                &answer,
                &text,
                &self.site.asked(&Method::POST, &self.site.shown(name), true),
            ));
        }
        let made: Made = self.parsed(name, &text)?;
        let said = self.dialect.sum_in(&answer).or(made.checksum.filter(|_| self.dialect == Dialect::S3));
        // The upload is used up: trying again would only hear that there is none.
        self.check(name, &sum, said.as_deref()).map_err(|failure| Failure { kind: Kind::Fatal, ..failure })?;
        let bytes = tokens.iter().map(|token| token.bytes).sum();
        Ok(Meta { etag: Some(made.etag), crc64: said.is_some().then_some(crc64), ..meta(name, bytes, &answer) })
    }

    async fn abort(&self, upload: &Upload, seen: &mut Attempt) -> Result<(), Failure> {
        self.site.delete(&upload.name, &[("uploadId", &*upload.id)], self.headers.clone(), seen).await
    }

    async fn remove(&self, name: &str, seen: &mut Attempt) -> Result<(), Failure> {
        self.site.delete(name, &[], self.headers.clone(), seen).await
    }

    async fn list(&self, prefix: &str, seen: &mut Attempt) -> Result<Vec<Meta>, Failure> {
        let (mut found, mut tokens) = (Vec::new(), Vec::<String>::new());
        loop {
            let mut query = vec![("list-type", "2"), ("prefix", prefix)];
            // XML has no room for most control characters.
            query.extend((self.dialect != Dialect::Google).then_some(("encoding-type", "url")));
            query.extend(tokens.last().map(|token| ("continuation-token", &**token)));
            let ask = Ask { query: &query, headers: self.headers.clone(), ..Ask::default() };
            let (_, text) = self.site.text(ask, seen).await?;
            let page: Page = self.parsed("", &text)?;
            let is_encoded = page.encoding.as_deref() == Some("url");
            for mut entry in page.contents {
                if is_encoded {
                    entry.key = self.decoded(&entry.key)?;
                }
                found.push(Meta::from(entry));
            }
            match page.next {
                _ if !page.truncated => return Ok(found),
                Some(next) if !tokens.contains(&next) => tokens.push(next),
                Some(_) => return Err(self.site.failure("", Kind::Fatal, ROUND)),
                None => return Err(self.site.failure("", Kind::Fatal, BROKEN_OFF)),
            }
        }
    }
}

impl Bucket {
    /// A name as forms have it.
    fn decoded(&self, key: &str) -> Result<String, Failure> {
        let spaced = key.replace('+', " ");
        let decoded = percent_decode_str(&spaced).decode_utf8().map(Into::into);
        decoded.map_err(|_| self.site.failure("", Kind::Fatal, "it lists a name that is not Unicode"))
    }

    fn parsed<'de, T: Deserialize<'de>>(&self, name: &str, text: &'de str) -> Result<T, Failure> {
        quick_xml::de::from_str(text).map_err(|_| self.site.failure(name, Kind::Fatal, NO_STORE))
    }

    fn list_of(&self, tokens: &[Token]) -> String {
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
struct Begun {
    #[serde(rename = "UploadId")]
    upload_id: String,
}

#[derive(Deserialize)]
struct Made {
    #[serde(rename = "ETag")]
    etag: String,
    #[serde(rename = "ChecksumCRC64NVME")]
    checksum: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    #[serde(rename = "EncodingType")]
    encoding: Option<String>,
    #[serde(rename = "Contents", default)]
    contents: Vec<Entry>,
    #[serde(rename = "IsTruncated")]
    truncated: bool,
    #[serde(rename = "NextContinuationToken")]
    next: Option<String>,
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

impl From<Entry> for Meta {
    fn from(entry: Entry) -> Self {
        let modified = entry.last_modified.and_then(|time| chrono::DateTime::parse_from_rfc3339(&time).ok());
        // As exactly as headers have it.
        let modified = modified.and_then(|time| time.with_nanosecond(0));
        Self {
            name: entry.key,
            bytes: entry.size,
            etag: entry.etag,
            modified: modified.map(SystemTime::from),
            crc64: None,
            crc32c: None,
        }
    }
}
