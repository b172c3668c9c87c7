//! Statistics without rounding, and their comparison, which shows whether a reshuffle is an exceedance. They are only
//! used if the bounds of an [enclosure] do not decide.
//!
//! [enclosure]: crate::enclosure::Enclosure

use std::cmp::Ordering;

use ascertain_numeric::sum::Exact;

use crate::dyadic::Dyadic;
use crate::question::{Alternative, Comparison, Question, Statistic};
use crate::shuffled::QuantilePosition;

/// The statistic of each sample without rounding, multiplied by a factor that is the same for all samples. No
/// comparison of differences or ratios depends on that factor.
///
/// Means are multiplied by the product of all sizes. Variances take the place of standard deviations, and are
/// multiplied by the product of `n · (n − 1)` over all sizes `n`. Quantiles have no factor.
pub(crate) type Statistics = Vec<Dyadic>;

/// Returns the statistics of samples with these values, without rounding. Returns `None` if the square of a value would
/// lose digits by underflow. May reorder the values within a sample.
pub(crate) fn statistics(samples: &mut [&mut [f64]], statistic: Statistic) -> Option<Statistics> {
    let sizes: Vec<usize> = samples.iter().map(|sample| sample.len()).collect();
    let totals = |samples: &[&mut [f64]]| samples.iter().map(|sample| total(sample)).collect::<Vec<Dyadic>>();
    match statistic {
        Statistic::Mean => Some(means(&totals(samples), &sizes)),
        Statistic::StandardDeviation => {
            let squares = samples.iter().map(|sample| has_exact_squares(sample).then(|| total_of_squares(sample)));
            Some(variances(&totals(samples), &squares.collect::<Option<Vec<Dyadic>>>()?, &sizes))
        }
        Statistic::Quantile(level) => {
            let of = |sample: &mut &mut [f64]| {
                let place = QuantilePosition::new(level, sample.len());
                let (low, high) = place.select(sample);
                quantile(place, low, high)
            };
            Some(samples.iter_mut().map(of).collect())
        }
    }
}

/// Computes the means from the samples' sums. All means are multiplied by the product of all sizes, so that nothing is
/// divided.
pub(crate) fn means(totals: &[Dyadic], sizes: &[usize]) -> Statistics {
    let each = totals.iter().enumerate();
    each.map(|(index, total)| total.times(&of_others(sizes, index, |size| size))).collect()
}

/// Computes the variances from the samples' sums and sums of squares. All variances are multiplied by the same product,
/// that of `n · (n − 1)` over the sizes `n` of all samples. For each sample, `n · Σx² − (Σx)²` is `n` times the sum of
/// squared deviations from the mean.
pub(crate) fn variances(totals: &[Dyadic], squares: &[Dyadic], sizes: &[usize]) -> Statistics {
    let each = totals.iter().zip(squares).enumerate().map(|(index, (total, squares))| {
        let deviations = squares.times(&Dyadic::whole(sizes[index] as u64)).minus(&total.times(total));
        deviations.times(&of_others(sizes, index, |size| size * (size - 1)))
    });
    each.collect()
}

/// Returns the quantile at a position between the values `low` and `high`.
pub(crate) fn quantile(place: QuantilePosition, low: f64, high: f64) -> Dyadic {
    let (low, high) = (Dyadic::from_f64(low), Dyadic::from_f64(high));
    low.plus(&high.minus(&low).times(&Dyadic::from_f64(place.fraction)))
}

fn of_others(sizes: &[usize], index: usize, factor: fn(u64) -> u64) -> Dyadic {
    let others = sizes.iter().enumerate().filter(|(other, _)| *other != index);
    others.fold(Dyadic::whole(1), |product, (_, size)| product.times(&Dyadic::whole(factor(*size as u64))))
}

fn total(sample: &[f64]) -> Dyadic {
    let mut sum = Exact::new();
    sum.add_slice(sample);
    Dyadic::from_sum(sum)
}

/// Sums squares exactly: each square is a double plus its rounding error (Dekker's product, by a fused multiply-add).
fn total_of_squares(sample: &[f64]) -> Dyadic {
    let squares: Vec<f64> = sample.iter().flat_map(|x| [x * x, x.mul_add(*x, -(x * x))]).collect();
    total(&squares)
}

