//! Blocks whose exponents lie near to one another are summed exactly in a few doubles.

use super::accumulator::Exact;
use super::units::{FIRST_UNIT, unit_of};
use crate::sum::element::Element;
use crate::sum::method::Subtract;
use crate::sum::vector::Vector;

/// Numbers of a block.
pub const BLOCK: usize = 1 << BLOCK_BITS;
const BLOCK_BITS: i32 = 12;

const LINE_BYTES: usize = 64;

/// Below this a block is not worth its preparations.
const LEAST: usize = 16;

/// The most sums that a block is split into.
const MOST_LEVELS: usize = 3;

/// The exponents of a block's numbers other than zero: 2^least ≤ |x| < 2^(greatest + 1); subnormals count as the least
/// normal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exponents {
    /// There are only zeros.
    Zeros,
    /// Between these.
    Between { least: i32, greatest: i32 },
    /// A number is not finite.
    Special,
}

impl Exponents {
    /// Of `f32`, from their greatest and least magnitude as bits less one.
    #[inline]
    pub fn of_f32(greatest: i32, least: u32) -> Exponents {
        let field = |less_one: u32| less_one.wrapping_add(1) >> (f32::MANTISSA_DIGITS - 1);
        if greatest < 0 {
            return Exponents::Zeros;
        }
        Exponents::of_fields(field(least) as i32, field(greatest.cast_unsigned()) as i32, f32::MAX_EXP)
    }

    /// Of `f64`, as [`Exponents::of_f32`].
    #[inline]
    pub fn of_f64(greatest: i64, least: u64) -> Exponents {
        let field = |less_one: u64| less_one.wrapping_add(1) >> (f64::MANTISSA_DIGITS - 1);
        if greatest < 0 {
            return Exponents::Zeros;
        }
        Exponents::of_fields(field(least) as i32, field(greatest.cast_unsigned()) as i32, f64::MAX_EXP)
    }

    /// From the fields that a format with such a greatest exponent stores.
    fn of_fields(least: i32, greatest: i32, max_exponent: i32) -> Exponents {
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
/// The CPU has the instructions of `V`.
#[inline(always)]
pub unsafe fn add_blocks<V: Vector<Part = V>, T: Element, const N: usize>(sum: &mut Exact, xs: &[T]) {
    let mut unit = Some(FIRST_UNIT);
    // The first block is shorter, so that those after it begin where a cache line does.
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
            // SAFETY: the same contract.
            unsafe { add_block::<V, T, N>(sum, block, &mut unit) }
        }
    }
}

/// As integers in units of the block before, then in units of its own, and else as doubles.
#[inline(always)]
unsafe fn add_block<V: Vector<Part = V>, T: Element, const N: usize>(
    sum: &mut Exact,
    block: &[T],
    unit: &mut Option<i32>,
) {
    // SAFETY: the same contract.
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

/// As doubles, where their exponents allow it, and else one by one.
#[inline(always)]
unsafe fn add_split<V: Vector<Part = V>, T: Element, const N: usize>(
    sum: &mut Exact,
    block: &[T],
    exponents: Exponents,
) {
    let windows = match exponents {
        Exponents::Between { least, greatest } => Windows::of(greatest, least - (T::SIGNIFICAND_BITS - 1)),
        _ => None,
    };
    let Some(Windows { levels, offsets }) = windows else {
        block.iter().for_each(|&x| sum.add(x.into()));
        return;
    };
    // SAFETY: the same contract.
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

/// Into how many sums a block is split, and the offsets that do it.
struct Windows {
    levels: usize,
    /// 1.5·2^p for all levels but the last.
    offsets: [f64; MOST_LEVELS - 1],
}

impl Windows {
    /// For numbers below 2^(greatest + 1) that are multiples of 2^unit; none where they are too far apart, or where an
    /// offset would overflow.
    ///
    /// A number is added to an offset 1.5·2^p so large (p = greatest + 2 + 10) that the sum of all stays within its
    /// binade, and that each addition therefore rounds to a multiple of 2^(p − 52): what was added is known exactly,
    /// and what is left of the number, at most 2^(p − 53), goes to the next level. At the last level the sums are
    /// exact because all that they can be are less than 2^53 units. Rump, Ogita and Oishi 2008, "Accurate
    /// floating-point summation", call this extraction.
    #[inline(always)]
    fn of(greatest: i32, unit: i32) -> Option<Windows> {
        let mut windows = Windows { levels: 1, offsets: [0.0; MOST_LEVELS - 1] };
        // All that is left is at most 2^bound.
        let mut bound = greatest + 1;
        while bound + BLOCK_BITS > f64::MANTISSA_DIGITS as i32 + unit {
            // A larger offset does no harm.
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

/// The block's sum as that of `L` numbers, all exact.
///
/// # Safety
/// The CPU has the instructions of `V`.
#[inline(always)]
unsafe fn split<V: Vector<Part = V>, T: Element, const N: usize, const L: usize>(
    block: &[T],
    offsets: [f64; MOST_LEVELS - 1],
) -> [f64; MOST_LEVELS] {
    // SAFETY: the caller vouches for the instructions; every load is inside its round, and of the rest only the numbers
    // that are there are loaded.
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

/// The sum of all lanes of all registers, each less the offset; exact, as are all sums of some of them.
///
/// # Safety
/// The CPU has the instructions of `V`.
#[inline(always)]
unsafe fn total<V: Vector<Part = V>, const N: usize>(registers: &[V; N], offset: f64) -> f64 {
    // SAFETY: the same contract.
    unsafe {
        let offset = V::splat(offset);
        registers.iter().fold(V::splat(0.0), |all, register| all.add(register.sub(offset))).sum_lanes()
    }
}
