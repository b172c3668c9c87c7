//! Dot products of two slices of floats.

use super::accumulate::Accumulator;
use super::arch::{self, AVX2, AVX512, NEON, SCALAR, SSE2};
use super::element::Element;
use super::exact::Exact;
#[cfg(target_arch = "aarch64")]
use super::method::Additions;
#[cfg(target_arch = "x86_64")]
use super::method::Work;
use super::method::{Pair, Plain, lanes_total};
#[cfg(target_arch = "x86_64")]
use super::vector::Fma;
use super::vector::Vector;
use crate::features::{first_missing, on};
use crate::simd::Register;
use crate::standard;

/// Returns Σ x·y of two slices of the same length, as accurate as if it were calculated in twice the precision of the
/// numbers and rounded once.
///
/// For `f64` the error is at most u·|Σxy| + (2n·u)²·Σ|xy|, where u = 2⁻⁵³. If a product is below 2^−969, its own error
/// underflows, which adds at most 2^−1074 for each such product. Products of `f32` are exact in `f64`. They are added
/// in groups of four without compensation, which adds 3u·Σ|xy| to the error.
///
/// The result has the same bits on every machine, like that of [`sum()`](super::sum()). The first call measures which
/// instructions are the fastest on this machine; [`chosen_dot`](super::chosen_dot) returns the variant.
/// [`dot_of`](super::dot_of) gives the same bits in any order of the products.
///
/// A product beyond `f64::MAX` counts as an infinity. NaN and infinities give the same result as
/// [`exact`](super::exact) does for the products. A result of zero is +0.0, and so is the dot product of empty slices.
/// The method is Dot2 of Ogita, Rump and Oishi 2005, "Accurate sum and dot product".
///
/// # Panics
/// Panics if the lengths differ.
///
/// ```
/// use ascertain_numeric::sum::dot;
///
/// assert_eq!(dot(&[1e100, 1.0, -1e100], &[2.0, 3.0, 2.0]), 3.0);
/// ```
pub fn dot<T: Element>(xs: &[T], ys: &[T]) -> f64 {
    assert_eq!(xs.len(), ys.len(), "a dot product needs two slices of the same length");
    T::fastest().dot.get().1(xs, ys)
}

/// A method of computing dot products with registers `V`.
pub trait DotMethod<V: Vector> {
    /// Returns Σ x·y, computed with `N` accumulators. Stops at the end of the shorter slice.
    ///
    /// # Safety
    /// The CPU must have the instructions of `V`. Implementations are always inlined into a function that enables these
    /// instructions.
    unsafe fn dot<T: Element, const N: usize>(xs: &[T], ys: &[T]) -> f64;
}

/// The running state of a dot product: the sums of the products so far.
trait Products<V: Vector>: Accumulator<V> {
    /// Adds the products of `xs` and `ys`, one to each lane.
    unsafe fn push_products<T: Element>(&mut self, xs: V, ys: V);

    /// Adds the products of [`BLOCK`] registers of each slice. The registers begin at `xs` and `ys` and must be
    /// readable.
    #[inline(always)]
    unsafe fn push_block<T: Element>(&mut self, xs: *const T, ys: *const T) {
        for i in 0..BLOCK {
            // SAFETY: the caller guarantees the same conditions.
            unsafe { self.push_products::<T>(T::load(xs.add(i * V::LANES)), T::load(ys.add(i * V::LANES))) }
        }
    }
}

/// Number of registers of each slice in a block. An accumulator takes a whole block before the next accumulator's turn.
const BLOCK: usize = 4;

/// The method without compensation: multiply and add.
pub struct NaiveDot;

impl<V: Vector> DotMethod<V> for NaiveDot {
    #[inline(always)]
    unsafe fn dot<T: Element, const N: usize>(xs: &[T], ys: &[T]) -> f64 {
        // SAFETY: the caller guarantees the same conditions.
        unsafe {
            let Plain(sum) = products::<Plain<V>, V, T, N>(xs, ys);
            sum.to_lanes()[..V::LANES].iter().sum::<f64>() + 0.0
        }
    }
}

impl<V: Vector> Products<V> for Plain<V> {
    #[inline(always)]
    unsafe fn push_products<T: Element>(&mut self, xs: V, ys: V) {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { self.0 = xs.mul_add(ys, self.0) }
    }
}

/// The method with twice the working precision. The errors of all products and additions are summed separately.
pub struct Dot2;

impl<V: Vector> DotMethod<V> for Dot2 {
    #[inline(always)]
    unsafe fn dot<T: Element, const N: usize>(xs: &[T], ys: &[T]) -> f64 {
        // SAFETY: the caller guarantees the same conditions.
        let total = unsafe {
            let Pair { sum, correction, .. } = products::<Pair<V, V::Subtraction>, V, T, N>(xs, ys);
            lanes_total(sum, correction) + 0.0
        };
        if total.is_finite() { total } else { exact_dot(xs.iter().zip(ys).map(|(&x, &y)| (x.into(), y.into()))) + 0.0 }
    }
}

