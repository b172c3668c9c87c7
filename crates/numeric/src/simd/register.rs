//! Operations on vector registers, with which each method is written once for all instruction sets. A register of eight
//! lanes is available on any CPU; it may consist of several CPU registers.

/// The largest number of lanes of any register.
pub const MAX_LANES: usize = 8;

/// A register of `f64` lanes; [`f64`] itself is the register of one lane.
///
/// # Safety
/// Every function here may be called only on a CPU that has the register's instructions, and is
/// fast only when inlined into a function that enables them.
pub trait Register: Copy {
    /// Number of `f64` lanes in the register.
    const LANES: usize;

    /// Returns `value` in every lane.
    unsafe fn splat(value: f64) -> Self;

    /// Returns the numbers 0, 1, 2, … in the lanes.
    unsafe fn counting() -> Self;

    /// Loads the `LANES` numbers at `from`, which must be readable; no alignment is needed.
    unsafe fn load_f64(from: *const f64) -> Self;

    /// Loads the `LANES` numbers at `from` and widens them.
    unsafe fn load_f32(from: *const f32) -> Self;

    /// Loads the first `count` (1 to `LANES`) numbers at `from`, and reads nothing after them. The other lanes get
    /// −0.0, which does not change any number it is added to.
    unsafe fn load_partial_f64(from: *const f64, count: usize) -> Self;

    /// Loads as [`Register::load_partial_f64`] does, and widens the numbers.
    unsafe fn load_partial_f32(from: *const f32, count: usize) -> Self;

    /// Writes the lanes to `to`, which must be writable; no alignment is needed.
    unsafe fn store(self, to: *mut f64);

    /// Writes the first `count` (1 to `LANES`) lanes to `to`, and nothing after them.
    unsafe fn store_partial(self, to: *mut f64, count: usize);

    /// Returns `self + other`, rounded once.
    unsafe fn add(self, other: Self) -> Self;

    /// Returns `self - other`, rounded once.
    unsafe fn sub(self, other: Self) -> Self;

    /// Returns `self * other`, rounded once.
    unsafe fn mul(self, other: Self) -> Self;

    /// Returns `self * factor + other`, rounded once if the CPU has an instruction for it, otherwise twice.
    unsafe fn mul_add(self, factor: Self, other: Self) -> Self;

    /// Returns `self * factor - other`, rounded once. If the CPU has no instruction for this (x86-64 without FMA, for
    /// example), the result is the same, but the calculation is slow.
    unsafe fn mul_sub(self, factor: Self, other: Self) -> Self;

    /// Returns the rounding error of `product`, which must be `self * factor`, rounded once. The error is exact unless
    /// the product overflows, or is so small that its error underflows.
    #[inline(always)]
    unsafe fn product_error(self, factor: Self, product: Self) -> Self {
        // SAFETY: the caller guarantees the same conditions.
        unsafe { self.mul_sub(factor, product) }
    }

    /// Sorts each lane of two registers by magnitude: the first result has the larger numbers, the second the smaller
    /// ones.
    unsafe fn by_magnitude(self, other: Self) -> (Self, Self);

    /// Returns the lanes in the order of memory, followed by unspecified values up to [`MAX_LANES`].
    unsafe fn to_lanes(self) -> [f64; MAX_LANES];

    /// Returns the sum of the lanes: the upper half is added to the lower half until one lane is left.
    #[inline(always)]
    unsafe fn sum_lanes(self) -> f64 {
        // SAFETY: the caller guarantees the same conditions.
        let mut lanes = unsafe { self.to_lanes() };
        let mut width = Self::LANES;
        while width > 1 {
            width /= 2;
            for i in 0..width {
                lanes[i] += lanes[i + width];
            }
        }
        lanes[0]
    }
}

/// Defines the functions of a register. There are two forms. One enables the given CPU features, which the caller
/// guarantees. The other needs only features that every CPU has, and its functions are always inlined.
macro_rules! with_instructions {
    (none $(unsafe fn $name:ident($($arguments:tt)*) $(-> $result:ty)? $body:block)*) => {
        $(#[inline(always)]
        unsafe fn $name($($arguments)*) $(-> $result)? $body)*
    };
    ($features:literal $(unsafe fn $name:ident($($arguments:tt)*) $(-> $result:ty)? $body:block)*) => {
        $(#[inline]
        #[target_feature(enable = $features)]
        unsafe fn $name($($arguments)*) $(-> $result)? $body)*
    };
}
pub(super) use with_instructions;

