//! The functions that the plain calls take on this machine: of those that give the same bits, the fastest.

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

/// The sum of all numbers: accurate, and fast.
///
/// For `f64` it is as accurate as if it were calculated in twice the precision and rounded once: an error of at most
/// u·|Σx| + (n·u)²·Σ|x|, u = 2⁻⁵³. For `f32`, of which 32 at a time are added plainly in `f64`, 5u·Σ|x| is added to
/// that where they differ by more than a factor of 2^24; it is 2^26 times less than what the numbers themselves were
/// rounded by.
///
/// The result has the same bits on every machine, in every run and wherever the slice lies: it is added up in a fixed
/// order, by the instructions that do it fastest on this machine. The first call finds out which those are, in some 30
/// µs; [`chosen`](super::chosen()) tells. In another order of the numbers the last bit may be another;
/// [`exact`](super::exact) gives the same bits in any order.
///
/// NaN, infinities, signed zeros and sums that overflow only on the way give what
/// [`exact`](super::exact) gives. The sum of nothing is −0.0, as in the standard library.
///
/// ```
/// use ascertain_numeric::sum::sum;
///
/// assert_eq!(sum(&[0.5_f32; 3]), 1.5);
/// assert_eq!(sum(&[1.0, 1e100, 1.0, -1e100]), 2.0);
/// ```
pub fn sum<T: Element>(xs: &[T]) -> f64 {
    T::chosen().sum()(xs)
}

/// What [`sum`](super::sum()) chooses from. All give the same bits; of equally fast ones the first is taken. For `f64`,
/// which needs no widening, `-bits` is the same code as `-fma`.
const SUMS: &[&str] = &[
    "block-twosum-avx512-bits",
    "block-twosum-avx512-fma",
    "block-twosum-avx512",
    "block-twosum-avx2-fma",
    "block-twosum-avx2",
    "block-twosum-neon",
];
/// What it takes where the machine has none of those.
const PLAIN_SUM: &str = "block-twosum";

/// What [`dot`](super::dot()) chooses from, likewise.
const DOTS: &[&str] = &["dot2-avx512", "dot2-avx2", "dot2-neon"];
/// What it takes where the machine has none of those.
const PLAIN_DOT: &str = "dot2";

/// The variant that [`sum`](super::sum()) takes on this machine, and with how many accumulators: the fastest of the
/// `block-twosum` variants that it can run, with 1 accumulator for `f32` and 4 for `f64`. As all of them give the same
/// bits, it does not matter to a result which it is.
///
/// ```
/// use ascertain_numeric::sum::{Element, chosen, sum};
///
/// let xs = [0.1, 0.2, 0.3];
/// let (variant, accumulators) = chosen();
/// assert_eq!(variant.function(accumulators).unwrap()(&xs).to_bits(), sum(&xs).to_bits());
///
/// // What a machine without vectors gives.
/// let elsewhere = f64::variant("block-twosum").unwrap().function(accumulators).unwrap();
/// assert_eq!(elsewhere(&xs).to_bits(), sum(&xs).to_bits());
/// ```
pub fn chosen<T: Element>() -> (&'static Variant<T>, u32) {
    (T::chosen().sum_variant().0, accumulators::<T>())
}

/// The variant that [`dot`](super::dot()) takes on this machine: the fastest of the `dot2` variants that it can run,
/// all of which give the same bits.
pub fn chosen_dot<T: Element>() -> &'static DotVariant<T> {
    T::chosen().dot_variant().0
}

/// A block is chain enough.
fn accumulators<T: Element>() -> u32 {
    if T::BLOCK > 1 { 1 } else { 4 }
}

type Sum<T> = fn(&[T]) -> f64;
type AddExactly<T> = fn(&mut Exact, &[T]);
type Distances<T> = fn(&[T], f64) -> (f64, f64);

