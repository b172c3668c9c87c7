//! One number at a time, on every machine.

use crate::simd::Eight;
use crate::sum::method::OnAdders;
use crate::sum::vector::Vector;

super::entries!(f64, inline);
super::exact_entry!(f64, inline);

impl Vector for f64 {
    type Part = Self;
    type Subtraction = OnAdders;

    #[inline(always)]
    fn parts(&mut self) -> &mut [Self] {
        std::slice::from_mut(self)
    }
}

/// Eight lanes of one number each.
pub mod by_eight {
    use super::Eight;

    crate::sum::arch::entries!(Eight<f64, 8>, inline);
    crate::sum::arch::distances_entry!(Eight<f64, 8>, inline);
}
