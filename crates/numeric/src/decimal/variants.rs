//! The methods of writing digits, by name, and the choice of the method for this machine.

use alloc::vec::Vec;
use core::hint::black_box;
#[cfg(not(target_arch = "aarch64"))]
use core::sync::atomic::{AtomicPtr, Ordering};

use super::write::{Column, Integer, append_by};
use super::{pairs, portable};
use crate::code_size::sized;
use crate::features::{first_missing, on};
use crate::standard::Once;

/// A function that writes each number to the front of a buffer, over the previous number, and returns the total number
/// of bytes. The CPU must have the features that the variant requires.
type Each = unsafe fn(&[u64], &mut [u8; 20]) -> usize;

/// A function that writes one number to a pointer with room for 20 bytes, and returns its number of digits. The CPU
/// must have the features that the variant requires.
type One = unsafe fn(u64, *mut u8) -> usize;

/// One method of writing an integer.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Name of the method, such as `avx512`.
    pub name: &'static str,
    /// Description of the method, in one line.
    pub about: &'static str,
    /// CPU features that the variant needs, named as in `is_x86_feature_detected!`.
    pub requires: &'static [&'static str],
    /// `true` if the variant writes the digits. It is `false` for variants that show a speed limit: they write other
    /// bytes.
    pub is_text: bool,
    /// Function of the variant, or `None` if the target architecture cannot have the variant.
    each: Option<Each>,
    /// Function of the variant for one number, or `None` if the target architecture cannot have the variant.
    one: Option<One>,
    pub(super) column: Column,
    code_bytes: fn() -> Option<usize>,
}

impl Variant {
    /// Checks whether this machine can run the variant.
    ///
    /// # Errors
    /// Returns the first required CPU feature that the machine lacks.
    pub fn is_available(&self) -> Result<(), &'static str> {
        first_missing(self.requires).map_or(Ok(()), Err)
    }

    /// Writes each number to the front of the buffer, over the previous number. Returns the total number of bytes, or
    /// `None` if the machine cannot run the variant.
    pub fn each(&self, values: &[u64], buffer: &mut [u8; 20]) -> Option<usize> {
        self.is_available().ok()?;
        // SAFETY: the CPU has the features.
        Some(unsafe { self.each?(values, buffer) })
    }

    /// Writes each number as [`Variant::each`] does, but calls the method through a pointer for each number. A program
    /// that is compiled for any CPU cannot call the method for this CPU in a faster way.
    pub fn each_called(&self, values: &[u64], buffer: &mut [u8; 20]) -> Option<usize> {
        self.is_available().ok()?;
        let one = black_box(self.one?);
        // SAFETY: the CPU has the features, and the buffer has 20 bytes.
        Some(over(values, buffer, |value, to| unsafe { one(value, to) }))
    }

    /// Writes each number as [`write`](super::write()) does if it chooses this variant: numbers below 1,000 from a
    /// table, and larger numbers as [`Variant::each_called`] does.
    pub fn each_plain(&self, values: &[u64], buffer: &mut [u8; 20]) -> Option<usize> {
        self.is_available().ok()?;
        let one = black_box(self.one?);
        // SAFETY: as above.
        Some(over(values, buffer, |value, to| unsafe { digits(value, to, one) }))
    }

    /// Appends a column as [`append_column`](super::append_column) does, with the instructions of this variant. If the
    /// machine cannot run them, it returns `None` and appends nothing.
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

    /// Returns the size of the machine code of one call in bytes, without tables.
    pub fn code_bytes(&self) -> Option<usize> {
        (self.code_bytes)()
    }
}

/// Writes each number to the front of the buffer by `write`, and returns the total number of bytes.
#[inline(always)]
fn over(values: &[u64], buffer: &mut [u8; 20], write: impl Fn(u64, *mut u8) -> usize) -> usize {
    let mut bytes = 0;
    for &value in values {
        bytes += write(value, buffer.as_mut_ptr());
        black_box(&mut *buffer);
    }
    bytes
}

