//! Every method, by name. A new one is a line in [`VARIANTS`], and a function in `method`.

use core::hint::black_box;

use super::exact::{cbrt_each, cbrt_u64};
use super::method;
use crate::code_size::sized;

/// One way to take cube roots of integers.
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
    /// Its name in the source.
    pub name: &'static str,
    /// A line about it.
    pub about: &'static str,
    /// Whether it is the root rounded down, for every number.
    pub is_exact: bool,
    pub(super) each: fn(&[u64], &mut [u32]),
    pub(super) chain: Option<fn(&[u64]) -> u32>,
    pub(super) code_bytes: fn() -> Option<usize>,
}

impl Variant {
    /// The root of each number, one independent of the other: as many as the shorter slice has.
    pub fn each(&self, numbers: &[u64], roots: &mut [u32]) {
        (self.each)(numbers, roots);
    }

    /// The roots one after the other, each of a number that can't be known before the root of the number
    /// before it: what shows how long one takes from beginning to end. The last root is returned; none where
    /// the method takes several at a time.
    pub fn chain(&self, numbers: &[u64]) -> Option<u32> {
        self.chain.map(|chain| chain(numbers))
    }

    /// The machine code of one call, without tables and without the library functions that it calls.
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
    // The compiler is not told that nothing of the last root comes through.
    let nothing = black_box(0);
    numbers.iter().fold(0, |last, &number| root(number ^ u64::from(last & nothing)))
}

macro_rules! variants {
    ($($function:path, $name:literal, $is_exact:literal, $about:literal;)*) => {
        &[EACH, $({
            sized!("cbrt" $name, alone, code_bytes, (x: u64) -> u32, $function);
            Variant {
                name: $name,
                about: $about,
                is_exact: $is_exact,
                each: |numbers, roots| each($function, numbers, roots),
                chain: Some(|numbers| chain($function, numbers)),
                code_bytes,
            }
        }),*]
    };
}

/// What [`cbrt_each`] chose for this machine.
const EACH: Variant = Variant {
    name: "exact-each",
    about: "eight at a time with AVX-512 where the machine has it, else as exact",
    is_exact: true,
    each: cbrt_each,
    chain: None,
    code_bytes: || None,
};

/// Every method, under its name in the source; `exact` is [`cbrt_u64`].
#[rustfmt::skip] // One variant, one line.
pub const VARIANTS: &[Variant] = variants! {
    cbrt_u64,           "exact",      true,  "a table on the leading byte, a parabola, one correction";
    method::libm,       "libm",       true,  "the C library's cbrt of a double, put right";
    method::tab0,       "tab0",       false, "a table of 64 bytes, no division";
    method::tab1,       "tab1",       false, "the table and one 64-bit division: what the kernel took";
    method::div0,       "0div",       false, "a guess from two bits: not for use";
    method::div1,       "1div",       false, "the guess and one division";
    method::div2,       "2div",       false, "the guess and two divisions";
    method::ndiv3,      "ndiv3",      false, "the same, with multiplications for the divisions by three";
    method::div3,       "3div",       false, "the guess and three divisions";
    method::ncubic,     "ncubic",     false, "three iterations of Newton's, in 64 bits";
    method::ncubic32,   "ncubic32",   false, "the same, in 32 bits where they will do";
    method::ncubic32_1, "ncubic32_1", false, "the same, divided by a little less, for the error";
    method::ocubic,     "ocubic",     false, "Newton's iteration until it moves by one at most";
    method::bictcp,     "bictcp",     true,  "Newton's iteration with two divisions, to its end";
    method::acbrt,      "acbrt",      true,  "bit by bit, by multiplications";
    method::hcbrt,      "hcbrt",      false, "bit by bit in 32 bits, by shifts and additions";
};
