//! What `core` has not: the standard library's, or without it the crate `libm`'s, which rounds the same.

#[cfg(feature = "std")]
mod imp {
    #[inline(always)]
    pub(crate) fn mul_add(x: f64, factor: f64, term: f64) -> f64 {
        x.mul_add(factor, term)
    }

    #[inline(always)]
    pub(crate) fn cbrt(x: f64) -> f64 {
        x.cbrt()
    }

    #[inline(always)]
    pub(crate) fn round(x: f64) -> f64 {
        x.round()
    }
}

#[cfg(not(feature = "std"))]
mod imp {
    pub(crate) use libm::{cbrt, fma as mul_add, round};
}

pub(crate) use imp::{cbrt, mul_add, round};