/// Eight numbers in `PARTS` registers of type `V`, the first numbers in the first register. Lanes are added in the
/// order of an AVX-512 register, so results have the same bits as with AVX-512.
#[derive(Clone, Copy)]
pub struct Eight<V, const PARTS: usize>(pub [V; PARTS]);

/// Defines operations of [`Eight`] that are applied to each of its registers.
macro_rules! each_part {
    ($(unsafe fn $name:ident(self $(, $other:ident)*);)*) => {
        $(#[inline(always)]
        unsafe fn $name(mut self $(, $other: Self)*) -> Self {
            for i in 0..PARTS {
                // SAFETY: the caller guarantees the same conditions.
                self.0[i] = unsafe { self.0[i].$name($($other.0[i]),*) };
            }
            self
        })*
    };
}

/// Defines the loads of [`Eight`] from one type of number, register by register.
macro_rules! loads {
    ($($load:ident, $load_partial:ident of $number:ty;)*) => {
        $(#[inline(always)]
        unsafe fn $load(from: *const $number) -> Self {
            // SAFETY: the caller promises eight readable numbers.
            unsafe {
                let mut all = Self::splat(0.0);
                for (part, lanes) in all.0.iter_mut().enumerate() {
                    *lanes = V::$load(from.add(part * V::LANES));
                }
                all
            }
        }

        #[inline(always)]
        unsafe fn $load_partial(from: *const $number, count: usize) -> Self {
            // SAFETY: only the first `count` numbers are read, which the caller promises.
            unsafe {
                let mut all = Self::splat(-0.0);
                for (part, lanes) in all.0.iter_mut().enumerate() {
                    let here = Self::count_in(part, count);
                    if here > 0 {
                        *lanes = V::$load_partial(from.add(part * V::LANES), here);
                    }
                }
                all
            }
        })*
    };
}

impl<V: Register, const PARTS: usize> Eight<V, PARTS> {
    /// Returns how many of the first `count` numbers are in the register with the index `part`.
    const fn count_in(part: usize, count: usize) -> usize {
        let left = count.saturating_sub(part * V::LANES);
        if left < V::LANES { left } else { V::LANES }
    }
}

impl<V: Register, const PARTS: usize> Register for Eight<V, PARTS> {
    const LANES: usize = {
        assert!(PARTS * V::LANES == MAX_LANES);
        MAX_LANES
    };

    each_part! {
        unsafe fn add(self, other);
        unsafe fn sub(self, other);
        unsafe fn mul(self, other);
        unsafe fn mul_add(self, factor, other);
        unsafe fn mul_sub(self, factor, other);
    }

    #[inline(always)]
    unsafe fn splat(value: f64) -> Self {
        // SAFETY: the caller guarantees the same conditions, here and below.
        Eight([unsafe { V::splat(value) }; PARTS])
    }

    #[inline(always)]
    unsafe fn counting() -> Self {
        // SAFETY: as above.
        unsafe {
            let mut all = Self::splat(0.0);
            for (part, lanes) in all.0.iter_mut().enumerate() {
                *lanes = V::counting().add(V::splat((part * V::LANES) as f64));
            }
            all
        }
    }

    loads! {
        load_f64, load_partial_f64 of f64;
        load_f32, load_partial_f32 of f32;
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f64) {
        for (part, lanes) in self.0.into_iter().enumerate() {
            // SAFETY: the caller promises room for eight numbers.
            unsafe { lanes.store(to.add(part * V::LANES)) }
        }
    }

    #[inline(always)]
    unsafe fn store_partial(self, to: *mut f64, count: usize) {
        for (part, lanes) in self.0.into_iter().enumerate() {
            let here = Self::count_in(part, count);
            if here > 0 {
                // SAFETY: only the first `count` numbers are written, for which the caller promises room.
                unsafe { lanes.store_partial(to.add(part * V::LANES), here) }
            }
        }
    }

    #[inline(always)]
    unsafe fn by_magnitude(mut self, mut other: Self) -> (Self, Self) {
        for i in 0..PARTS {
            // SAFETY: the caller guarantees the same conditions.
            (self.0[i], other.0[i]) = unsafe { self.0[i].by_magnitude(other.0[i]) };
        }
        (self, other)
    }

    #[inline(always)]
    unsafe fn to_lanes(self) -> [f64; MAX_LANES] {
        let mut lanes = [0.0; MAX_LANES];
        // SAFETY: the array has room for eight numbers.
        unsafe { self.store(lanes.as_mut_ptr()) };
        lanes
    }
}