impl<V: Vector> Products<V> for Pair<V, V::Subtraction> {
    #[inline(always)]
    unsafe fn push_products<T: Element>(&mut self, mut xs: V, mut ys: V) {
        for (part, (&mut xs, &mut ys)) in xs.parts().iter_mut().zip(ys.parts()).enumerate() {
            // SAFETY: the caller guarantees the same conditions.
            unsafe { push_part_products::<V, T>(self, part, xs, ys) }
        }
    }

    /// Adds the products of a block. Products of `f32` are exact, so they are added to each other without compensation;
    /// only their sum is added with compensation. Each product of `f64` is added with compensation.
    #[inline(always)]
    unsafe fn push_block<T: Element>(&mut self, xs: *const T, ys: *const T) {
        for part in 0..V::PARTS {
            let load = |i: usize| {
                let from = i * V::LANES + part * V::Part::LANES;
                // SAFETY: the caller guarantees the same conditions.
                unsafe { (T::load::<V::Part>(xs.add(from)), T::load::<V::Part>(ys.add(from))) }
            };
            // SAFETY: the caller guarantees the same conditions.
            unsafe {
                if !T::EXACT_PRODUCTS {
                    for i in 0..BLOCK {
                        let (xs, ys) = load(i);
                        push_part_products::<V, T>(self, part, xs, ys);
                    }
                    continue;
                }
                let (xs, ys) = load(0);
                let mut products = xs.mul(ys);
                for i in 1..BLOCK {
                    let (xs, ys) = load(i);
                    products = xs.mul_add(ys, products);
                }
                self.push_part(part, part, products);
            }
        }
    }
}

/// Adds one product to each lane of a part. A part is one of the CPU registers that make up `V`, and `part` is its
/// index.
///
/// # Safety
/// The CPU must have the instructions of `V`.
#[inline(always)]
unsafe fn push_part_products<V: Vector, T: Element>(
    to: &mut Pair<V, V::Subtraction>,
    part: usize,
    xs: V::Part,
    ys: V::Part,
) {
    // SAFETY: the caller guarantees the same conditions.
    unsafe {
        let products = xs.mul(ys);
        to.push_part(part, part, products);
        if !T::EXACT_PRODUCTS {
            let correction = &mut to.correction.parts()[part];
            *correction = correction.add(xs.product_error(ys, products));
        }
    }
}

/// Shows the speed limit of [`Dot2`] for `f64`. Like `Dot2`, it does ten operations for one register of each slice, but
/// its operations do not depend on each other. The result is always 0.
#[cfg(target_arch = "x86_64")]
pub struct LimitOfDot2;

#[cfg(target_arch = "x86_64")]
impl<V: Fma> DotMethod<V> for LimitOfDot2 {
    #[inline(always)]
    unsafe fn dot<T: Element, const N: usize>(xs: &[T], ys: &[T]) -> f64 {
        // SAFETY: the caller guarantees the same conditions.
        core::hint::black_box(unsafe { products::<Work<V, 9>, V, T, N>(xs, ys) });
        0.0
    }
}

#[cfg(target_arch = "x86_64")]
impl<V: Fma> Products<V> for Work<V, 9> {
    #[inline(always)]
    unsafe fn push_products<T: Element>(&mut self, xs: V, ys: V) {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { self.push(xs.mul(ys)) }
    }
}

/// Shows the speed limit of [`Dot2`] for `f64` on a CPU whose execution units all add and multiply. Like
/// [`LimitOfDot2`], but nine of the ten operations are additions. The result is always 0.
#[cfg(target_arch = "aarch64")]
pub struct LimitOfDot2Adders;

#[cfg(target_arch = "aarch64")]
impl<V: Vector> DotMethod<V> for LimitOfDot2Adders {
    #[inline(always)]
    unsafe fn dot<T: Element, const N: usize>(xs: &[T], ys: &[T]) -> f64 {
        // SAFETY: the caller guarantees the same conditions.
        core::hint::black_box(unsafe { products::<Additions<V, 9>, V, T, N>(xs, ys) });
        0.0
    }
}

#[cfg(target_arch = "aarch64")]
impl<V: Vector> Products<V> for Additions<V, 9> {
    #[inline(always)]
    unsafe fn push_products<T: Element>(&mut self, xs: V, ys: V) {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { self.push(xs.mul(ys)) }
    }
}

/// Shows the speed limit of [`Dot2`] for `f64` without a multiply-add. Like `Dot2`, it does 7 multiplications and 18
/// additions for one register of each slice, but in four chains that do not depend on other registers. The result is
/// always 0.
#[cfg(target_arch = "x86_64")]
pub struct LimitOfDot2Halves;

