//! The functions that the plain calls take on this machine.

use super::arch;
#[cfg(target_arch = "aarch64")]
use super::arch::NEON;
#[cfg(target_arch = "x86_64")]
use super::arch::{AVX2, AVX512};
use super::dot::Dot2;
use super::element::Element;
use super::exact::Exact;
use super::variant::Variant;
use crate::features::first_missing;

/// What [`sum`](super::sum()) takes, the first that the machine has: accurate first, fast second. The names are those of
/// both types; for `f64` the blocks are single numbers.
const SUMS: &[&str] = &["block-twosum-avx512-bits", "block-twosum-avx2", "block-twosum-neon", "block-twosum"];

/// One function for each plain call.
pub struct Chosen<T: 'static> {
    pub sum: fn(&[T]) -> f64,
    pub add_exactly: fn(&mut Exact, &[T]),
    pub dot: fn(&[T], &[T]) -> f64,
    pub distances: fn(&[T], f64) -> (f64, f64),
}

/// The functions of an instruction set, which the machine has.
macro_rules! with {
    ($arch:ident, $sum:expr) => {
        Chosen {
            sum: $sum,
            // SAFETY: the machine has the instructions, here as below.
            add_exactly: |sum, xs| unsafe { arch::$arch::add_exactly(sum, xs) },
            // SAFETY: as above.
            dot: |xs, ys| unsafe { arch::$arch::dot::<Dot2, T, 4>(xs, ys) },
            // SAFETY: as above.
            distances: |xs, centre| unsafe { arch::$arch::distances(xs, centre) },
        }
    };
}

impl<T: Element> Chosen<T> {
    /// For this machine.
    pub fn new() -> Self {
        Chosen::on(|required| first_missing(required).is_none())
    }

    /// For a machine that has the features that `has` says, all of which this one must have.
    fn on(has: impl Fn(&[&'static str]) -> bool) -> Self {
        let variant = variant::<T>(&has);
        // A block is chain enough.
        let accumulators = if T::BLOCK > 1 { 2 } else { 4 };
        let sum = variant.function(accumulators).expect("the machine has it, and all come with so many");
        #[cfg(target_arch = "x86_64")]
        {
            if has(AVX512) {
                return with!(avx512, sum);
            }
            if has(AVX2) {
                return with!(avx2, sum);
            }
        }
        #[cfg(target_arch = "aarch64")]
        if has(NEON) {
            return with!(neon, sum);
        }
        Chosen {
            sum,
            add_exactly: arch::scalar::add_exactly,
            dot: arch::scalar::dot::<Dot2, T, 4>,
            distances: arch::scalar::distances,
        }
    }
}

fn variant<T: Element>(has: impl Fn(&[&'static str]) -> bool) -> &'static Variant<T> {
    let mut variants = SUMS.iter().filter_map(|name| T::variant(name));
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
            let name = variant::<f32>(lacking(mask)).name;
            match mask {
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