/// One function for each plain call, chosen when it is first called.
pub struct Chosen<T: 'static> {
    sum: AtFirstUse<(&'static Variant<T>, Sum<T>)>,
    dot: AtFirstUse<(&'static DotVariant<T>, Dot<T>)>,
    add_exactly: AtFirstUse<AddExactly<T>>,
    distances: AtFirstUse<Distances<T>>,
}

impl<T: Element> Chosen<T> {
    /// Nothing is chosen yet.
    pub const fn new() -> Self {
        Chosen {
            sum: AtFirstUse::new(|| fastest_on(&sums(is_here), |(_, sum), xs| sum(xs))),
            dot: AtFirstUse::new(|| fastest_on(&dots(is_here), |(_, dot), xs| dot(xs, xs))),
            add_exactly: AtFirstUse::new(|| {
                fastest_on(&exact_sums(is_here), |add_exactly, xs| {
                    let mut sum = Exact::new();
                    add_exactly(&mut sum, xs);
                    sum
                })
            }),
            distances: AtFirstUse::new(|| fastest_on(&all_distances(is_here), |distances, xs| distances(xs, 0.5))),
        }
    }

    pub fn sum(&self) -> Sum<T> {
        self.sum_variant().1
    }

    pub fn dot(&self) -> Dot<T> {
        self.dot_variant().1
    }

    pub fn add_exactly(&self) -> AddExactly<T> {
        self.add_exactly.get()
    }

    pub fn distances(&self) -> Distances<T> {
        self.distances.get()
    }

    fn sum_variant(&self) -> (&'static Variant<T>, Sum<T>) {
        self.sum.get()
    }

    fn dot_variant(&self) -> (&'static DotVariant<T>, Dot<T>) {
        self.dot.get()
    }
}

/// A value that is chosen when it is first used.
struct AtFirstUse<R> {
    chosen: Once<R>,
    /// A function pointer, so that the candidates are compiled once, in this crate, with the static that holds the
    /// pointer. Otherwise every crate that sums would compile them again.
    choose: fn() -> R,
}

impl<R: Copy> AtFirstUse<R> {
    const fn new(choose: fn() -> R) -> Self {
        AtFirstUse { chosen: Once::new(), choose }
    }

    fn get(&self) -> R {
        self.chosen.get_or_init(self.choose)
    }
}

fn is_here(required: &[&'static str]) -> bool {
    first_missing(required).is_none()
}

/// What there is to choose from for a machine that has the features that `has` says, all of which this one must have.
fn sums<T: Element>(has: impl Fn(&[&'static str]) -> bool) -> Vec<(&'static Variant<T>, Sum<T>)> {
    let named = |name: &&str| {
        let variant = T::variant(name).filter(|variant| has(variant.requires))?;
        Some((variant, variant.function(accumulators::<T>())?))
    };
    let is_another = |name: &&&str| T::BLOCK > 1 || !name.ends_with("-bits");
    let found: Vec<_> = SUMS.iter().filter(is_another).filter_map(named).collect();
    if found.is_empty() { named(&PLAIN_SUM).into_iter().collect() } else { found }
}

/// As [`sums`].
fn dots<T: Element>(has: impl Fn(&[&'static str]) -> bool) -> Vec<(&'static DotVariant<T>, Dot<T>)> {
    let named = |name: &&str| {
        let variant = T::DOT_VARIANTS.iter().find(|variant| variant.name == *name && has(variant.requires))?;
        Some((variant, variant.function()?))
    };
    let found: Vec<_> = DOTS.iter().filter_map(named).collect();
    if found.is_empty() { named(&PLAIN_DOT).into_iter().collect() } else { found }
}

/// As [`sums`].
#[allow(unused_variables, reason = "of a machine without vectors nothing is asked")]
fn exact_sums<T: Element>(has: impl Fn(&[&'static str]) -> bool) -> Vec<AddExactly<T>> {
    let mut found: Vec<AddExactly<T>> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        if has(AVX512) {
            // SAFETY: the machine has the instructions, here as below.
            found.push(|sum, xs| unsafe { arch::avx512::add_exactly(sum, xs) });
        }
        if has(AVX2) {
            // SAFETY: as above.
            found.push(|sum, xs| unsafe { arch::avx2::add_exactly(sum, xs) });
        }
    }
    #[cfg(target_arch = "aarch64")]
    if has(NEON) {
        // SAFETY: as above.
        found.push(|sum, xs| unsafe { arch::neon::add_exactly(sum, xs) });
    }
    if found.is_empty() {
        found.push(arch::scalar::add_exactly);
    }
    found
}

/// As [`sums`].
#[allow(unused_variables, reason = "of a machine without vectors nothing is asked")]
fn all_distances<T: Element>(has: impl Fn(&[&'static str]) -> bool) -> Vec<Distances<T>> {
    let mut found: Vec<Distances<T>> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        if has(AVX512) {
            // SAFETY: the machine has the instructions, here as below.
            found.push(|xs, centre| unsafe { arch::avx512::distances(xs, centre) });
        }
        if has(AVX2) {
            // SAFETY: as above.
            found.push(|xs, centre| unsafe { arch::avx2::by_eight::distances(xs, centre) });
        }
    }
    #[cfg(target_arch = "aarch64")]
    if has(NEON) {
        // SAFETY: as above.
        found.push(|xs, centre| unsafe { arch::neon::by_eight::distances(xs, centre) });
    }
    if found.is_empty() {
        found.push(arch::scalar::by_eight::distances);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sum::exact;

    /// A machine of less: this one without some features.
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

    /// Whatever a machine has and whichever is fastest there, the results have the same bits.
    fn is_the_same_on_all<T: Element>(numbers: impl Fn(usize) -> T) {
        for length in [0, 1, 7, 8, 9, 33, 255, 256, 300, 1111, 5000] {
            let xs: Vec<T> = (0..length).map(&numbers).collect();
            let ys: Vec<T> = (0..length).map(|i| numbers(3 * i + 1)).collect();
            let bits = |(a, b): (f64, f64)| (a.to_bits(), b.to_bits());
            let here = T::chosen();
            let expected_sum = (here.sum())(&xs).to_bits();
            let expected_dot = (here.dot())(&xs, &ys).to_bits();
            let expected_distances = bits((here.distances())(&xs, 0.3));
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
        // Over 80 powers of two and both signs, so that every addition rounds off.
        let number = |i: usize| ((i * 7919 % 1000) as f64 - 400.3) * 2_f64.powi((i * 31 % 80) as i32 - 40);
        is_the_same_on_all(number);
        is_the_same_on_all(|i| number(i) as f32);
    }
}
