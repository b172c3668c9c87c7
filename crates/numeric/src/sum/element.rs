//! The types of number that can be summed.

use super::chosen::FastestFunctions;
use super::dot::{self, DotVariant};
use super::exact::{Exponents, UnitSum};
use super::variants::{self, Variant};
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
pub trait Element: Load + Into<f64> + Term<Element = Self> {
    /// All variants, with the same names for each type and on every machine. They include those that this machine
    /// [cannot run](Variant::is_available).
    const VARIANTS: &'static [Variant<Self>];

    /// All variants of the dot product.
    const DOT_VARIANTS: &'static [DotVariant<Self>];

    /// Returns the variant with this name, such as `kahan-avx512`.
    fn variant(name: &str) -> Option<&'static Variant<Self>> {
        Self::VARIANTS.iter().find(|variant| variant.name == name)
    }
}

macro_rules! elements {
    ($($number:ty),*) => {
        $(impl Element for $number {
            // Each list is a static, so that its kernels are compiled once, in this crate. With a constant, every crate
            // that computes sums would compile the kernels again.
            const VARIANTS: &'static [Variant<$number>] = {
                const ALL: &[Variant<$number>] = variants::variants();
                static VARIANTS: [Variant<$number>; ALL.len()] = *ALL.first_chunk().unwrap();
                &VARIANTS
            };

            const DOT_VARIANTS: &'static [DotVariant<$number>] = {
                const ALL: &[DotVariant<$number>] = dot::variants();
                static VARIANTS: [DotVariant<$number>; ALL.len()] = *ALL.first_chunk().unwrap();
                &VARIANTS
            };
        })*
    };
}
elements!(f32, f64);

/// An item of an iterator of numbers: an [`Element`], or a reference to one.
pub trait Term {
    /// Type of the number, `f32` or `f64`.
    type Element: Element;

    /// Returns the number itself, or the number behind the reference.
    fn element(self) -> Self::Element;
}

macro_rules! terms {
    ($($type:ty),*) => {
        $(impl Term for $type {
            type Element = $type;

            #[inline]
            fn element(self) -> $type {
                self
            }
        }

        impl Term for &$type {
            type Element = $type;

            #[inline]
            fn element(self) -> $type {
                *self
            }
        })*
    };
}
terms!(f32, f64);

/// The items of [`Element`] that are hidden from users. This trait also prevents other crates from implementing
/// `Element`.
pub trait Load: Copy + 'static {
    /// Two numbers whose exponents differ as much as those in many data do. The time of an exact sum depends on this.
    const VARIED: [Self; 2];

    /// Number of registers that are added without compensation before their rounding error is computed. It is a power
    /// of two. For `f64` it is 1: every addition may round, so every rounding error is computed.
    const BLOCK: usize;

    /// `true` if the product of two numbers is exact in `f64`.
    const EXACT_PRODUCTS: bool;

    /// Number of bits of a significand, including the implicit bit.
    const SIGNIFICAND_BITS: i32;

    /// Returns the range of the numbers' exponents.
    fn exponents(xs: &[Self]) -> Exponents;

    /// Sums as [`Vector::sum_units_f32`] does. Returns `None` for `f64`: its significands are too long for sums in
    /// 64-bit integers.
    ///
    /// # Safety
    /// The CPU must have the instructions of `V`.
    #[inline(always)]
    unsafe fn sum_units<V: Vector>(_xs: &[Self], _unit: i32) -> Option<UnitSum> {
        None
    }

    /// Loads the numbers at `from` and widens them, one per lane.
    ///
    /// # Safety
    /// The CPU must have the instructions of `V`, and `V::LANES` numbers must be readable.
    unsafe fn load<V: Vector>(from: *const Self) -> V;

    /// Loads and widens the first `count` (1 to `V::LANES`) numbers at `from`. The other lanes are −0.0.
    ///
    /// # Safety
    /// The CPU must have the instructions of `V`, and `count` numbers must be readable.
    unsafe fn load_partial<V: Vector>(from: *const Self, count: usize) -> V;

    /// Returns the sum of the `BLOCK` registers at `from`. If an `f32` is not finite, the result is unspecified, and
    /// `poison` becomes NaN.
    ///
    /// # Safety
    /// The CPU must have the instructions of `V`, and `BLOCK` × `V::LANES` numbers must be readable.
    #[cfg(target_arch = "x86_64")]
    unsafe fn sum_block<V: Widen>(from: *const Self, poison: &mut V::Poison) -> V;

    /// Returns the functions that are the fastest on this machine, each chosen at its first call.
    fn fastest() -> &'static FastestFunctions<Self>;
}

/// Implements the items that `f32` and `f64` share, each with the loads of its type.
macro_rules! alike {
    ($number:ty as $signed:ty, $unsigned:ty: $exponents:ident, $load:ident, $load_partial:ident) => {
        const VARIED: [$number; 2] = [1.0, 16_777_216.0];
        const SIGNIFICAND_BITS: i32 = <$number>::MANTISSA_DIGITS as i32;

        #[inline(always)]
        fn exponents(xs: &[$number]) -> Exponents {
            // These are plain loops over integers, which the compiler vectorises. One is subtracted so that the bits of
            // a zero wrap around. As a signed integer a zero is then never the greatest, and as an unsigned integer
            // never the least.
            let (mut greatest, mut least) = (-1, <$unsigned>::MAX);
            for x in xs {
                let less_one = x.abs().to_bits().wrapping_sub(1);
                greatest = <$signed>::max(greatest, less_one.cast_signed());
                least = least.min(less_one);
            }
            Exponents::$exponents(greatest, least)
        }

        #[inline(always)]
        unsafe fn load<V: Vector>(from: *const $number) -> V {
            // SAFETY: the caller guarantees the same conditions.
            unsafe { V::$load(from) }
        }

        #[inline(always)]
        unsafe fn load_partial<V: Vector>(from: *const $number, count: usize) -> V {
            // SAFETY: the caller guarantees the same conditions.
            unsafe { V::$load_partial(from, count) }
        }

        fn fastest() -> &'static FastestFunctions<$number> {
            static FASTEST: FastestFunctions<$number> = FastestFunctions::new();
            &FASTEST
        }
    };
}

impl Load for f32 {
    const BLOCK: usize = 32;
    const EXACT_PRODUCTS: bool = true;

    alike!(f32 as i32, u32: from_f32, load_f32, load_partial_f32);

    #[inline(always)]
    unsafe fn sum_units<V: Vector>(xs: &[f32], unit: i32) -> Option<UnitSum> {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { V::sum_units_f32(xs, unit) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn sum_block<V: Widen>(from: *const f32, poison: &mut V::Poison) -> V {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { V::sum_block_f32(from, poison) }
    }
}

impl Load for f64 {
    const BLOCK: usize = 1;
    const EXACT_PRODUCTS: bool = false;

    alike!(f64 as i64, u64: from_f64, load_f64, load_partial_f64);

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn sum_block<V: Widen>(from: *const f64, _poison: &mut V::Poison) -> V {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { V::load_f64(from) }
    }
}
