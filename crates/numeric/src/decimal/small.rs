//! Numbers below a thousand, the commonest, from a table: a load and a store.

/// The first number that is not in the table.
pub const END: u64 = 1_000;

/// The digits of each number as text, the first in the lowest byte, and in the highest how many they are.
static TEXTS: [u32; END as usize] = {
    let mut texts = [0; END as usize];
    let mut x = 0;
    while x < END as u32 {
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

/// Writes a number below [`END`] and returns how many digits it has.
///
/// # Safety
/// Four bytes are writable at `to`; what of them is not text is overwritten.
#[inline(always)]
pub unsafe fn digits(x: u64, to: *mut u8) -> usize {
    let text = TEXTS[x as usize];
    // SAFETY: the caller vouches for four bytes.
    unsafe { to.cast::<[u8; 4]>().write(text.to_le_bytes()) };
    (text >> 24) as usize
}
