//! The integers that can be written.

/// Integers of up to 64 bits: `u8` to `u64`, `i8` to `i64`, `usize` and `isize`. There is no method for 128 bits.
pub trait Integer: Sealed + Copy {
    /// The bytes that a text may need: as many as the longest of 32 bits has, 10 or 11 with the sign, also for narrower
    /// integers; of 64 bits, and of `usize` and `isize`, 20.
    const MOST_BYTES: usize = Self::MOST_DIGITS + Self::IS_SIGNED as usize;
}

impl<T: Sealed + Copy> Integer for T {}

/// The part of [`Integer`] that is not for users, which also keeps others from implementing it.
pub trait Sealed {
    /// The digits of the largest magnitude, of one that is written as such a type.
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
    u8, 10, false, |_| false, u64::from;
    u16, 10, false, |_| false, u64::from;
    u32, 10, false, |_| false, u64::from;
    u64, 20, false, |_| false, |x| x;
    usize, 20, false, |_| false, |x| x as u64;
    i8, 10, true, i8::is_negative, |x: i8| u64::from(x.unsigned_abs());
    i16, 10, true, i16::is_negative, |x: i16| u64::from(x.unsigned_abs());
    i32, 10, true, i32::is_negative, |x: i32| u64::from(x.unsigned_abs());
    i64, 19, true, i64::is_negative, i64::unsigned_abs;
    isize, 19, true, isize::is_negative, |x: isize| x.unsigned_abs() as u64;
}
