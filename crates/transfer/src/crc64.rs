//! CRC-64/NVME: of a block, and of a whole from those of its blocks; and CRC-32C, where a store knows no other.

use crc_fast::CrcAlgorithm::{Crc32Iscsi, Crc64Nvme};
use crc_fast::Digest;

/// The sum of these bytes.
///
/// ```
/// assert_eq!(ascertain_transfer::crc64(b"123456789"), 0xae8b_1486_0a79_9888);
/// ```
#[must_use]
pub fn crc64(bytes: &[u8]) -> u64 {
    crc_fast::checksum(Crc64Nvme, bytes)
}

/// A sum of what comes piece by piece.
pub(crate) fn digest() -> Digest {
    Digest::new(Crc64Nvme)
}

/// The sum of a whole, from the sizes and sums of its blocks in their order.
///
/// ```
/// use ascertain_transfer::{crc64, crc64_of_blocks};
///
/// let whole = crc64_of_blocks([(4, crc64(b"1234")), (5, crc64(b"56789"))]);
/// assert_eq!(whole, crc64(b"123456789"));
/// ```
#[must_use]
pub fn crc64_of_blocks(blocks: impl IntoIterator<Item = (u64, u64)>) -> u64 {
    blocks.into_iter().fold(0, |whole, (bytes, crc64)| crc_fast::checksum_combine(Crc64Nvme, whole, crc64, bytes))
}

/// The CRC-32C of these bytes.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(Crc32Iscsi, bytes) as u32
}

/// The CRC-32C of a whole, from the sizes and sums of its blocks in their order.
pub(crate) fn crc32c_of_blocks(blocks: impl IntoIterator<Item = (u64, u32)>) -> u32 {
    let add = |whole, (bytes, crc32c)| crc_fast::checksum_combine(Crc32Iscsi, whole, u64::from(crc32c), bytes);
    blocks.into_iter().fold(0, add) as u32
}
