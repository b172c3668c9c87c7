//! An exact sum to which numbers are added.

use alloc::vec::Vec;
use core::iter::Sum;
use core::ops::{Add, AddAssign};

use super::long::LongAccumulator;
use crate::sum::element::{Element, Term};

/// Returns the sum as if calculated with unlimited precision and range, rounded once, to the nearest (ties to even).
/// Every other method is compared with it. The result depends neither on the order of the numbers nor on the machine.
///
/// NaN, or infinities of both signs, give NaN; infinities of one sign give that infinity. The sum is −0.0 only if there
/// are no numbers, or only −0.0. The result is infinite only if the true sum rounds beyond ±[`f64::MAX`], even if
/// partial sums overflow.
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

/// An exact sum under construction.
///
/// Numbers are added one at a time or as slices, and sums of parts are merged. [`round`](Exact::round) returns the
/// `f64` nearest to the true sum. The result has the same bits whatever the order of the numbers, and however they are
/// split over threads or machines ([`to_bytes`](Exact::to_bytes) transports a sum). See [`exact`] for special values.
///
/// An `Exact` takes 568 bytes. A slice is added in blocks. If the exponents of a block's numbers are close enough
/// together, the block's sum is exact in one, two or three `f64`. Only these are added to a fixed-point integer that is
/// wide enough for all doubles (Kulisch's long accumulator, here of 2,176 bits and more).
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
    /// The plain sum of the numbers that were not finite; 0 if all were finite.
    pub(super) special: f64,
    pub(super) only_negative_zeros: bool,
}

impl Default for Exact {
    fn default() -> Self {
        Exact { finite: LongAccumulator::new(), special: 0.0, only_negative_zeros: true }
    }
}

impl Exact {
    /// Returns the sum of no numbers, −0.0.
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

    /// Adds `times` · 2^`exponent`, the sum of several numbers. At least one of these numbers must differ from zero.
    pub(super) fn add_multiple(&mut self, times: i128, exponent: i32) {
        self.only_negative_zeros = false;
        self.finite.add_multiple(times, exponent);
    }

    /// Adds all numbers of a slice, with the fastest instructions of this machine.
    pub fn add_slice<T: Element>(&mut self, xs: &[T]) {
        T::fastest().add_exactly.get()(self, xs);
    }

    /// Adds the other sum to this one.
    ///
    /// A sum beyond 2^108 times the largest double counts as an infinity from then on. No program can add that many
    /// numbers, but a sum that is merged with itself a hundred times can reach the limit. So can a sum read from
    /// made-up [bytes](Exact::from_bytes).
    pub fn merge(&mut self, other: &Exact) {
        self.finite.merge(other.finite.clone());
        self.special += other.special;
        self.only_negative_zeros &= other.only_negative_zeros;
        if let Some(infinity) = self.finite.overflow() {
            self.special += infinity;
            self.finite = LongAccumulator::new();
        }
    }

    /// Returns two parts of the sum: the long accumulator after all carries, and the plain sum of the numbers that were
    /// not finite.
    pub(super) fn settled(&self) -> (LongAccumulator, f64) {
        let mut finite = self.finite.clone();
        finite.carry();
        let overflow = finite.overflow().unwrap_or(0.0);
        (finite, self.special + overflow)
    }

    /// Returns the double nearest to the sum.
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
    /// Adds the items of an iterator over numbers or references to numbers. The numbers are gathered into slices first.
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

/// Compares the sums before rounding. As with `f64`, 0 equals −0, and NaN is not equal to itself.
impl PartialEq for Exact {
    fn eq(&self, other: &Exact) -> bool {
        let ((left, left_special), (right, right_special)) = (self.settled(), other.settled());
        left_special == right_special && (left_special != 0.0 || left.digits == right.digits)
    }
}

impl AddAssign<&Exact> for Exact {
    /// Adds the other sum; see [`merge`](Exact::merge).
    fn add_assign(&mut self, other: &Exact) {
        self.merge(other);
    }
}

impl AddAssign for Exact {
    /// Adds the other sum; see [`merge`](Exact::merge).
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
    /// Returns the sum of all the sums.
    fn sum<I: Iterator<Item = E>>(parts: I) -> Exact {
        parts.fold(Exact::new(), Add::add)
    }
}
