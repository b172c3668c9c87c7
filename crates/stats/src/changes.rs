//! Change points of a series: the places where its level rises or falls and stays there.
//!
//! As long as nothing changes, all orders of the values are equally likely. If the values rise at some place, the later
//! values tend to be the larger ones. Lehmann's alternative describes this: going through the values from the largest
//! to the smallest, each later value is `θ` times as likely to come next as each earlier value. Under this alternative
//! an order of `n` values has the probability
//! ```text
//!              n   w(i)
//! P(order) =   ∏  ──────    w(i): the weight of the i-th smallest value, θ or 1
//!             i=1  W(i)     W(i): the sum of the weights of the i smallest values
//! ```
//! and its ratio to the probability `1/n!` without a change is the evidence for a change at this place (Savage, 1956).
//! While nothing changes, the evidence for each place is a martingale that starts at 1. Therefore the sum over all
//! places grows by 1 per value on average: it is an e-detector (Shin, Ramdas and Rinaldo, 2022). Whenever you stop, the
//! expected sum is at most the expected number of values. An alarm at a sum of `A` is therefore false at most once in
//! `A` values on average. The values need not be normal; they only need to be exchangeable. Places that are left out
//! make the sum smaller, so the bound still holds.

use crate::median_sorted;

/// The average number of values between two false alarms is at least this number, see [`change_points`].
pub const VALUES_PER_FALSE_ALARM: f64 = 1000.0;

/// The values of `θ`, over which the evidence is averaged. Large ones find a clear step soon, small ones a step that is
/// hardly larger than the noise.
const ODDS: [f64; 3] = [4.0, 16.0, 64.0];

/// Number of values after a place that are needed before its evidence counts. With fewer, two outliers in a row would be
/// a change.
const FEWEST_AFTER: usize = 5;

/// Number of latest values among which a change is searched.
const MOST_AFTER: usize = 50;

/// Number of values before a change with which the later values are compared. A slow drift over more values than these
/// is no evidence. From the 101st value on, places are compared with different values. The proof of the bound does not
/// cover this, but simulations of long series do.
const MOST_BEFORE: usize = 100;

/// Smallest evidence of a likely place for the change, relative to the place with the most evidence. Ranks do not show
/// how far apart values are. Therefore the sizes of the values choose between the likely places.
const LIKELY: f64 = 0.01;

/// A place where the level of a series changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangePoint {
    /// Index of the first value at the new level. This is an estimate: of the places with much evidence, the one that
    /// divides the values into two parts with the smallest deviations.
    pub first: usize,
    /// Index of the value with which the evidence was enough.
    pub found: usize,
}

/// Returns the change points of a series, in their order. Each is found from the values up to `found` alone, so a
/// longer series has the same change points and perhaps more.
///
/// # Guarantee
///
/// If the values are exchangeable, the first false alarm comes after [`VALUES_PER_FALSE_ALARM`] values or more on
/// average. After a change, the search continues from the first value at the new level. Simulations show 0.4 to 0.5
/// false alarms per 1,000 values, including those that follow a false alarm. Values that are equal count as evidence against a
/// change between them. NaN is above all other values.
///
/// ```
/// use ascertain_stats::{ChangePoint, change_points};
/// let noise = |index: usize| (index * 7919 % 100) as f64 / 5000.0;
/// let values: Vec<f64> = (0..40).map(|index| if index < 20 { 1.0 } else { 1.05 } + noise(index)).collect();
/// assert_eq!(change_points(&values), [ChangePoint { first: 20, found: 24 }]);
/// assert_eq!(change_points(&values[..20]), []);
/// ```
pub fn change_points(values: &[f64]) -> Vec<ChangePoint> {
    let (mut changes, mut start) = (Vec::new(), 0);
    for end in 1..=values.len() {
        if let Some(first) = latest_change(values, start, end) {
            changes.push(ChangePoint { first, found: end - 1 });
            start = first;
        }
    }
    changes
}

