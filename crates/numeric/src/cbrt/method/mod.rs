//! The methods of the integer cube root that TCP's congestion control went through, after Hemminger and
//! Tarreau (2007), written afresh from what they say of them.

mod bitwise;
mod libm;
mod newton;
mod tabled;

pub use bitwise::{acbrt, hcbrt};
pub use libm::libm;
pub use newton::{bictcp, div0, div1, div2, div3, ncubic, ncubic32, ncubic32_1, ndiv3, ocubic};
pub use tabled::{tab0, tab1};

use super::length::leading_zeros;

/// How many bits a number has; zero is taken for one.
#[inline(always)]
fn bits(x: u64) -> u32 {
    64 - leading_zeros(x | 1)
}
