//! NEON: two numbers at a time.

use std::arch::aarch64::*;

use crate::sum::method::OnAdders;
use crate::sum::vector::Vector;

super::entries!(float64x2_t, target_feature(enable = "neon"));

impl Vector for float64x2_t {
    type Subtraction = OnAdders;
}
