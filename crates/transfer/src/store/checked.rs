//! Uploads with a checksum that the caller chooses, for checks of what a store verifies.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use hyper::Method;
use md5::{Digest, Md5};
use ring::digest::{SHA256, digest};

use super::Result;
use super::client::{Call, Client, Headers};
use super::dialect::CRC64;
use crate::{Attempt, crc64};

/// A checksum that a request can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// No checksum is sent.
    None,
    /// MD5, in the header Content-MD5.
    Md5,
    /// CRC-64/NVME, as `put` sends it.
    Crc64Nvme,
    /// SHA-256, only for S3.
    Sha256,
}

impl Checksum {
    /// Returns the header with the checksum of these bytes. `is_azure` selects Azure's names.
    fn header(self, bytes: &[u8], is_azure: bool) -> Option<(&'static str, String)> {
        match self {
            Self::None => None,
            Self::Md5 => Some(("content-md5", BASE64_STANDARD.encode(Md5::digest(bytes)))),
            Self::Crc64Nvme if is_azure => {
                Some(("x-ms-content-crc64", BASE64_STANDARD.encode(crc64(bytes).to_le_bytes())))
            }
            Self::Crc64Nvme => Some((CRC64, BASE64_STANDARD.encode(crc64(bytes).to_be_bytes()))),
            Self::Sha256 => Some(("x-amz-checksum-sha256", BASE64_STANDARD.encode(digest(&SHA256, bytes)))),
        }
    }
}

/// Stores an object with a single request. Does not compare the answer with the bytes.
pub async fn put(
    client: &Client,
    name: &str,
    body: Bytes,
    (checksum, is_azure): (Checksum, bool),
    attempt: &mut Attempt,
) -> Result<()> {
    let mut headers: Headers = checksum.header(&body, is_azure).into_iter().collect();
    headers.extend(is_azure.then(|| ("x-ms-blob-type", "BlockBlob".into())));
    let call = Call { method: Method::PUT, name, headers, body, once: true, ..Call::default() };
    client.send_for_text(call, attempt).await.map(drop)
}
