//! Computes digits on every machine, by arithmetic on packed numbers. Numbers below a thousand, which are the most
//! frequent, are taken from a table.
//!
//! A number is split by 10⁸, then by 10⁴, 10² and 10. The parts of one stage are side by side in one register, so a
//! single multiplication and shift divides all of them. The method is derived from `an_itoa` by Khuong and Wittrock
//! (2017).

/// The byte 0x30, which is ASCII `0`, eight times.
const ASCII: u64 = 0x3030_3030_3030_3030;

/// Writes a magnitude to `to` and returns its number of digits.
///
/// # Safety
/// `to` must have room for the largest magnitude of the integer's type, which has 10, 19 or 20 digits. The bytes after
/// the text are overwritten too.
#[inline(always)]
pub unsafe fn digits(magnitude: u64, to: *mut u8) -> usize {
    const EIGHT: u64 = 100_000_000;
    // SAFETY: each store writes eight bytes. If `first` writes fewer digits than that, the eight or more digits that
    // follow overwrite the rest.
    unsafe {
        if magnitude < EIGHT {
            return first(magnitude, to);
        }
        let (upper, low) = (magnitude / EIGHT, magnitude % EIGHT);
        let mut length = if upper < EIGHT { first(upper, to) } else { first(upper / EIGHT, to) };
        if upper >= EIGHT {
            store(pack(upper % EIGHT) | ASCII, to.add(length));
            length += 8;
        }
        store(pack(low) | ASCII, to.add(length));
        length + 8
    }
}

/// Writes a number of up to eight digits without leading zeros, and returns its number of digits. Always overwrites
/// eight bytes.
#[inline(always)]
unsafe fn first(x: u64, to: *mut u8) -> usize {
    // Four digits are in the upper half, after four zeros.
    let (text, length) = trimmed(if x < 10_000 { pack4(x) << 32 } else { pack(x) });
    // SAFETY: the caller guarantees eight bytes.
    unsafe { store(text, to) };
    length
}

/// Turns eight digits into text without leading zeros. In the digits and in the text, the first digit is in the lowest
/// byte. Returns the text and its length.
#[inline(always)]
pub fn trimmed(digits: u64) -> (u64, usize) {
    // The number zero keeps its last digit.
    let zeros = ((digits | 1 << 56).trailing_zeros() / 8) as usize;
    ((digits | ASCII) >> (8 * zeros), 8 - zeros)
}

/// Returns the eight digits of a number below 10⁸, one per byte, the first in the lowest byte.
#[inline(always)]
fn pack(x: u64) -> u64 {
    let halves = (x / 10_000) | (x % 10_000) << 32;
    // floor(x / 100) for x below 10,000, in both halves.
    let hundreds = ((halves * 5_243) >> 19) & 0x7f_0000_007f;
    pairs(hundreds | (halves - hundreds * 100) << 16)
}

/// Returns the four digits of a number below 10⁴, one in each of the four lowest bytes.
#[inline(always)]
fn pack4(x: u64) -> u64 {
    let hundreds = (x * 5_243) >> 19;
    pairs(hundreds | (x - hundreds * 100) << 16)
}

/// Splits each of four 16-bit numbers below 100 into its two digits, one per byte.
#[inline(always)]
fn pairs(x: u64) -> u64 {
    // floor(x / 10) for x below 100.
    let tens = ((x * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (x - tens * 10) << 8
}

/// Writes eight bytes, the lowest byte first.
///
/// # Safety
/// Eight bytes must be writable at `to`.
#[inline(always)]
pub unsafe fn store(text: u64, to: *mut u8) {
    // SAFETY: the caller guarantees eight bytes.
    unsafe { to.cast::<[u8; 8]>().write(text.to_le_bytes()) }
}

/// The smallest number that is too large for the table of [`digits_by_table`].
pub const TABLE_END: u64 = 1_000;

/// The digits of each number below [`TABLE_END`] as text, the first digit in the lowest byte. The highest byte is the
/// number of digits.
static TEXTS: [u32; TABLE_END as usize] = {
    let mut texts = [0; TABLE_END as usize];
    let mut x = 0;
    while x < TABLE_END as u32 {
        let (mut text, mut length, mut rest) = (0, 0, x);
        while length == 0 || rest > 0 {
            text = text << 8 | (b'0' as u32 + rest % 10);
            rest /= 10;
            length += 1;
        }
        texts[x as usize] = text | length << 24;
        x += 1;
    }
    texts
};

/// Writes a number below [`TABLE_END`] with one load and one store, and returns its number of digits.
///
/// # Safety
/// Four bytes must be writable at `to`. The bytes after the text are overwritten too.
#[inline(always)]
pub unsafe fn digits_by_table(x: u64, to: *mut u8) -> usize {
    let text = TEXTS[x as usize];
    // SAFETY: the caller guarantees four bytes.
    unsafe { to.cast::<[u8; 4]>().write(text.to_le_bytes()) };
    (text >> 24) as usize
}
