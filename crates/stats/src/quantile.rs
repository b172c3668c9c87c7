//! Quantiles of values at hand.

/// The quantile `q` of values in ascending order, `0 ≤ q ≤ 1`; none without values or for another `q`.
///
/// Interpolates linearly between the two values around position `q · (n − 1)`, counted from 0: type 7 of Hyndman and
/// Fan, *Sample Quantiles in Statistical Packages*, 1996, which is also what NumPy, R and most spreadsheets do by default.
/// An infinite neighbour makes an infinite quantile, unless the position hits the finite value exactly; between both
/// infinities it is NaN. The values are expected in order ([`f64::total_cmp`]) and free of NaN.
///
/// ```
/// use ascertain_stats::quantile_sorted;
/// let times = [1.0, 2.0, 4.0, f64::INFINITY];
/// assert_eq!(quantile_sorted(&times, 0.5), Some(3.0));
/// assert_eq!(quantile_sorted(&times, 0.9), Some(f64::INFINITY));
/// assert_eq!(quantile_sorted(&[], 0.5), None);
/// ```
pub fn quantile_sorted(values: &[f64], q: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    if !(0.0..=1.0).contains(&q) {
        return None;
    }
    let position = q * last as f64;
    let index = (position as usize).min(last);
    let fraction = position - index as f64;
    let (low, high) = (values[index], values[(index + 1).min(last)]);
    if fraction == 0.0 || low == high {
        return Some(low);
    }
    let distance = high - low;
    if distance.is_finite() {
        // Rounding may carry the sum past the upper value.
        return Some((low + distance * fraction).min(high));
    }
    Some(low * (1.0 - fraction) + high * fraction)
}

/// The median of values in ascending order: the middle one, or halfway between the two in the middle; none without
/// values. See [`quantile_sorted`].
///
/// ```
/// assert_eq!(ascertain_stats::median_sorted(&[1.0, 3.0, 7.0]), Some(3.0));
/// ```
pub fn median_sorted(values: &[f64]) -> Option<f64> {
    quantile_sorted(values, 0.5)
}