/// Returns the place of a change in `start..end`, if the evidence for all places together is enough.
fn latest_change(values: &[f64], start: usize, end: usize) -> Option<usize> {
    let oldest = start.max(end.saturating_sub(MOST_AFTER + MOST_BEFORE));
    // Among equal values, the later ones come first. This is the order with the least evidence.
    let mut rising: Vec<usize> = (oldest..end).rev().collect();
    let mut falling = rising.clone();
    rising.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    falling.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    let evidence_for = |first: usize| {
        let of_orders = [&rising, &falling].map(|order| ODDS.map(|odds| evidence(order, first, odds)));
        of_orders.as_flattened().iter().sum::<f64>() / (2 * ODDS.len()) as f64
    };
    let firsts = end.saturating_sub(MOST_AFTER).max(start + 1)..end;
    let places: Vec<(usize, f64)> = firsts.map(|first| (first, evidence_for(first))).collect();
    let counted = places.iter().filter(|(first, _)| first + FEWEST_AFTER <= end);
    if counted.map(|(_, evidence)| evidence).sum::<f64>() < VALUES_PER_FALSE_ALARM {
        return None;
    }
    // With four values at the new level, the place before them may already be enough for an alarm, but it is not likely.
    let most = places.iter().map(|(_, evidence)| *evidence).fold(0.0, f64::max);
    let likely = places.iter().filter(|(_, evidence)| *evidence >= most * LIKELY);
    let spread = |first: usize| deviations(&values[oldest..first]) + deviations(&values[first..end]);
    likely.map(|(first, _)| (*first, spread(*first))).min_by(|a, b| a.1.total_cmp(&b.1)).map(|(first, _)| first)
}

/// Returns the sum of the distances from the median.
fn deviations(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = median_sorted(&sorted).unwrap_or(f64::NAN);
    sorted.iter().map(|value| (value - median).abs()).sum()
}

/// Returns the evidence that the values from the index `first` on are larger than those before. `order` has the indices
/// of the values, sorted from the smallest value to the largest.
fn evidence(order: &[usize], first: usize, odds: f64) -> f64 {
    let oldest = first.saturating_sub(MOST_BEFORE);
    let (mut evidence, mut rank, mut weights) = (1.0, 0.0, 0.0);
    for &index in order.iter().filter(|&&index| index >= oldest) {
        let weight = if index >= first { odds } else { 1.0 };
        rank += 1.0;
        weights += weight;
        evidence *= rank * weight / weights;
    }
    evidence
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `visit` with each order of the indices.
    fn permute(order: &mut Vec<usize>, fixed: usize, visit: &mut impl FnMut(&[usize])) {
        if fixed == order.len() {
            return visit(order);
        }
        for next in fixed..order.len() {
            order.swap(fixed, next);
            permute(order, fixed + 1, visit);
            order.swap(fixed, next);
        }
    }

    /// The bound on false alarms rests on this: on average over all orders, the evidence is 1.
    #[test]
    fn the_evidence_is_fair() {
        for first in 1..6 {
            for odds in ODDS {
                let (mut sum, mut orders) = (0.0, 0.0);
                permute(&mut (0..6).collect(), 0, &mut |order| {
                    sum += evidence(order, first, odds);
                    orders += 1.0;
                });
                assert!(orders == 720.0 && (sum / orders - 1.0).abs() < 1e-12, "{first} {odds}: {sum}");
            }
        }
    }

    #[test]
    fn separated_values_are_the_most_evidence() {
        // With infinite odds, the evidence is the number of ways to choose the 3 largest of 10.
        assert!((evidence(&(0..10).collect::<Vec<_>>(), 7, 1e12) - 120.0).abs() < 1e-6);
        assert!(evidence(&(0..10).rev().collect::<Vec<_>>(), 7, 1e12) < 1e-6);
    }
}
