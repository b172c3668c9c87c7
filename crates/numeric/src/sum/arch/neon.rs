//! NEON: two numbers at a time.

use std::arch::aarch64::*;

use crate::simd::Eight;
use crate::sum::method::OnAdders;
use crate::sum::vector::Vector;

super::entries!(float64x2_t, target_feature(enable = "neon"));
super::exact_entry!(float64x2_t, target_feature(enable = "neon"));

impl Vector for float64x2_t {
    type Part = Self;
    type Subtraction = OnAdders;

    #[inline(always)]
    fn parts(&mut self) -> &mut [Self] {
        std::slice::from_mut(self)
    }
}

/// Eight lanes in four registers.
pub mod by_eight {
    use super::{Eight, float64x2_t};

    crate::sum::arch::entries!(Eight<float64x2_t, 4>, target_feature(enable = "neon"));
    crate::sum::arch::distances_entry!(Eight<float64x2_t, 4>, target_feature(enable = "neon"));
}