#[cfg(target_arch = "x86_64")]
impl<V: Vector> DotMethod<V> for LimitOfDot2Halves {
    #[inline(always)]
    unsafe fn dot<T: Element, const N: usize>(xs: &[T], ys: &[T]) -> f64 {
        // SAFETY: the caller guarantees the same conditions.
        core::hint::black_box(unsafe { products::<Halves<V>, V, T, N>(xs, ys) });
        0.0
    }
}

/// The running state of [`LimitOfDot2Halves`].
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Halves<V> {
    sum: V,
    ones: [V; 4],
}

#[cfg(target_arch = "x86_64")]
impl<V: Vector> Accumulator<V> for Halves<V> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { Halves { sum: V::splat(0.0), ones: [(); 4].map(|()| V::splat(core::hint::black_box(1.0))) } }
    }

    #[inline(always)]
    unsafe fn push(&mut self, terms: V) {
        // SAFETY: the caller guarantees the same conditions.
        unsafe {
            // Four chains with 6 multiplications and 14 additions. Four additions join them to the sum.
            let mut chains = self.ones;
            for (i, chain) in chains.iter_mut().enumerate() {
                let one = *chain;
                let longer = terms.mul(one).add(one).add(one).add(one);
                *chain = if i < 2 { longer.mul(one) } else { longer.add(one) };
            }
            let [a, b, c, d] = chains;
            self.sum = self.sum.add(a.add(b).add(c.add(d)));
        }
    }

    #[inline(always)]
    unsafe fn merge(self, other: Self) -> Self {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { Halves { sum: self.sum.add(other.sum), ..self } }
    }
}

#[cfg(target_arch = "x86_64")]
impl<V: Vector> Products<V> for Halves<V> {
    #[inline(always)]
    unsafe fn push_products<T: Element>(&mut self, xs: V, ys: V) {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { self.push(xs.mul(ys)) }
    }
}

/// Returns the sum of `x · y` over all `(x, y)` in `pairs`, as if calculated exactly and rounded once.
pub fn exact_dot(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let parts = pairs.flat_map(|(x, y)| {
        let product = x * y;
        let lost = standard::mul_add(x, y, -product);
        [product, if product.is_finite() { lost } else { 0.0 }]
    });
    parts.collect::<Exact>().round()
}

/// Returns one accumulator with the sum of the products of all pairs of numbers, lane by lane. Stops at the end of the
/// shorter slice.
///
/// # Safety
/// The CPU must have the instructions of `V`.
#[inline(always)]
unsafe fn products<A: Products<V>, V: Vector, T: Element, const N: usize>(xs: &[T], ys: &[T]) -> A {
    let length = xs.len().min(ys.len());
    let (xs, ys) = (&xs[..length], &ys[..length]);
    let width = N * BLOCK * V::LANES;
    // SAFETY: the caller guarantees the instructions; every load is inside its round, and only existing numbers of the
    // remainder are loaded.
    unsafe {
        let mut accumulators = [A::new(); N];
        // One register holds all numbers, so there is nothing to merge.
        if length <= V::LANES {
            if length > 0 {
                let left_terms = T::load_partial(xs.as_ptr(), length);
                accumulators[0].push_products::<T>(left_terms, T::load_partial(ys.as_ptr(), length));
            }
            return accumulators[0];
        }
        let (mut left, mut right) = (xs.chunks_exact(width), ys.chunks_exact(width));
        for (left, right) in (&mut left).zip(&mut right) {
            for (i, accumulator) in accumulators.iter_mut().enumerate() {
                let start = i * BLOCK * V::LANES;
                accumulator.push_block(left.as_ptr().add(start), right.as_ptr().add(start));
            }
        }
        let pieces = left.remainder().chunks(V::LANES).zip(right.remainder().chunks(V::LANES));
        for (i, (left, right)) in pieces.enumerate() {
            // The missing lanes are −0.0, and the product of two such lanes adds nothing.
            let left_terms = T::load_partial(left.as_ptr(), left.len());
            accumulators[i % N].push_products::<T>(left_terms, T::load_partial(right.as_ptr(), right.len()));
        }
        accumulators.into_iter().reduce(|all, accumulator| all.merge(accumulator)).unwrap_or(A::new())
    }
}

