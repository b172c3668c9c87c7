//! Sums a block of numbers exactly, as a few doubles, if the exponents of the numbers are close together.

use super::accumulator::Exact;
use super::units::{FIRST_UNIT, unit_of};
use crate::sum::element::Element;
use crate::sum::method::Subtract;
use crate::sum::vector::Vector;

/// Largest number of elements in a block. The exact sum of a block is represented by a few doubles.
pub const BLOCK: usize = 1 << BLOCK_BITS;
const BLOCK_BITS: i32 = 12;

const LINE_BYTES: usize = 64;

/// Length below which a block is added one number at a time, because preparing it is not worth the effort.
const LEAST: usize = 16;

/// Largest number of partial sums that a block is split into.
const MOST_LEVELS: usize = 3;

/// The range of the exponents of a block's numbers other than zero: 2^least ≤ |x| < 2^(greatest + 1). Subnormals count
/// as the smallest normal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exponents {
    /// The block has only zeros.
    Zeros,
    /// All exponents are in this range, which includes both ends.
    Between { least: i32, greatest: i32 },
    /// At least one number is not finite.
    Special,
}

impl Exponents {
    /// Computes the range of the exponents of `f32`. `greatest` and `least` are the bits of the greatest and the least
    /// magnitude, each minus one.
    #[inline]
    pub fn from_f32(greatest: i32, least: u32) -> Exponents {
        let field = |less_one: u32| less_one.wrapping_add(1) >> (f32::MANTISSA_DIGITS - 1);
        if greatest < 0 {
            return Exponents::Zeros;
        }
        Exponents::from_fields(field(least) as i32, field(greatest.cast_unsigned()) as i32, f32::MAX_EXP)
    }

    /// Computes the range of the exponents of `f64` as [`Exponents::from_f32`] does for `f32`.
    #[inline]
    pub fn from_f64(greatest: i64, least: u64) -> Exponents {
        let field = |less_one: u64| less_one.wrapping_add(1) >> (f64::MANTISSA_DIGITS - 1);
        if greatest < 0 {
            return Exponents::Zeros;
        }
        Exponents::from_fields(field(least) as i32, field(greatest.cast_unsigned()) as i32, f64::MAX_EXP)
    }

    /// Computes the range of the exponents from the least and the greatest exponent field of the numbers' bits.
    /// `max_exponent` is the greatest exponent of the format.
    fn from_fields(least: i32, greatest: i32, max_exponent: i32) -> Exponents {
        let exponent = |field: i32| field.max(1) - (max_exponent - 1);
        match greatest == 2 * max_exponent - 1 {
            true => Exponents::Special,
            false => Exponents::Between { least: exponent(least), greatest: exponent(greatest) },
        }
    }
}

/// Adds all numbers of a slice, with `N` registers for each part of a block's sum.
///
/// # Safety
/// The CPU must have the instructions of `V`.
#[inline(always)]
pub unsafe fn add_blocks<V: Vector<Part = V>, T: Element, const N: usize>(sum: &mut Exact, xs: &[T]) {
    let mut unit = Some(FIRST_UNIT);
    // The first block is shorter, so that those after it begin at a cache line.
    let line = LINE_BYTES / size_of::<T>();
    let mut length = BLOCK - line + xs.as_ptr().align_offset(LINE_BYTES) % line;
    let mut rest = xs;
    while !rest.is_empty() {
        let block;
        (block, rest) = rest.split_at(length.min(rest.len()));
        length = BLOCK;
        if block.len() < LEAST {
            block.iter().for_each(|&x| sum.add(x.into()));
        } else {
            // SAFETY: the caller guarantees the same conditions.
            unsafe { add_block::<V, T, N>(sum, block, &mut unit) }
        }
    }
}

/// Adds a block in the first of three ways that is possible for its exponents:
///
/// 1. as integers in `unit`, which fitted the previous block;
/// 2. as integers in another unit;
/// 3. as doubles.
///
/// Then stores in `unit` the unit to try for the next block.
#[inline(always)]
unsafe fn add_block<V: Vector<Part = V>, T: Element, const N: usize>(
    sum: &mut Exact,
    block: &[T],
    unit: &mut Option<i32>,
) {
    // SAFETY: the caller guarantees the same conditions.
    unsafe {
        let mut found = None;
        if let Some(unit) = *unit {
            found = T::sum_units::<V>(block, unit);
            if let Some(units) = found.filter(|units| units.fits(unit))
                && units.exponents != Exponents::Zeros
            {
                return sum.add_multiple(units.total(), unit);
            }
        }
        let exponents = match found {
            Some(units) => units.exponents,
            None => T::exponents(block),
        };
        if exponents == Exponents::Zeros {
            sum.only_negative_zeros &= block.iter().all(|&x| x.into().is_sign_negative());
            return;
        }
        *unit = unit_of(exponents);
        if let Some(unit) = *unit
            && let Some(units) = T::sum_units::<V>(block, unit)
        {
            return sum.add_multiple(units.total(), unit);
        }
        add_split::<V, T, N>(sum, block, exponents);
    }
}

