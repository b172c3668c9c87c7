//! The integers that can be written.

/// `u32`, `u64`, `i32` or `i64`.
pub trait Integer: Sealed + Copy {
    /// The bytes that the longest text has: 10, 20, 11 (with the sign) and 20.
    const MOST_BYTES: usize = Self::MOST_DIGITS + Self::IS_SIGNED as usize;
}

impl<T: Sealed + Copy> Integer for T {}

/// The part of [`Integer`] that is not for users, which also keeps others from implementing it.
pub trait Sealed {
    /// The digits of the largest magnitude.
    const MOST_DIGITS: usize;
    /// Whether there are numbers below zero.
    const IS_SIGNED: bool;

    /// Whether it is below zero, and its magnitude.
    fn parts(self) -> (bool, u64);
}

macro_rules! integer {
    ($($type:ty, $digits:literal, $is_signed:literal, $is_negative:expr, $magnitude:expr;)*) => {
        $(impl Sealed for $type {
            const MOST_DIGITS: usize = $digits;
            const IS_SIGNED: bool = $is_signed;

            #[inline(always)]
            fn parts(self) -> (bool, u64) {
                ($is_negative(self), $magnitude(self))
            }
        })*
    };
}
integer! {
    u32, 10, false, |_| false, u64::from;
    u64, 20, false, |_| false, |x| x;
    i32, 10, true, i32::is_negative, |x: i32| u64::from(x.unsigned_abs());
    i64, 19, true, i64::is_negative, i64::unsigned_abs;
}
