//! The differences between S3, older S3-compatible stores, and GCS. Most of them concern the checksums that a store
//! verifies.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use md5::{Digest, Md5};

use super::attributes::{TimeFormat, decimal_seconds, rfc_3339, whole_seconds};
use super::client::Headers;
use super::transport::Response;
use crate::crc64::{crc32c, crc32c_of_blocks};
use crate::{Attributes, PartBody, crc64};

pub const CRC64: &str = "x-amz-checksum-crc64nvme";
const HASH: &str = "x-goog-hash";

/// The variant of the S3 protocol that a store uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    S3,
    /// S3 in an older version, without the newer checksums. Every such store verifies MD5.
    OldS3,
    Google,
}

/// The token of an uploaded part, which the commit needs: the part's size, its checksum in the store's format, and its
/// ETag.
pub struct Token<'a> {
    pub bytes: u64,
    pub sum: &'a str,
    pub etag: &'a str,
}

impl Dialect {
    /// Returns the checksum of a body in the store's format. `None` if the bytes no longer have the checksum that was
    /// computed when they were read.
    pub fn sum(self, body: &PartBody) -> Option<String> {
        if self == Self::S3 {
            return Some(encoded(body.crc64));
        }
        // If the bytes in memory have changed, a new checksum would hide this. So the bytes are compared with their
        // first checksum.
        let is_as_read = crc64(&body.bytes) == body.crc64;
        is_as_read.then(|| match self {
            Self::Google => encoded_crc32c(crc32c(&body.bytes)),
            _ => BASE64_STANDARD.encode(Md5::digest(&body.bytes)),
        })
    }

    /// Returns the name and value of the header for the checksum `sum` of a body.
    pub fn header(self, sum: &str) -> (&'static str, String) {
        match self {
            Self::S3 => (CRC64, sum.into()),
            Self::OldS3 => ("content-md5", sum.into()),
            Self::Google => (HASH, format!("crc32c={sum}")),
        }
    }

    /// Returns the checksum from the headers of an answer; `None` if they contain none.
    pub fn sum_in(self, response: &Response) -> Option<String> {
        match self {
            Self::S3 => response.header(CRC64).map(Into::into),
            Self::OldS3 => None,
            // The header may occur several times, or contain several checksums.
            Self::Google => response
                .headers
                .get_all(HASH)
                .iter()
                .filter_map(|value| value.to_str().ok())
                .flat_map(|value| value.split(','))
                .find_map(|hash| hash.trim().strip_prefix("crc32c=").map(Into::into)),
        }
    }

    /// Returns the checksum of a whole object in the store's format, from the `tokens` of its parts or from `crc64`.
    /// The result is empty if the store has no such checksum.
    pub fn whole(self, tokens: &[Token], crc64: u64) -> String {
        match self {
            Self::S3 => encoded(crc64),
            Self::OldS3 => String::new(),
            Self::Google => encoded_crc32c(combined(tokens)),
        }
    }

    /// Returns the name of this kind of store, and the names of the fields of [`Attributes`] that it supports.
    pub fn known_attributes(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::S3 | Self::OldS3 => (
                "s3://",
                &[
                    "content_type",
                    "cache_control",
                    "metadata",
                    "storage_class",
                    "sse",
                    "sse_kms_key_id",
                    "acl",
                    "tagging",
                ],
            ),
            Self::Google => {
                ("gs://", &["content_type", "cache_control", "metadata", "storage_class", "sse_kms_key_id", "acl"])
            }
        }
    }

    /// Returns the headers for the attributes of an object, without the headers for its metadata.
    pub fn attributes(self, attributes: &Attributes) -> Headers {
        let Attributes { content_type, cache_control, storage_class, sse, sse_kms_key_id, acl, tagging, .. } =
            attributes;
        let mut headers = vec![("content-type", content_type), ("cache-control", cache_control)];
        let kms = sse_kms_key_id.as_ref().map(|_| "aws:kms".to_string());
        let sse = sse.clone().or(kms);
        headers.extend(match self {
            Self::S3 | Self::OldS3 => vec![
                ("x-amz-storage-class", storage_class),
                ("x-amz-server-side-encryption", &sse),
                ("x-amz-server-side-encryption-aws-kms-key-id", sse_kms_key_id),
                ("x-amz-acl", acl),
                ("x-amz-tagging", tagging),
            ],
            Self::Google => vec![
                ("x-goog-storage-class", storage_class),
                ("x-goog-encryption-kms-key-name", sse_kms_key_id),
                ("x-goog-acl", acl),
            ],
        });
        headers.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
    }

    /// Returns the headers with the metadata of an object.
    pub fn metadata(self, attributes: &Attributes) -> Vec<(String, String)> {
        match self {
            Self::S3 | Self::OldS3 => attributes.metadata_headers("x-amz-meta-", &[("mtime", decimal_seconds)]),
            Self::Google => {
                let times: &[(&str, TimeFormat)] = &[("mtime", rfc_3339), ("goog-reserved-file-mtime", whole_seconds)];
                attributes.metadata_headers("x-goog-meta-", times)
            }
        }
    }

    /// Returns the headers of the request that starts an upload, such as the kind of checksum.
    pub fn beginning(self) -> Headers {
        match self {
            Self::S3 => {
                vec![("x-amz-checksum-algorithm", "CRC64NVME".into()), ("x-amz-checksum-type", "FULL_OBJECT".into())]
            }
            Self::OldS3 | Self::Google => Vec::new(),
        }
    }

    /// Returns the headers of the commit. For S3, these contain `whole`, the checksum of the whole object. With
    /// `no_clobber`, they contain the condition that the object must not exist yet, if the commit supports it.
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

    /// Returns whether the store ignores, in a commit, the condition that the object must not exist yet. GCS ignores
    /// it.
    pub fn commits_blindly(self) -> bool {
        self == Self::Google
    }

    /// Returns the header with the condition that the object must not exist yet.
    pub fn only_create(self) -> (&'static str, String) {
        match self {
            Self::S3 | Self::OldS3 => ("if-none-match", "*".into()),
            Self::Google => ("x-goog-if-generation-match", "0".into()),
        }
    }
}

impl<'a> Token<'a> {
    /// Returns the text of the token, as the journal records it.
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

/// Returns the CRC-32C of a whole object, combined from the checksums in the tokens of its parts.
fn combined(tokens: &[Token]) -> u32 {
    crc32c_of_blocks(tokens.iter().map(|token| (token.bytes, decoded_crc32c(token.sum).unwrap_or_default())))
}

fn encoded(crc64: u64) -> String {
    BASE64_STANDARD.encode(crc64.to_be_bytes())
}

/// Decodes the CRC-64 in the text of a header; `None` if the text is invalid.
pub fn decoded(text: &str) -> Option<u64> {
    BASE64_STANDARD.decode(text).ok()?.try_into().ok().map(u64::from_be_bytes)
}

fn encoded_crc32c(sum: u32) -> String {
    BASE64_STANDARD.encode(sum.to_be_bytes())
}

/// Decodes the CRC-32C in the text of a header; `None` if the text is invalid.
pub fn decoded_crc32c(text: &str) -> Option<u32> {
    BASE64_STANDARD.decode(text).ok()?.try_into().ok().map(u32::from_be_bytes)
}
