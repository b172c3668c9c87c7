//! One integer at a time.

use super::integer::Integer;
use super::variant::{Digits, best, digits};

/// A buffer has no room for the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooShort {
    /// The bytes that it needs.
    pub needed: usize,
    /// The bytes that it has.
    pub have: usize,
}

impl std::fmt::Display for TooShort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the buffer has {} bytes and needs {}; Integer::MOST_BYTES always do", self.have, self.needed)
    }
}

impl std::error::Error for TooShort {}

/// Writes an integer's text at the front of a buffer that has room for any of its type, and returns the text's
/// length. What follows the text within [`Integer::MOST_BYTES`] may be overwritten; nothing beyond it is.
///
/// # Errors
/// When the buffer is shorter than [`Integer::MOST_BYTES`]; it is left as it was.
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
    // SAFETY: the buffer has the bytes.
    Ok(unsafe { write_unchecked(value, buffer.as_mut_ptr(), best::<I>()) })
}

/// Writes an integer's text at the front of a buffer that may be as short as the text, and returns its length.
/// Nothing but the text is written.
///
/// # Errors
/// When the text is longer than the buffer, which is left as it was.
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

/// Appends an integer's text.
///
/// ```
/// let mut text = b"x = ".to_vec();
/// ascertain_numeric::decimal::append(7_u32, &mut text);
/// assert_eq!(text, b"x = 7");
/// ```
#[inline]
pub fn append<I: Integer>(value: I, text: &mut Vec<u8>) {
    text.reserve(I::MOST_BYTES);
    // SAFETY: the bytes behind the text are reserved, and as many as are counted are written.
    unsafe {
        let length = write_unchecked(value, text.as_mut_ptr().add(text.len()), best::<I>());
        text.set_len(text.len() + length);
    }
}

/// Appends an integer's text to a string; see [`append`].
///
/// ```
/// let mut text = String::from("x = ");
/// ascertain_numeric::decimal::append_to_string(-7_i8, &mut text);
/// assert_eq!(text, "x = -7");
/// ```
#[inline]
pub fn append_to_string<I: Integer>(value: I, text: &mut String) {
    // SAFETY: what is appended is ASCII.
    append(value, unsafe { text.as_mut_vec() });
}

/// # Safety
/// [`Integer::MOST_BYTES`] are writable at `to`, and the CPU has what `many` needs, which writes all but small numbers.
#[inline(always)]
pub(super) unsafe fn write_unchecked<I: Integer>(value: I, to: *mut u8, many: Digits) -> usize {
    let (is_negative, magnitude) = value.parts();
    let sign = usize::from(is_negative);
    // SAFETY: the sign is one byte, and the digits of the largest magnitude have the others.
    unsafe {
        if I::IS_SIGNED {
            to.write(b'-');
        }
        sign + digits(magnitude, to.add(sign), many)
    }
}

#[cfg(test)]
mod tests {
    use super::super::portable;
    use super::*;

    fn check<I: Integer + ToString>(value: I) {
        let mut buffer = [b'~'; 21];
        // SAFETY: there are more bytes than any number has.
        let length = unsafe { write_unchecked(value, buffer.as_mut_ptr(), portable::digits) };
        assert_eq!(std::str::from_utf8(&buffer[..length]), Ok(&*value.to_string()));
        assert!(buffer[I::MOST_BYTES..].iter().all(|&byte| byte == b'~'), "{}: beyond its bound", value.to_string());
    }

    #[test]
    fn without_avx512() {
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
