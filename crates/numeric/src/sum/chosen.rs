//! Chooses the functions that [`sum`](super::sum()), [`dot`](super::dot()), exact sums and variances use on this
//! machine. Each function is the fastest of several candidates that return the same bits.

use super::arch;
#[cfg(target_arch = "aarch64")]
use super::arch::NEON;
#[cfg(target_arch = "x86_64")]
use super::arch::{AVX2, AVX512};
use super::dot::{Dot, DotVariant};
use super::element::Element;
use super::exact::Exact;
use super::fastest::fastest_on;
use super::variants::Variant;
use crate::features::first_missing;
use crate::standard::Once;
use alloc::vec::Vec;

/// Returns the sum of all numbers, computed accurately and fast.
///
/// For `f64` the result is as accurate as if it were calculated in twice the precision and rounded once: the error is
/// at most u·|Σx| + (n·u)²·Σ|x|, where u = 2⁻⁵³. Numbers of type `f32` are added in `f64`, in groups of 32 without
/// compensation. If the numbers of a group differ by more than a factor of 2^24, this adds 5u·Σ|x| to the error. That
/// is 2^26 times less than the error of rounding the numbers to `f32`.
///
/// The result has the same bits on every machine, in every run and wherever the slice begins. The numbers are added in
/// a fixed order, with the instructions that are fastest on this machine. The first call for a slice of less than 32 kB
/// takes about 30 µs longer, to measure which instructions are the fastest. The first call for a longer slice does the
/// same. [`chosen`](super::chosen()) returns the variant with these instructions.
/// If the numbers are reordered, the last bit may change; [`exact`](super::exact) returns the same bits in any order.
///
/// NaN, infinities, signed zeros, and sums that overflow only in an intermediate result give the same result as
/// [`exact`](super::exact). The sum of no numbers is −0.0, as in the standard library.
///
/// ```
/// use ascertain_numeric::sum::sum;
///
/// assert_eq!(sum(&[0.5_f32; 3]), 1.5);
/// assert_eq!(sum(&[1.0, 1e100, 1.0, -1e100]), 2.0);
/// ```
pub fn sum<T: Element>(xs: &[T]) -> f64 {
    T::fastest().sum(xs.len()).1(xs)
}

/// The variants that [`sum`](super::sum()) chooses from. All give the same bits. If several are equally fast, the first
/// is used. For `f64`, which needs no widening, a variant with `-bits` in its name is the same code as the one with
/// `-fma`.
const SUMS: &[&str] = &[
    "block-twosum-avx512-bits",
    "block-twosum-avx512-fma",
    "block-twosum-avx512",
    "block-twosum-avx2-fma",
    "block-twosum-avx2",
    "block-twosum-neon",
];
/// The variant that `sum` uses on machines that can run none of [`SUMS`].
const PLAIN_SUM: &str = if cfg!(target_arch = "x86_64") { "block-twosum-sse2" } else { "block-twosum" };

/// The variants that [`dot`](super::dot()) chooses from. All give the same bits; if several are equally fast, the first
/// is used.
const DOTS: &[&str] = &["dot2-avx512", "dot2-avx2", "dot2-neon"];
/// The variant that `dot` uses on machines that can run none of [`DOTS`].
const PLAIN_DOT: &str = if cfg!(target_arch = "x86_64") { "dot2-sse2" } else { "dot2" };

/// Returns the variant that [`sum`](super::sum()) uses on this machine for a slice of `length` numbers, and its number of
/// accumulators. The variant is the fastest `block-twosum` variant that the machine can run, with 1 accumulator for
/// `f32` and 4 for `f64`. All of them give the same bits, so the choice does not change a result.
///
/// ```
/// use ascertain_numeric::sum::{Element, chosen, sum};
///
/// let xs = [0.1, 0.2, 0.3];
/// let (variant, accumulators) = chosen(xs.len());
/// assert_eq!(variant.function(accumulators).unwrap()(&xs).to_bits(), sum(&xs).to_bits());
///
/// // The result of a machine without SIMD instructions.
/// let elsewhere = f64::variant("block-twosum").unwrap().function(accumulators).unwrap();
/// assert_eq!(elsewhere(&xs).to_bits(), sum(&xs).to_bits());
/// ```
pub fn chosen<T: Element>(length: usize) -> (&'static Variant<T>, u32) {
    (T::fastest().sum(length).0, accumulators::<T>())
}

/// Returns the variant that [`dot`](super::dot()) uses on this machine: the fastest `dot2` variant that the machine can
/// run. All `dot2` variants give the same bits.
pub fn chosen_dot<T: Element>() -> &'static DotVariant<T> {
    T::fastest().dot.get().0
}

/// Returns the number of accumulators of the functions that [`sum`](super::sum()) chooses from. One is enough for
/// `f32`: its numbers are first added up in blocks, and the additions in a block do not wait for each other.
fn accumulators<T: Element>() -> u32 {
    if T::BLOCK > 1 { 1 } else { 4 }
}

