//! An exact sum that numbers are added to.

use super::long::LongAccumulator;
use crate::sum::element::Element;

/// The sum as if calculated with unlimited precision and range, rounded once, to the nearest
/// (ties to even): the reference that every method is compared with. The order of the numbers
/// doesn't matter, and neither does the machine.
///
/// NaN, or infinities of both signs, give NaN; infinities of one sign give that infinity; −0.0 is
/// the sum of nothing and of −0.0 alone. Only a true sum that rounds beyond ±[`f64::MAX`] gives an
/// infinity, whatever the partial sums do.
///
/// ```
/// use ascertain_numeric::sum::exact;
///
/// assert_eq!(exact(&[1.0, 1e100, 1.0, -1e100]), 2.0);
/// assert_eq!(exact(&[f64::MAX, f64::MAX, -f64::MAX]), f64::MAX);
/// ```
pub fn exact<T: Element>(xs: &[T]) -> f64 {
    let mut sum = Exact::new();
    sum.add_slice(xs);
    sum.round()
}

/// An exact sum in the making: numbers are added one by one or by the slice, sums of parts are merged, and
/// [`round`](Exact::round) gives the `f64` nearest to the true sum. The result has the same bits in any order and any
/// split, over threads and machines ([`to_bytes`](Exact::to_bytes)); see [`exact`] for special values.
///
/// It takes 568 bytes. A slice is added in blocks: where the exponents of a block lie near enough to one another, its
/// sum is exact in one, two or three `f64`, and only these are added to a fixed-point integer (Kulisch's long
/// accumulator, here 2,176 bits and more) that is wide enough for all doubles.
///
/// ```
/// use ascertain_numeric::sum::Exact;
///
/// let (mut left, mut right) = (Exact::new(), Exact::new());
/// left.add_slice(&[1.0, 1e100]);
/// right.extend([1.0, -1e100]);
/// left.merge(&right);
/// assert_eq!(left.round(), 2.0);
/// ```
#[derive(Clone, Debug)]
pub struct Exact {
    pub(super) finite: LongAccumulator,
    /// The plain sum of what was not finite, and 0 where all was.
    pub(super) special: f64,
    pub(super) only_negative_zeros: bool,
}

impl Default for Exact {
    fn default() -> Self {
        Exact { finite: LongAccumulator::new(), special: 0.0, only_negative_zeros: true }
    }
}

impl Exact {
    /// The sum of nothing, −0.0.
    pub fn new() -> Self {
        Exact::default()
    }

    /// Adds one number.
    pub fn add(&mut self, x: f64) {
        if x.is_finite() {
            self.only_negative_zeros &= x.to_bits() == (-0.0_f64).to_bits();
            self.finite.add(x);
        } else {
            self.special += x;
        }
    }

    /// Adds so many times 2^exponent, the sum of numbers that were not all zero.
    pub(super) fn add_multiple(&mut self, times: i128, exponent: i32) {
        self.only_negative_zeros = false;
        self.finite.add_multiple(times, exponent);
    }

    /// Adds all numbers of a slice, with the widest instructions that the machine has.
    pub fn add_slice<T: Element>(&mut self, xs: &[T]) {
        (T::chosen().add_exactly)(self, xs);
    }

    /// Adds all that the other sum has.
    ///
    /// # Panics
    /// When the sum passes 2^108 times the largest double: numbers can't be that many, but a sum that is merged with
    /// itself a hundred times is.
    pub fn merge(&mut self, other: &Exact) {
        self.finite.merge(other.finite.clone());
        self.special += other.special;
        self.only_negative_zeros &= other.only_negative_zeros;
    }

    /// The double nearest to the sum.
    pub fn round(&self) -> f64 {
        if self.special.is_nan() {
            f64::NAN
        } else if self.special != 0.0 {
            self.special
        } else if self.only_negative_zeros {
            -0.0
        } else {
            self.finite.clone().round()
        }
    }
}

impl<T: Element> Extend<T> for Exact {
    /// Adds the numbers of an iterator, gathered into slices.
    fn extend<I: IntoIterator<Item = T>>(&mut self, numbers: I) {
        let mut numbers = numbers.into_iter();
        let mut block = Vec::with_capacity(super::window::BLOCK);
        loop {
            block.extend(numbers.by_ref().take(super::window::BLOCK));
            if block.is_empty() {
                return;
            }
            self.add_slice(&block);
            block.clear();
        }
    }
}

impl<T: Element> FromIterator<T> for Exact {
    fn from_iter<I: IntoIterator<Item = T>>(numbers: I) -> Self {
        let mut sum = Exact::new();
        sum.extend(numbers);
        sum
    }
}
