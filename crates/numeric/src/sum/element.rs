//! The types of number that can be summed.

use super::chosen::Chosen;
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
    /// Every variant, under the same names for each type and on every machine, also where it
    /// [cannot run](Variant::is_available).
    const VARIANTS: &'static [Variant<Self>];

    /// Every variant of the dot product.
    const DOT_VARIANTS: &'static [DotVariant<Self>];

    /// The variant of this name.
    fn variant(name: &str) -> Option<&'static Variant<Self>> {
        Self::VARIANTS.iter().find(|variant| variant.name == name)
    }
}

macro_rules! elements {
    ($($number:ty),*) => {
        $(impl Element for $number {
            // Each list is a static, so that its kernels are compiled once, in this crate. The kernels of a constant
            // would be compiled again in every crate that sums.
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

/// What iterators of numbers give: an [`Element`], or a reference to one.
pub trait Term {
    /// The type of the number.
    type Element: Element;

    /// The number.
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

/// The part of [`Element`] that is not for users, which also keeps others from implementing it.
pub trait Load: Copy + 'static {
    /// 1.
    const ONE: Self;

    /// How many registers may be added plainly before the error is looked at: a power of two. One where every addition
    /// rounds off.
    const BLOCK: usize;

    /// Whether a product of two is exact in `f64`.
    const EXACT_PRODUCTS: bool;

    /// Bits of a significand, the implicit one included.
    const SIGNIFICAND_BITS: i32;

    /// The exponents of these numbers.
    fn exponents(xs: &[Self]) -> Exponents;

    /// As [`Vector::sum_units_f32`]; none for `f64`, whose significands leave integers of 64 bits no room.
    ///
    /// # Safety
    /// The CPU has the instructions of `V`.
    #[inline(always)]
    unsafe fn sum_units<V: Vector>(_xs: &[Self], _unit: i32) -> Option<UnitSum> {
        None
    }

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

    /// The sum of `BLOCK` registers at `from`; for `f32` unspecified where a number is not finite, which `poison`
    /// tells.
    ///
    /// # Safety
    /// The CPU has the instructions of `V`, and `BLOCK` × `V::LANES` numbers are readable.
    #[cfg(target_arch = "x86_64")]
    unsafe fn sum_block<V: Widen>(from: *const Self, poison: &mut V::Poison) -> V;

    /// The functions for this machine.
    fn chosen() -> &'static Chosen<Self>;
}

/// What the two types do alike, each by the loads of its own.
macro_rules! alike {
    ($number:ty as $signed:ty, $unsigned:ty: $exponents:ident, $load:ident, $load_partial:ident) => {
        const ONE: $number = 1.0;
        const SIGNIFICAND_BITS: i32 = <$number>::MANTISSA_DIGITS as i32;

        #[inline(always)]
        fn exponents(xs: &[$number]) -> Exponents {
            // Plain loops over whole numbers, which the compiler turns into what the CPU has. Less one, so that a zero
            // is the greatest to one and the least to the other.
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
            // SAFETY: the same contract.
            unsafe { V::$load(from) }
        }

        #[inline(always)]
        unsafe fn load_partial<V: Vector>(from: *const $number, count: usize) -> V {
            // SAFETY: the same contract.
            unsafe { V::$load_partial(from, count) }
        }

        fn chosen() -> &'static Chosen<$number> {
            static CHOSEN: Chosen<$number> = Chosen::new();
            &CHOSEN
        }
    };
}

impl Load for f32 {
    const BLOCK: usize = 32;
    const EXACT_PRODUCTS: bool = true;

    alike!(f32 as i32, u32: of_f32, load_f32, load_partial_f32);

    #[inline(always)]
    unsafe fn sum_units<V: Vector>(xs: &[f32], unit: i32) -> Option<UnitSum> {
        // SAFETY: the same contract.
        unsafe { V::sum_units_f32(xs, unit) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn sum_block<V: Widen>(from: *const f32, poison: &mut V::Poison) -> V {
        // SAFETY: the same contract.
        unsafe { V::sum_block_f32(from, poison) }
    }
}

impl Load for f64 {
    const BLOCK: usize = 1;
    const EXACT_PRODUCTS: bool = false;

    alike!(f64 as i64, u64: of_f64, load_f64, load_partial_f64);

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn sum_block<V: Widen>(from: *const f64, _poison: &mut V::Poison) -> V {
        // SAFETY: the same contract.
        unsafe { V::load_f64(from) }
    }
}
