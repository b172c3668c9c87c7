//! The functions that the plain calls take on this machine.

use super::arch;
#[cfg(target_arch = "x86_64")]
use super::arch::{AVX2, AVX512};
use super::dot::Dot2;
use super::element::Element;
use super::exact::Exact;
#[cfg(target_arch = "x86_64")]
use crate::features::first_missing;

/// What [`sum`](super::sum()) takes, the first that the machine has: accurate first, fast second. The names are those of
/// both types; for `f64` the blocks are single numbers.
const SUMS: &[(&str, u32)] =
    &[("block-twosum-avx512-bits", 2), ("block-twosum-avx2", 2), ("block-twosum-neon", 2), ("block-twosum", 2)];

/// One function for each plain call.
pub struct Chosen<T: 'static> {
    pub sum: fn(&[T]) -> f64,
    pub add_exactly: fn(&mut Exact, &[T]),
    pub dot: fn(&[T], &[T]) -> f64,
    pub distances: fn(&[T], f64) -> (f64, f64),
}

/// The functions of an instruction set, which the machine has.
macro_rules! with {
    ($arch:ident) => {
        Chosen {
            sum: sum(),
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
        #[cfg(target_arch = "x86_64")]
        {
            if first_missing(AVX512).is_none() {
                return with!(avx512);
            }
            if first_missing(AVX2).is_none() {
                return with!(avx2);
            }
        }
        #[cfg(target_arch = "aarch64")]
        return with!(neon);
        #[cfg(not(target_arch = "aarch64"))]
        Chosen {
            sum: sum(),
            add_exactly: arch::scalar::add_exactly,
            dot: arch::scalar::dot::<Dot2, T, 4>,
            distances: arch::scalar::distances,
        }
    }
}

fn sum<T: Element>() -> fn(&[T]) -> f64 {
    SUMS.iter()
        .find_map(|&(name, accumulators)| T::variant(name)?.function(accumulators))
        .expect("the scalar variant runs on every machine")
}
