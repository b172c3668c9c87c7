//! The statistics of a calibration: how many decided comparisons chance explains, and Welch's test of hyperfine's
//! samples.

/// Returns the largest number of successes that chance explains: the probability of more successes is below `chance`.
/// There are `n` trials, each with the probability `p` of success.
pub fn most(n: u64, p: f64, chance: f64) -> u64 {
    let log_factorial = |k: u64| libm::lgamma(k as f64 + 1.0);
    let probability = |k: u64| {
        let log_ways = log_factorial(n) - log_factorial(k) - log_factorial(n - k);
        (log_ways + k as f64 * p.ln() + (n - k) as f64 * (-p).ln_1p()).exp()
    };
    // Adds the terms from the highest count down. The smallest terms come first, so that the sum keeps its precision.
    let mut beyond = 0.0;
    let mut is_beyond = |k: &u64| {
        beyond += probability(*k);
        beyond < chance
    };
    (0..=n).rev().find(|k| !is_beyond(k)).unwrap_or(0)
}

/// Returns the two-sided p-value for the hypothesis that two samples have the same mean (Welch's t-test).
pub fn p_value(a: &[f64], b: &[f64]) -> f64 {
    let moments = |values: &[f64]| {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, variance / n, n - 1.0)
    };
    let ((mean_a, var_a, free_a), (mean_b, var_b, free_b)) = (moments(a), moments(b));
    let t = (mean_a - mean_b) / (var_a + var_b).sqrt();
    let freedom = (var_a + var_b).powi(2) / (var_a.powi(2) / free_a + var_b.powi(2) / free_b);
    2.0 * tail(t.abs(), freedom)
}

/// Returns the probability that Student's t with `freedom` degrees of freedom exceeds `t`, computed with Simpson's
/// rule.
fn tail(t: f64, freedom: f64) -> f64 {
    let half = (freedom + 1.0) / 2.0;
    let log_scale = libm::lgamma(half) - libm::lgamma(freedom / 2.0) - 0.5 * (freedom * std::f64::consts::PI).ln();
    let density = |x: f64| (log_scale - half * (x * x / freedom).ln_1p()).exp();
    let steps = 4000;
    let width = t / f64::from(steps);
    let inner = (1..steps).map(|i| density(width * f64::from(i)) * if i % 2 == 1 { 4.0 } else { 2.0 });
    let below = width / 3.0 * (density(0.0) + density(t) + inner.sum::<f64>());
    (0.5 - below).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::{most, tail};

    #[test]
    fn more_than_that_is_rarer_than_the_chance() {
        // For two fair coins and the number X of heads, P(X > 0) = 0.75, P(X > 1) = 0.25 and P(X > 2) = 0.
        assert_eq!([0.8, 0.5, 0.2].map(|chance| most(2, 0.5, chance)), [0, 1, 2]);
        // Expected values by R: qbinom(1e-6, n, p, lower.tail = FALSE).
        assert_eq!(most(200, 0.001, 1e-6), 5);
        assert_eq!(most(200, 0.05, 1e-6), 27);
        assert_eq!(most(1, 0.001, 1e-6), 1, "one that is decided is no proof");
    }

    #[test]
    fn tails_are_those_of_the_tables() {
        for (t, freedom, chance) in [(2.228, 10.0, 0.025), (1.645, 1e6, 0.05), (12.706, 1.0, 0.025)] {
            assert!((tail(t, freedom) - chance).abs() < 2e-4, "{t} {freedom}");
        }
    }
}
