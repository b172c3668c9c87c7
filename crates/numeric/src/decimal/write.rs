//! The integers that can be written, one at a time or as a column.

use alloc::string::String;
use alloc::vec::Vec;

use super::variants::{Digits, best, digits};
use super::{pairs, portable};

/// Integers of up to 64 bits: `u8` to `u64`, `i8` to `i64`, `usize` and `isize`. 128 bits are not supported.
pub trait Integer: Sealed + Copy {
    /// Largest length of a number's text, in bytes. Types of up to 32 bits need 10, or 11 if they are signed; `u64`,
    /// `i64`, `usize` and `isize` need 20.
    const MOST_BYTES: usize = Self::MOST_DIGITS + Self::IS_SIGNED as usize;
}

impl<T: Sealed + Copy> Integer for T {}

/// The items of [`Integer`] that are hidden from users. This trait also prevents other crates from implementing
/// `Integer`.
pub trait Sealed {
    /// Number of digits of the largest magnitude of this type. Integers narrower than 32 bits are written as 32-bit
    /// integers, so this is the number of digits of the 32-bit type.
    const MOST_DIGITS: usize;
    /// `true` if the type has negative numbers.
    const IS_SIGNED: bool;

    /// Returns whether the number is negative, and its magnitude.
    fn parts(self) -> (bool, u64);
}

macro_rules! integer {
    ($($type:ty, $digits:literal, $is_signed:literal, $is_negative:expr, $magnitude:expr;)*) => {
        $(impl Sealed for $type {
            const MOST_DIGITS: usize = $digits;
            const IS_SIGNED: bool = $is_signed;

            #[inline(always)]
            fn parts(self) -> (bool, u64) {
                ($is_negative(self), $magnitude(self))
            }
        })*
    };
}
integer! {
    u8, 10, false, |_| false, u64::from;
    u16, 10, false, |_| false, u64::from;
    u32, 10, false, |_| false, u64::from;
    u64, 20, false, |_| false, |x| x;
    usize, 20, false, |_| false, |x| x as u64;
    i8, 10, true, i8::is_negative, |x: i8| u64::from(x.unsigned_abs());
    i16, 10, true, i16::is_negative, |x: i16| u64::from(x.unsigned_abs());
    i32, 10, true, i32::is_negative, |x: i32| u64::from(x.unsigned_abs());
    i64, 19, true, i64::is_negative, i64::unsigned_abs;
    isize, 19, true, isize::is_negative, |x: isize| x.unsigned_abs() as u64;
}

/// The error that a buffer is too short for the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooShort {
    /// Length in bytes that the buffer must have.
    pub needed: usize,
    /// Length of the buffer in bytes.
    pub have: usize,
}

impl core::fmt::Display for TooShort {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "the buffer has {} bytes but needs {}; pass a buffer of Integer::MOST_BYTES bytes",
            self.have, self.needed
        )
    }
}

impl core::error::Error for TooShort {}

/// Writes an integer's text at the front of a buffer that has room for every number of its type. Returns the length of
/// the text. The bytes after the text may be overwritten up to [`Integer::MOST_BYTES`], but not beyond.
///
/// # Errors
/// Fails if the buffer is shorter than [`Integer::MOST_BYTES`]. The buffer is then unchanged.
///
/// ```
/// let mut buffer = [0; 20];
/// let length = ascertain_numeric::decimal::write(-42_i64, &mut buffer)?;
/// assert_eq!(&buffer[..length], b"-42");
/// # Ok::<(), ascertain_numeric::decimal::TooShort>(())
/// ```
#[inline]
pub fn write<I: Integer>(value: I, buffer: &mut [u8]) -> Result<usize, TooShort> {
    if buffer.len() < I::MOST_BYTES {
        return Err(TooShort { needed: I::MOST_BYTES, have: buffer.len() });
    }
    // SAFETY: the buffer has at least `MOST_BYTES` bytes.
    Ok(unsafe { write_unchecked(value, buffer.as_mut_ptr(), best::<I>()) })
}

