//! All methods of the integer cube root by name. To add one, add a line to [`VARIANTS`] and a function to `method`.

use core::hint::black_box;

#[cfg(target_arch = "x86_64")]
use super::exact::cbrt_by_lzcnt;
use super::exact::{cbrt_each, cbrt_u64, limit};
use super::method;
use crate::code_size::sized;
use crate::features::{first_missing, on};

/// One method of computing the cube roots of integers.
///
/// ```
/// use ascertain_numeric::cbrt::VARIANTS;
///
/// let table = VARIANTS.iter().find(|variant| variant.name == "tab1").unwrap();
/// let mut roots = [0; 2];
/// table.each(&[1_000_000, 27_000_000], &mut roots);
/// assert!(roots[0].abs_diff(100) <= 1 && roots[1].abs_diff(300) <= 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Name of the method in the publication that describes it.
    pub name: &'static str,
    /// Description of the method, in one line.
    pub about: &'static str,
    /// CPU features that the variant needs, named as in `is_x86_feature_detected!`. Without them, it runs the code of
    /// `exact`.
    pub requires: &'static [&'static str],
    /// `true` if the result is a root. It is `false` for a variant that only shows the speed limit.
    pub is_root: bool,
    /// `true` if the result is the root rounded down for every number.
    pub is_exact: bool,
    pub(super) each: fn(&[u64], &mut [u32]),
    pub(super) chain: Option<fn(&[u64]) -> u32>,
    pub(super) code_bytes: fn() -> Option<usize>,
}

impl Variant {
    /// Checks whether this machine can run the variant.
    ///
    /// # Errors
    /// Returns the first required CPU feature that the machine lacks.
    pub fn is_available(&self) -> Result<(), &'static str> {
        first_missing(self.requires).map_or(Ok(()), Err)
    }

    /// Writes the root of each number. No root depends on another. Stops at the end of the shorter slice.
    pub fn each(&self, numbers: &[u64], roots: &mut [u32]) {
        (self.each)(numbers, roots);
    }

    /// Computes the roots one after the other. Each number is made to depend on the previous root, so that the time per
    /// root is the latency of the method. Returns the last root, or `None` if the method computes several roots at a
    /// time.
    pub fn chain(&self, numbers: &[u64]) -> Option<u32> {
        self.chain.map(|chain| chain(numbers))
    }

    /// Returns the size of the machine code of one call in bytes, without tables and library functions.
    pub fn code_bytes(&self) -> Option<usize> {
        (self.code_bytes)()
    }
}

#[inline(always)]
pub(super) fn each(root: impl Fn(u64) -> u32, numbers: &[u64], roots: &mut [u32]) {
    for (number, to) in numbers.iter().zip(roots) {
        *to = root(*number);
    }
}

#[inline(always)]
pub(super) fn chain(root: impl Fn(u64) -> u32, numbers: &[u64]) -> u32 {
    // `black_box` hides from the compiler that the last root does not affect the next number.
    let nothing = black_box(0);
    numbers.iter().fold(0, |last, &number| root(number ^ u64::from(last & nothing)))
}

macro_rules! variants {
    ($($function:path, $name:literal, $is_exact:literal, $about:literal;)*) => {
        &[EACH, EACH_AVX2, BY_LZCNT, $({
            sized!("cbrt" $name, alone, code_bytes, (x: u64) -> u32, $function);
            Variant {
                name: $name,
                about: $about,
                requires: &[],
                is_root: !matches!($name.as_bytes(), b"limit"),
                is_exact: $is_exact,
                each: |numbers, roots| each($function, numbers, roots),
                chain: Some(|numbers| chain($function, numbers)),
                code_bytes,
            }
        }),*]
    };
}

/// The variant that calls [`cbrt_each`].
const EACH: Variant = Variant {
    name: "exact-each",
    about: "eight roots at a time with AVX-512, four with AVX2, otherwise one at a time like exact",
    requires: &[],
    is_root: true,
    is_exact: true,
    each: cbrt_each,
    chain: None,
    code_bytes: || None,
};

/// The variant that computes four roots at a time with AVX2.
const EACH_AVX2: Variant = Variant {
    name: "exact-avx2",
    about: "four roots at a time with AVX2",
    requires: AVX2,
    each: cbrt_each_avx2,
    ..EACH
};

