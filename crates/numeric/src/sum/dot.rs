//! Dot products.

use super::accumulate::Accumulator;
use super::arch::{self, AVX2, AVX512, NEON, SCALAR};
use super::element::Element;
use super::exact::Exact;
#[cfg(target_arch = "x86_64")]
use super::method::Work;
use super::method::{Pair, lanes_total};
#[cfg(target_arch = "x86_64")]
use super::vector::Fma;
use super::vector::Vector;
use crate::features::first_missing;
use crate::simd::Register;
use crate::standard;

/// Σ x·y of two slices of one length, as accurate as if it were calculated in twice the precision of the numbers and
/// rounded once. For `f64` the error is at most u·|Σxy| + (2n·u)²·Σ|xy|, u = 2⁻⁵³, unless a product is below 2^−969,
/// whose own error then underflows (by at most 2^−1074 each). Products of `f32` are exact in `f64`, and added plainly
/// by fours: 3u·Σ|xy| more.
///
/// The result has the same bits on every machine, as that of [`sum()`](super::sum()) has, and the first call finds out
/// which instructions are the fastest here; [`chosen_dot`](super::chosen_dot) tells. [`dot_of`](super::dot_of) gives
/// the same bits in any order of the products.
///
/// A product beyond `f64::MAX` counts as an infinity; NaN and infinities give what [`exact`](super::exact) gives for
/// the products. A result of zero is +0.0, as is that of nothing. Ogita, Rump and Oishi 2005, "Accurate sum and dot
/// product" (Dot2).
///
/// # Panics
/// When the lengths differ.
///
/// ```
/// use ascertain_numeric::sum::dot;
///
/// assert_eq!(dot(&[1e100, 1.0, -1e100], &[2.0, 3.0, 2.0]), 3.0);
/// ```
pub fn dot<T: Element>(xs: &[T], ys: &[T]) -> f64 {
    assert_eq!(xs.len(), ys.len(), "a dot product needs as many numbers on the right as on the left");
    T::chosen().dot()(xs, ys)
}

/// A way to multiply slices with registers `V`.
pub trait DotMethod<V: Vector> {
    /// Σ x·y with `N` accumulators, of as many as the shorter slice has.
    ///
    /// # Safety
    /// The CPU has the instructions of `V`. Implementations are always inlined, into a function that enables them.
    unsafe fn dot<T: Element, const N: usize>(xs: &[T], ys: &[T]) -> f64;
}

/// The running state of a dot product.
trait Products<V: Vector>: Accumulator<V> {
    /// Adds a product to each lane.
    unsafe fn push_products<T: Element>(&mut self, xs: V, ys: V);

    /// Adds the products of [`BLOCK`] registers, which must be readable.
    #[inline(always)]
    unsafe fn push_block<T: Element>(&mut self, xs: *const T, ys: *const T) {
        for i in 0..BLOCK {
            // SAFETY: the same contract.
            unsafe { self.push_products::<T>(T::load(xs.add(i * V::LANES)), T::load(ys.add(i * V::LANES))) }
        }
    }
}

/// Registers that an accumulator takes one after the other.
const BLOCK: usize = 4;

/// Multiplies and adds.
pub struct NaiveDot;

impl<V: Vector> DotMethod<V> for NaiveDot {
    #[inline(always)]
    unsafe fn dot<T: Element, const N: usize>(xs: &[T], ys: &[T]) -> f64 {
        // SAFETY: the same contract.
        unsafe {
            let FusedSum(sum) = products::<FusedSum<V>, V, T, N>(xs, ys);
            sum.to_lanes()[..V::LANES].iter().sum::<f64>() + 0.0
        }
    }
}

#[derive(Clone, Copy)]
struct FusedSum<V>(V);

impl<V: Vector> Accumulator<V> for FusedSum<V> {
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: the same contract.
        FusedSum(unsafe { V::splat(-0.0) })
    }

    #[inline(always)]
    unsafe fn push(&mut self, terms: V) {
        // SAFETY: the same contract.
        unsafe { self.0 = self.0.add(terms) }
    }

    #[inline(always)]
    unsafe fn merge(self, other: Self) -> Self {
        // SAFETY: the same contract.
        unsafe { FusedSum(self.0.add(other.0)) }
    }
}

