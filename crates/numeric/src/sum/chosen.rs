//! The functions that the plain calls take on this machine.

use super::arch;
#[cfg(target_arch = "aarch64")]
use super::arch::NEON;
#[cfg(target_arch = "x86_64")]
use super::arch::{AVX2, AVX512};
use super::dot::DotVariant;
use super::element::Element;
use super::exact::Exact;
use super::variant::Variant;
use crate::features::first_missing;

/// What [`sum`](super::sum()) takes, the first that the machine has: accurate first, fast second. The names are those of
/// both types; for `f64` the blocks are single numbers.
const SUMS: &[&str] = &["block-twosum-avx512-bits", "block-twosum-avx2", "block-twosum-neon", "block-twosum"];

/// What [`dot`](super::dot()) takes, likewise.
const DOTS: &[&str] = &["dot2-avx512", "dot2-avx2", "dot2-neon", "dot2"];

/// The variant that [`sum`](super::sum()) takes on this machine, and with how many accumulators: the first of
/// `block-twosum-avx512-bits`, `block-twosum-avx2`, `block-twosum-neon` and `block-twosum` that it has, with 2 for `f32` and
/// 4 for `f64`. By these names any machine that has its instructions gives the same bits.
///
/// ```
/// use ascertain_numeric::sum::{Element, chosen, sum};
///
/// let xs = [0.1, 0.2, 0.3];
/// let (variant, accumulators) = chosen();
/// assert_eq!(variant.function(accumulators).unwrap()(&xs).to_bits(), sum(&xs).to_bits());
///
/// // What a machine without vectors gives.
/// let elsewhere = f64::variant("block-twosum").unwrap().function(4).unwrap();
/// assert_eq!(elsewhere(&xs), 0.6);
/// ```
pub fn chosen<T: Element>() -> (&'static Variant<T>, u32) {
    chosen_on(is_here)
}

/// The variant that [`dot`](super::dot()) takes on this machine: the first of `dot2-avx512`, `dot2-avx2`, `dot2-neon` and
/// `dot2` that it has.
pub fn chosen_dot<T: Element>() -> &'static DotVariant<T> {
    chosen_dot_on(is_here)
}

fn is_here(required: &[&'static str]) -> bool {
    first_missing(required).is_none()
}

/// One function for each plain call.
pub struct Chosen<T: 'static> {
    pub sum: fn(&[T]) -> f64,
    pub add_exactly: fn(&mut Exact, &[T]),
    pub dot: fn(&[T], &[T]) -> f64,
    pub distances: fn(&[T], f64) -> (f64, f64),
}

/// The functions of an instruction set, which the machine has.
macro_rules! with {
    ($arch:ident, $sum:expr, $dot:expr) => {
        Chosen {
            sum: $sum,
            dot: $dot,
            // SAFETY: the machine has the instructions, here as below.
            add_exactly: |sum, xs| unsafe { arch::$arch::add_exactly(sum, xs) },
            // SAFETY: as above.
            distances: |xs, centre| unsafe { arch::$arch::distances(xs, centre) },
        }
    };
}

impl<T: Element> Chosen<T> {
    /// For this machine.
    pub fn new() -> Self {
        Chosen::on(is_here)
    }

    /// For a machine that has the features that `has` says, all of which this one must have.
    fn on(has: impl Fn(&[&'static str]) -> bool) -> Self {
        let (variant, accumulators) = chosen_on::<T>(&has);
        let sum = variant.function(accumulators).expect("the machine has it, and all come with so many");
        let dot = chosen_dot_on::<T>(&has).function().expect("the machine has it");
        #[cfg(target_arch = "x86_64")]
        {
            if has(AVX512) {
                return with!(avx512, sum, dot);
            }
            if has(AVX2) {
                return with!(avx2, sum, dot);
            }
        }
        #[cfg(target_arch = "aarch64")]
        if has(NEON) {
            return with!(neon, sum, dot);
        }
        Chosen { sum, dot, add_exactly: arch::scalar::add_exactly, distances: arch::scalar::distances }
    }
}

fn chosen_on<T: Element>(has: impl Fn(&[&'static str]) -> bool) -> (&'static Variant<T>, u32) {
    let mut variants = SUMS.iter().filter_map(|name| T::variant(name));
    let variant = variants.find(|variant| has(variant.requires)).expect("the scalar variant runs on every machine");
    // A block is chain enough.
    (variant, if T::BLOCK > 1 { 2 } else { 4 })
}

fn chosen_dot_on<T: Element>(has: impl Fn(&[&'static str]) -> bool) -> &'static DotVariant<T> {
    let mut variants = DOTS.iter().filter_map(|name| T::DOT_VARIANTS.iter().find(|variant| variant.name == *name));
    variants.find(|variant| has(variant.requires)).expect("the scalar variant runs on every machine")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sum::exact;

    /// Machines of less, as far as this one can play them: what they lack is not called, and what they call is right.
    #[test]
    fn a_machine_without_an_instruction_set_takes_the_next() {
        let lacking = |mask: &'static [&'static str]| {
            move |required: &[&'static str]| {
                first_missing(required).is_none() && !required.iter().any(|feature| mask.contains(feature))
            }
        };
        for mask in [&[] as &[&str], &["avx512f"], &["avx512f", "fma"], &["avx512f", "avx2"]] {
            let name = chosen_on::<f32>(lacking(mask)).0.name;
            let dot = chosen_dot_on::<f32>(lacking(mask)).name;
            assert_eq!(name.replace("block-twosum", "dot2").replace("-bits", ""), dot, "{mask:?}");
            match mask {
                _ if cfg!(target_arch = "aarch64") => assert_eq!(name, "block-twosum-neon"),
                _ if cfg!(not(target_arch = "x86_64")) => {}
                [] => {}
                ["avx512f"] => assert!(!name.contains("avx512"), "{name}"),
                _ => assert_eq!(name, "block-twosum", "{mask:?}"),
            }
            let chosen = Chosen::<f64>::on(lacking(mask));
            let xs: Vec<f64> = (0..5000).map(|i| f64::from(i) * 0.37).collect();
            assert_eq!((chosen.sum)(&xs), exact(&xs), "{mask:?}");
            let mut sum = Exact::new();
            (chosen.add_exactly)(&mut sum, &xs);
            assert_eq!(sum.round(), exact(&xs), "{mask:?}");
            let ones = vec![1.0; xs.len()];
            assert_eq!((chosen.dot)(&xs, &ones), exact(&xs), "{mask:?}");
            let (distances, squares) = (chosen.distances)(&ones, 0.5);
            assert_eq!((distances, squares), (2500.0, 1250.0), "{mask:?}");
        }
    }
}