/// Writes an integer's text at the front of a buffer that may be as short as the text. Returns the length of the text.
/// No other byte is written.
///
/// # Errors
/// Fails if the text is longer than the buffer. The buffer is then unchanged.
///
/// ```
/// use ascertain_numeric::decimal::{TooShort, write_within};
///
/// let mut buffer = *b"xxxx";
/// assert_eq!(write_within(123_u32, &mut buffer), Ok(3));
/// assert_eq!(&buffer, b"123x");
/// assert_eq!(write_within(12_345_u32, &mut buffer), Err(TooShort { needed: 5, have: 4 }));
/// ```
pub fn write_within<I: Integer>(value: I, buffer: &mut [u8]) -> Result<usize, TooShort> {
    let mut scratch = [0; 20];
    // SAFETY: no integer has more than 20 bytes.
    let length = unsafe { write_unchecked(value, scratch.as_mut_ptr(), best::<I>()) };
    let have = buffer.len();
    buffer.get_mut(..length).ok_or(TooShort { needed: length, have })?.copy_from_slice(&scratch[..length]);
    Ok(length)
}

/// Appends the text of an integer.
///
/// ```
/// let mut text = b"x = ".to_vec();
/// ascertain_numeric::decimal::append(7_u32, &mut text);
/// assert_eq!(text, b"x = 7");
/// ```
#[inline]
pub fn append<I: Integer>(value: I, text: &mut Vec<u8>) {
    text.reserve(I::MOST_BYTES);
    // SAFETY: the bytes after the text are reserved, and `length` of them have been written.
    unsafe {
        let length = write_unchecked(value, text.as_mut_ptr().add(text.len()), best::<I>());
        text.set_len(text.len() + length);
    }
}

/// Appends the text of an integer to a string. See [`append`].
///
/// ```
/// let mut text = String::from("x = ");
/// ascertain_numeric::decimal::append_to_string(-7_i8, &mut text);
/// assert_eq!(text, "x = -7");
/// ```
#[inline]
pub fn append_to_string<I: Integer>(value: I, text: &mut String) {
    // SAFETY: the appended bytes are ASCII.
    append(value, unsafe { text.as_mut_vec() });
}

/// Writes the sign and the digits at `to`, and returns the length of the text. The digits of small magnitudes come from
/// a table; those of larger magnitudes are written by `many`.
///
/// # Safety
/// [`Integer::MOST_BYTES`] bytes must be writable at `to`, and the CPU must have the features that `many` needs.
#[inline(always)]
pub(super) unsafe fn write_unchecked<I: Integer>(value: I, to: *mut u8, many: Digits) -> usize {
    let (is_negative, magnitude) = value.parts();
    let sign = usize::from(is_negative);
    // SAFETY: the sign takes one byte, and the remaining bytes are enough for the digits of the largest magnitude.
    unsafe {
        if I::IS_SIGNED {
            to.write(b'-');
        }
        sign + digits(magnitude, to.add(sign), many)
    }
}

/// Number of bytes that [`append_by`] reserves in addition to the text, because some methods store whole registers.
const MOST_WRITTEN: usize = 32;

/// Appends the text of each integer, with the delimiter after each.
///
/// ```
/// let mut text = Vec::new();
/// ascertain_numeric::decimal::append_column(&[3, -14, 159_i32], b'\n', &mut text);
/// assert_eq!(text, b"3\n-14\n159\n");
/// ```
pub fn append_column<I: Integer>(values: &[I], delimiter: u8, text: &mut Vec<u8>) {
    // SAFETY: the machine has the features of the variant that was chosen for it.
    unsafe { append_by(super::chosen().column, values, delimiter, text) }
}

