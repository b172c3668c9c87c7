//! Two digits at a time, from a table, on every machine.
//!
//! The last eight digits come from a fraction: x/10⁶ as a fixed-point number has the first two digits before its point.
//! The rest times 100 has the next two, and so on. No step is a division. The fraction is the idea of James Edward
//! Anhalt's `itoa` (2017).

/// 10⁸, the first number with more than eight digits.
pub const EIGHT: u64 = 100_000_000;

/// The digits of 0 to 99 as text.
pub static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut i = 0;
    while i < 100 {
        pairs[i] = [b'0' + (i / 10) as u8, b'0' + (i % 10) as u8];
        i += 1;
    }
    pairs
};

/// Writes a magnitude to `to` and returns its number of digits. Writes no other bytes.
///
/// # Safety
/// `to` must have room for the digits.
#[inline(always)]
pub unsafe fn digits(magnitude: u64, to: *mut u8) -> usize {
    // SAFETY: the caller guarantees the room.
    unsafe {
        if magnitude < EIGHT {
            return leading(magnitude, to);
        }
        let (upper, low) = (magnitude / EIGHT, magnitude % EIGHT);
        let mut length = if upper < EIGHT { leading(upper, to) } else { leading(upper / EIGHT, to) };
        if upper >= EIGHT {
            eight(upper % EIGHT, to.add(length));
            length += 8;
        }
        eight(low, to.add(length));
        length + 8
    }
}

/// Returns whether a number has ten digits, as Unix times have.
#[inline(always)]
pub fn has_ten(x: u64) -> bool {
    const BILLION: u64 = 1_000_000_000;
    x.wrapping_sub(BILLION) < 9 * BILLION
}

/// Writes a number of ten digits.
///
/// # Safety
/// The number must have ten digits, and ten bytes must be writable at `to`.
#[inline(always)]
pub unsafe fn ten(x: u64, to: *mut u8) {
    // SAFETY: the first two digits are a number below 100, and the caller guarantees ten bytes.
    unsafe {
        pair(x / EIGHT, to);
        eight(x % EIGHT, to.add(2));
    }
}

/// Writes a number below 10⁸ without leading zeros, and returns its number of digits.
///
/// # Safety
/// `to` must have room for the digits.
#[inline(always)]
pub unsafe fn leading(x: u64, to: *mut u8) -> usize {
    // SAFETY: the caller guarantees the room.
    unsafe {
        match x {
            0..100 => first(x, to),
            100..10_000 => {
                let length = first(x / 100, to);
                pair(x % 100, to.add(length));
                length + 2
            }
            10_000..1_000_000 => {
                let length = first(x / 10_000, to);
                pair(x / 100 % 100, to.add(length));
                pair(x % 100, to.add(length + 2));
                length + 4
            }
            _ => {
                let length = first(x / 1_000_000, to);
                pair(x / 10_000 % 100, to.add(length));
                pair(x / 100 % 100, to.add(length + 2));
                pair(x % 100, to.add(length + 4));
                length + 6
            }
        }
    }
}

/// Writes a number below 100 without a leading zero, and returns its number of digits.
#[inline(always)]
unsafe fn first(x: u64, to: *mut u8) -> usize {
    // SAFETY: the caller guarantees the room.
    unsafe {
        if x < 10 {
            to.write(b'0' + x as u8);
            return 1;
        }
        pair(x, to);
        2
    }
}

/// Writes a number below 10⁸ with eight digits.
#[inline(always)]
unsafe fn eight(x: u64, to: *mut u8) {
    /// Number of bits after the point of the fraction.
    const BITS: u32 = 47;
    const REST: u64 = (1 << BITS) - 1;
    // Rounded up, so x/10⁶ is too large by less than 10⁸/2⁴⁷, which is less than half of the last digit, 10⁻⁶.
    let mut fraction = x * ((1 << BITS) / 1_000_000 + 1);
    for place in 0..4 {
        // SAFETY: the caller guarantees eight bytes.
        unsafe { pair(fraction >> BITS, to.add(2 * place)) };
        fraction = (fraction & REST) * 100;
    }
}

/// Writes a number below 100 with two digits.
#[inline(always)]
unsafe fn pair(x: u64, to: *mut u8) {
    debug_assert!(x < 100, "{x} has more than two digits");
    // SAFETY: the number is below 100, and the caller guarantees two bytes.
    unsafe { to.cast::<[u8; 2]>().write(*PAIRS.get_unchecked(x as usize)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of the fraction grows with the number, and is multiplied by 100 for each pair. So each pair is checked
    /// at its limits: the numbers next to each multiple of a power of a hundred, among the largest and the smallest.
    #[test]
    fn the_fraction_has_all_eight_digits() {
        let steps = [1_000_000, 10_000, 100, 1];
        let near = steps.iter().flat_map(|step| (0..100).flat_map(move |i| [i * step, EIGHT - (i + 1) * step]));
        for x in near.flat_map(|x| [x.saturating_sub(1), x, (x + 1).min(EIGHT - 1)]) {
            let mut text = [0; 8];
            // SAFETY: there are eight bytes.
            unsafe { eight(x, text.as_mut_ptr()) };
            assert_eq!(core::str::from_utf8(&text), Ok(&*format!("{x:08}")));
        }
    }
}