/// All methods, including those that this machine [cannot run](Variant::is_available).
pub const VARIANTS: &[Variant] = &[
    Variant {
        name: "avx512",
        about: "all digits at once, without a branch, by AVX-512 IFMA",
        each: on!("x86_64", Some(x86::each), None),
        one: on!("x86_64", Some(x86::alone), None),
        code_bytes: on!("x86_64", x86::code_bytes, || None),
        ..AVX512
    },
    Variant {
        name: "table-avx512",
        about: "a table for numbers below 1,000, pairs for ten digits, otherwise avx512, as in a program for this CPU",
        each: on!("x86_64", Some(x86::each_by_table), None),
        one: on!("x86_64", Some(x86::with_table), None),
        code_bytes: on!("x86_64", x86::code_bytes_with_table, || None),
        ..AVX512
    },
    Variant {
        name: "avx2",
        about: "up to sixteen digits at once, without a branch, by AVX2",
        requires: &["avx2"],
        each: on!("x86_64", Some(x86::each_by_avx2), None),
        one: on!("x86_64", Some(x86::avx2_alone), None),
        column: on!("x86_64", Column::Avx2, Column::Pairs),
        code_bytes: on!("x86_64", x86::code_bytes_of_avx2, || None),
        ..PAIRS
    },
    Variant {
        name: "table-avx2",
        about: "a table for numbers below 1,000, pairs for ten digits, otherwise avx2",
        requires: &["avx2"],
        each: on!("x86_64", Some(x86::each_by_table_and_avx2), None),
        one: on!("x86_64", Some(x86::table_and_avx2), None),
        column: on!("x86_64", Column::Avx2, Column::Pairs),
        code_bytes: on!("x86_64", x86::code_bytes_of_table_and_avx2, || None),
        ..PAIRS
    },
    Variant {
        name: "sse2",
        about: "up to sixteen digits at once, by SSE2",
        each: on!("x86_64", Some(x86::each_by_sse2), None),
        one: on!("x86_64", Some(x86::sse2_alone), None),
        code_bytes: on!("x86_64", x86::code_bytes_of_sse2, || None),
        ..SSE2
    },
    Variant {
        name: "table-sse2",
        about: "a table for numbers below 1,000, pairs for ten digits, otherwise sse2",
        each: on!("x86_64", Some(x86::each_by_table_and_sse2), None),
        one: on!("x86_64", Some(x86::table_and_sse2), None),
        code_bytes: on!("x86_64", x86::code_bytes_of_table_and_sse2, || None),
        ..SSE2
    },
    Variant {
        name: "neon",
        about: "up to sixteen digits at once, without a branch, by NEON",
        each: on!("aarch64", Some(arm::each_by_neon), None),
        one: on!("aarch64", Some(arm::neon_alone), None),
        code_bytes: on!("aarch64", arm::code_bytes_of_neon, || None),
        ..NEON
    },
    Variant {
        name: "table-neon",
        about: "a table for numbers below 1,000, pairs for ten digits, otherwise neon",
        each: on!("aarch64", Some(arm::each_by_table_and_neon), None),
        one: on!("aarch64", Some(arm::table_and_neon), None),
        code_bytes: on!("aarch64", arm::code_bytes_of_table_and_neon, || None),
        ..NEON
    },
    PAIRS,
    Variant {
        name: "portable",
        about: "divides packed numbers by 10⁸, 10⁴, 10² and 10, without a table",
        each: Some(each),
        one: Some(alone),
        column: Column::Packed,
        code_bytes,
        ..PAIRS
    },
    Variant {
        name: "limit-sse2",
        about: "not a text: the multiplications, shifts and stores of sse2 for sixteen digits (speed limit)",
        is_text: false,
        each: on!("x86_64", Some(x86::each_limit), None),
        one: on!("x86_64", Some(x86::limit_alone), None),
        code_bytes: on!("x86_64", x86::code_bytes_of_limit, || None),
        ..SSE2
    },
    Variant {
        name: "limit-neon",
        about: "not a text: the multiplications and the store of neon for sixteen digits (speed limit)",
        is_text: false,
        each: on!("aarch64", Some(arm::each_limit), None),
        one: on!("aarch64", Some(arm::limit_alone), None),
        code_bytes: on!("aarch64", arm::code_bytes_of_limit, || None),
        ..NEON
    },
];

const PAIRS: Variant = Variant {
    name: "pairs",
    about: "two digits at a time, from a table",
    requires: &[],
    is_text: true,
    each: Some(each_by_pairs),
    one: Some(pairs_alone),
    column: Column::Pairs,
    code_bytes: code_bytes_of_pairs,
};

/// The fields that all AVX-512 variants share. On other architectures, where these variants cannot run, they are
/// placeholders.
const AVX512: Variant = Variant {
    requires: on!("x86_64", super::avx512::FEATURES, &["avx512ifma"]),
    column: on!("x86_64", Column::Avx512, Column::Pairs),
    ..PAIRS
};

/// The fields that all SSE2 variants share.
const SSE2: Variant =
    Variant { requires: on!("x86_64", &[], &["sse2"]), column: on!("x86_64", Column::Sse2, Column::Pairs), ..PAIRS };

/// The fields that all NEON variants share.
const NEON: Variant =
    Variant { requires: on!("aarch64", &[], &["neon"]), column: on!("aarch64", Column::Neon, Column::Pairs), ..PAIRS };

