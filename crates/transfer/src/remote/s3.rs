//! S3, and the interface of GCS that is made after it.

use std::ops::Range;
use std::time::SystemTime;

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use chrono::Timelike;
use crc_fast::CrcAlgorithm::{Crc32Iscsi, Crc64Nvme};
use hyper::Method;
use serde::Deserialize;

use super::client::Client;
use super::keys::Keys;
use super::refusal;
use super::site::{Ask, Headers, Site, meta};
use crate::{Attempt, Block, Failure, Integrity, Kind, Limits, Meta, PutOptions, Store, Upload};

const CRC64: &str = "x-amz-checksum-crc64nvme";
const HASH: &str = "x-goog-hash";
const ONLY_CREATE: (&str, &str) = ("if-none-match", "*");

/// A bucket.
#[derive(Debug)]
pub struct Bucket {
    site: Site,
    dialect: Dialect,
}

/// In what the two differ.
#[derive(Debug)]
pub enum Dialect {
    S3 { requester_pays: bool },
    Google { payer: Option<String> },
}

/// What `commit` is told of a block: its length, its checksum as the dialect has it, and the store's name for it.
struct Token<'a> {
    bytes: u64,
    sum: &'a str,
    etag: &'a str,
}

impl Bucket {
    pub fn new(client: Client, base: &str, shown: String, keys: Keys, dialect: Dialect) -> Result<Self, Failure> {
        let credentials = match &dialect {
            Dialect::S3 { .. } => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile",
            Dialect::Google { .. } => "what GOOGLE_APPLICATION_CREDENTIALS names",
        };
        Ok(Self { site: Site::new(client, base, shown, keys, credentials)?, dialect })
    }

    fn headers(&self) -> Headers {
        match &self.dialect {
            Dialect::S3 { requester_pays: true } => vec![("x-amz-request-payer", "requester".into())],
            Dialect::S3 { .. } => Vec::new(),
            Dialect::Google { payer } => {
                // What is kept packed would be unpacked for those who don't say that they can.
                let mut headers = vec![("accept-encoding", "gzip".into())];
                headers.extend(payer.clone().map(|project| ("x-goog-user-project", project)));
                headers
            }
        }
    }

    /// With the checksum that the store is to check, and that by itself.
    fn headers_for(&self, name: &str, body: &Block) -> Result<(Headers, String), Failure> {
        let mut headers = self.headers();
        let sum = match self.dialect {
            Dialect::S3 { .. } => encoded(body.crc64),
            // Another sum is made here, of bytes that were not changed since theirs was.
            Dialect::Google { .. } if crc_fast::checksum(Crc64Nvme, &body.bytes) == body.crc64 => {
                encoded_crc32c(crc_fast::checksum(Crc32Iscsi, &body.bytes))
            }
            Dialect::Google { .. } => {
                return Err(self.site.failure(name, Kind::Corrupted, "what is to be sent is not what was read"));
            }
        };
        headers.push(match self.dialect {
            Dialect::S3 { .. } => (CRC64, sum.clone()),
            Dialect::Google { .. } => (HASH, format!("crc32c={sum}")),
        });
        Ok((headers, sum))
    }

    /// What the store says of how an object is kept: as much of it as there is.
    fn sum_in(&self, answer: &super::client::Answer) -> Option<String> {
        match self.dialect {
            Dialect::S3 { .. } => answer.header(CRC64).map(Into::into),
            // There may be several such headers, or several in one.
            Dialect::Google { .. } => answer
                .headers
                .get_all(HASH)
                .iter()
                .filter_map(|value| value.to_str().ok())
                .flat_map(|value| value.split(','))
                .find_map(|hash| hash.trim().strip_prefix("crc32c=").map(Into::into)),
        }
    }

    fn check(&self, name: &str, sum: &str, said: Option<&str>) -> Result<(), Failure> {
        match said {
            Some(said) if said != sum => {
                Err(self.site.failure(name, Kind::Corrupted, "what the store has is not what was sent"))
            }
            _ => Ok(()),
        }
    }

