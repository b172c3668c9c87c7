//! Checksums of parts and of whole objects. The checksum of an object is computed from the checksums of its parts. It
//! is CRC-64/NVME, or CRC-32C for stores that know no other checksum.

use crc_fast::CrcAlgorithm::{Crc32Iscsi, Crc64Nvme};
use crc_fast::Digest;

/// Returns the CRC-64/NVME of `bytes`.
///
/// ```
/// assert_eq!(ascertain_transfer::crc64(b"123456789"), 0xae8b_1486_0a79_9888);
/// ```
#[must_use]
pub fn crc64(bytes: &[u8]) -> u64 {
    crc_fast::checksum(Crc64Nvme, bytes)
}

/// Creates a hasher that computes a CRC-64/NVME from bytes that arrive in pieces.
pub(crate) fn digest() -> Digest {
    Digest::new(Crc64Nvme)
}

/// Returns the CRC-64/NVME of a whole object from the sizes and checksums of its parts, in their order.
///
/// ```
/// use ascertain_transfer::{crc64, crc64_of_blocks};
///
/// let whole = crc64_of_blocks([(4, crc64(b"1234")), (5, crc64(b"56789"))]);
/// assert_eq!(whole, crc64(b"123456789"));
/// ```
#[must_use]
pub fn crc64_of_blocks(blocks: impl IntoIterator<Item = (u64, u64)>) -> u64 {
    // The result of `power_of_x` is kept for the next part, because nearly all parts have the same size.
    let (mut of_bytes, mut power) = (0, ONE);
    blocks.into_iter().fold(0, |whole, (bytes, crc64)| {
        if bytes != of_bytes {
            (of_bytes, power) = (bytes, power_of_x(bytes));
        }
        times(whole, power) ^ crc64
    })
}

/// The polynomial of CRC-64/NVME, in the bit order of its checksums: the highest bit is the coefficient of x⁰.
const POLYNOMIAL: u64 = 0x9a6c_9329_ac4b_c9b5;
/// The polynomial 1, with the highest bit as the coefficient of x⁰.
const ONE: u64 = 1 << 63;

/// Returns the product of two polynomials, modulo [`POLYNOMIAL`].
fn times(one: u64, mut other: u64) -> u64 {
    let mut product = 0;
    for place in (0..64).rev() {
        product ^= other & (one >> place & 1).wrapping_neg();
        other = (other >> 1) ^ (POLYNOMIAL & (other & 1).wrapping_neg());
    }
    product
}

/// Returns x to the power of 8·`bytes`, modulo [`POLYNOMIAL`]. Appending `bytes` bytes to some data multiplies the
/// checksum of this data by the returned power.
fn power_of_x(mut bytes: u64) -> u64 {
    let (mut power, mut square) = (ONE, ONE >> 8);
    while bytes > 0 {
        if bytes & 1 == 1 {
            power = times(power, square);
        }
        (square, bytes) = (times(square, square), bytes >> 1);
    }
    power
}

/// Creates a hasher that computes a CRC-32C from bytes that arrive in pieces.
pub(crate) fn digest_of_crc32c() -> Digest {
    Digest::new(Crc32Iscsi)
}

pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(Crc32Iscsi, bytes) as u32
}

/// Returns the CRC-32C of a whole object from the sizes and checksums of its parts, in their order.
pub(crate) fn crc32c_of_blocks(blocks: impl IntoIterator<Item = (u64, u32)>) -> u32 {
    let add = |whole, (bytes, crc32c)| crc_fast::checksum_combine(Crc32Iscsi, whole, u64::from(crc32c), bytes);
    blocks.into_iter().fold(0, add) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with the function of the crate `crc_fast` that combines two checksums. The library itself does not
        /// use that function, because it takes a quarter of a millisecond per part.
        #[test]
        fn blocks_are_combined_as_the_library_does(
            blocks in prop::collection::vec(
                (prop_oneof![Just(8_u64 << 20), 0..300_u64, any::<u64>()], any::<u64>()),
                0..20,
            ),
        ) {
            let combine = |whole, &(bytes, crc64): &(u64, u64)| {
                crc_fast::checksum_combine(Crc64Nvme, whole, crc64, bytes)
            };
            prop_assert_eq!(crc64_of_blocks(blocks.iter().copied()), blocks.iter().fold(0, combine));
        }
    }
}
