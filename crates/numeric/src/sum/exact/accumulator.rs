//! An exact sum that numbers are added to.

use alloc::vec::Vec;
use core::iter::Sum;
use core::ops::{Add, AddAssign};

use super::long::LongAccumulator;
use crate::sum::element::{Element, Term};

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
///
/// // The same with operators, and from iterators of numbers or of references to them.
/// let xs = vec![0.25, 1e100, -1e100];
/// let parts = xs.chunks(2).map(|part| part.iter().collect::<Exact>());
/// assert_eq!(parts.sum::<Exact>(), Exact::from_iter([0.25]));
/// assert_eq!((left + right).round(), -1e100);
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

    /// Adds all numbers of a slice, with the instructions that are fastest on this machine.
    pub fn add_slice<T: Element>(&mut self, xs: &[T]) {
        T::chosen().add_exactly()(self, xs);
    }

    /// Adds all that the other sum has.
    ///
    /// Beyond 2^108 times the largest double a sum counts as an infinity for good. Numbers can't be that many, but a
    /// sum that is merged with itself a hundred times is that large, or one of [bytes](Exact::from_bytes) that someone
    /// made up.
    pub fn merge(&mut self, other: &Exact) {
        self.finite.merge(other.finite.clone());
        self.special += other.special;
        self.only_negative_zeros &= other.only_negative_zeros;
        if let Some(infinity) = self.finite.overflow() {
            self.special += infinity;
            self.finite = LongAccumulator::new();
        }
    }

    /// The digits with all carries done, and what is not finite beside them.
    pub(super) fn settled(&self) -> (LongAccumulator, f64) {
        let mut finite = self.finite.clone();
        finite.carry();
        let overflow = finite.overflow().unwrap_or(0.0);
        (finite, self.special + overflow)
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

impl<T: Term> Extend<T> for Exact {
    /// Adds the numbers of an iterator, or those that it refers to, gathered into slices.
    fn extend<I: IntoIterator<Item = T>>(&mut self, numbers: I) {
        let mut numbers = numbers.into_iter().map(Term::element);
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

impl<T: Term> FromIterator<T> for Exact {
    fn from_iter<I: IntoIterator<Item = T>>(numbers: I) -> Self {
        let mut sum = Exact::new();
        sum.extend(numbers);
        sum
    }
}

/// Equal sums are equal before they are rounded; as with `f64`, 0 and −0 are, and NaN is not equal to itself.
impl PartialEq for Exact {
    fn eq(&self, other: &Exact) -> bool {
        let ((left, left_special), (right, right_special)) = (self.settled(), other.settled());
        left_special == right_special && (left_special != 0.0 || left.digits == right.digits)
    }
}

impl AddAssign<&Exact> for Exact {
    /// [`merge`](Exact::merge).
    fn add_assign(&mut self, other: &Exact) {
        self.merge(other);
    }
}

impl AddAssign for Exact {
    /// [`merge`](Exact::merge).
    fn add_assign(&mut self, other: Exact) {
        self.merge(&other);
    }
}

impl<E> Add<E> for Exact
where
    Exact: AddAssign<E>,
{
    type Output = Exact;

    fn add(mut self, other: E) -> Exact {
        self += other;
        self
    }
}

impl<E> Sum<E> for Exact
where
    Exact: AddAssign<E>,
{
    /// The sum of parts that were summed apart.
    fn sum<I: Iterator<Item = E>>(parts: I) -> Exact {
        parts.fold(Exact::new(), Add::add)
    }
}
