//! The types of number that can be summed.

use std::sync::OnceLock;

use super::table;
use super::variant::Variant;
use super::vector::Vector;
#[cfg(target_arch = "x86_64")]
use super::vector::Widen;

/// A number that can be summed: `f32` or `f64`. Both are summed into `f64`.
///
/// ```
/// use ascertain_numeric::sum::Element;
///
/// for variant in f32::VARIANTS {
///     println!("{}: {} {:?}", variant.name, variant.about, variant.is_available());
/// }
/// ```
pub trait Element: Load + Into<f64> {
    /// Every variant, under the same names for each type and on every machine, also where it
    /// [cannot run](Variant::is_available).
    const VARIANTS: &'static [Variant<Self>];

    /// The variant of this name.
    fn variant(name: &str) -> Option<&'static Variant<Self>> {
        Self::VARIANTS.iter().find(|variant| variant.name == name)
    }
}

impl Element for f32 {
    const VARIANTS: &'static [Variant<f32>] = table::variants();
}

impl Element for f64 {
    const VARIANTS: &'static [Variant<f64>] = table::variants();
}

/// The part of [`Element`] that is not for users, which also keeps others from implementing it.
pub trait Load: Copy + 'static {
    /// How many registers may be added plainly before the error is looked at: a power of two. One where every addition
    /// rounds off.
    const BLOCK: usize;

    /// The widened numbers at `from`, one a lane.
    ///
    /// # Safety
    /// The CPU has the instructions of `V`, and `V::LANES` numbers are readable.
    unsafe fn load<V: Vector>(from: *const Self) -> V;

    /// The first `count` (1 to `V::LANES`) widened numbers at `from`, then −0.0.
    ///
    /// # Safety
    /// The CPU has the instructions of `V`, and `count` numbers are readable.
    unsafe fn load_partial<V: Vector>(from: *const Self, count: usize) -> V;

    /// The sum of `BLOCK` registers at `from`; for `f32` unspecified where a number is not finite, which `poison` tells.
    ///
    /// # Safety
    /// The CPU has the instructions of `V`, and `BLOCK` × `V::LANES` numbers are readable.
    #[cfg(target_arch = "x86_64")]
    unsafe fn sum_block<V: Widen>(from: *const Self, poison: &mut V::Poison) -> V;

    /// Where the plain call keeps the function that it chose for this machine.
    fn chosen() -> &'static OnceLock<fn(&[Self]) -> f64>;
}

impl Load for f32 {
    const BLOCK: usize = 16;

    #[inline(always)]
    unsafe fn load<V: Vector>(from: *const f32) -> V {
        // SAFETY: the same contract.
        unsafe { V::load_f32(from) }
    }

    #[inline(always)]
    unsafe fn load_partial<V: Vector>(from: *const f32, count: usize) -> V {
        // SAFETY: the same contract.
        unsafe { V::load_partial_f32(from, count) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn sum_block<V: Widen>(from: *const f32, poison: &mut V::Poison) -> V {
        // SAFETY: the same contract.
        unsafe { V::sum_block_f32(from, poison) }
    }

    fn chosen() -> &'static OnceLock<fn(&[f32]) -> f64> {
        static CHOSEN: OnceLock<fn(&[f32]) -> f64> = OnceLock::new();
        &CHOSEN
    }
}

impl Load for f64 {
    const BLOCK: usize = 1;

    #[inline(always)]
    unsafe fn load<V: Vector>(from: *const f64) -> V {
        // SAFETY: the same contract.
        unsafe { V::load_f64(from) }
    }

    #[inline(always)]
    unsafe fn load_partial<V: Vector>(from: *const f64, count: usize) -> V {
        // SAFETY: the same contract.
        unsafe { V::load_partial_f64(from, count) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn sum_block<V: Widen>(from: *const f64, _poison: &mut V::Poison) -> V {
        // SAFETY: the same contract.
        unsafe { V::load_f64(from) }
    }

    fn chosen() -> &'static OnceLock<fn(&[f64]) -> f64> {
        static CHOSEN: OnceLock<fn(&[f64]) -> f64> = OnceLock::new();
        &CHOSEN
    }
}