type Sum<T> = fn(&[T]) -> f64;
type AddExactly<T> = fn(&mut Exact, &[T]);
type Distances<T> = fn(&[T], f64) -> (f64, f64);

/// Size in bytes from which a slice is summed by the function for long slices. Wider registers save time at the end of
/// each sum, where the registers are added up. So they can be the best choice for short slices alone: on an Emerald
/// Rapids, AVX2 is faster than AVX-512 from 9,700 `f32` on.
const LONG_BYTES: usize = 32 << 10;

/// The functions that [`sum`](super::sum()), [`dot`](super::dot()), exact sums and variances use. Each is chosen when
/// it is first called.
pub struct FastestFunctions<T: 'static> {
    short_sum: AtFirstUse<(&'static Variant<T>, Sum<T>)>,
    long_sum: AtFirstUse<(&'static Variant<T>, Sum<T>)>,
    pub dot: AtFirstUse<(&'static DotVariant<T>, Dot<T>)>,
    pub add_exactly: AtFirstUse<AddExactly<T>>,
    pub distances: AtFirstUse<Distances<T>>,
}

impl<T: Element> FastestFunctions<T> {
    /// Returns the functions in their initial state: none is chosen yet.
    pub const fn new() -> Self {
        FastestFunctions {
            short_sum: AtFirstUse::new(|| fastest_on(&sums(is_here), 4, |(_, sum), xs| sum(xs))),
            long_sum: AtFirstUse::new(|| fastest_on(&sums(is_here), 1, |(_, sum), xs| sum(xs))),
            dot: AtFirstUse::new(|| fastest_on(&dots(is_here), 4, |(_, dot), xs| dot(xs, xs))),
            add_exactly: AtFirstUse::new(|| {
                // The first 4,096 numbers of a call may be added twice, so one call takes four times as many.
                fastest_on(&exact_sums(is_here), 1, |add_exactly, xs| {
                    let mut sum = Exact::new();
                    add_exactly(&mut sum, xs);
                    sum
                })
            }),
            distances: AtFirstUse::new(|| fastest_on(&all_distances(is_here), 4, |distances, xs| distances(xs, 0.5))),
        }
    }

    /// Returns the function for sums of slices of `length` numbers, and its variant.
    fn sum(&self, length: usize) -> (&'static Variant<T>, Sum<T>) {
        let is_long = length >= LONG_BYTES / size_of::<T>();
        if is_long { self.long_sum.get() } else { self.short_sum.get() }
    }
}

/// A value that is chosen when it is first used.
pub struct AtFirstUse<R> {
    chosen: Once<R>,
    /// Chooses the value. It is a function pointer in a static of this crate, so the compiler compiles the candidates
    /// once, in this crate. Otherwise every crate that computes sums would compile them again.
    choose: fn() -> R,
}

impl<R: Copy> AtFirstUse<R> {
    const fn new(choose: fn() -> R) -> Self {
        AtFirstUse { chosen: Once::new(), choose }
    }

    pub fn get(&self) -> R {
        self.chosen.get_or_init(self.choose)
    }
}

fn is_here(required: &[&'static str]) -> bool {
    first_missing(required).is_none()
}

/// Returns the candidates for sums on a machine that has only the features for which `has` returns `true`. The machine
/// that runs this must have these features, too.
fn sums<T: Element>(has: impl Fn(&[&'static str]) -> bool) -> Vec<(&'static Variant<T>, Sum<T>)> {
    let named = |name: &&str| {
        let variant = T::variant(name).filter(|variant| has(variant.requires))?;
        Some((variant, variant.function(accumulators::<T>())?))
    };
    let is_another = |name: &&&str| T::BLOCK > 1 || !name.ends_with("-bits");
    let found: Vec<_> = SUMS.iter().filter(is_another).filter_map(named).collect();
    if found.is_empty() { named(&PLAIN_SUM).into_iter().collect() } else { found }
}

/// Returns the candidates for dot products, as [`sums`] does for sums.
fn dots<T: Element>(has: impl Fn(&[&'static str]) -> bool) -> Vec<(&'static DotVariant<T>, Dot<T>)> {
    let named = |name: &&str| {
        let variant = T::DOT_VARIANTS.iter().find(|variant| variant.name == *name && has(variant.requires))?;
        Some((variant, variant.function()?))
    };
    let found: Vec<_> = DOTS.iter().filter_map(named).collect();
    if found.is_empty() { named(&PLAIN_DOT).into_iter().collect() } else { found }
}

/// Expands to a list with `$function` of each instruction set for which `$has` returns `true`. The widest instruction
/// set comes first. With `by_eight`, the list has the functions for registers of eight lanes.
macro_rules! candidates {
    ($has:expr, $type:ty, $function:ident $(, $by_eight:ident)?) => {{
        let mut found: Vec<$type> = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if $has(AVX512) {
                // SAFETY: the machine has the instructions, here as below.
                found.push(|a, b| unsafe { arch::avx512::$function(a, b) });
            }
            if $has(AVX2) {
                // SAFETY: as above.
                found.push(|a, b| unsafe { arch::avx2$(::$by_eight)?::$function(a, b) });
            }
        }
        #[cfg(target_arch = "aarch64")]
        if $has(NEON) {
            // SAFETY: as above.
            found.push(|a, b| unsafe { arch::neon$(::$by_eight)?::$function(a, b) });
        }
        if found.is_empty() {
            #[cfg(target_arch = "x86_64")]
            found.push(arch::sse2$(::$by_eight)?::$function);
            #[cfg(not(target_arch = "x86_64"))]
            found.push(arch::scalar$(::$by_eight)?::$function);
        }
        found
    }};
}

#[allow(unused_variables, reason = "a machine without SIMD instructions needs no check")]
fn exact_sums<T: Element>(has: impl Fn(&[&'static str]) -> bool) -> Vec<AddExactly<T>> {
    candidates!(has, AddExactly<T>, add_exactly)
}

#[allow(unused_variables, reason = "a machine without SIMD instructions needs no check")]
fn all_distances<T: Element>(has: impl Fn(&[&'static str]) -> bool) -> Vec<Distances<T>> {
    candidates!(has, Distances<T>, distances, by_eight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sum::exact;

    /// Simulates a machine that lacks some features of this one.
    fn lacking(mask: &'static [&'static str]) -> impl Fn(&[&'static str]) -> bool + Copy {
        move |required| is_here(required) && !required.iter().any(|feature| mask.contains(feature))
    }

    const MASKS: &[&[&str]] = &[&[], &["avx512f"], &["avx512f", "fma"], &["avx512f", "avx2"]];

    #[test]
    fn a_machine_without_an_instruction_set_chooses_from_the_others() {
        for mask in MASKS {
            let names: Vec<_> = sums::<f32>(lacking(mask)).iter().map(|(variant, _)| variant.name).collect();
            let dots: Vec<_> = dots::<f32>(lacking(mask)).iter().map(|(variant, _)| variant.name).collect();
            match *mask {
                _ if cfg!(target_arch = "aarch64") => {
                    assert_eq!((names, dots), (vec!["block-twosum-neon"], vec!["dot2-neon"]))
                }
                [] if is_here(&["avx512f", "avx512dq", "avx2", "fma"]) => {
                    assert_eq!(names, SUMS[..5]);
                    assert_eq!(dots, DOTS[..2]);
                }
                ["avx512f"] if is_here(&["avx2", "fma"]) => {
                    assert_eq!(names, SUMS[3..5]);
                    assert_eq!(dots, DOTS[1..2]);
                }
                _ => {
                    assert!(names.iter().chain(&dots).all(|name| mask.is_empty() || !name.contains("avx")), "{names:?}")
                }
            }
        }
        let f64_names: Vec<_> = sums::<f64>(is_here).iter().map(|(variant, _)| variant.name).collect();
        assert!(!f64_names.contains(&"block-twosum-avx512-bits"), "the same code twice");
    }

    /// Checks that every candidate of every simulated machine returns the same bits.
    fn is_the_same_on_all<T: Element>(numbers: impl Fn(usize) -> T) {
        for length in [0, 1, 7, 8, 9, 33, 255, 256, 300, 1111, 5000, 9000] {
            let xs: Vec<T> = (0..length).map(&numbers).collect();
            let ys: Vec<T> = (0..length).map(|i| numbers(3 * i + 1)).collect();
            let bits = |(a, b): (f64, f64)| (a.to_bits(), b.to_bits());
            let here = T::fastest();
            let expected_sum = here.sum(length).1(&xs).to_bits();
            let expected_dot = here.dot.get().1(&xs, &ys).to_bits();
            let expected_distances = bits(here.distances.get()(&xs, 0.3));
            for mask in MASKS {
                let has = lacking(mask);
                for (variant, sum) in sums::<T>(has) {
                    assert_eq!(sum(&xs).to_bits(), expected_sum, "{}, {length}", variant.name);
                }
                for (variant, dot) in dots::<T>(has) {
                    assert_eq!(dot(&xs, &ys).to_bits(), expected_dot, "{}, {length}", variant.name);
                }
                for distances in all_distances::<T>(has) {
                    assert_eq!(bits(distances(&xs, 0.3)), expected_distances, "without {mask:?}, {length}");
                }
                for add_exactly in exact_sums::<T>(has) {
                    let mut sum = Exact::new();
                    add_exactly(&mut sum, &xs);
                    assert_eq!(sum.round().to_bits(), exact(&xs).to_bits(), "without {mask:?}, {length}");
                }
            }
        }
    }

    #[test]
    fn the_choice_changes_no_bit() {
        // The numbers span 80 powers of two and both signs, so that every addition rounds.
        let number = |i: usize| ((i * 7919 % 1000) as f64 - 400.3) * 2_f64.powi((i * 31 % 80) as i32 - 40);
        is_the_same_on_all(number);
        is_the_same_on_all(|i| number(i) as f32);
    }
}