/// Adds a block by splitting its numbers into parts whose sums are exact doubles. If the exponents do not allow it,
/// adds one number at a time.
#[inline(always)]
unsafe fn add_split<V: Vector<Part = V>, T: Element, const N: usize>(
    sum: &mut Exact,
    block: &[T],
    exponents: Exponents,
) {
    let windows = match exponents {
        Exponents::Between { least, greatest } => Windows::new(greatest, least - (T::SIGNIFICAND_BITS - 1)),
        _ => None,
    };
    let Some(Windows { levels, offsets }) = windows else {
        block.iter().for_each(|&x| sum.add(x.into()));
        return;
    };
    // SAFETY: the caller guarantees the same conditions.
    let parts = unsafe {
        match levels {
            1 => split::<V, T, N, 1>(block, offsets),
            2 => split::<V, T, N, 2>(block, offsets),
            _ => split::<V, T, N, 3>(block, offsets),
        }
    };
    sum.only_negative_zeros = false;
    for part in parts {
        if part != 0.0 {
            sum.finite.add(part);
        }
    }
}

/// The split of the numbers of a block into parts that can be summed exactly: the number of parts (levels), and the
/// offsets that split them.
struct Windows {
    levels: usize,
    /// The number 1.5·2^p of each level but the last. Adding it to a number rounds that number to a multiple of 2^(p −
    /// 52). [`Windows::new`] computes p.
    offsets: [f64; MOST_LEVELS - 1],
}

impl Windows {
    /// Returns the split for numbers below 2^(greatest + 1) that are multiples of 2^unit. Returns `None` if the
    /// exponents are too far apart, or if an offset would overflow.
    ///
    /// The numbers are added to an offset 1.5·2^p, where p = greatest + 2 + 12. The offset is so large that it stays
    /// between 2^p and 2^(p + 1), whatever numbers are added. Each addition therefore rounds to a multiple of 2^(p −
    /// 52), and the part that was added is known exactly. The rest of the number, at most 2^(p − 53), goes to the next
    /// level. At the last level the sums are exact, because all of them are less than 2^53 units. Rump, Ogita and Oishi
    /// (2008, "Accurate floating-point summation") call such a split *extraction*.
    #[inline(always)]
    fn new(greatest: i32, unit: i32) -> Option<Windows> {
        let mut windows = Windows { levels: 1, offsets: [0.0; MOST_LEVELS - 1] };
        // The remaining numbers are at most 2^bound.
        let mut bound = greatest + 1;
        while bound + BLOCK_BITS > f64::MANTISSA_DIGITS as i32 + unit {
            // For tiny numbers the offset has the smallest normal exponent. This is larger than needed, which does no
            // harm.
            let power = (bound + BLOCK_BITS + 1).max(f64::MIN_EXP - 1);
            if windows.levels == MOST_LEVELS || power >= f64::MAX_EXP {
                return None;
            }
            windows.offsets[windows.levels - 1] = 1.5 * f64::from_bits(((power + 1023) as u64) << 52);
            windows.levels += 1;
            bound = power - 53;
        }
        Some(windows)
    }
}

/// Returns `L` numbers whose sum is exactly the sum of the block.
///
/// # Safety
/// The CPU must have the instructions of `V`.
#[inline(always)]
unsafe fn split<V: Vector<Part = V>, T: Element, const N: usize, const L: usize>(
    block: &[T],
    offsets: [f64; MOST_LEVELS - 1],
) -> [f64; MOST_LEVELS] {
    // SAFETY: the caller guarantees the instructions; every load is inside its round, and only existing numbers of the
    // remainder are loaded.
    unsafe {
        let subtract = V::Subtraction::new();
        let mut above = offsets.map(|offset| [V::splat(offset); N]);
        let mut rest = [V::splat(0.0); N];
        let mut add = |i: usize, terms: V| {
            let mut terms = terms;
            for level in &mut above[..L - 1] {
                let sum = level[i].add(terms);
                terms = subtract.minus(terms, subtract.minus(sum, level[i]));
                level[i] = sum;
            }
            rest[i] = rest[i].add(terms);
        };
        let mut rounds = block.chunks_exact(N * V::LANES);
        for round in &mut rounds {
            for i in 0..N {
                add(i, T::load(round.as_ptr().add(i * V::LANES)));
            }
        }
        for (i, piece) in rounds.remainder().chunks(V::LANES).enumerate() {
            add(i, T::load_partial(piece.as_ptr(), piece.len()));
        }
        let mut parts = [0.0; MOST_LEVELS];
        for (part, (level, offset)) in parts.iter_mut().zip(above.iter().zip(offsets)).take(L - 1) {
            *part = total::<V, N>(level, offset);
        }
        parts[L - 1] = total::<V, N>(&rest, 0.0);
        parts
    }
}

/// Returns the sum of all lanes of all registers, after `offset` is subtracted from each lane. This sum is exact, and
/// so are all partial sums.
///
/// # Safety
/// The CPU must have the instructions of `V`.
#[inline(always)]
unsafe fn total<V: Vector<Part = V>, const N: usize>(registers: &[V; N], offset: f64) -> f64 {
    // SAFETY: the caller guarantees the same conditions.
    unsafe {
        let offset = V::splat(offset);
        registers.iter().fold(V::splat(0.0), |all, register| all.add(register.sub(offset))).sum_lanes()
    }
}