/// Returns the variant that [`write`](super::write()) and the other functions of this module use on this machine:
/// `avx512`, `avx2`, `sse2`, `neon` or `pairs`. These functions take numbers below 1,000 from a table. The text is the
/// same for all variants. A program that is compiled for CPUs with AVX2 uses `avx2` for single numbers on each machine,
/// because it need not call `avx2` through a pointer.
pub fn chosen() -> &'static Variant {
    static CHOSEN: Once<&Variant> = Once::new();
    CHOSEN.get_or_init(|| first_that_runs(|requires| first_missing(requires).is_none()))
}

/// Returns the variant for a machine with the features that `has` reports. The choice needs no measurement, because the
/// variant with AVX-512 IFMA and VBMI is clearly the fastest one. Every CPU with these features multiplies eight
/// numbers at once in a cycle or two. `avx2` and `sse2` have a fixed number of instructions. `pairs` is as fast only if
/// the CPU predicts its branches, that is, if most numbers have the same number of digits.
fn first_that_runs(has: impl Fn(&[&'static str]) -> bool) -> &'static Variant {
    let runs = |variant: &&Variant| variant.is_text && !variant.name.starts_with("table-") && has(variant.requires);
    VARIANTS.iter().find(runs).expect("`pairs` runs on every machine")
}

/// Defines a function that writes each number to the front of a buffer, over the previous number, and returns the total
/// number of bytes. The CPU must have the features that the function enables.
macro_rules! each {
    ($name:ident, $enable:meta, $value:ident, $to:ident, $digits:expr) => {
        #[$enable]
        pub fn $name(values: &[u64], buffer: &mut [u8; 20]) -> usize {
            let mut bytes = 0;
            for &$value in values {
                let $to = buffer.as_mut_ptr();
                // SAFETY: the buffer has 20 bytes.
                bytes += unsafe { $digits };
                black_box(&mut *buffer);
            }
            bytes
        }
    };
}

/// Defines a function that writes one number, and a function that returns the size of its machine code.
///
/// # Safety
/// The first function needs 20 writable bytes at its pointer, and a CPU with the features that it enables.
macro_rules! alone {
    ($variant:literal, $name:ident, $size:ident, $value:ident, $to:ident, $digits:expr $(, $feature:literal)?) => {
        sized!("decimal" $variant, $name, $size, unsafe ($value: u64, $to: *mut u8) -> usize, |$value, $to| {
            // SAFETY: the caller guarantees the features and 20 bytes, which are enough for every number.
            unsafe { $digits }
        } $(, $feature)?);
    };
}

each!(each, inline, value, to, portable::digits(value, to));
each!(each_by_pairs, inline, value, to, pairs::digits(value, to));
alone!("pairs", pairs_alone, code_bytes_of_pairs, value, to, pairs::digits(value, to));
alone!("portable", alone, code_bytes, value, to, portable::digits(value, to));

/// A function that writes a magnitude to a pointer and returns its number of digits. The room at the pointer must be
/// enough for the largest magnitude of the integer's type.
pub(super) type Digits = unsafe fn(u64, *mut u8) -> usize;

/// Writes a magnitude to `to`: by the table if it is small enough, in pairs if it has ten digits, otherwise with `many`.
/// Returns its number of digits. Few numbers of mixed lengths have ten digits, so the CPU predicts this branch well.
///
/// # Safety
/// `to` must have room for the largest magnitude of the integer's type, and the CPU must have the features that `many`
/// needs.
#[inline(always)]
pub(super) unsafe fn digits(magnitude: u64, to: *mut u8, many: Digits) -> usize {
    // SAFETY: the caller guarantees the features and the room for the largest magnitude, which has ten digits or more.
    unsafe {
        if magnitude < portable::TABLE_END {
            return portable::digits_by_table(magnitude, to);
        }
        if pairs::has_ten(magnitude) {
            pairs::ten(magnitude, to);
            return 10;
        }
        many(magnitude, to)
    }
}

/// Returns the function that writes the digits of integers of type `I` on this machine. If the code is compiled for a
/// CPU with the function's instructions, the function is known at compile time, so it is called directly.
#[inline(always)]
pub(super) fn best<I: Integer>() -> Digits {
    /// Expands to the function of a module for the type.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    macro_rules! known {
        ($module:ident) => {
            match I::MOST_DIGITS {
                10 => super::$module::digits::<10> as Digits,
                19 => super::$module::digits::<19>,
                _ => super::$module::digits::<20>,
            }
        };
    }
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
        return known!(avx512);
    }
    #[cfg(target_arch = "x86_64")]
    if cfg!(target_feature = "avx2") {
        return known!(avx2);
    }
    #[cfg(target_arch = "aarch64")]
    return known!(neon);
    #[cfg(not(target_arch = "aarch64"))]
    {
        let known = slot(I::MOST_DIGITS).load(Ordering::Relaxed);
        // SAFETY: a slot holds a function of this type at all times.
        unsafe { core::mem::transmute::<*mut (), Digits>(known) }
    }
}

/// Returns the static that holds the chosen function for types whose largest magnitude has `most_digits` digits.
/// Initially the static holds [`found`], which replaces itself by the chosen function. Calls therefore need not check
/// whether the function was chosen.
#[cfg(not(target_arch = "aarch64"))]
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

/// Chooses the function for this machine, stores it for the next calls, and calls it.
#[cfg(not(target_arch = "aarch64"))]
unsafe fn found<const MOST: usize>(magnitude: u64, to: *mut u8) -> usize {
    #[cfg(target_arch = "x86_64")]
    let best: Digits = match chosen().column {
        Column::Avx512 => super::avx512::digits::<MOST>,
        Column::Avx2 => super::avx2::digits::<MOST>,
        _ => super::sse2::digits::<MOST>,
    };
    #[cfg(not(target_arch = "x86_64"))]
    let best: Digits = pairs::digits;
    slot(MOST).store(best as *const () as *mut (), Ordering::Relaxed);
    // SAFETY: the caller guarantees the room, and the CPU has the features that the function needs.
    unsafe { best(magnitude, to) }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::*;
    use crate::decimal::neon;

    alone!("neon", neon_alone, code_bytes_of_neon, value, to, neon::digits::<20>(value, to));
    each!(each_by_neon, inline, value, to, neon::digits::<20>(value, to));
    alone!(
        "table_neon",
        table_and_neon,
        code_bytes_of_table_and_neon,
        value,
        to,
        digits(value, to, neon::digits::<20>)
    );
    each!(each_by_table_and_neon, inline, value, to, digits(value, to, neon::digits::<20>));
    alone!("limit_neon", limit_alone, code_bytes_of_limit, value, to, neon::limit(value, to));
    each!(each_limit, inline, value, to, neon::limit(value, to));
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use crate::decimal::{avx2, avx512, sse2};

    alone!("sse2", sse2_alone, code_bytes_of_sse2, value, to, sse2::digits::<20>(value, to));
    each!(each_by_sse2, inline, value, to, sse2::digits::<20>(value, to));
    alone!(
        "table_sse2",
        table_and_sse2,
        code_bytes_of_table_and_sse2,
        value,
        to,
        digits(value, to, sse2::digits::<20>)
    );
    each!(each_by_table_and_sse2, inline, value, to, digits(value, to, sse2::digits::<20>));
    alone!("limit_sse2", limit_alone, code_bytes_of_limit, value, to, sse2::limit(value, to));
    each!(each_limit, inline, value, to, sse2::limit(value, to));

    alone!("avx2", avx2_alone, code_bytes_of_avx2, value, to, avx2::digits::<20>(value, to), "avx2");
    each!(each_by_avx2, target_feature(enable = "avx2"), value, to, avx2::digits::<20>(value, to));
    alone!(
        "table_avx2",
        table_and_avx2,
        code_bytes_of_table_and_avx2,
        value,
        to,
        digits(value, to, avx2::digits::<20>),
        "avx2"
    );
    each!(each_by_table_and_avx2, target_feature(enable = "avx2"), value, to, digits(value, to, avx2::digits::<20>));

    alone!(
        "avx512",
        alone,
        code_bytes,
        value,
        to,
        avx512::digits::<20>(value, to),
        "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt"
    );
    each!(
        each,
        target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt"),
        value,
        to,
        avx512::digits::<20>(value, to)
    );
    alone!(
        "table_avx512",
        with_table,
        code_bytes_with_table,
        value,
        to,
        digits(value, to, avx512::digits::<20>),
        "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt"
    );
    each!(
        each_by_table,
        target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt"),
        value,
        to,
        digits(value, to, avx512::digits::<20>)
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::first_that_lacks;

    #[test]
    fn a_machine_that_lacks_a_feature_takes_the_next_variant() {
        let taken = |masked: &[&str]| {
            let has = |feature: &str| !masked.contains(&feature);
            first_that_runs(|requires| first_that_lacks(requires, has).is_none()).name
        };
        assert_eq!(taken(&[]), "avx512");
        for masked in AVX512.requires {
            assert_eq!(taken(&[masked]), "avx2", "without {masked}");
        }
        // The variant of the lowest level requires no feature on its own architecture.
        let last = on!("aarch64", "neon", on!("x86_64", "sse2", "pairs"));
        assert_eq!(taken(&["avx512f", "avx512ifma", "avx2", "sse2", "neon"]), last);
    }
}
