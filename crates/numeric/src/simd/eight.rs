//! Eight lanes in whatever registers the CPU has.

use super::register::{MAX_LANES, Register};

/// Eight numbers in `PARTS` registers, the first numbers in the first: what is calculated in it is calculated in the order
/// of an AVX-512 register, and has the same bits.
#[derive(Clone, Copy)]
pub struct Eight<V, const PARTS: usize>(pub [V; PARTS]);

/// One operation, part by part.
macro_rules! each_part {
    ($(unsafe fn $name:ident(self $(, $other:ident)*);)*) => {
        $(#[inline(always)]
        unsafe fn $name(mut self $(, $other: Self)*) -> Self {
            for i in 0..PARTS {
                // SAFETY: the same contract.
                self.0[i] = unsafe { self.0[i].$name($($other.0[i]),*) };
            }
            self
        })*
    };
}

impl<V: Register, const PARTS: usize> Eight<V, PARTS> {
    /// How many of the first `count` numbers a part holds.
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
        // SAFETY: the same contract, here as below.
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

    #[inline(always)]
    unsafe fn load_f64(from: *const f64) -> Self {
        // SAFETY: the caller promises eight readable numbers.
        unsafe {
            let mut all = Self::splat(0.0);
            for (part, lanes) in all.0.iter_mut().enumerate() {
                *lanes = V::load_f64(from.add(part * V::LANES));
            }
            all
        }
    }

    #[inline(always)]
    unsafe fn load_f32(from: *const f32) -> Self {
        // SAFETY: the caller promises eight readable numbers.
        unsafe {
            let mut all = Self::splat(0.0);
            for (part, lanes) in all.0.iter_mut().enumerate() {
                *lanes = V::load_f32(from.add(part * V::LANES));
            }
            all
        }
    }

    #[inline(always)]
    unsafe fn load_partial_f64(from: *const f64, count: usize) -> Self {
        // SAFETY: only the first `count` numbers are read, which the caller promises.
        unsafe {
            let mut all = Self::splat(-0.0);
            for (part, lanes) in all.0.iter_mut().enumerate() {
                let here = Self::count_in(part, count);
                if here > 0 {
                    *lanes = V::load_partial_f64(from.add(part * V::LANES), here);
                }
            }
            all
        }
    }

    #[inline(always)]
    unsafe fn load_partial_f32(from: *const f32, count: usize) -> Self {
        // SAFETY: as above.
        unsafe {
            let mut all = Self::splat(-0.0);
            for (part, lanes) in all.0.iter_mut().enumerate() {
                let here = Self::count_in(part, count);
                if here > 0 {
                    *lanes = V::load_partial_f32(from.add(part * V::LANES), here);
                }
            }
            all
        }
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
            // SAFETY: the same contract.
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