    /// A commit of GCS has no condition: we look ourselves, a moment before.
    async fn refuse_if_there(&self, name: &str, options: &PutOptions, seen: &mut Attempt) -> Result<(), Failure> {
        let blind = options.no_clobber && matches!(self.dialect, Dialect::Google { .. });
        if blind && self.head(name, seen).await?.is_some() {
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
            // What GCS says of the whole is compared here.
            integrity: Integrity::Whole,
        }
    }

    async fn head(&self, name: &str, seen: &mut Attempt) -> Result<Option<Meta>, Failure> {
        let mut headers = self.headers();
        if let Dialect::S3 { .. } = self.dialect {
            headers.push(("x-amz-checksum-mode", "ENABLED".into()));
        }
        let ask = Ask { method: Method::HEAD, name, headers, ..Ask::default() };
        let found = self.site.head(ask, seen).await?;
        Ok(found.map(|(answer, meta)| {
            // A sum of parts' sums is none of the whole.
            let whole = answer.header("x-amz-checksum-type").is_none_or(|kind| kind == "FULL_OBJECT");
            let crc64 = answer.header(CRC64).filter(|_| whole).and_then(decoded);
            Meta { crc64, ..meta }
        }))
    }

    async fn get(&self, of: &Meta, range: Range<u64>, seen: &mut Attempt) -> Result<Bytes, Failure> {
        self.site.range(of, range, self.headers(), seen).await.map(|(_, bytes)| bytes)
    }

    async fn put(&self, name: &str, body: Block, options: &PutOptions, seen: &mut Attempt) -> Result<Meta, Failure> {
        let (mut headers, sum) = self.headers_for(name, &body)?;
        headers.extend(options.content_type.clone().map(|media| ("content-type", media)));
        if options.no_clobber {
            headers.push(match self.dialect {
                Dialect::S3 { .. } => (ONLY_CREATE.0, ONLY_CREATE.1.into()),
                Dialect::Google { .. } => ("x-goog-if-generation-match", "0".into()),
            });
        }
        let (bytes, crc64) = (body.bytes.len() as u64, body.crc64);
        let ask = Ask { method: Method::PUT, name, headers, body: body.bytes, once: true, ..Ask::default() };
        let (answer, _) = self.site.text(ask, seen).await?;
        let said = self.sum_in(&answer);
        self.check(name, &sum, said.as_deref())?;
        Ok(Meta { crc64: said.is_some().then_some(crc64), ..meta(name, bytes, &answer) })
    }

    async fn begin(&self, name: &str, options: &PutOptions, seen: &mut Attempt) -> Result<Upload, Failure> {
        self.refuse_if_there(name, options, seen).await?;
        let mut headers = self.headers();
        headers.extend(options.content_type.clone().map(|media| ("content-type", media)));
        if let Dialect::S3 { .. } = self.dialect {
            headers.push(("x-amz-checksum-algorithm", "CRC64NVME".into()));
            headers.push(("x-amz-checksum-type", "FULL_OBJECT".into()));
        }
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
        let bytes = body.bytes.len();
        let number = (index + 1).to_string();
        let query = &[("partNumber", &*number), ("uploadId", &*upload.id)];
        let ask = Ask { method: Method::PUT, name: &upload.name, query, headers, body: body.bytes, once: false };
        let (answer, _) = self.site.text(ask, seen).await?;
        self.check(&upload.name, &sum, self.sum_in(&answer).as_deref())?;
        let etag = answer.header("etag").unwrap_or_default();
        if etag.is_empty() || etag.contains(char::is_whitespace) {
            return Err(self.site.failure(&upload.name, Kind::Fatal, "the store gave a block no name"));
        }
        Ok(format!("{bytes} {sum} {etag}"))
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
        let mut headers = self.headers();
        let sum = match self.dialect {
            Dialect::S3 { .. } => {
                headers.push((CRC64, encoded(crc64)));
                headers.push(("x-amz-checksum-type", "FULL_OBJECT".into()));
                headers.extend(options.no_clobber.then(|| (ONLY_CREATE.0, ONLY_CREATE.1.into())));
                encoded(crc64)
            }
            Dialect::Google { .. } => encoded_crc32c(combined(&tokens)),
        };
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
        let said = self.sum_in(&answer).or(made.checksum);
        self.check(name, &sum, said.as_deref())?;
        let bytes = tokens.iter().map(|token| token.bytes).sum();
        Ok(Meta { etag: made.etag, crc64: said.is_some().then_some(crc64), ..meta(name, bytes, &answer) })
    }

