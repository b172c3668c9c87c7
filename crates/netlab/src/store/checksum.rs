//! The checksums that stores keep for objects, and that clients use to verify transfers.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use crc_fast::CrcAlgorithm;
use hyper::body::Bytes;
use md5::{Digest, Md5};
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};

/// A checksum algorithm. Azure's CRC64 is CRC64-NVME with its bytes reversed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Crc32,
    Crc32c,
    Crc64Nvme,
    Sha1,
    Sha256,
    Md5,
}

impl Algorithm {
    /// The algorithms that S3 supports.
    pub const OF_S3: [Self; 5] = [Self::Crc32, Self::Crc32c, Self::Crc64Nvme, Self::Sha1, Self::Sha256];

    /// Returns the name of the algorithm in S3's API. Header names contain it in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crc32 => "CRC32",
            Self::Crc32c => "CRC32C",
            Self::Crc64Nvme => "CRC64NVME",
            Self::Sha1 => "SHA1",
            Self::Sha256 => "SHA256",
            Self::Md5 => "MD5",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::OF_S3.into_iter().find(|algorithm| algorithm.name().eq_ignore_ascii_case(name))
    }

    /// Returns the name of S3's header for a checksum of this algorithm.
    pub fn header(self) -> String {
        format!("x-amz-checksum-{}", self.name().to_lowercase())
    }

    /// Returns whether the checksum of a whole object can be computed from the checksums of its parts alone.
    pub fn combines(self) -> bool {
        matches!(self, Self::Crc32 | Self::Crc32c | Self::Crc64Nvme)
    }
}

/// The checksums of a stream of bytes. The CRCs are always computed, because they are cheap. The others are computed
/// only on request.
#[derive(Clone)]
pub(super) struct Digests {
    pub bytes: u64,
    crc32: crc_fast::Digest,
    crc32c: crc_fast::Digest,
    crc64: crc_fast::Digest,
    sha1: Option<Context>,
    sha256: Option<Context>,
    md5: Option<Md5>,
}

impl Digests {
    pub fn new(wanted: &[Algorithm]) -> Self {
        let wants = |algorithm| wanted.contains(&algorithm);
        Self {
            bytes: 0,
            crc32: crc_fast::Digest::new(CrcAlgorithm::Crc32IsoHdlc),
            crc32c: crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi),
            crc64: crc_fast::Digest::new(CrcAlgorithm::Crc64Nvme),
            sha1: wants(Algorithm::Sha1).then(|| Context::new(&SHA1_FOR_LEGACY_USE_ONLY)),
            sha256: wants(Algorithm::Sha256).then(|| Context::new(&SHA256)),
            md5: wants(Algorithm::Md5).then(Md5::new),
        }
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        for crc in [&mut self.crc32, &mut self.crc32c, &mut self.crc64] {
            crc.update(bytes);
        }
        for sha in [&mut self.sha1, &mut self.sha256].into_iter().flatten() {
            sha.update(bytes);
        }
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
    }

    /// Appends a stream of bytes that is known only by its checksums, `next`. Afterwards only the CRCs are known,
    /// because the other checksums cannot be combined.
    pub fn append(&mut self, next: &Self) {
        self.bytes += next.bytes;
        self.crc32.combine(&next.crc32);
        self.crc32c.combine(&next.crc32c);
        self.crc64.combine(&next.crc64);
        (self.sha1, self.sha256, self.md5) = (None, None, None);
    }

    /// Returns a checksum of the stream, with the most significant byte first. `None` if the checksum is not known.
    pub fn sum(&self, algorithm: Algorithm) -> Option<Vec<u8>> {
        let sha = |sha: &Option<Context>| sha.clone().map(|sha| sha.finish().as_ref().to_vec());
        match algorithm {
            Algorithm::Crc32 => Some((self.crc32.finalize() as u32).to_be_bytes().into()),
            Algorithm::Crc32c => Some((self.crc32c.finalize() as u32).to_be_bytes().into()),
            Algorithm::Crc64Nvme => Some(self.crc64.finalize().to_be_bytes().into()),
            Algorithm::Sha1 => sha(&self.sha1),
            Algorithm::Sha256 => sha(&self.sha256),
            Algorithm::Md5 => self.md5.clone().map(|md5| md5.finalize().to_vec()),
        }
    }

    /// Returns a checksum of the stream in Base64, as headers contain it. `None` if the checksum is not known.
    pub fn base64(&self, algorithm: Algorithm) -> Option<String> {
        self.sum(algorithm).map(base64)
    }

    /// Returns the CRC64 in Base64 as Azure sends it, with the least significant byte first.
    pub fn azure_crc64(&self) -> String {
        base64(self.crc64.finalize().to_le_bytes())
    }
}

pub(super) fn base64(bytes: impl AsRef<[u8]>) -> String {
    BASE64_STANDARD.encode(bytes)
}

pub(super) fn from_base64(text: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(text).ok()
}

pub(super) fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn sha256_of(pieces: &[Bytes]) -> Vec<u8> {
    let mut sha256 = Context::new(&SHA256);
    pieces.iter().for_each(|piece| sha256.update(piece));
    sha256.finish().as_ref().into()
}

/// Returns the checksum of `bytes` with this algorithm.
pub(super) fn sum_of(algorithm: Algorithm, bytes: &[u8]) -> Vec<u8> {
    let mut digests = Digests::new(&[algorithm]);
    digests.update(bytes);
    digests.sum(algorithm).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_that_others_publish() {
        // The catalogue of CRC algorithms lists these checksums of the text `123456789`.
        let sums = [
            (Algorithm::Crc32, "cbf43926"),
            (Algorithm::Crc32c, "e3069283"),
            (Algorithm::Crc64Nvme, "ae8b14860a799888"),
            (Algorithm::Sha1, "f7c3bc1d808e04732adf679965ccc34ca7ae3441"),
            (Algorithm::Sha256, "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"),
            (Algorithm::Md5, "25f9e794323b453885f5181f1b624d0b"),
        ];
        for (algorithm, sum) in sums {
            assert_eq!(hex(sum_of(algorithm, b"123456789")), sum, "{}", algorithm.name());
        }
    }

    #[test]
    fn the_crcs_of_parts_make_that_of_the_whole() {
        let summed = |bytes: &[u8]| {
            let mut digests = Digests::new(&[Algorithm::Md5]);
            digests.update(bytes);
            digests
        };
        let text = b"what is sent in parts is one thing in the end";
        for cut in 0..=text.len() {
            let mut whole = summed(&text[..cut]);
            whole.append(&summed(&text[cut..]));
            for algorithm in Algorithm::OF_S3 {
                let expected = algorithm.combines().then(|| sum_of(algorithm, text));
                assert_eq!(whole.sum(algorithm), expected, "{} at {cut}", algorithm.name());
            }
            assert_eq!((whole.bytes, whole.sum(Algorithm::Md5)), (text.len() as u64, None));
        }
    }
}
