//! In what S3, stores made after it, and GCS differ: mostly in the sums that they check.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use md5::{Digest, Md5};

use super::client::Answer;
use super::site::Headers;
use crate::crc64::{crc32c, crc32c_of_blocks};
use crate::{Block, Integrity, crc64};

pub const CRC64: &str = "x-amz-checksum-crc64nvme";
const HASH: &str = "x-goog-hash";

/// What a store speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    S3,
    /// S3 as it was before it had checksums of its own; MD5 is what all such stores check.
    OldS3,
    Google,
}

/// What `commit` is told of a block: its length, its sum as the dialect has it, and the store's name for it.
pub struct Token<'a> {
    pub bytes: u64,
    pub sum: &'a str,
    pub etag: &'a str,
}

impl Dialect {
    pub fn integrity(self) -> Integrity {
        match self {
            // What GCS says of the whole is compared here.
            Self::S3 | Self::Google => Integrity::Whole,
            Self::OldS3 => Integrity::Blocks,
        }
    }

    /// The sum that the store is to check; none if these are not the bytes any more that were read.
    pub fn sum(self, body: &Block) -> Option<String> {
        if self == Self::S3 {
            return Some(encoded(body.crc64));
        }
        // Another sum is made here, of bytes that were not changed since theirs was.
        let is_as_read = crc64(&body.bytes) == body.crc64;
        is_as_read.then(|| match self {
            Self::Google => encoded_crc32c(crc32c(&body.bytes)),
            _ => BASE64_STANDARD.encode(Md5::digest(&body.bytes)),
        })
    }

    /// The header that the store is told a sum by.
    pub fn header(self, sum: &str) -> (&'static str, String) {
        match self {
            Self::S3 => (CRC64, sum.into()),
            Self::OldS3 => ("content-md5", sum.into()),
            Self::Google => (HASH, format!("crc32c={sum}")),
        }
    }

    /// The sum that an answer has of what is kept.
    pub fn sum_in(self, answer: &Answer) -> Option<String> {
        match self {
            Self::S3 => answer.header(CRC64).map(Into::into),
            Self::OldS3 => None,
            // There may be several such headers, or several in one.
            Self::Google => answer
                .headers
                .get_all(HASH)
                .iter()
                .filter_map(|value| value.to_str().ok())
                .flat_map(|value| value.split(','))
                .find_map(|hash| hash.trim().strip_prefix("crc32c=").map(Into::into)),
        }
    }

    /// The sum of the whole, as the store would say it.
    pub fn whole(self, tokens: &[Token], crc64: u64) -> String {
        match self {
            Self::S3 => encoded(crc64),
            Self::OldS3 => String::new(),
            Self::Google => encoded_crc32c(combined(tokens)),
        }
    }

    /// What an upload in blocks begins with.
    pub fn beginning(self) -> Headers {
        match self {
            Self::S3 => {
                vec![("x-amz-checksum-algorithm", "CRC64NVME".into()), ("x-amz-checksum-type", "FULL_OBJECT".into())]
            }
            Self::OldS3 | Self::Google => Vec::new(),
        }
    }

    /// What it ends with.
    pub fn ending(self, whole: &str, no_clobber: bool) -> Headers {
        let mut headers = Vec::new();
        if self == Self::S3 {
            headers.extend([self.header(whole), ("x-amz-checksum-type", "FULL_OBJECT".into())]);
        }
        if no_clobber && !self.commits_blindly() {
            headers.push(self.only_create());
        }
        headers
    }

    /// A commit of GCS has no condition.
    pub fn commits_blindly(self) -> bool {
        self == Self::Google
    }

    /// The condition that there be nothing yet.
    pub fn only_create(self) -> (&'static str, String) {
        match self {
            Self::S3 | Self::OldS3 => ("if-none-match", "*".into()),
            Self::Google => ("x-goog-if-generation-match", "0".into()),
        }
    }
}

impl<'a> Token<'a> {
    /// As `put_block` says it.
    pub fn text(&self) -> String {
        format!("{} {} {}", self.bytes, self.sum, self.etag)
    }

    pub fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(' ');
        let token = Self { bytes: parts.next()?.parse().ok()?, sum: parts.next()?, etag: parts.next()? };
        let whole = parts.next().is_none() && BASE64_STANDARD.decode(token.sum).is_ok();
        whole.then_some(token)
    }
}

/// The CRC-32C of blocks one after the other.
fn combined(tokens: &[Token]) -> u32 {
    crc32c_of_blocks(tokens.iter().map(|token| (token.bytes, decoded_crc32c(token.sum).unwrap_or_default())))
}

fn encoded(crc64: u64) -> String {
    BASE64_STANDARD.encode(crc64.to_be_bytes())
}

/// A CRC-64 as headers have it.
pub fn decoded(text: &str) -> Option<u64> {
    BASE64_STANDARD.decode(text).ok()?.try_into().ok().map(u64::from_be_bytes)
}

fn encoded_crc32c(sum: u32) -> String {
    BASE64_STANDARD.encode(sum.to_be_bytes())
}

/// A CRC-32C as headers have it.
pub fn decoded_crc32c(text: &str) -> Option<u32> {
    BASE64_STANDARD.decode(text).ok()?.try_into().ok().map(u32::from_be_bytes)
}