/// The method of writing a column of integers as text.
#[derive(Clone, Copy, Debug)]
pub enum Column {
    /// Writes one number at a time, two digits at a time.
    Pairs,
    /// Writes one number at a time, by arithmetic on packed numbers.
    Packed,
    /// Writes one number at a time, with SSE2.
    #[cfg(target_arch = "x86_64")]
    Sse2,
    /// Writes four numbers at a time, with AVX2, if they have at most eight digits, otherwise one.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Writes one number at a time, with NEON.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// Writes eight numbers at a time with AVX-512, or four with AVX2 if they have at most eight digits.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Appends a column as [`append_column`] does, with the given method.
///
/// # Safety
/// The CPU must have the features that the method needs.
pub unsafe fn append_by<I: Integer>(column: Column, values: &[I], delimiter: u8, text: &mut Vec<u8>) {
    // Appends block by block, which limits the memory that is reserved beyond the final text.
    for block in values.chunks(256) {
        text.reserve(block.len() * (I::MOST_BYTES + 1) + MOST_WRITTEN);
        // SAFETY: there is room for each value, its delimiter and one more register; the counted bytes have been
        // written. The caller guarantees the features of the CPU.
        unsafe {
            let to = text.as_mut_ptr().add(text.len());
            let length = match column {
                Column::Pairs => one_by_one(block, delimiter, to, pairs::digits),
                #[cfg(target_arch = "aarch64")]
                Column::Neon => one_by_one(block, delimiter, to, super::neon::digits::<20>),
                Column::Packed => one_by_one(block, delimiter, to, portable::digits),
                #[cfg(target_arch = "x86_64")]
                Column::Sse2 => one_by_one(block, delimiter, to, super::sse2::digits::<20>),
                #[cfg(target_arch = "x86_64")]
                Column::Avx2 => super::avx2_column::write_block(block, delimiter, to, super::avx2_column::each),
                #[cfg(target_arch = "x86_64")]
                Column::Avx512 => {
                    super::avx2_column::write_block(block, delimiter, to, super::avx512_column::write_block)
                }
            };
            text.set_len(text.len() + length);
        }
    }
}

/// Writes each value, followed by the delimiter, one after the other. Returns the number of bytes written.
///
/// # Safety
/// There must be room for the texts and delimiters at `to`, and the CPU must have the features that `many` needs.
#[inline(always)]
pub unsafe fn one_by_one<I: Integer>(values: &[I], delimiter: u8, to: *mut u8, many: Digits) -> usize {
    let mut at = to;
    for &value in values {
        // SAFETY: the caller has room for every value's text and delimiter.
        unsafe {
            at = at.add(write_unchecked(value, at, many));
            at.write(delimiter);
            at = at.add(1);
        }
    }
    at.addr() - to.addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<I: Integer + ToString>(value: I) {
        let mut methods: Vec<(&str, Digits)> = vec![("portable", portable::digits), ("pairs", pairs::digits)];
        #[cfg(target_arch = "x86_64")]
        methods.push((
            "sse2",
            match I::MOST_DIGITS {
                10 => super::super::sse2::digits::<10>,
                19 => super::super::sse2::digits::<19>,
                _ => super::super::sse2::digits::<20>,
            },
        ));
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            let digits: Digits = match I::MOST_DIGITS {
                10 => super::super::avx2::digits::<10>,
                19 => super::super::avx2::digits::<19>,
                _ => super::super::avx2::digits::<20>,
            };
            methods.push(("avx2", digits));
        }
        #[cfg(target_arch = "aarch64")]
        methods.push((
            "neon",
            match I::MOST_DIGITS {
                10 => super::super::neon::digits::<10>,
                19 => super::super::neon::digits::<19>,
                _ => super::super::neon::digits::<20>,
            },
        ));
        for (name, many) in methods {
            let mut buffer = [b'~'; 21];
            // SAFETY: the buffer is longer than the text of any number, and the machine has the method's features.
            let length = unsafe { write_unchecked(value, buffer.as_mut_ptr(), many) };
            let text = value.to_string();
            assert_eq!(core::str::from_utf8(&buffer[..length]), Ok(&*text), "{name}");
            assert!(buffer[I::MOST_BYTES..].iter().all(|&byte| byte == b'~'), "{name}, {text}: beyond its bound");
        }
    }

    #[test]
    fn methods_that_this_machine_may_not_choose() {
        let powers = (0..20).map(|k| 10_u64.pow(k));
        for x in powers.flat_map(|x| [x - 1, x, x + 1]).chain([u64::MAX, 1 << 63, 1 << 31, u64::from(u32::MAX)]) {
            check(x);
            check(x as u32);
            check(x as i64);
            check((x as i64).wrapping_neg());
            check(x as i32);
            check((x as i32).wrapping_neg());
        }
    }
}
