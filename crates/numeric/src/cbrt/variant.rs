//! A method of the integer cube root, by name.

use std::hint::black_box;

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
