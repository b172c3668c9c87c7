//! The operators on values, and on ranges of values that were cut off.

use crate::expression::Binary;
use crate::graph::Joined;
use crate::run::state::{REMOVED, UNDECIDED};

/// Computes an operator on two values. A condition is 1, 0 or null.
#[inline(always)]
pub(crate) fn value(operator: Binary, factor: f64, a: f64, b: f64) -> f64 {
    let truth = |is_true: bool| if a.is_nan() || b.is_nan() { f64::NAN } else { f64::from(u8::from(is_true)) };
    match operator {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b * factor,
        Binary::Divide => a / b * factor,
        Binary::Less => truth(a < b),
        Binary::LessOrEqual => truth(a <= b),
        Binary::Greater => truth(a > b),
        Binary::GreaterOrEqual => truth(a >= b),
        Binary::Equal => truth(a == b),
        Binary::NotEqual => truth(a != b),
        // A side that decides alone decides even if the other one is null.
        Binary::And if a == 0.0 || b == 0.0 => 0.0,
        Binary::And => a * b,
        Binary::Or if a == 1.0 || b == 1.0 => 1.0,
        Binary::Or => a + b,
    }
}

/// Computes an operator on two ranges `[low, high]`.
pub(crate) fn range(operator: Binary, factor: f64, a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    if a[0] == a[1] && b[0] == b[1] {
        return [value(operator, factor, a[0], b[0]); 2];
    }
    if matches!(operator, Binary::And | Binary::Or) {
        return [value(operator, factor, a[0], b[0]); 2];
    }
    if a[0].is_nan() || b[0].is_nan() {
        return [f64::NAN; 2];
    }
    let decided = |is_true: bool, is_false: bool| match (is_true, is_false) {
        (true, _) => [1.0; 2],
        (_, true) => [0.0; 2],
        _ => [f64::NAN; 2],
    };
    let is_apart = a[1] < b[0] || b[1] < a[0];
    match operator {
        Binary::Add => [a[0] + b[0], a[1] + b[1]],
        Binary::Subtract => [a[0] - b[1], a[1] - b[0]],
        Binary::Multiply => ends(a, b, |a, b| a * b * factor),
        Binary::Divide if b[0] > 0.0 || b[1] < 0.0 => ends(a, b, |a, b| a / b * factor),
        // The divisor can be zero, or arbitrarily close to zero from above.
        Binary::Divide if b[0] == 0.0 && a[0] >= 0.0 => {
            [if b[1] == f64::INFINITY { 0.0 } else { a[0] / b[1] * factor }, f64::INFINITY]
        }
        Binary::Divide => [f64::NEG_INFINITY, f64::INFINITY],
        Binary::Less => decided(a[1] < b[0], a[0] >= b[1]),
        Binary::LessOrEqual => decided(a[1] <= b[0], a[0] > b[1]),
        Binary::Greater => decided(a[0] > b[1], a[1] <= b[0]),
        Binary::GreaterOrEqual => decided(a[0] >= b[1], a[1] < b[0]),
        Binary::Equal => decided(false, is_apart),
        Binary::NotEqual => decided(is_apart, false),
        Binary::And | Binary::Or => [f64::NAN; 2],
    }
}

/// Returns the least and the greatest result for the ends of two ranges. 0 · ∞ and ∞ / ∞ are left out, because the
/// other ends bound them.
fn ends(a: [f64; 2], b: [f64; 2], of: impl Fn(f64, f64) -> f64) -> [f64; 2] {
    let all = [of(a[0], b[0]), of(a[0], b[1]), of(a[1], b[0]), of(a[1], b[1])];
    [all.into_iter().fold(f64::NAN, f64::min), all.into_iter().fold(f64::NAN, f64::max)]
}

/// Joins two values, or two ranges.
#[inline(always)]
pub(crate) fn joined<const L: usize>(operator: Joined, factor: f64, a: [f64; L], b: [f64; L]) -> [f64; L] {
    match operator {
        Joined::Select => {
            // Vector instructions need an expression without branches.
            let mark = if b[0].is_nan() { UNDECIDED } else { REMOVED };
            if b[0] == 1.0 { a } else { [mark; L] }
        }
        Joined::Later => std::array::from_fn(|lane| a[lane].max(b[lane])),
        Joined::Operator(operator) => operated(operator, factor, a, b),
    }
}

/// Computes an operator on two values, or on two ranges.
#[inline(always)]
pub(crate) fn operated<const L: usize>(operator: Binary, factor: f64, a: [f64; L], b: [f64; L]) -> [f64; L] {
    if L == 1 {
        return [value(operator, factor, a[0], b[0]); L];
    }
    let range = range(operator, factor, [a[0], a[L - 1]], [b[0], b[L - 1]]);
    std::array::from_fn(|lane| range[lane])
}