/// Returns whether no number's square loses digits by underflow. For this, the last digit of each square must be within
/// the range of a double.
pub(crate) fn has_exact_squares(numbers: &[f64]) -> bool {
    /// Smallest magnitude whose square has its last bit within the range of a double: 2·(−480 − 52) ≥ −1074.
    const LEAST: f64 = f64::from_bits((1023 - 480) << 52);
    numbers.iter().all(|x| *x == 0.0 || x.abs() >= LEAST)
}

/// Returns whether these statistics are at least as far apart as the observed ones. The null hypothesis of the question
/// must have no shift and no scale.
pub(crate) fn exceeds(question: &Question, statistics: &Statistics, observed: &Statistics) -> bool {
    let ((low, high), (observed_low, observed_high)) = (ends(question, statistics), ends(question, observed));
    let order = match (question.comparison, question.statistic) {
        // Both sides of the inequality are rearranged so that all terms are sums of roots.
        (Comparison::Difference, Statistic::StandardDeviation) => {
            compare_roots([high, observed_low], [observed_high, low])
        }
        (Comparison::Difference, _) => high.minus(low).cmp(&observed_high.minus(observed_low)),
        // Compares high / low with observed_high / observed_low; none is negative.
        (Comparison::Ratio, _) => high.times(observed_low).cmp(&observed_high.times(low)),
    };
    if question.alternative == Alternative::Less { order.is_le() } else { order.is_ge() }
}

/// Returns the two statistics that are compared. The comparison subtracts the first from the second, or divides the
/// second by the first. In a one-sided question these are the statistics of the two samples, otherwise the smallest and
/// the greatest statistic.
fn ends<'a>(question: &Question, statistics: &'a Statistics) -> (&'a Dyadic, &'a Dyadic) {
    match (question.alternative, statistics.as_slice()) {
        (Alternative::Greater | Alternative::Less, [first, second]) => (first, second),
        (_, several) => {
            several.iter().fold((&several[0], &several[0]), |(low, high), each| (low.min(each), high.max(each)))
        }
    }
}

/// Compares `√a + √b` with `√c + √d`, where all four numbers are at least 0. Squares both sides until no root is left.
fn compare_roots([a, b]: [&Dyadic; 2], [c, d]: [&Dyadic; 2]) -> Ordering {
    let four = Dyadic::whole(4);
    // Compares a + b − c − d + 2√ab with 2√cd: p + √u with √w.
    let p = a.plus(b).minus(&c.plus(d));
    let (u, w) = (four.times(&a.times(b)), four.times(&c.times(d)));
    let squared = p.times(&p);
    if p.sign().is_lt() && u < squared {
        return Ordering::Less;
    }
    // Now p + √u is not negative. Compares 2p√u with w − p² − u.
    let rest = w.minus(&squared).minus(&u);
    let left = if u.sign().is_eq() { Ordering::Equal } else { p.sign() };
    if left != rest.sign() {
        return left.cmp(&rest.sign());
    }
    let order = four.times(&squared).times(&u).cmp(&rest.times(&rest));
    if left.is_lt() { order.reverse() } else { order }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some of these sums are equal, such as √2 + √8 and √0 + √18. All other sums differ so much that doubles can tell
    /// them apart.
    #[test]
    fn roots_are_compared_as_they_are() {
        let numbers = [0_u64, 1, 2, 3, 4, 8, 9, 16, 18, 24, 25, 50];
        let root = |number: u64| (number as f64).sqrt();
        for (a, b) in numbers.iter().flat_map(|a| numbers.map(|b| (*a, b))) {
            for (c, d) in numbers.iter().flat_map(|c| numbers.map(|d| (*c, d))) {
                let [x, y, z, w] = [a, b, c, d].map(Dyadic::whole);
                let apart = root(a) + root(b) - root(c) - root(d);
                let expected = if apart.abs() < 1e-9 { Ordering::Equal } else { apart.total_cmp(&0.0) };
                assert_eq!(compare_roots([&x, &y], [&z, &w]), expected, "√{a} + √{b} against √{c} + √{d}");
            }
        }
    }
}
