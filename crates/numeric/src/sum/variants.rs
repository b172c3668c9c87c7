//! All variants by name. A variant is a method with an instruction set. To add one, add a line to [`variants`] and a
//! method to `method`.

use super::arch::{self, AVX2, AVX512, NEON, SCALAR, SSE2};
use super::element::Element;
use super::method::*;
use crate::features::{first_missing, on};

/// The function of a variant. The CPU must have the features that the variant requires.
pub(super) type Kernel<T> = unsafe fn(&[T]) -> f64;

/// One method of summing a slice of `T`, with one instruction set.
///
/// ```
/// use ascertain_numeric::sum::Element;
///
/// let kahan = f64::variant("kahan").unwrap().function(4).unwrap();
/// assert_eq!(kahan(&[0.5, 0.25, 0.125]), 0.875);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Variant<T: 'static> {
    /// Name: the method, followed by the instruction set unless the variant is scalar, for example `kahan` or
    /// `kahan-avx512`.
    pub name: &'static str,
    /// Description of the method, in one line.
    pub about: &'static str,
    /// CPU features that the variant needs, named as in `is_x86_feature_detected!`.
    pub requires: &'static [&'static str],
    /// Supported numbers of independent accumulators. An accumulator is one number, or one register of numbers.
    pub accumulators: &'static [u32],
    /// `true` if the result is the sum. It is `false` for variants that show the speed limit of all sums: their result
    /// is 0, or the exclusive or of the slice's 64-bit words as a number.
    pub is_sum: bool,
    /// One function for each entry of `accumulators`; empty if the target architecture cannot have the variant.
    pub(super) kernels: &'static [Kernel<T>],
}

impl<T> Variant<T> {
    /// Checks whether this machine can run the variant.
    ///
    /// # Errors
    /// Returns the first required CPU feature that the machine lacks.
    pub fn is_available(&self) -> Result<(), &'static str> {
        first_missing(self.requires).map_or(Ok(()), Err)
    }

    /// Returns the function with this number of accumulators. Returns `None` if there is no such function, or if the
    /// machine cannot run it.
    pub fn function(&self, accumulators: u32) -> Option<fn(&[T]) -> f64> {
        self.is_available().ok()?;
        let index = self.accumulators.iter().position(|&n| n == accumulators)?;
        let kernel = self.kernels.get(index)?;
        // SAFETY: the types differ only in `unsafe`. The kernel's one condition, that the CPU has the features, holds
        // as long as the program runs.
        Some(unsafe { core::mem::transmute::<Kernel<T>, fn(&[T]) -> f64>(*kernel) })
    }
}

/// The numbers of accumulators that variants support. [`each`] makes one function for each of them.
const ACCUMULATORS: &[u32] = &[1, 2, 4, 8];

/// Expands to the functions of a method with an instruction set, one for each entry of [`ACCUMULATORS`].
macro_rules! each {
    ($method:ty, $($arch:ident)::+) => {
        &[
            arch::$($arch)::+::sum::<$method, T, 1>,
            arch::$($arch)::+::sum::<$method, T, 2>,
            arch::$($arch)::+::sum::<$method, T, 4>,
            arch::$($arch)::+::sum::<$method, T, 8>,
        ]
    };
}

/// Expands to the functions of [`each`] on x86-64. On other architectures, it expands to no functions, but the variants
/// and their names still exist.
macro_rules! x86 {
    ($($each:tt)*) => { on!("x86_64", each!($($each)*), &[]) };
}

/// The numbers of accumulators of the variants with SSE2.
const FEW_ACCUMULATORS: &[u32] = &[1, 4, 8];

/// Expands to the functions of a method with SSE2, one for each entry of [`FEW_ACCUMULATORS`].
macro_rules! sse2 {
    ($method:ty, $($arch:ident)::+) => {
        on!(
            "x86_64",
            &[
                arch::$($arch)::+::sum::<$method, T, 1>,
                arch::$($arch)::+::sum::<$method, T, 4>,
                arch::$($arch)::+::sum::<$method, T, 8>,
            ],
            &[]
        )
    };
}

/// Expands to the functions of [`each`] on AArch64, and to none on other architectures.
macro_rules! arm {
    ($($each:tt)*) => { on!("aarch64", each!($($each)*), &[]) };
}