impl<V: Vector> Products<V> for FusedSum<V> {
    #[inline(always)]
    unsafe fn push_products<T: Element>(&mut self, xs: V, ys: V) {
        // SAFETY: the same contract.
        unsafe { self.0 = xs.mul_add(ys, self.0) }
    }
}

/// Twice the working precision: what each product and each addition lost is summed beside.
pub struct Dot2;

impl<V: Vector> DotMethod<V> for Dot2 {
    #[inline(always)]
    unsafe fn dot<T: Element, const N: usize>(xs: &[T], ys: &[T]) -> f64 {
        // SAFETY: the same contract.
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
            // SAFETY: the same contract.
            unsafe { push_part_products::<V, T>(self, part, xs, ys) }
        }
    }

    /// Exact products (of `f32`) are first added plainly.
    #[inline(always)]
    unsafe fn push_block<T: Element>(&mut self, xs: *const T, ys: *const T) {
        for part in 0..V::PARTS {
            let load = |i: usize| {
                let from = i * V::LANES + part * V::Part::LANES;
                // SAFETY: the same contract.
                unsafe { (T::load::<V::Part>(xs.add(from)), T::load::<V::Part>(ys.add(from))) }
            };
            // SAFETY: the same contract.
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

/// Adds a product to each lane of a part.
///
/// # Safety
/// The CPU has the instructions of `V`.
#[inline(always)]
unsafe fn push_part_products<V: Vector, T: Element>(
    to: &mut Pair<V, V::Subtraction>,
    part: usize,
    xs: V::Part,
    ys: V::Part,
) {
    // SAFETY: the same contract.
    unsafe {
        let products = xs.mul(ys);
        to.push_part(part, part, products);
        if !T::EXACT_PRODUCTS {
            let correction = &mut to.correction.parts()[part];
            *correction = correction.add(xs.mul_sub(ys, products));
        }
    }
}

/// The limit of [`Dot2`] of `f64`: its ten operations for each pair of registers, which wait for nothing. Not a dot
/// product: the result is 0.
#[cfg(target_arch = "x86_64")]
pub struct LimitOfDot2;

#[cfg(target_arch = "x86_64")]
impl<V: Fma> DotMethod<V> for LimitOfDot2 {
    #[inline(always)]
    unsafe fn dot<T: Element, const N: usize>(xs: &[T], ys: &[T]) -> f64 {
        // SAFETY: the same contract.
        core::hint::black_box(unsafe { products::<Work<V, 9>, V, T, N>(xs, ys) });
        0.0
    }
}

#[cfg(target_arch = "x86_64")]
impl<V: Fma> Products<V> for Work<V, 9> {
    #[inline(always)]
    unsafe fn push_products<T: Element>(&mut self, xs: V, ys: V) {
        // SAFETY: the same contract.
        unsafe { self.push(xs.mul(ys)) }
    }
}

/// The products, and what each of them lost, summed exactly.
pub fn exact_dot(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let parts = pairs.flat_map(|(x, y)| {
        let product = x * y;
        let lost = standard::mul_add(x, y, -product);
        [product, if product.is_finite() { lost } else { 0.0 }]
    });
    parts.collect::<Exact>().round()
}

/// # Safety
/// The CPU has the instructions of `V`.
#[inline(always)]
unsafe fn products<A: Products<V>, V: Vector, T: Element, const N: usize>(xs: &[T], ys: &[T]) -> A {
    let length = xs.len().min(ys.len());
    let (xs, ys) = (&xs[..length], &ys[..length]);
    let width = N * BLOCK * V::LANES;
    // SAFETY: the caller vouches for the instructions; every load is inside its round, and of the rest only the numbers
    // that are there are loaded.
    unsafe {
        let mut accumulators = [A::new(); N];
        // As of a sum, there is nothing to merge.
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
            // −0.0 · −0.0 adds nothing either.
            let left_terms = T::load_partial(left.as_ptr(), left.len());
            accumulators[i % N].push_products::<T>(left_terms, T::load_partial(right.as_ptr(), right.len()));
        }
        accumulators.into_iter().reduce(|all, accumulator| all.merge(accumulator)).unwrap_or(A::new())
    }
}

/// One way to multiply two slices of `T`: a method with an instruction set.
///
/// ```
/// use ascertain_numeric::sum::Element;
///
/// let dot2 = f64::DOT_VARIANTS.iter().find(|variant| variant.name == "dot2").unwrap();
/// assert_eq!(dot2.function().unwrap()(&[2.0, 3.0], &[5.0, 7.0]), 31.0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DotVariant<T: 'static> {
    /// The method, then the instruction set unless it is scalar.
    pub name: &'static str,
    /// A line about it.
    pub about: &'static str,
    /// The CPU features that it needs.
    pub requires: &'static [&'static str],
    /// Whether its result is the dot product. It isn't where as much work is done that waits for nothing, to show what
    /// the machine can do.
    pub is_product: bool,
    /// None where the architecture is another.
    kernel: Option<DotKernel<T>>,
}

