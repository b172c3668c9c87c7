//! Digits on every machine: by arithmetic on packed numbers, and of numbers below a thousand, the commonest, from a
//! table.
//!
//! A number is halved by 10⁸, then 10⁴, 10² and 10; the halves of a stage sit side by side in one register and are
//! divided together, by a multiplication and a shift. After Khuong and Wittrock's `an_itoa` (2017).

/// 0x30 in every byte.
const ASCII: u64 = 0x3030_3030_3030_3030;

/// Writes a magnitude to `to` and returns how many digits it has.
///
/// # Safety
/// As many bytes as the largest magnitude of its type has digits (10, 19 or 20) are writable at `to`; what of them
/// is not text is overwritten.
#[inline(always)]
pub unsafe fn digits(magnitude: u64, to: *mut u8) -> usize {
    const EIGHT: u64 = 100_000_000;
    // SAFETY: there are eight bytes for each store: the digits that follow are at least as many as the bytes that
    // a number without zeros in front leaves free.
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

/// Writes up to eight digits, without zeros in front, in eight bytes.
#[inline(always)]
unsafe fn first(x: u64, to: *mut u8) -> usize {
    // Four digits stand in the upper half, behind four zeros.
    let (text, length) = trimmed(if x < 10_000 { pack4(x) << 32 } else { pack(x) });
    // SAFETY: the caller vouches for eight bytes.
    unsafe { store(text, to) };
    length
}

/// Moves the digits to the front, of which the first is the lowest byte, and makes text of them.
#[inline(always)]
pub fn trimmed(digits: u64) -> (u64, usize) {
    // Zero keeps its last digit.
    let zeros = ((digits | 1 << 56).trailing_zeros() / 8) as usize;
    ((digits | ASCII) >> (8 * zeros), 8 - zeros)
}

/// The eight digits of a number below 10⁸, one a byte, the first in the lowest.
#[inline(always)]
fn pack(x: u64) -> u64 {
    let halves = (x / 10_000) | (x % 10_000) << 32;
    // floor(x / 100) for x below 10,000, in both halves.
    let hundreds = ((halves * 5_243) >> 19) & 0x7f_0000_007f;
    pairs(hundreds | (halves - hundreds * 100) << 16)
}

/// The four digits of a number below 10⁴ in the four lowest bytes.
#[inline(always)]
fn pack4(x: u64) -> u64 {
    let hundreds = (x * 5_243) >> 19;
    pairs(hundreds | (x - hundreds * 100) << 16)
}

/// Two digits for each of four 16-bit numbers below 100.
#[inline(always)]
fn pairs(x: u64) -> u64 {
    // floor(x / 10) for x below 100.
    let tens = ((x * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (x - tens * 10) << 8
}

/// Writes eight bytes, the lowest first.
///
/// # Safety
/// Eight bytes are writable at `to`.
#[inline(always)]
pub unsafe fn store(text: u64, to: *mut u8) {
    // SAFETY: the caller vouches for eight bytes.
    unsafe { to.cast::<[u8; 8]>().write(text.to_le_bytes()) }
}

/// The first number that is not in the table.
pub const TABLE_END: u64 = 1_000;

/// The digits of each number as text, the first in the lowest byte, and in the highest how many they are.
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

/// Writes a number below [`TABLE_END`], by a load and a store, and returns how many digits it has.
///
/// # Safety
/// Four bytes are writable at `to`; what of them is not text is overwritten.
#[inline(always)]
pub unsafe fn digits_by_table(x: u64, to: *mut u8) -> usize {
    let text = TEXTS[x as usize];
    // SAFETY: the caller vouches for four bytes.
    unsafe { to.cast::<[u8; 4]>().write(text.to_le_bytes()) };
    (text >> 24) as usize
}
