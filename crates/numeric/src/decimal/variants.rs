//! The ways to write digits, by name, and which one this machine takes.

use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicPtr, Ordering};

use super::portable;
use super::write::{Column, Integer, append_by};
use crate::code_size::sized;
use crate::features::first_missing;
use crate::standard::Once;

/// Writes numbers one after the other; it may be called only where the CPU has what the variant requires.
type Each = unsafe fn(&[u64], &mut [u8; 20]) -> usize;

/// One way to write an integer.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Its name.
    pub name: &'static str,
    /// A line about it.
    pub about: &'static str,
    /// The CPU features that it needs, as `is_x86_feature_detected!` names them.
    pub requires: &'static [&'static str],
    /// None where the architecture is another.
    each: Option<Each>,
    pub(super) column: Column,
    code_bytes: fn() -> Option<usize>,
}

impl Variant {
    /// Whether this machine can run it.
    ///
    /// # Errors
    /// The first of the required CPU features that the machine lacks.
    pub fn is_available(&self) -> Result<(), &'static str> {
        first_missing(self.requires).map_or(Ok(()), Err)
    }

    /// Writes one number after the other to the front of the buffer, and returns how many bytes they were
    /// together; none where the machine can't run it.
    pub fn each(&self, values: &[u64], buffer: &mut [u8; 20]) -> Option<usize> {
        self.is_available().ok()?;
        // SAFETY: the CPU has the features.
        Some(unsafe { self.each?(values, buffer) })
    }

    /// As [`append_column`](super::append_column), with these instructions; none, and nothing is appended, where the
    /// machine can't run them.
    ///
    /// ```
    /// let portable = ascertain_numeric::decimal::VARIANTS.iter().find(|variant| variant.name == "portable").unwrap();
    /// let mut text = Vec::new();
    /// portable.append_column(&[3, -14, 159_i32], b'\n', &mut text).unwrap();
    /// assert_eq!(text, b"3\n-14\n159\n");
    /// ```
    pub fn append_column<I: Integer>(&self, values: &[I], delimiter: u8, text: &mut Vec<u8>) -> Option<()> {
        self.is_available().ok()?;
        // SAFETY: the CPU has the features.
        unsafe { append_by(self.column, values, delimiter, text) }
        Some(())
    }

    /// The machine code of one call, without tables.
    pub fn code_bytes(&self) -> Option<usize> {
        (self.code_bytes)()
    }
}

/// Every way, also where it [cannot run](Variant::is_available).
pub const VARIANTS: &[Variant] = &[
    Variant {
        name: "avx512",
        about: "all digits at once, without a branch, by AVX-512 IFMA",
        requires: AVX512,
        #[cfg(target_arch = "x86_64")]
        each: Some(x86::each),
        #[cfg(not(target_arch = "x86_64"))]
        each: None,
        column: EIGHT_AT_A_TIME,
        #[cfg(target_arch = "x86_64")]
        code_bytes: x86::code_bytes,
        #[cfg(not(target_arch = "x86_64"))]
        code_bytes: || None,
    },
    Variant {
        name: "table-avx512",
        about: "a table below 1,000, then avx512: the plain calls in a program that is built for this CPU",
        requires: AVX512,
        #[cfg(target_arch = "x86_64")]
        each: Some(x86::each_by_table),
        #[cfg(not(target_arch = "x86_64"))]
        each: None,
        column: EIGHT_AT_A_TIME,
        #[cfg(target_arch = "x86_64")]
        code_bytes: x86::code_bytes_with_table,
        #[cfg(not(target_arch = "x86_64"))]
        code_bytes: || None,
    },
    Variant {
        name: "portable",
        about: "by 10⁸, 10⁴, 10² and 10, on packed numbers, without a table",
        requires: &[],
        each: Some(each),
        column: Column::OneByOne,
        code_bytes,
    },
];

#[cfg(target_arch = "x86_64")]
const AVX512: &[&str] = super::avx512::FEATURES;
#[cfg(not(target_arch = "x86_64"))]
const AVX512: &[&str] = &["avx512ifma"];

#[cfg(target_arch = "x86_64")]
const EIGHT_AT_A_TIME: Column = Column::Avx512;
/// Never called.
#[cfg(not(target_arch = "x86_64"))]
const EIGHT_AT_A_TIME: Column = Column::OneByOne;

/// The variant whose instructions the plain calls take on this machine, `avx512` or `portable`; a number below 1,000
/// they take from a table. Whichever it is, the text is the same.
pub fn chosen() -> &'static Variant {
    static CHOSEN: Once<&Variant> = Once::new();
    CHOSEN.get_or_init(|| first_that_runs(|requires| first_missing(requires).is_none()))
}