#[rustfmt::skip] // Keeps each variant on one line.
pub(super) const fn variants<T: Element>() -> &'static [Variant<T>] {
    const {
        &[
            new("naive", SCALAR, each!(Naive, scalar), "one addition after the other"),
            with_sse2("naive-sse2", sse2!(Naive, sse2), "plain addition, 2 lanes"),
            new("naive-avx2", AVX2, x86!(Naive, avx2), "plain addition, 4 lanes"),
            new("naive-avx512", AVX512, x86!(Naive, avx512), "plain addition, 8 lanes"),
            new("naive-neon", NEON, arm!(Naive, neon), "plain addition, 2 lanes"),
            new("pairwise", SCALAR, each!(Pairwise, scalar), "blocks of 128, then a balanced tree"),
            with_sse2("pairwise-sse2", sse2!(Pairwise, sse2), "blocks of 128 registers, then a balanced tree, 2 lanes"),
            new("pairwise-avx2", AVX2, x86!(Pairwise, avx2), "blocks of 128 registers, then a balanced tree, 4 lanes"),
            new("pairwise-avx512", AVX512, x86!(Pairwise, avx512), "blocks of 128 registers, then a balanced tree, 8 lanes"),
            new("pairwise-neon", NEON, arm!(Pairwise, neon), "blocks of 128 registers, then a balanced tree, 2 lanes"),
            new("kahan", SCALAR, each!(Kahan, scalar), "the rounding error of each addition goes into the next term"),
            new("kahan-avx2", AVX2, x86!(Kahan, avx2), "Kahan, 4 lanes"),
            new("kahan-avx2-fma", AVX2, x86!(KahanFma, avx2), "Kahan, 4 lanes, half of the additions by FMA instructions"),
            new("kahan-avx512", AVX512, x86!(Kahan, avx512), "Kahan, 8 lanes"),
            new("kahan-avx512-fma", AVX512, x86!(KahanFma, avx512), "Kahan, 8 lanes, half of the additions by FMA instructions"),
            new("kahan-neon", NEON, arm!(Kahan, neon), "Kahan, 2 lanes"),
            new("neumaier", SCALAR, each!(Neumaier, scalar), "the rounding errors are summed separately and added at the end"),
            new("neumaier-avx2", AVX2, x86!(Neumaier, avx2), "Neumaier, 4 lanes"),
            new("neumaier-avx512", AVX512, x86!(Neumaier, avx512), "Neumaier, 8 lanes"),
            new("neumaier-neon", NEON, arm!(Neumaier, neon), "Neumaier, 2 lanes"),
            new("babuska", SCALAR, each!(Babuska, scalar), "the rounding errors (exact unless a term is larger than the sum so far) are summed separately and added at the end"),
            with_sse2("babuska-sse2", sse2!(Babuska, sse2), "Babuška, 2 lanes"),
            new("babuska-avx2", AVX2, x86!(Babuska, avx2), "Babuška, 4 lanes"),
            new("babuska-avx2-fma", AVX2, x86!(BabuskaFma, avx2), "Babuška, 4 lanes, half of the additions by FMA instructions"),
            new("babuska-avx512", AVX512, x86!(Babuska, avx512), "Babuška, 8 lanes"),
            new("babuska-avx512-fma", AVX512, x86!(BabuskaFma, avx512), "Babuška, 8 lanes, half of the additions by FMA instructions"),
            new("babuska-neon", NEON, arm!(Babuska, neon), "Babuška, 2 lanes"),
            new("block-twosum", SCALAR, each!(BlockTwoSum, scalar::by_eight), "error-free additions of blocks (f32) or numbers (f64)"),
            with_sse2("block-twosum-sse2", sse2!(BlockTwoSum, sse2::by_eight), "error-free additions of blocks, 2 lanes"),
            new("block-twosum-avx2", AVX2, x86!(BlockTwoSum, avx2::by_eight), "error-free additions of blocks, 4 lanes"),
            new("block-twosum-avx2-fma", AVX2, x86!(BlockTwoSumFma, avx2::by_eight), "error-free additions of blocks, 4 lanes, half of the additions by FMA instructions"),
            new("block-twosum-avx512", AVX512, x86!(BlockTwoSum, avx512), "error-free additions of blocks, 8 lanes"),
            new("block-twosum-avx512-fma", AVX512, x86!(BlockTwoSumFma, avx512), "error-free additions of blocks, 8 lanes, half of the additions by FMA instructions"),
            new("block-twosum-avx512-bits", AVX512, x86!(BlockTwoSumBits, avx512), "block-twosum-avx512-fma with half of the f32 widened by integer operations"),
            new("block-twosum-neon", NEON, arm!(BlockTwoSum, neon::by_eight), "error-free additions of blocks, 2 lanes"),
            new("exact", SCALAR, each!(ExactSum, scalar), "the double nearest to the true sum, whatever the order of the terms"),
            with_sse2("exact-sse2", sse2!(ExactSum, sse2), "exact, 2 lanes"),
            new("exact-avx2", AVX2, x86!(ExactSum, avx2), "exact, 4 lanes"),
            new("exact-avx512", AVX512, x86!(ExactSum, avx512), "exact, 8 lanes"),
            new("exact-neon", NEON, arm!(ExactSum, neon), "exact, 2 lanes"),
            Variant { is_sum: false, ..new("load-avx2", AVX2, x86!(LoadOnly, avx2), "not a sum: only loads the values, 32 bytes at a time (speed limit)") },
            Variant { is_sum: false, ..new("load-avx512", AVX512, x86!(LoadOnly, avx512), "not a sum: only loads the values, 64 bytes at a time (speed limit)") },
            Variant { is_sum: false, ..with_sse2("limit-4-sse2", sse2!(LimitOfAdders<4>, sse2), "not a sum: loads each register and makes 4 additions with it, of which only the last waits for another register (speed limit)") },
            Variant { is_sum: false, ..new("limit-4-neon", NEON, arm!(LimitOfAdders<4>, neon), "not a sum: loads each register and makes 4 additions with it, of which only the last waits for another register (speed limit)") },
            Variant { is_sum: false, ..with_sse2("limit-7-sse2", sse2!(LimitOfAdders<7>, sse2), "not a sum: loads each register and makes 7 additions with it, of which only the last waits for another register (speed limit)") },
            Variant { is_sum: false, ..new("limit-7-neon", NEON, arm!(LimitOfAdders<7>, neon), "not a sum: loads each register and makes 7 additions with it, of which only the last waits for another register (speed limit)") },
            Variant { is_sum: false, ..new("limit-4-avx2", AVX2, x86!(Limit<4>, avx2), "not a sum: loads each register and does 4 operations with it, of which only the last waits for another register (speed limit)") },
            Variant { is_sum: false, ..new("limit-5-avx2", AVX2, x86!(Limit<5>, avx2), "not a sum: loads each register and does 5 operations with it, of which only the last waits for another register (speed limit)") },
            Variant { is_sum: false, ..new("limit-7-avx2", AVX2, x86!(Limit<7>, avx2), "not a sum: loads each register and does 7 operations with it, of which only the last waits for another register (speed limit)") },
            Variant { is_sum: false, ..new("limit-4-avx512", AVX512, x86!(Limit<4>, avx512), "not a sum: loads each register and does 4 operations with it, of which only the last waits for another register (speed limit)") },
            Variant { is_sum: false, ..new("limit-5-avx512", AVX512, x86!(Limit<5>, avx512), "not a sum: loads each register and does 5 operations with it, of which only the last waits for another register (speed limit)") },
            Variant { is_sum: false, ..new("limit-7-avx512", AVX512, x86!(Limit<7>, avx512), "not a sum: loads each register and does 7 operations with it, of which only the last waits for another register (speed limit)") },
        ]
    }
}

const fn new<T>(
    name: &'static str,
    requires: &'static [&'static str],
    kernels: &'static [Kernel<T>],
    about: &'static str,
) -> Variant<T> {
    Variant { name, about, requires, accumulators: ACCUMULATORS, is_sum: true, kernels }
}

const fn with_sse2<T>(name: &'static str, kernels: &'static [Kernel<T>], about: &'static str) -> Variant<T> {
    Variant { accumulators: FEW_ACCUMULATORS, ..new(name, SSE2, kernels, about) }
}

#[cfg(test)]
mod tests {
    use crate::sum::Element;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn every_required_feature_can_be_detected() {
        for feature in f32::VARIANTS.iter().flat_map(|variant| variant.requires) {
            let is_known = crate::features::FEATURES.iter().any(|(known, _)| known == feature);
            assert!(is_known || *feature == "neon", "{feature}, a feature that no machine of this architecture has");
        }
    }

    #[test]
    fn an_unsupported_number_of_accumulators_has_no_function() {
        assert!(f32::variant("naive").unwrap().function(3).is_none());
        assert!(f32::variant("naive").unwrap().function(0).is_none());
    }
}