    async fn abort(&self, upload: &Upload, seen: &mut Attempt) -> Result<(), Failure> {
        let query = &[("uploadId", &*upload.id)];
        let headers = self.headers();
        let ask = Ask { method: Method::DELETE, name: &upload.name, query, headers, ..Ask::default() };
        match self.site.text(ask, seen).await {
            // Gone is what it was to be.
            Err(failure) if failure.kind != Kind::Missing => Err(failure),
            _ => Ok(()),
        }
    }

    async fn list(&self, prefix: &str, seen: &mut Attempt) -> Result<Vec<Meta>, Failure> {
        let mut found = Vec::new();
        let mut more: Option<String> = None;
        loop {
            let mut query = vec![("list-type", "2"), ("prefix", prefix)];
            query.extend(more.as_deref().map(|token| ("continuation-token", token)));
            let ask = Ask { query: &query, headers: self.headers(), ..Ask::default() };
            let (_, text) = self.site.text(ask, seen).await?;
            let page: Page = self.parsed("", &text)?;
            found.extend(page.contents.into_iter().map(Meta::from));
            match page.next.filter(|_| page.truncated) {
                // The same again would be for ever.
                Some(next) if more.as_ref() != Some(&next) => more = Some(next),
                _ => return Ok(found),
            }
        }
    }
}

impl Bucket {
    fn parsed<'de, T: Deserialize<'de>>(&self, name: &str, text: &'de str) -> Result<T, Failure> {
        let what = "what answers does not speak S3: is the endpoint right?";
        quick_xml::de::from_str(text).map_err(|_| self.site.failure(name, Kind::Fatal, what))
    }

    fn list_of(&self, tokens: &[Token]) -> String {
        let mut list = String::from("<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
        for (number, token) in (1..).zip(tokens) {
            let etag = quick_xml::escape::escape(token.etag);
            list += &format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag>");
            if let Dialect::S3 { .. } = self.dialect {
                list += &format!("<ChecksumCRC64NVME>{}</ChecksumCRC64NVME>", token.sum);
            }
            list += "</Part>";
        }
        list + "</CompleteMultipartUpload>"
    }
}

impl<'a> Token<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(' ');
        let token = Self { bytes: parts.next()?.parse().ok()?, sum: parts.next()?, etag: parts.next()? };
        let whole = parts.next().is_none() && BASE64_STANDARD.decode(token.sum).is_ok();
        whole.then_some(token)
    }
}

/// The CRC-32C of blocks one after the other.
fn combined(tokens: &[Token]) -> u64 {
    tokens.iter().fold(0, |sum, token| {
        let bytes = BASE64_STANDARD.decode(token.sum).unwrap_or_default();
        let next = bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        crc_fast::checksum_combine(Crc32Iscsi, sum, next, token.bytes)
    })
}

fn encoded(crc64: u64) -> String {
    BASE64_STANDARD.encode(crc64.to_be_bytes())
}

fn decoded(text: &str) -> Option<u64> {
    BASE64_STANDARD.decode(text).ok()?.try_into().ok().map(u64::from_be_bytes)
}

fn encoded_crc32c(sum: u64) -> String {
    BASE64_STANDARD.encode(&sum.to_be_bytes()[4..])
}

#[derive(Deserialize)]
struct Begun {
    #[serde(rename = "UploadId")]
    upload_id: String,
}

#[derive(Deserialize)]
struct Made {
    #[serde(rename = "ETag")]
    etag: Option<String>,
    #[serde(rename = "ChecksumCRC64NVME")]
    checksum: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    #[serde(rename = "Contents", default)]
    contents: Vec<Entry>,
    #[serde(rename = "IsTruncated", default)]
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
        }
    }
}