/// The one for a machine that has what `has` says. Nothing is measured: every CPU with AVX-512 IFMA and VBMI multiplies
/// eight numbers at once in a cycle or two, and the portable way takes several multiplications one after the other.
fn first_that_runs(has: impl Fn(&[&'static str]) -> bool) -> &'static Variant {
    let runs = |variant: &&Variant| variant.name != "table-avx512" && has(variant.requires);
    VARIANTS.iter().find(runs).expect("the portable variant runs on every machine")
}

fn each(values: &[u64], buffer: &mut [u8; 20]) -> usize {
    let mut bytes = 0;
    for &value in values {
        // SAFETY: the buffer has 20 bytes.
        bytes += unsafe { portable::digits(value, buffer.as_mut_ptr()) };
        black_box(&mut *buffer);
    }
    bytes
}

sized!("decimal" "portable", alone, code_bytes, (value: u64, to: *mut u8) -> usize, |value, to| unsafe {
    // SAFETY: it is never called.
    portable::digits(value, to)
});

/// Writes a magnitude of a type to where as many bytes are writable as the type's largest has digits, and returns how
/// many it has.
pub(super) type Digits = unsafe fn(u64, *mut u8) -> usize;

/// Writes a magnitude of a type: a small one from the table, others by `many`.
///
/// # Safety
/// As many bytes as the type's largest magnitude has digits are writable at `to`, and the CPU has what `many` needs.
#[inline(always)]
pub(super) unsafe fn digits(magnitude: u64, to: *mut u8, many: Digits) -> usize {
    // SAFETY: the caller's, and there are more than four bytes.
    unsafe {
        if magnitude < portable::TABLE_END { portable::digits_by_table(magnitude, to) } else { many(magnitude, to) }
    }
}

/// The way that this machine takes for a type.
#[inline(always)]
pub(super) fn best<I: Integer>() -> Digits {
    #[cfg(target_arch = "x86_64")]
    if cfg!(all(
        target_feature = "avx512f",
        target_feature = "avx512bw",
        target_feature = "avx512vl",
        target_feature = "avx512dq",
        target_feature = "avx512ifma",
        target_feature = "avx512vbmi",
        target_feature = "lzcnt"
    )) {
        // Known by the compiler, which puts it in place of the call.
        return match I::MOST_DIGITS {
            10 => super::avx512::digits::<10>,
            19 => super::avx512::digits::<19>,
            _ => super::avx512::digits::<20>,
        };
    }
    let known = slot(I::MOST_DIGITS).load(Ordering::Relaxed);
    // SAFETY: a slot holds such a function, from the start.
    unsafe { core::mem::transmute::<*mut (), Digits>(known) }
}

/// Where the way is kept, so that a call asks for nothing: at first it is one that finds it out.
#[inline(always)]
fn slot(most_digits: usize) -> &'static AtomicPtr<()> {
    const fn first(digits: Digits) -> AtomicPtr<()> {
        AtomicPtr::new(digits as *const () as *mut ())
    }
    static SLOTS: [AtomicPtr<()>; 3] = [first(found::<10>), first(found::<19>), first(found::<20>)];
    match most_digits {
        10 => &SLOTS[0],
        19 => &SLOTS[1],
        _ => &SLOTS[2],
    }
}

/// Finds out what the machine takes from now on, and takes it.
unsafe fn found<const MOST: usize>(magnitude: u64, to: *mut u8) -> usize {
    #[cfg(target_arch = "x86_64")]
    let best: Digits = match chosen().column {
        Column::Avx512 => super::avx512::digits::<MOST>,
        Column::OneByOne => portable::digits,
    };
    #[cfg(not(target_arch = "x86_64"))]
    let best: Digits = portable::digits;
    slot(MOST).store(best as *const () as *mut (), Ordering::Relaxed);
    // SAFETY: the room is the caller's, and the CPU has what the function needs.
    unsafe { best(magnitude, to) }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use crate::decimal::avx512;

    sized!("decimal" "avx512", alone, code_bytes, (value: u64, to: *mut u8) -> usize, |value, to| unsafe {
        // SAFETY: it is never called.
        avx512::digits::<20>(value, to)
    }, "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt");

    sized!("decimal" "table_avx512", with_table, code_bytes_with_table, (value: u64, to: *mut u8) -> usize, |value, to| unsafe {
        // SAFETY: it is never called.
        digits(value, to, avx512::digits::<20>)
    }, "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt");

    /// # Safety
    /// The CPU has the features.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt")]
    pub unsafe fn each(values: &[u64], buffer: &mut [u8; 20]) -> usize {
        let mut bytes = 0;
        for &value in values {
            // SAFETY: the buffer has 20 bytes.
            bytes += unsafe { avx512::digits::<20>(value, buffer.as_mut_ptr()) };
            black_box(&mut *buffer);
        }
        bytes
    }

    /// # Safety
    /// The CPU has the features.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt")]
    pub unsafe fn each_by_table(values: &[u64], buffer: &mut [u8; 20]) -> usize {
        let mut bytes = 0;
        for &value in values {
            // SAFETY: the buffer has 20 bytes.
            bytes += unsafe { digits(value, buffer.as_mut_ptr(), avx512::digits::<20>) };
            black_box(&mut *buffer);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::first_that_lacks;

    #[test]
    fn a_machine_that_lacks_any_of_the_features_takes_the_portable_way() {
        let taken = |masked: Option<&str>| {
            let has = |feature: &str| Some(feature) != masked;
            first_that_runs(|requires| first_that_lacks(requires, has).is_none()).name
        };
        assert_eq!(taken(None), "avx512");
        for masked in AVX512 {
            assert_eq!(taken(Some(masked)), "portable", "without {masked}");
        }
    }
}
