//! The methods that Khuong (2017) compares with his own, for experiments only. The code was written anew from his
//! descriptions. Each writes the digits of a number somewhere in a buffer of 20 bytes and returns their range.
//!
//! ```
//! use ascertain_numeric::decimal::historical;
//!
//! let mut buffer = [0; 20];
//! let text = historical::radix_100(1_234, &mut buffer);
//! assert_eq!(&buffer[text], b"1234");
//! ```

use core::ops::Range;

use super::pairs::PAIRS;
use crate::code_size::sized;

/// Writes one digit at a time, from the end of the buffer to the front. The text stays at the end (the method of Lwan).
#[inline(always)]
pub fn radix_10(mut x: u64, buffer: &mut [u8; 20]) -> Range<usize> {
    let mut at = 20;
    loop {
        at -= 1;
        buffer[at] = b'0' + (x % 10) as u8;
        x /= 10;
        if x == 0 {
            return at..20;
        }
    }
}

/// Writes one digit at a time from the front, then reverses the digits (the method of stringencoders).
#[inline(always)]
pub fn radix_10_reversed(mut x: u64, buffer: &mut [u8; 20]) -> Range<usize> {
    let mut length = 0;
    loop {
        buffer[length] = b'0' + (x % 10) as u8;
        length += 1;
        x /= 10;
        if x == 0 {
            buffer[..length].reverse();
            return 0..length;
        }
    }
}

/// Writes two digits at a time by a table, from the end of the buffer to the front. The text stays at the end. This is
/// Facebook's method, but without the search for the number of digits.
#[inline(always)]
pub fn radix_100_fixed(x: u64, buffer: &mut [u8; 20]) -> Range<usize> {
    pairs_before(x, buffer, 20)..20
}

/// Finds the number of digits by a galloping search, then writes two digits at a time by a table to their final
/// position (the method of Facebook).
#[inline(always)]
pub fn radix_100(x: u64, buffer: &mut [u8; 20]) -> Range<usize> {
    let length = gallop(x);
    pairs_before(x, buffer, length);
    0..length
}

/// Returns the number of digits of `x`. Makes up to four comparisons; for a longer number, divides by 10,000 and
/// repeats.
#[inline(always)]
fn gallop(mut x: u64) -> usize {
    let mut digits = 0;
    loop {
        match x {
            0..10 => return digits + 1,
            10..100 => return digits + 2,
            100..1_000 => return digits + 3,
            1_000..10_000 => return digits + 4,
            _ => {
                x /= 10_000;
                digits += 4;
            }
        }
    }
}

#[inline(always)]
fn pairs_before(mut x: u64, buffer: &mut [u8; 20], mut at: usize) -> usize {
    while x >= 100 {
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&PAIRS[(x % 100) as usize]);
        x /= 100;
    }
    if x < 10 {
        at -= 1;
        buffer[at] = b'0' + x as u8;
    } else {
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&PAIRS[x as usize]);
    }
    at
}

macro_rules! code_sizes {
    ($($function:ident, $section:literal, $alone:ident, $size:ident;)*) => {
        $(sized!("decimal" $section, $alone, $size, (x: u64, buffer: &mut [u8; 20]) -> Range<usize>, $function);)*

        /// Returns the size in bytes of the machine code of the method with this function name, without tables. Returns
        /// `None` if the size or the function is unknown.
        pub fn code_bytes(function: &str) -> Option<usize> {
            match function {
                $(stringify!($function) => $size(),)*
                _ => None,
            }
        }
    };
}

code_sizes! {
    radix_10, "radix_10", radix_10_alone, radix_10_bytes;
    radix_10_reversed, "radix_10_reversed", radix_10_reversed_alone, radix_10_reversed_bytes;
    radix_100, "radix_100", radix_100_alone, radix_100_bytes;
    radix_100_fixed, "radix_100_fixed", radix_100_fixed_alone, radix_100_fixed_bytes;
}