const AVX2: &[&str] = &["avx2", "fma"];

fn cbrt_each_avx2(numbers: &[u64], roots: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    if first_missing(AVX2).is_none() {
        // SAFETY: the machine has the instructions.
        return unsafe { super::avx2::each(numbers, roots) };
    }
    each(cbrt_u64, numbers, roots);
}

/// The variant that computes one root at a time, by instructions that only newer CPUs have.
const BY_LZCNT: Variant = Variant {
    name: "exact-lzcnt",
    about: "exact, with LZCNT and BMI2, as in a program that is compiled for this CPU",
    requires: LZCNT,
    each: each_by_lzcnt,
    chain: Some(chain_by_lzcnt),
    code_bytes: on!("x86_64", code_bytes_by_lzcnt, || None),
    ..EACH
};

#[cfg(target_arch = "x86_64")]
sized!("cbrt" "exact_lzcnt", alone_by_lzcnt, code_bytes_by_lzcnt, (x: u64) -> u32, cbrt_by_lzcnt, "lzcnt,bmi2");

const LZCNT: &[&str] = &["lzcnt", "bmi2"];

fn each_by_lzcnt(numbers: &[u64], roots: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    if first_missing(LZCNT).is_none() {
        #[target_feature(enable = "lzcnt,bmi2")]
        fn enabled(numbers: &[u64], roots: &mut [u32]) {
            for (number, to) in numbers.iter().zip(roots) {
                *to = cbrt_by_lzcnt(*number);
            }
        }
        // SAFETY: the machine has the instructions.
        return unsafe { enabled(numbers, roots) };
    }
    each(cbrt_u64, numbers, roots);
}

fn chain_by_lzcnt(numbers: &[u64]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if first_missing(LZCNT).is_none() {
        #[target_feature(enable = "lzcnt,bmi2")]
        fn enabled(numbers: &[u64]) -> u32 {
            let nothing = black_box(0);
            let mut last = 0;
            for &number in numbers {
                last = cbrt_by_lzcnt(number ^ u64::from(last & nothing));
            }
            last
        }
        // SAFETY: the machine has the instructions.
        return unsafe { enabled(numbers) };
    }
    chain(cbrt_u64, numbers)
}

/// All methods of the integer cube root. They have the names that their publication gives them; `exact` is
/// [`cbrt_u64`].
#[rustfmt::skip] // Keeps each variant on one line.
pub const VARIANTS: &[Variant] = variants! {
    cbrt_u64,           "exact",      true,  "a table indexed by the leading byte, a parabola, one correction";
    method::libm,       "libm",       true,  "the C library's cbrt of a double, corrected";
    method::tab0,       "tab0",       false, "a table of 64 bytes, no division";
    method::tab1,       "tab1",       false, "a table of 64 bytes and one 64-bit division: the method of the Linux kernel";
    method::div0,       "0div",       false, "a guess from two bits: too inaccurate to use";
    method::div1,       "1div",       false, "a guess from two bits, and one division";
    method::div2,       "2div",       false, "a guess from two bits, and two divisions";
    method::ndiv3,      "ndiv3",      false, "like div2, with multiplications instead of the divisions by three";
    method::div3,       "3div",       false, "a guess from two bits, and three divisions";
    method::ncubic,     "ncubic",     false, "three steps of Newton's iteration, in 64 bits";
    method::ncubic32,   "ncubic32",   false, "like ncubic, but divides in 32 bits if both operands fit";
    method::ncubic32_1, "ncubic32_1", false, "like ncubic32, with a slightly smaller divisor for a smaller error";
    method::ocubic,     "ocubic",     false, "Newton's iteration until the root changes by at most one";
    method::bictcp,     "bictcp",     true,  "Newton's iteration with two divisions, until the root no longer decreases";
    method::acbrt,      "acbrt",      true,  "bit by bit, by multiplications";
    limit,              "limit",      false, "not a root: only the multiplications of exact, side by side (speed limit)";
    method::hcbrt,      "hcbrt",      false, "bit by bit in 32 bits, by shifts and additions";
};
