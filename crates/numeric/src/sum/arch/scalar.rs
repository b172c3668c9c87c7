//! One number at a time, on every machine.

use crate::sum::method::OnAdders;
use crate::sum::vector::Vector;

super::entries!(f64, inline);

impl Vector for f64 {
    type Subtraction = OnAdders;
}