type DotKernel<T> = unsafe fn(&[T], &[T]) -> f64;
/// A kernel that this machine can run.
pub(super) type Dot<T> = fn(&[T], &[T]) -> f64;

impl<T> DotVariant<T> {
    /// Whether this machine can run it.
    ///
    /// # Errors
    /// The first of the required CPU features that the machine lacks.
    pub fn is_available(&self) -> Result<(), &'static str> {
        first_missing(self.requires).map_or(Ok(()), Err)
    }

    /// The function, or none where the machine can't run it. Of the longer slice it takes as much as the shorter has.
    pub fn function(&self) -> Option<Dot<T>> {
        self.is_available().ok()?;
        // SAFETY: the types differ in `unsafe` alone, and the kernel's one condition, that the CPU has the features,
        // holds for as long as the program runs.
        Some(unsafe { core::mem::transmute::<DotKernel<T>, Dot<T>>(self.kernel?) })
    }
}

/// A method with an instruction set, where the architecture has it.
macro_rules! on {
    ($architecture:literal, $method:ident, $($arch:ident)::+, $accumulators:literal) => {{
        #[cfg(target_arch = $architecture)]
        let kernel: Option<DotKernel<T>> = Some(arch::$($arch)::+::dot::<$method, T, $accumulators>);
        #[cfg(not(target_arch = $architecture))]
        let kernel: Option<DotKernel<T>> = None;
        kernel
    }};
}

#[rustfmt::skip] // One variant, one line.
pub(super) const fn variants<T: Element>() -> &'static [DotVariant<T>] {
    const {
        &[
            new("dot", SCALAR, Some(arch::scalar::dot::<NaiveDot, T, 4>), "multiply and add"),
            new("dot-avx2", AVX2, on!("x86_64", NaiveDot, avx2, 4), "multiply and add, 4 lanes"),
            new("dot-avx512", AVX512, on!("x86_64", NaiveDot, avx512, 4), "multiply and add, 8 lanes"),
            new("dot-neon", NEON, on!("aarch64", NaiveDot, neon, 4), "multiply and add, 2 lanes"),
            new("dot2", SCALAR, Some(arch::scalar::by_eight::dot::<Dot2, T, 2>), "twice the working precision"),
            new("dot2-avx2", AVX2, on!("x86_64", Dot2, avx2::by_eight, 2), "twice the working precision, 4 lanes"),
            new("dot2-avx512", AVX512, on!("x86_64", Dot2, avx512, 2), "twice the working precision, 8 lanes"),
            new("dot2-neon", NEON, on!("aarch64", Dot2, neon::by_eight, 2), "twice the working precision, 2 lanes"),
            DotVariant { is_product: false, ..new("limit-dot2-avx512", AVX512, on!("x86_64", LimitOfDot2, avx512, 2), "not a dot product: loads, and the ten operations of dot2, which wait for nothing") },
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
