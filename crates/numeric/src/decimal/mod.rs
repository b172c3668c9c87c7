#![doc = include_str!("README.md")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx2_column;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_column;
pub mod historical;
#[cfg(target_arch = "aarch64")]
mod neon;
mod pairs;
mod portable;
#[cfg(target_arch = "x86_64")]
mod sse2;
mod variants;
mod write;

/// 10¹⁶, the first number with more than sixteen digits.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const SIXTEEN: u64 = pairs::EIGHT * pairs::EIGHT;

/// The byte positions 0 to 15, and sixteen positions that select no byte. Sixteen entries from index `n` on remove the
/// first `n` bytes of a register.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const PLACES: [u8; 32] = {
    let mut places = [0x80; 32];
    let mut place = 0;
    while place < 16 {
        places[place] = place as u8;
        place += 1;
    }
    places
};

pub use variants::{VARIANTS, Variant, chosen};
pub use write::{Integer, TooShort, append, append_column, append_to_string, write, write_within};
