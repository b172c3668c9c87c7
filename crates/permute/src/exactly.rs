//! Statistics without rounding, and whether a reshuffle is an exceedance by them: for what an [enclosure] leaves in
//! doubt.
//!
//! [enclosure]: crate::enclosure::Enclosure

use std::cmp::Ordering;

use ascertain_numeric::sum::Exact;

use crate::dyadic::Dyadic;
use crate::question::{Alternative, Comparison, Question, Statistic};
use crate::shuffled::Place;

/// Each sample's statistic up to a factor that all have in common, which no comparison of differences or ratios heeds:
/// the mean times the product of the sizes, the variance in place of the standard deviation times that of each size and
/// the one below it, the quantile itself.
pub(crate) type Statistics = Vec<Dyadic>;

/// Of samples of these values; none where squares of them have digits below those of any double. May reorder the values
/// within a sample.
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
                let place = Place::of(level, sample.len());
                let (low, high) = place.select(sample);
                quantile(place, low, high)
            };
            Some(samples.iter_mut().map(of).collect())
        }
    }
}

/// From the samples' sums.
pub(crate) fn means(totals: &[Dyadic], sizes: &[usize]) -> Statistics {
    let each = totals.iter().enumerate();
    each.map(|(index, total)| total.times(&of_others(sizes, index, |size| size))).collect()
}

/// From the samples' sums and sums of squares: `n` times the sum of squared deviations from the mean is
/// `n · Σx² − (Σx)²`.
pub(crate) fn variances(totals: &[Dyadic], squares: &[Dyadic], sizes: &[usize]) -> Statistics {
    let each = totals.iter().zip(squares).enumerate().map(|(index, (total, squares))| {
        let deviations = squares.times(&Dyadic::whole(sizes[index] as u64)).minus(&total.times(total));
        deviations.times(&of_others(sizes, index, |size| size * (size - 1)))
    });
    each.collect()
}

/// The quantile between two values.
pub(crate) fn quantile(place: Place, low: f64, high: f64) -> Dyadic {
    let (low, high) = (Dyadic::of(low), Dyadic::of(high));
    low.plus(&high.minus(&low).times(&Dyadic::of(place.fraction)))
}

fn of_others(sizes: &[usize], index: usize, factor: fn(u64) -> u64) -> Dyadic {
    let others = sizes.iter().enumerate().filter(|(other, _)| *other != index);
    others.fold(Dyadic::whole(1), |product, (_, size)| product.times(&Dyadic::whole(factor(*size as u64))))
}

fn total(sample: &[f64]) -> Dyadic {
    let mut sum = Exact::new();
    sum.add_slice(sample);
    Dyadic::of_sum(sum)
}

/// A square is a double and what that leaves of it (Dekker's product, by a fused multiplication and addition).
fn total_of_squares(sample: &[f64]) -> Dyadic {
    let squares: Vec<f64> = sample.iter().flat_map(|x| [x * x, x.mul_add(*x, -(x * x))]).collect();
    total(&squares)
}

/// Whether no square of a number has digits below those of the least double.
pub(crate) fn has_exact_squares(numbers: &[f64]) -> bool {
    /// The last bit of a greater number's square is a double: 2·(−480 − 52) ≥ −1074.
    const LEAST: f64 = f64::from_bits((1023 - 480) << 52);
    numbers.iter().all(|x| *x == 0.0 || x.abs() >= LEAST)
}

/// Whether these statistics are at least as far apart as the observed ones, in the sense of a question whose null
/// hypothesis neither shifts nor scales.
pub(crate) fn exceeds(question: &Question, statistics: &Statistics, observed: &Statistics) -> bool {
    let ((low, high), (observed_low, observed_high)) = (ends(question, statistics), ends(question, observed));
    let order = match (question.comparison, question.statistic) {
        // What is subtracted changes sides, so that all are sums of roots.
        (Comparison::Difference, Statistic::StandardDeviation) => {
            compare_roots([high, observed_low], [observed_high, low])
        }
        (Comparison::Difference, _) => high.minus(low).cmp(&observed_high.minus(observed_low)),
        // high / low against observed_high / observed_low; none is negative.
        (Comparison::Ratio, _) => high.times(observed_low).cmp(&observed_high.times(low)),
    };
    if question.alternative == Alternative::Less { order.is_le() } else { order.is_ge() }
}

/// What is subtracted, or divided by, and what from.
fn ends<'a>(question: &Question, statistics: &'a Statistics) -> (&'a Dyadic, &'a Dyadic) {
    match (question.alternative, statistics.as_slice()) {
        (Alternative::Greater | Alternative::Less, [first, second]) => (first, second),
        (_, several) => {
            several.iter().fold((&several[0], &several[0]), |(low, high), each| (low.min(each), high.max(each)))
        }
    }
}

/// Compares `√a + √b` with `√c + √d`, none of which is negative, by squaring both sides until no root is left.
fn compare_roots([a, b]: [&Dyadic; 2], [c, d]: [&Dyadic; 2]) -> Ordering {
    let four = Dyadic::whole(4);
    // a + b − c − d + 2√ab against 2√cd: p + √u against √w.
    let p = a.plus(b).minus(&c.plus(d));
    let (u, w) = (four.times(&a.times(b)), four.times(&c.times(d)));
    let squared = p.times(&p);
    if p.sign().is_lt() && u < squared {
        return Ordering::Less;
    }
    // Now p + √u is not negative: 2p√u against w − p² − u.
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

    /// Squares have whole roots; neighbours of them are compared by doubles, which tell these apart.
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