/// One method of computing the dot product of two slices of `T`, with one instruction set.
///
/// ```
/// use ascertain_numeric::sum::Element;
///
/// let dot2 = f64::DOT_VARIANTS.iter().find(|variant| variant.name == "dot2").unwrap();
/// assert_eq!(dot2.function().unwrap()(&[2.0, 3.0], &[5.0, 7.0]), 31.0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DotVariant<T: 'static> {
    /// Name: the method, followed by the instruction set unless the variant is scalar, for example `dot2-avx512`.
    pub name: &'static str,
    /// Description of the method, in one line.
    pub about: &'static str,
    /// CPU features that the variant needs, named as in `is_x86_feature_detected!`.
    pub requires: &'static [&'static str],
    /// `true` if the result is the dot product. It is `false` for variants that only show the speed limit of the
    /// machine: they do the same work without dependencies.
    pub is_product: bool,
    /// Function of the variant, or `None` if the target architecture cannot have the variant.
    kernel: Option<DotKernel<T>>,
}

type DotKernel<T> = unsafe fn(&[T], &[T]) -> f64;
/// The function of a variant that this machine can run.
pub(super) type Dot<T> = fn(&[T], &[T]) -> f64;

impl<T> DotVariant<T> {
    /// Checks whether this machine can run the variant.
    ///
    /// # Errors
    /// Returns the first required CPU feature that the machine lacks.
    pub fn is_available(&self) -> Result<(), &'static str> {
        first_missing(self.requires).map_or(Ok(()), Err)
    }

    /// Returns the variant's function, or `None` if the machine cannot run the variant. The function stops at the end
    /// of the shorter slice.
    pub fn function(&self) -> Option<Dot<T>> {
        self.is_available().ok()?;
        // SAFETY: the types differ only in `unsafe`. The kernel's one condition, that the CPU has the features, holds
        // as long as the program runs.
        Some(unsafe { core::mem::transmute::<DotKernel<T>, Dot<T>>(self.kernel?) })
    }
}

/// Expands to the kernel of a method with an instruction set.
macro_rules! kernel {
    ($method:ident, $($arch:ident)::+, $accumulators:literal) => {
        Some(arch::$($arch)::+::dot::<$method, T, $accumulators>)
    };
}

#[rustfmt::skip] // Keeps each variant on one line.
pub(super) const fn variants<T: Element>() -> &'static [DotVariant<T>] {
    const {
        &[
            new("dot", SCALAR, kernel!(NaiveDot, scalar, 4), "multiply and add"),
            new("dot-sse2", SSE2, on!("x86_64", kernel!(NaiveDot, sse2, 4), None), "multiply and add, 2 lanes"),
            new("dot-avx2", AVX2, on!("x86_64", kernel!(NaiveDot, avx2, 4), None), "multiply and add, 4 lanes"),
            new("dot-avx512", AVX512, on!("x86_64", kernel!(NaiveDot, avx512, 4), None), "multiply and add, 8 lanes"),
            new("dot-neon", NEON, on!("aarch64", kernel!(NaiveDot, neon, 4), None), "multiply and add, 2 lanes"),
            new("dot2", SCALAR, kernel!(Dot2, scalar::by_eight, 2), "twice the working precision"),
            new("dot2-sse2", SSE2, on!("x86_64", kernel!(Dot2, sse2::by_eight, 2), None), "twice the working precision, 2 lanes"),
            new("dot2-avx2", AVX2, on!("x86_64", kernel!(Dot2, avx2::by_eight, 2), None), "twice the working precision, 4 lanes"),
            new("dot2-avx512", AVX512, on!("x86_64", kernel!(Dot2, avx512, 2), None), "twice the working precision, 8 lanes"),
            new("dot2-neon", NEON, on!("aarch64", kernel!(Dot2, neon::by_eight, 2), None), "twice the working precision, 2 lanes"),
            DotVariant { is_product: false, ..new("limit-dot2-sse2", SSE2, on!("x86_64", kernel!(LimitOfDot2Halves, sse2, 2), None), "not a dot product: loads the registers and does the 25 operations of dot2 with them, without dependencies (speed limit)") },
            DotVariant { is_product: false, ..new("limit-dot2-neon", NEON, on!("aarch64", kernel!(LimitOfDot2Adders, neon, 4), None), "not a dot product: loads the registers and does the ten operations of dot2 with them, without dependencies (speed limit)") },
            DotVariant { is_product: false, ..new("limit-dot2-avx2", AVX2, on!("x86_64", kernel!(LimitOfDot2, avx2, 4), None), "not a dot product: loads the registers and does the ten operations of dot2 with them, without dependencies (speed limit)") },
            DotVariant { is_product: false, ..new("limit-dot2-avx512", AVX512, on!("x86_64", kernel!(LimitOfDot2, avx512, 2), None), "not a dot product: loads the registers and does the ten operations of dot2 with them, without dependencies (speed limit)") },
        ]
    }
}

const fn new<T>(
    name: &'static str,
    requires: &'static [&'static str],
    kernel: Option<DotKernel<T>>,
    about: &'static str,
) -> DotVariant<T> {
    DotVariant { name, about, requires, is_product: true, kernel }
}
